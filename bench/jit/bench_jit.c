/* SPDX-License-Identifier: MIT */
/*
 * bench_jit.c - CPU time to write and to read code of a JIT
 *
 *	bench_jit write N FOLDER	a dump of N functions of 64 bytes
 *	bench_jit stream N		the same to the Seam that records it
 *	bench_jit read FILE		index it, find every function once
 *
 * Prints "NAME VALUE UNIT" lines.  CPU time of this thread, not wall time: the
 * machine may be busy.
 */
#include <seam/jitdump.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbol/jit/jit_code.h"

enum { CODE_BYTES = 64, NAME_BYTES = 64 };

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SEAM_NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct seam_jitdump_code *make_codes(size_t n)
{
	static const uint8_t bytes[CODE_BYTES];
	struct seam_jitdump_code *codes = calloc(n, sizeof(*codes));
	char *names = malloc(n * NAME_BYTES);

	if (!codes || !names)
		abort();
	for (size_t i = 0; i < n; i++, names += NAME_BYTES) {
		snprintf(names, NAME_BYTES, "jitfunc_%zu_some_class::method_%zu",
			 i, i % 97);
		codes[i] = (struct seam_jitdump_code) {
			.name = names, .bytes = bytes, .size = sizeof(bytes),
			.addr = 0x7f0000000000 + i * sizeof(bytes),
		};
	}
	return codes;
}

/* How the functions are handed over: how many a call, and buffered or not. */
static void write_as(const char *name, const char *folder,
		     struct seam_jitdump_code *codes, size_t n,
		     size_t n_a_call, int is_buffered)
{
	struct seam_jitdump_options options = {
		.folder = folder, .is_buffered = is_buffered,
	};
	struct seam_jitdump *dump;
	uint64_t start;
	int r;

	if (seam_jitdump_open(&dump, &options)) {
		fprintf(stderr, "bench_jit: cannot make a dump in %s\n",
			folder ? folder : "a ring");
		exit(1);
	}
	start = cpu_ns();
	for (size_t i = 0; i < n; i += n_a_call)
		seam_jitdump_load(dump, codes + i, n_a_call);
	r = seam_jitdump_flush(dump);
	printf("%s %.0f ns/function\n", name,
	       (double)(cpu_ns() - start) / (double)n);
	/* Not part of it: until the recorder has taken all. */
	while (r == -ENOBUFS) {
		usleep(1000);
		r = seam_jitdump_flush(dump);
	}
	seam_jitdump_close(dump);
}

static int write_dumps(size_t n, const char *folder)
{
	struct seam_jitdump_code *codes = make_codes(n);

	write_as("write_each", folder, codes, n, 1, 0);
	write_as("write_buffered", folder, codes, n, 1, 1);
	write_as("write_at_once", folder, codes, n, n, 0);
	printf("dump %s/jit-%d.dump file\n", folder, getpid());
	return 0;
}

static int stream(size_t n)
{
	struct seam_jitdump_code *codes = make_codes(n);

	if (!getenv("SEAM_LINK")) {
		fprintf(stderr, "bench_jit: no recorder\n");
		return 1;
	}
	write_as("write_streamed", NULL, codes, n, 1, 0);
	write_as("write_streamed_at_once", NULL, codes, n, n, 0);
	return 0;
}

static int read_dump(const char *path)
{
	struct seam_jit_code_options options = { .pid = 1 };
	struct seam_jit_code *jit = seam_jit_code_new();
	struct seam_jit_location location;
	struct seam_err err = { 0 };
	struct seam_file file;
	size_t n, n_found = 0;
	uint64_t start, indexed;

	if (seam_file_open(&file, path, &err)) {
		seam_err_print(stderr, "bench_jit", &err);
		return 1;
	}
	start = cpu_ns();
	if (seam_jit_code_add_dump(jit, file.bytes, &options, &err) ||
	    seam_jit_code_index(jit)) {
		seam_err_print(stderr, "bench_jit", &err);
		return 1;
	}
	indexed = cpu_ns();
	n = seam_jit_code_count(jit);
	for (uint32_t i = 0; i < n; i++) {
		const struct seam_jit_object *o = seam_jit_code_object(jit, i);

		n_found += seam_jit_code_find(jit, 1, o->start_addr +
					      o->size / 2, o->loaded_ns,
					      &location);
	}
	printf("read_functions %zu functions\n", n);
	printf("read_index %.2f ms\n", (double)(indexed - start) / 1e6);
	printf("read_find %.0f ns/function\n",
	       (double)(cpu_ns() - indexed) / (double)(n ? n : 1));
	printf("read_found %zu functions\n", n_found);
	seam_jit_code_free(jit);
	seam_file_close(&file);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "write") == 0)
		return write_dumps(strtoul(argv[2], NULL, 10), argv[3]);
	if (argc == 3 && strcmp(argv[1], "stream") == 0)
		return stream(strtoul(argv[2], NULL, 10));
	if (argc == 3 && strcmp(argv[1], "read") == 0)
		return read_dump(argv[2]);
	fprintf(stderr, "usage: bench_jit write N FOLDER | stream N | "
		"read FILE\n");
	return 2;
}
