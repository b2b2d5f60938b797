/* SPDX-License-Identifier: MIT */
/* jit_written.h - dumps of a few functions, and what is in their files */
#ifndef SEAM_TEST_JIT_WRITTEN_H
#define SEAM_TEST_JIT_WRITTEN_H

#include <seam/jitdump.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "folder.h"
#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

static const uint8_t bytes[] = { 0x31, 0xc0, 0xc3, 0x90, 0x90 };

static inline struct seam_jitdump *open_as(enum seam_jitdump_format format,
				    int is_buffered)
{
	struct seam_jitdump_options options = {
		.folder = folder, .format = format,
		.is_buffered = is_buffered,
	};
	struct seam_jitdump *dump;

	assert_int_equal(seam_jitdump_open(&dump, &options), 0);
	return dump;
}

static inline struct seam_jitdump *open_dump(void)
{
	return open_as(SEAM_JITDUMP_FORMAT_DUMP, 0);
}

static inline uint64_t load(struct seam_jitdump *dump, const char *name,
			    uint64_t addr)
{
	struct seam_jitdump_code code = {
		.name = name, .bytes = bytes, .size = sizeof(bytes),
		.addr = addr,
	};

	seam_jitdump_load(dump, &code, 1);
	return code.id;
}

/* No file becomes larger than @max bytes; RLIM_INFINITY: as before. */
static inline void limit_files(rlim_t max)
{
	static struct rlimit before;
	struct rlimit limit;

	if (!before.rlim_max)
		getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	if (max < before.rlim_cur)
		limit.rlim_cur = max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- reading back ---- */

struct reading {
	struct seam_file file;
	struct seam_jitdump_reader reader;
};

static inline void read_path(struct reading *r, const char *path)
{
	assert_int_equal(seam_file_open(&r->file, path, NULL), 0);
	assert_int_equal(seam_jitdump_begin(&r->reader, r->file.bytes, NULL),
			 0);
}

static inline struct seam_jitdump_record next(struct reading *r,
				       enum seam_jitdump_id id)
{
	struct seam_jitdump_record record;

	assert_true(seam_jitdump_next(&r->reader, &record));
	assert_int_equal(record.id, id);
	return record;
}

/* No record is left, none was bad and none is cut. */
static inline void read_end(struct reading *r)
{
	struct seam_jitdump_record record;

	assert_false(seam_jitdump_next(&r->reader, &record));
	for (int n = 0; n < SEAM_JITDUMP_N_NOTES; n++)
		assert_int_equal(r->reader.n_notes[n], 0);
	seam_file_close(&r->file);
}

static inline void count_loads(const char *path, uint64_t *n)
{
	struct seam_jitdump_record rec;
	struct reading r;

	read_path(&r, path);
	for (*n = 0; seam_jitdump_next(&r.reader, &rec); )
		*n += rec.id == SEAM_JITDUMP_LOAD;
	assert_int_equal(r.reader.tail_bytes, 0);
	seam_file_close(&r.file);
}

/* ---- children ---- */

/* Run @work in a child and expect it to return 0. */
static inline void in_child(int (*work)(struct seam_jitdump *dump),
		     struct seam_jitdump *dump)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(work(dump));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static inline int call_once(struct seam_jitdump *dump)
{
	load(dump, "own", 0x7000);
	return seam_jitdump_lost(dump) != 0;
}

static inline void find_child_file(char *path, size_t cap)
{
	char command[256];
	FILE *list;

	snprintf(command, sizeof(command), "ls %s/* | grep -v -e '-%d\\.'",
		 folder, getpid());
	list = popen(command, "r");
	assert_non_null(list);
	assert_non_null(fgets(path, (int)cap, list));
	path[strcspn(path, "\n")] = '\0';
	pclose(list);
}

#endif /* SEAM_TEST_JIT_WRITTEN_H */
