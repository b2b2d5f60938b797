/* SPDX-License-Identifier: MIT */
/*
 * test_xray_log_file.c - a log that grows, is killed, finds the disk full, and
 * whose blocks are joined
 */

#include "base/file.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_index.h"
#include "wire/xray/xray_log_file.h"
#include "unit.h"

enum {
	HZ = 1000000000,
	PID = 9,
	MAX_THREADS = 40,
	N_CALLS = 5,		/* records of a piece */
};

static int new_file(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int make_log(struct seam_xray_log *log)
{
	int fd = new_file();

	assert_int_equal(seam_xray_log_begin(log, fd, HZ), 0);
	return fd;
}

/* A writer: its thread, the number of its pieces so far. */
struct source {
	struct seam_xray_log *log;
	int32_t tid;
	uint32_t n;
};

/*
 * NewCPUId and N_CALLS entries; of the first the function's id is the piece's
 * number, of the others the thread.
 */
static int append_piece(struct source *s)
{
	uint8_t records[16 + 8 * N_CALLS] = { 2 << 1 | 1 };
	uint64_t tsc = 1000 * ++s->n;
	struct seam_xray_log_thread thread = {
		.pid = PID, .tid = s->tid,
		.wall_us = s->n * UINT64_C(1000000) + 7,
	};
	int r;

	memcpy(records + 3, &tsc, sizeof(tsc));
	for (uint32_t i = 0; i < N_CALLS; i++) {
		uint32_t word[2] = {
			seam_xray_word(i ? (uint32_t)s->tid : s->n,
				       SEAM_XRAY_ENTRY), 1 };

		memcpy(records + 16 + 8 * i, word, sizeof(word));
	}
	r = seam_xray_log_append(s->log, &thread, records, sizeof(records));
	s->n -= r < 0;
	return r;
}

/* Blocks and, by thread, the events, which have to be in order. */
struct found {
	size_t n_blocks, n_wrong;	/* problems, wrong extents */
	size_t by_thread[MAX_THREADS];	/* blocks */
	uint32_t pieces[MAX_THREADS];
	uint64_t n_events;
};

static void read_block(const struct seam_xray_index *index,
		       const struct seam_xray_block *block, struct found *found)
{
	static struct seam_xray_batch batch;
	struct seam_xray_block_reader reader;
	uint32_t thread = (uint32_t)block->tid;
	uint64_t last = 0, i = 0;

	assert_in_range(thread, 1, MAX_THREADS - 1);
	assert_int_equal(block->pid, PID);
	found->by_thread[thread]++;
	/* when its first piece began */
	assert_int_equal(block->wall_ns,
			 (found->pieces[thread] + 1) * UINT64_C(1000000000) +
			 7000);
	seam_xray_block_open(&reader, index, block);
	do {
		seam_xray_block_next(&reader, &batch);
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

/* The first @size bytes of the log on @fd. */
static struct found read_log(int fd, size_t size)
{
	struct seam_xray_index index = { 0 };
	uint8_t *bytes = malloc(size);
	struct found found = { 0 };

	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, size, 0), size);
	assert_int_equal(seam_xray_index_build(&index,
		(struct seam_bytes) { bytes, size }, NULL), 0);
	assert_int_equal(index.sections.items[0].header.cycle_frequency, HZ);
	found.n_blocks = index.blocks.n;
	found.n_wrong = index.problems.n + index.n_extents;
	for (size_t i = 0; i < index.blocks.n; i++)
		read_block(&index, &index.blocks.items[i], &found);
	seam_xray_index_fini(&index);
	free(bytes);
	return found;
}

static size_t size_of(int fd)
{
	return (size_t)lseek(fd, 0, SEEK_END);
}

UNIT_TEST(a_thread_that_goes_on_has_one_block)
{
	struct seam_xray_log log;
	struct source s[] = { { &log, 5, 0 }, { &log, 6, 0 } };
	int fd = make_log(&log);
	struct found found;

	for (int i = 0; i < 6; i++)
		assert_int_equal(append_piece(&s[i == 3]), 0);
	found = read_log(fd, log.bytes);
	assert_int_equal(found.n_wrong, 0);
	assert_int_equal(found.n_blocks, 3);
	assert_int_equal(log.n_blocks, 3);
	assert_int_equal(found.by_thread[5], 2);
	assert_int_equal(found.n_events, 6 * N_CALLS);
	close(fd);
}

UNIT_TEST(blocks_of_a_thread_grow_with_the_log)
{
	static const uint8_t body[SEAM_XRAY_CHUNK_BYTES];
	const struct seam_xray_log_thread thread = { .pid = PID, .tid = 5 };
	struct seam_xray_log log;
	int fd = make_log(&log);

	while (log.bytes < 140 << 20)
		assert_int_equal(seam_xray_log_append(&log, &thread, body,
						      sizeof(body)), 0);
	/* 4, 4, 8, 16, 32, 64 MiB, and some */
	assert_int_equal(log.n_blocks, 7);
	close(fd);
}

/* A killed writer leaves any part of what it wrote last. */
UNIT_TEST(a_log_that_is_cut_has_what_was_before)
{
	struct seam_xray_log log;
	struct source s[] = { { &log, 5, 0 }, { &log, 6, 0 }, { &log, 7, 0 } };
	int fd = make_log(&log);
	uint64_t before;

	append_piece(&s[0]);
	append_piece(&s[1]);
	for (int i = 1; i < 3; i++) {
		uint64_t n = i == 1 ? 2 : 3;

		before = log.bytes;
		append_piece(&s[i]);
		for (size_t size = before; size < log.bytes; size++) {
			struct found found = read_log(fd, size);

			assert_in_range(found.n_events, n * N_CALLS,
					(n + 1) * N_CALLS - 1);
			assert_true(found.n_blocks >= 2);
		}
	}
	close(fd);
}

/* Each byte of a file may be the last that there is room for. */
UNIT_TEST(a_full_disk_leaves_a_valid_log)
{
	struct seam_xray_log log, first;
	struct source s[] = { { &log, 5, 0 }, { &log, 6, 0 } };
	struct rlimit limit, old;
	char name[] = "/tmp/xray_log.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(seam_xray_log_begin(&log, fd, HZ), 0);
	append_piece(&s[0]);
	first = log;
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	for (int i = 0; i < 2; i++)
		for (size_t room = 0; room < 24; room += 4) {
			struct found found;

			limit.rlim_cur = log.bytes + room;
			setrlimit(RLIMIT_FSIZE, &limit);
			assert_true(append_piece(&s[i]) < 0);
			setrlimit(RLIMIT_FSIZE, &old);
			assert_memory_equal(&log, &first, sizeof(log));
			assert_int_equal(size_of(fd), log.bytes);
			found = read_log(fd, log.bytes);
			assert_int_equal(found.n_wrong, 0);
			assert_int_equal(found.n_events, N_CALLS);
		}
	assert_int_equal(append_piece(&s[0]), 0);
	assert_int_equal(read_log(fd, log.bytes).n_events, 2 * N_CALLS);
	close(fd);
}

/* ---- joined ---- */

UNIT_TEST(few_blocks_are_left_as_they_are)
{
	struct seam_xray_log log;
	struct source s = { &log, 1, 0 };
	int fd = make_log(&log), to = new_file();
	struct found found;

	for (int i = 0; i < 100; i++)
		assert_int_equal(append_piece(&s), 0);
	found = read_log(fd, log.bytes);
	assert_int_equal(found.n_blocks, 1);
	assert_int_equal(found.n_events, 100 * N_CALLS);
	assert_int_equal(found.n_wrong, 0);
	assert_int_equal(seam_xray_log_join(&log, to, NULL, NULL), 0);
	assert_int_equal(size_of(to), 0);
	close(fd);
	close(to);
}

/* Threads take turns, the first more often, so that all blocks are apart. */
static void append_of_many(struct seam_xray_log *log, uint32_t n_threads,
			   uint32_t n_rounds)
{
	struct source s[MAX_THREADS];

	for (uint32_t t = 1; t <= n_threads; t++)
		s[t] = (struct source) { log, (int32_t)t, 0 };
	for (uint32_t i = 0; i < n_rounds; i++)
		for (uint32_t t = 1; t <= n_threads; t++)
			for (uint32_t k = t; k <= n_threads; k += t)
				assert_int_equal(append_piece(&s[t]), 0);
}

UNIT_TEST(joined_no_thread_has_more_than_16)
{
	for (uint32_t rounds = 1; rounds < 60; rounds += 3) {
		struct found before, after;
		struct seam_xray_log log;
		int fd = make_log(&log), to = new_file();

		append_of_many(&log, MAX_THREADS - 1, rounds);
		before = read_log(fd, log.bytes);
		assert_int_equal(seam_xray_log_join(&log, to, NULL, NULL),
				 rounds > SEAM_XRAY_LOG_BLOCKS);
		if (rounds > SEAM_XRAY_LOG_BLOCKS) {
			after = read_log(to, size_of(to));
			assert_int_equal(after.n_wrong, 0);
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

UNIT_TEST(a_caller_ends_it_after_any_step)
{
	struct seam_xray_log log;
	int fd = make_log(&log), n_left, n = 0, r;

	append_of_many(&log, 2, 17);
	do {
		int to = new_file();

		n_left = ++n;
		r = seam_xray_log_join(&log, to, is_before, &n_left);
		assert_true(r == 1 || (r == -EINTR && n_left == 0));
		close(to);
	} while (r != 1);
	assert_in_range(n, 17, 1000);
	close(fd);
}

/* Whatever the bytes: an error, or a log of no other size. */
UNIT_TEST(damage_is_refused_or_copied_as_it_is)
{
	struct seam_xray_log log;
	int fd = make_log(&log);
	uint64_t bytes;

	append_of_many(&log, 2, 17);
	bytes = log.bytes;
	for (uint64_t at = 0; at < bytes; at++) {
		int to = new_file(), r;

		log.bytes = at;
		r = seam_xray_log_join(&log, to, NULL, NULL);
		assert_true(r == -EBADMSG || r == 0 || r == 1);
		close(to);
	}
	log.bytes = bytes;
	for (uint64_t at = SEAM_XRAY_HEADER_BYTES; at < bytes; at++) {
		int to = new_file(), r;
		uint8_t byte, bad;

		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		bad = byte ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
		r = seam_xray_log_join(&log, to, NULL, NULL);
		assert_true(r == -EBADMSG || r == 1 || r == 0);
		if (r == 1)
			assert_true(size_of(to) <= bytes);
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		close(to);
	}
	close(fd);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
