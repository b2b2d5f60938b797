/* SPDX-License-Identifier: MIT */
/* test_xray_log_file.c - a log that grows, is killed, finds the disk full */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "chunk_made.h"
#include "wire/xray/xray_index.h"
#include "wire/xray/xray_log_file.h"

static const struct seam_xray_header header = {
	.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR,
	.flags = 3, .cycle_frequency = 1000000000,
	.buffer_size = SEAM_XRAY_CHUNK_BYTES,
};

static struct chunk chunk;
static uint8_t body[SEAM_XRAY_CHUNK_BYTES];

/* A body with one call of @function, and more bytes where @fill is. */
static size_t make_body(uint32_t function, size_t fill)
{
	struct seam_xray_chunk found;

	chunk_begin(&chunk, 1, 2, 3, 4, 5);
	chunk_call(&chunk, SEAM_XRAY_ENTRY, function, 1);
	while (chunk.n < fill && chunk_call(&chunk, SEAM_XRAY_EXIT, 9, 1))
		;
	seam_xray_chunk_read(chunk.bytes, chunk.n, body, NULL, &found);
	assert_int_equal(found.bad_bytes, 0);
	return found.n_bytes;
}

static int make_log(struct seam_xray_log *log)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(seam_xray_log_begin(log, fd, &header), 0);
	return fd;
}

static int append(struct seam_xray_log *log, int32_t tid, uint32_t function,
		  size_t fill)
{
	const struct seam_xray_log_thread thread = {
		.pid = 77, .tid = tid, .wall_us = 5000000 + function,
	};

	return seam_xray_log_append(log, &thread, body,
				    make_body(function, fill));
}

struct read_log {
	struct seam_xray_index index;
	uint8_t *bytes;
	uint64_t n_calls;
};

static void read_log(struct read_log *l, int fd, size_t size)
{
	struct seam_xray_block_reader reader;
	static struct seam_xray_batch batch;

	l->n_calls = 0;
	l->bytes = malloc(size);
	assert_non_null(l->bytes);
	assert_int_equal(pread(fd, l->bytes, size, 0), size);
	assert_int_equal(seam_xray_index_build(&l->index,
		(struct seam_bytes) { l->bytes, size }, NULL), 0);
	for (size_t i = 0; i < l->index.blocks.n; i++) {
		seam_xray_block_open(&reader, &l->index,
				     &l->index.blocks.items[i]);
		do {
			seam_xray_block_next(&reader, &batch);
			l->n_calls += batch.n;
		} while (batch.n);
	}
}

static void free_log(struct read_log *l)
{
	seam_xray_index_fini(&l->index);
	free(l->bytes);
}

static void a_thread_that_goes_on_has_one_block(void **state)
{
	static const int32_t tids[] = { 5, 5, 5, 6, 5, 5 };
	struct seam_xray_log log;
	struct read_log l;
	int fd = make_log(&log);

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(append(&log, tids[i], i + 1, 0), 0);
	read_log(&l, fd, log.bytes);
	assert_int_equal(l.index.problems.n, 0);
	assert_int_equal(l.index.n_extents, 0);
	assert_int_equal(l.index.blocks.n, 3);
	assert_int_equal(log.n_blocks, 3);
	assert_int_equal(l.n_calls, 6);
	assert_int_equal(l.index.blocks.items[0].tid, 5);
	assert_int_equal(l.index.blocks.items[1].tid, 6);
	assert_int_equal(l.index.blocks.items[2].pid, 77);
	/* when its first chunk began */
	assert_true(l.index.blocks.items[0].wall_ns == 5000001000);
	assert_true(l.index.blocks.items[2].wall_ns == 5000005000);
	free_log(&l);
	close(fd);
}

static void blocks_of_a_thread_grow_with_the_log(void **state)
{
	struct seam_xray_log log;
	int fd = make_log(&log);
	int n = 0;

	(void)state;
	for (; log.bytes < 140 << 20; n++)
		assert_int_equal(append(&log, 5, 1, SEAM_XRAY_CHUNK_BYTES), 0);
	/* 4, 4, 8, 16, 32, 64 MiB, and some */
	assert_int_equal(log.n_blocks, 7);
	close(fd);
}

/* A killed writer leaves any part of what it wrote last. */
static void a_log_that_is_cut_has_what_was_before(void **state)
{
	struct seam_xray_log log;
	struct read_log l;
	int fd = make_log(&log);
	size_t before;

	(void)state;
	append(&log, 5, 1, 0);
	append(&log, 6, 2, 0);
	before = log.bytes;
	append(&log, 6, 3, 0);
	for (size_t size = before; size < log.bytes; size++) {
		read_log(&l, fd, size);
		assert_int_equal(l.index.blocks.n, 2);
		assert_true(l.n_calls == 2);
		free_log(&l);
	}
	append(&log, 7, 3, 0);
	for (size_t size = log.bytes - 1; size > before + 24; size--) {
		read_log(&l, fd, size);
		assert_true(l.n_calls == 3);
		free_log(&l);
	}
	close(fd);
}

/* Each byte of a file may be the last that there is room for. */
static void a_full_disk_leaves_a_valid_log(void **state)
{
	struct seam_xray_log log, first;
	struct read_log l;
	struct rlimit limit, old;
	char name[] = "/tmp/xray_log.XXXXXX";
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(seam_xray_log_begin(&log, fd, &header), 0);
	append(&log, 5, 1, 0);
	first = log;
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	for (int32_t tid = 5; tid < 7; tid++)
		for (size_t room = 0; room < 24; room += 4) {
			limit.rlim_cur = log.bytes + room;
			setrlimit(RLIMIT_FSIZE, &limit);
			assert_true(append(&log, tid, 2, 0) < 0);
			setrlimit(RLIMIT_FSIZE, &old);
			assert_memory_equal(&log, &first, sizeof(log));
			assert_int_equal(lseek(fd, 0, SEEK_END), log.bytes);
			read_log(&l, fd, log.bytes);
			assert_int_equal(l.index.problems.n, 0);
			assert_int_equal(l.n_calls, 1);
			free_log(&l);
		}
	assert_int_equal(append(&log, 5, 2, 0), 0);
	read_log(&l, fd, log.bytes);
	assert_int_equal(l.n_calls, 2);
	free_log(&l);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_goes_on_has_one_block),
		cmocka_unit_test(blocks_of_a_thread_grow_with_the_log),
		cmocka_unit_test(a_log_that_is_cut_has_what_was_before),
		cmocka_unit_test(a_full_disk_leaves_a_valid_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
