/* SPDX-License-Identifier: MIT */
/* jit_corpus.h - the dumps of real runtimes, for tests */
#ifndef SEAM_TESTS_JIT_CORPUS_H
#define SEAM_TESTS_JIT_CORPUS_H

#include "base/file.h"

#include <stdlib.h>
#include <unistd.h>

/*
 * All bytes of $SEAM_CORPUS/jit/@name, unpacked where it ends in .xz or .gz.
 * False when it is not there, or cannot be unpacked.
 */
static inline bool jit_corpus_read(const char *name, struct seam_file *file)
{
	const char *root = getenv("SEAM_CORPUS");
	char path[4096], command[8192];
	FILE *pipe;
	int r;

	*file = (struct seam_file) { 0 };
	snprintf(path, sizeof(path), "%s/jit/%s", root ? root : "", name);
	if (!root || access(path, R_OK))
		return false;
	if (!strstr(name, ".xz") && !strstr(name, ".gz"))
		return !seam_file_open(file, path, NULL);
	snprintf(command, sizeof(command), "%s -dc '%s' 2>/dev/null",
		 strstr(name, ".xz") ? "xz" : "gzip", path);
	pipe = popen(command, "r");
	if (!pipe)
		return false;
	r = seam_file_read_fd(file, fileno(pipe), SIZE_MAX, NULL);
	return pclose(pipe) == 0 && r == 0 && file->bytes.size > 0;
}

/* Every dump there is: its file and how many records of each kind it has. */
static const struct jit_corpus_dump {
	const char *name;
	unsigned int n_loads, n_debug, n_close, n_unwinding;
	int pid;
} jit_corpus_dumps[] = {
	{ "bun-jsc-jitdump/jit-31939-31937.dump", 769, 0, 0, 0, 31937 },
	{ "bun-jsc-jitdump/jit-31988-31985.dump", 4, 0, 0, 0, 31985 },
	{ "cpython313-perfjit/jit-30109.dump", 810, 0, 0, 810, 30109 },
	{ "cpython313-perfjit-dwarf/jit-31302.dump", 810, 0, 0, 810, 31302 },
	{ "erlang25-jpperf-dump/jit-27930.dump.xz", 14861, 5632, 0, 0, 27930 },
	{ "java17-jvmti/jit-29996.dump", 589, 112, 1, 0, 29996 },
	{ "lli14-mcjit/jit-29836.dump", 3, 3, 0, 0, 29836 },
	{ "lli15-mcjit/jit-29874.dump", 3, 3, 0, 0, 29874 },
	{ "lli19-mcjit/jit-29950.dump", 3, 3, 0, 0, 29950 },
	{ "node20-multiprocess-workers/jit-31240.dump.xz",
	  4480, 114, 0, 4480, 31240 },
	{ "node20-multiprocess-workers/jit-31248.dump.xz",
	  2214, 32, 0, 2214, 31248 },
	{ "node20-multiprocess-workers/jit-31249.dump.xz",
	  2214, 32, 0, 2214, 31249 },
	{ "node20-perfprof/jit-27809.dump.xz", 3148, 432, 0, 3148, 27809 },
	{ "node20-perfprof-unwind/jit-27852.dump.xz",
	  2615, 432, 0, 2615, 27852 },
	{ "php82-tracing-dump/jit-29135.dump", 56, 0, 1, 0, 29135 },
	{ "postgres15-llvmjit/jit-31742.dump", 25, 0, 0, 0, 31742 },
};

#endif /* SEAM_TESTS_JIT_CORPUS_H */
