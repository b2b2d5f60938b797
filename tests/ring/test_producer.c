/* SPDX-License-Identifier: MIT */
/* test_producer.c - the promises of ring/producer/producer.h */
#include "fixture.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

static uint8_t record[UINT16_MAX];

UNIT_TEST(pads_a_payload_with_zeros)
{
	open_fixture(0, false);
	memset(f.memory + PAGE, 0xff, DATA);
	for (size_t n = 0; n < 40; n++) {
		uint8_t bytes[40];

		memset(bytes, 7, sizeof(bytes));
		assert_int_equal(seam_ring_write(&f.out, 9, 3, bytes, n), 0);
		assert_int_equal(take_record(record), 9);
		assert_int_equal(record[4], 3);
		assert_int_equal(record[6], (8 + n + 7) / 8 * 8);
		for (size_t i = 8; i < record[6]; i++)
			assert_int_equal(record[i], i < 8 + n ? 7 : 0);
	}
}

UNIT_TEST(puts_in_pieces_of_any_size)
{
	struct seam_ring_writer w;
	uint8_t bytes[100];

	open_fixture(DATA - 40, false);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	assert_int_equal(seam_ring_begin(&f.out, &w, 9, 0, 100), 0);
	for (size_t i = 0, n = 1; i < 100; i += n, n++)
		seam_ring_put(&w, bytes + i, n < 100 - i ? n : 100 - i);
	seam_ring_put(&w, bytes, 100);		/* more than there is room */
	seam_ring_end(&w);
	assert_int_equal(take_record(record), 9);
	assert_memory_equal(record + 8, bytes, 100);
	assert_int_equal(record[108], 0);
}

UNIT_TEST(refuses_when_full_and_reports_it_when_there_is_room)
{
	int n = 0, lost;

	open_fixture(0, false);
	f.out.id = 77;
	while (put_record(9, 64, 1) == 0)
		n++;
	/* 8 bytes are left free, as the kernel does. */
	assert_int_equal(n, (DATA - 8) / 64);
	for (lost = 1; lost < 5; lost++)
		assert_int_equal(put_record(9, 64, 1), -ENOBUFS);
	assert_int_equal(f.state->n_lost[SEAM_RING_LOST_FULL], lost);
	assert_int_equal(take_record(record), 9);
	/* room for the record, but not for the one that goes before it */
	assert_int_equal(put_record(9, 104, 2), -ENOBUFS);
	assert_int_equal(put_record(9, 96, 2), 0);
	for (int i = 0; i < n - 1; i++)
		assert_int_equal(take_record(record), 9);
	assert_int_equal(take_record(record), PERF_RECORD_LOST);
	assert_int_equal(word_at(record, 8), 77);
	assert_int_equal(word_at(record, 16), lost + 1);
	assert_int_equal(take_record(record), 9);
	assert_int_equal(record[8], 2);
	assert_int_equal(f.state->n_begun, n + 1);
	assert_int_equal(f.state->n_lost_unreported, 0);
}

UNIT_TEST(counts_what_is_too_big_as_such)
{
	struct seam_ring_writer w;

	open_fixture(0, false);
	assert_int_equal(put_record(9, DATA, 1), -EMSGSIZE);
	assert_int_equal(seam_ring_begin(&f.out, &w, 9, 0, 65528), -EMSGSIZE);
	assert_int_equal(seam_ring_begin(&f.out, &w, 9, 0, SIZE_MAX),
			 -EMSGSIZE);
	assert_int_equal(f.state->n_lost[SEAM_RING_LOST_BIG], 3);
	/* the largest that ever fits does so behind a LOST record */
	assert_int_equal(put_record(9, DATA - 32, 1), 0);
	assert_int_equal(take_record(record), PERF_RECORD_LOST);
	assert_int_equal(word_at(record, 16), 3);
}

UNIT_TEST(shows_nested_records_when_the_outermost_ends)
{
	struct seam_ring_writer w[SEAM_RING_MAX_NESTED], more;

	open_fixture(0, false);
	for (uint32_t i = 0; i < SEAM_RING_MAX_NESTED; i++)
		assert_int_equal(seam_ring_begin(&f.out, &w[i], 100 + i, 0,
						 8), 0);
	assert_int_equal(seam_ring_begin(&f.out, &more, 9, 0, 8), -EBUSY);
	for (uint32_t i = SEAM_RING_MAX_NESTED; i-- > 0;) {
		assert_int_equal(take_record(record), 0);
		seam_ring_end(&w[i]);
	}
	for (uint32_t i = 0; i < SEAM_RING_MAX_NESTED; i++)
		assert_int_equal(take_record(record), 100 + i);
	assert_int_equal(f.state->n_lost[SEAM_RING_LOST_NESTED], 1);
}

UNIT_TEST(publishes_for_those_inside_a_writer_that_failed)
{
	struct seam_ring_writer w;

	open_fixture(0, false);
	assert_int_equal(seam_ring_begin(&f.out, &w, 9, 0, DATA / 2), 0);
	assert_int_equal(put_record(9, DATA / 2, 0), -ENOBUFS);
	assert_int_equal(take_record(record), 0);
	seam_ring_end(&w);
	assert_int_equal(take_record(record), 9);
	assert_int_equal(f.state->nest, 0);
}

UNIT_TEST(a_tail_that_cannot_be_makes_it_full)
{
	static const uint64_t tails[] = { 8, DATA, 1 << 30,
					  UINT64_C(1) << 63, (uint64_t)-DATA };
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(tails); i++) {
		open_fixture(0, false);
		atomic_store(&f.control->data_tail, tails[i]);
		assert_int_equal(put_record(9, 64, 1), -ENOBUFS);
	}
}

/* A wakeup as the recorder makes it: [0] is its end, [1] the program's. */
static void make_wakeup(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0,
				    ends), 0);
}

/* How often the wakeup was sent. */
static size_t count_wakeups(int fd)
{
	size_t n = 0;
	char c;

	while (recv(fd, &c, sizeof(c), MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

UNIT_TEST(wakes_once_for_each_watermark)
{
	struct seam_ring_wakeup wakeup;
	int ends[2];

	make_wakeup(ends);
	seam_ring_wakeup_init(&wakeup, ends[1]);
	open_fixture(0, false);
	f.out.wakeup = &wakeup;
	f.out.watermark = 128;
	for (int i = 1; i <= 30; i++) {
		errno = 4711;
		put_record(9, 64, 1);
		assert_int_equal(errno, 4711);
		assert_int_equal(count_wakeups(ends[0]), i % 3 == 0);
	}
	assert_int_equal(f.state->n_wakeups, 10);
	close(ends[0]);
	close(ends[1]);
}

/* @fd is the program's own now, and comes to be where the wakeup was. */
static void expect_silence(const struct seam_ring_wakeup *wakeup, int fd)
{
	assert_int_equal(dup2(fd, wakeup->fd), wakeup->fd);
	errno = 5;
	assert_false(seam_ring_wakeup_send(wakeup));
	assert_int_equal(errno, 5);
}

UNIT_TEST(never_wakes_through_a_file_that_took_its_place)
{
	int ends[2], pipes[2], other[2], counter;
	struct seam_ring_wakeup wakeup;
	uint64_t n;

	make_wakeup(ends);
	make_wakeup(other);
	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	counter = eventfd(0, EFD_NONBLOCK);
	seam_ring_wakeup_init(&wakeup, ends[1]);
	assert_true(seam_ring_wakeup_send(&wakeup));
	assert_int_equal(count_wakeups(ends[0]), 1);

	expect_silence(&wakeup, pipes[1]);
	expect_silence(&wakeup, counter);
	expect_silence(&wakeup, other[1]);
	close(wakeup.fd);
	assert_false(seam_ring_wakeup_send(&wakeup));
	assert_int_equal(read(pipes[0], &n, sizeof(n)), -1);
	assert_int_equal(read(counter, &n, sizeof(n)), -1);
	assert_int_equal(count_wakeups(other[0]), 0);

	/* What is no socket is no wakeup: two of a kind could be the same. */
	seam_ring_wakeup_init(&wakeup, counter);
	assert_false(seam_ring_wakeup_send(&wakeup));
	seam_ring_wakeup_init(&wakeup, -1);
	assert_false(seam_ring_wakeup_send(&wakeup));
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(other[i]);
	}
	close(counter);
	close(ends[0]);
}

UNIT_TEST(a_wakeup_that_nobody_reads_never_waits)
{
	struct seam_ring_wakeup wakeup;
	int ends[2];

	make_wakeup(ends);
	seam_ring_wakeup_init(&wakeup, ends[1]);
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	alarm(20);		/* hanging is failing */
	/* Once is enough to be called: that it is full says it was sent. */
	for (int i = 0; i < 10000; i++)
		assert_true(seam_ring_wakeup_send(&wakeup));
	assert_true(count_wakeups(ends[0]) > 0);
	close(ends[0]);
	assert_false(seam_ring_wakeup_send(&wakeup));
	alarm(0);
	close(ends[1]);
}

UNIT_MAIN(NULL, NULL, NULL, close_fixture)
