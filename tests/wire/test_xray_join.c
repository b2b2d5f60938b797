/* SPDX-License-Identifier: MIT */
/* test_xray_join.c - joining blocks changes no event */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/file.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_index.h"
#include "wire/xray/xray_join.h"
#include "wire/xray/xray_log_file.h"

enum {
	HZ = 1000000000,
	MAX_THREADS = 40,
	N_CALLS = 5,		/* records of a piece */
};

static const struct seam_xray_header header = {
	.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR, .flags = 3,
	.cycle_frequency = HZ, .buffer_size = SEAM_XRAY_CHUNK_BYTES,
};

/* A writer: its thread, the number of its pieces so far. */
struct source {
	struct seam_xray_log *log;
	int32_t pid, tid;
	uint32_t n;
};

static int new_file(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/*
 * NewCPUId and N_CALLS entries; of the first the function's id is the piece's
 * number, of the others the thread.
 */
static int append_piece(struct source *s)
{
	uint8_t records[16 + 8 * N_CALLS] = { 2 << 1 | 1 };
	uint64_t tsc = 1000 * ++s->n;
	struct seam_xray_log_thread thread = {
		.pid = s->pid, .tid = s->tid,
		.wall_us = s->n * UINT64_C(1000000) + 7,
	};

	memcpy(records + 3, &tsc, sizeof(tsc));
	for (uint32_t i = 0; i < N_CALLS; i++) {
		uint32_t word[2] = {
			seam_xray_word(i ? (uint32_t)s->tid : s->n,
				       SEAM_XRAY_ENTRY), 1 };

		memcpy(records + 16 + 8 * i, word, sizeof(word));
	}
	return seam_xray_log_append(s->log, &thread, records,
				    sizeof(records));
}

/* Blocks and, by thread, the events, which have to be in order. */
struct found {
	size_t n_blocks, n_problems, n_extents;
	size_t by_thread[MAX_THREADS];	/* blocks */
	uint32_t pieces[MAX_THREADS];
	uint64_t n_events;
};

static void read_thread_block(const struct seam_xray_index *index,
			      const struct seam_xray_block *block,
			      struct found *found)
{
	static struct seam_xray_batch batch;
	struct seam_xray_block_reader reader;
	uint32_t thread = (uint32_t)block->tid;
	uint64_t last = 0, i = 0;

	assert_in_range(thread, 1, MAX_THREADS - 1);
	found->by_thread[thread]++;
	assert_int_equal(block->wall_ns / 1000000000,
			 found->pieces[thread] + 1);
	seam_xray_block_open(&reader, index, block);
	do {
		assert_int_equal(seam_xray_block_next(&reader, &batch), 0);
		for (size_t e = 0; e < batch.n; e++, i++) {
			assert_true(batch.events[e].tsc > last);
			last = batch.events[e].tsc;
			assert_int_equal(batch.events[e].function,
					 i % N_CALLS ? thread :
					 ++found->pieces[thread]);
		}
	} while (batch.n);
	found->n_events += i;
}

/* The log on @fd, whose blocks must follow each other to the end. */
static void read_log(int fd, struct found *found)
{
	struct seam_xray_index index = { 0 };
	struct seam_file file;

	*found = (struct found) { 0 };
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(seam_file_read_fd(&file, fd, 64 << 20, NULL), 0);
	assert_int_equal(seam_xray_index_build(&index, file.bytes, NULL), 0);
	assert_int_equal(index.sections.items[0].header.cycle_frequency, HZ);
	found->n_blocks = index.blocks.n;
	found->n_problems = index.problems.n;
	found->n_extents = index.n_extents;
	for (size_t i = 0; i < index.blocks.n; i++)
		read_thread_block(&index, &index.blocks.items[i], found);
	seam_xray_index_fini(&index);
	seam_file_close(&file);
}

static void few_blocks_are_left_as_they_are(void **state)
{
	struct seam_xray_log log;
	struct source s = { .log = &log, .pid = 1, .tid = 1 };
	struct found found;
	int fd = new_file(), to = new_file();

	(void)state;
	assert_int_equal(seam_xray_log_begin(&log, fd, &header), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(append_piece(&s), 0);
		read_log(fd, &found);
		assert_int_equal(found.n_blocks, 1);
		assert_int_equal(found.n_events, (i + 1) * N_CALLS);
		assert_int_equal(found.n_problems + found.n_extents, 0);
	}
	assert_int_equal(seam_xray_join(fd, log.bytes, to, NULL), 0);
	assert_int_equal(lseek(to, 0, SEEK_END), 0);
	close(fd);
	close(to);
}

/* Threads take turns, the first more often, so that all blocks are apart. */
static void append_of_many(struct seam_xray_log *log, uint32_t n_threads,
			   uint32_t n_rounds)
{
	struct source s[MAX_THREADS];

	for (uint32_t t = 1; t <= n_threads; t++)
		s[t] = (struct source) { .log = log, .pid = 9,
					 .tid = (int32_t)t };
	for (uint32_t i = 0; i < n_rounds; i++)
		for (uint32_t t = 1; t <= n_threads; t++)
			for (uint32_t k = t; k <= n_threads; k += t)
				assert_int_equal(append_piece(&s[t]), 0);
}

static void joined_no_thread_has_more_than_16(void **state)
{
	(void)state;
	for (uint32_t rounds = 1; rounds < 60; rounds += 3) {
		struct found before, after;
		struct seam_xray_log log;
		int fd = new_file(), to = new_file();

		assert_int_equal(seam_xray_log_begin(&log, fd, &header), 0);
		append_of_many(&log, MAX_THREADS - 1, rounds);
		read_log(fd, &before);
		assert_int_equal(seam_xray_join(fd, log.bytes, to, NULL),
				 rounds > SEAM_XRAY_LOG_BLOCKS);
		if (rounds > SEAM_XRAY_LOG_BLOCKS) {
			read_log(to, &after);
			assert_int_equal(after.n_problems + after.n_extents, 0);
			assert_int_equal(after.n_events, before.n_events);
			assert_memory_equal(after.pieces, before.pieces,
					    sizeof(after.pieces));
			for (int t = 0; t < MAX_THREADS; t++)
				assert_in_range(after.by_thread[t], 0,
						SEAM_XRAY_LOG_BLOCKS);
		}
		close(fd);
		close(to);
	}
}

static bool is_before(void *context, uint64_t bytes)
{
	return bytes && --*(int *)context > 0;
}

static void a_caller_ends_it_after_any_step(void **state)
{
	struct seam_xray_log log;
	int fd = new_file(), n_left, n = 0, r;

	(void)state;
	assert_int_equal(seam_xray_log_begin(&log, fd, &header), 0);
	append_of_many(&log, 2, 17);
	do {
		const struct seam_xray_join_step step = { is_before, &n_left };
		int to = new_file();

		n_left = ++n;
		r = seam_xray_join(fd, log.bytes, to, &step);
		assert_true(r == 1 || (r == -EINTR && n_left == 0));
		close(to);
	} while (r != 1);
	assert_in_range(n, 17, 1000);
	close(fd);
}

/* Whatever the bytes: an error, or a log of no other size. */
static void damage_is_refused_or_copied_as_it_is(void **state)
{
	struct seam_xray_log log;
	int fd = new_file();
	uint64_t bytes;

	(void)state;
	assert_int_equal(seam_xray_log_begin(&log, fd, &header), 0);
	append_of_many(&log, 2, 17);
	bytes = log.bytes;
	for (uint64_t at = 0; at < bytes; at++) {
		int to = new_file(), r = seam_xray_join(fd, at, to, NULL);

		assert_true(r == -EBADMSG || r == 0 || r == 1);
		close(to);
	}
	for (uint64_t at = SEAM_XRAY_HEADER_BYTES; at < bytes; at++) {
		int to = new_file(), r;
		uint8_t byte, bad;

		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		bad = byte ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
		r = seam_xray_join(fd, bytes, to, NULL);
		assert_true(r == -EBADMSG || r == 1 || r == 0);
		if (r == 1)
			assert_true(lseek(to, 0, SEEK_END) <= (off_t)bytes);
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		close(to);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_blocks_are_left_as_they_are),
		cmocka_unit_test(joined_no_thread_has_more_than_16),
		cmocka_unit_test(a_caller_ends_it_after_any_step),
		cmocka_unit_test(damage_is_refused_or_copied_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
