/* SPDX-License-Identifier: MIT */
/* test_backward.c - copies of rings that the kernel overwrites: consumer.h */
#include "fixture.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

/* As the kernel: a record below the last one, over what is there. */
static void put_below(uint32_t type, uint16_t size, uint8_t fill)
{
	uint64_t head = atomic_load(&f.control->data_head) - size;
	const struct seam_ring_header header = { .type = type, .size = size };
	uint8_t bytes[128];

	memset(bytes, fill, size);
	memcpy(bytes, &header, sizeof(header));
	seam_ring_store(f.memory + PAGE, DATA - 1, head, bytes, size);
	atomic_store(&f.control->data_head, head);
}

/* Records 0..n-1 of sizes that vary; the number is in the type. */
static void fill(uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		put_below(1000 + i, (uint16_t)(16 + i % 9 * 8), (uint8_t)i);
}

/* The newest must be @last; the others follow without a gap. */
static size_t check(const struct seam_ring_snapshot *shot, uint32_t last)
{
	struct seam_ring_header header;
	size_t pos = 0, n = 0;

	for (; seam_ring_record(&shot->span, pos, &header); n++) {
		uint32_t i = last - (uint32_t)n;

		assert_int_equal(header.type, 1000 + i);
		assert_int_equal(header.size, 16 + i % 9 * 8);
		for (size_t k = 8; k < header.size; k++)
			assert_int_equal(shot->copy[pos + k], (uint8_t)i);
		pos += header.size;
	}
	assert_int_equal(pos, shot->span.size[0]);
	return n;
}

UNIT_TEST(holds_every_record_before_the_first_wrap)
{
	static const uint64_t starts[] = { 0, 4096, 72, UINT64_MAX - 7,
					   UINT64_C(1) << 32 };
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(starts); i++) {
		struct seam_ring_snapshot shot;

		open_fixture(starts[i], false);
		seam_ring_snapshot_init(&shot, DATA, NULL);
		assert_int_equal(seam_ring_snapshot(&f.in, &shot), 0);
		fill(0, 50);
		seam_ring_snapshot(&f.in, &shot);
		assert_int_equal(check(&shot, 49), 50);
		seam_ring_snapshot_fini(&shot);
	}
}

UNIT_TEST(ends_at_the_record_that_is_partly_overwritten)
{
	struct seam_ring_snapshot shot;

	open_fixture(0, false);
	seam_ring_snapshot_init(&shot, DATA, NULL);
	for (uint32_t n = 0; n < 500; n++) {
		uint64_t bytes = 0;
		uint32_t whole = 0;

		fill(n, 1);
		for (uint32_t i = n + 1; i-- > 0; whole++) {
			bytes += 16 + i % 9 * 8;
			if (bytes > DATA)
				break;
		}
		seam_ring_snapshot(&f.in, &shot);
		assert_int_equal(check(&shot, n), whole);
	}
	seam_ring_snapshot_fini(&shot);
}

UNIT_TEST(refuses_records_while_paused_and_counts_them)
{
	uint8_t record[UINT16_MAX];

	open_fixture(0, false);
	seam_ring_pause(f.control, true);
	assert_int_equal(put_record(9, 64, 1), -EAGAIN);
	assert_int_equal(f.state->n_lost[SEAM_RING_LOST_PAUSED], 1);
	seam_ring_pause(f.control, false);
	assert_int_equal(put_record(9, 64, 1), 0);
	assert_int_equal(take_record(record), PERF_RECORD_LOST);
	assert_int_equal(take_record(record), 9);
}

/* The kernel as the producer: page faults of ours. */
static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS, .sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR, .write_backward = 1,
		.exclude_kernel = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

UNIT_TEST(reads_a_ring_that_the_kernel_overwrites)
{
	size_t size = 400 * PAGE;
	struct seam_ring_snapshot shot;
	struct seam_ring_header header;
	struct seam_ring ring;
	int fd = open_event();
	uint8_t *pages;
	size_t pos = 0, i = 399;

	if (fd < 0) { /* as in a sandbox, where there is nothing to map */
		assert_true(errno == EACCES || errno == EPERM ||
			    errno == ENOSYS);
		return;
	}
	assert_int_equal(seam_ring_map(&ring, fd, DATA, true, NULL), 0);
	seam_ring_snapshot_init(&shot, DATA, NULL);
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, size, MADV_NOHUGEPAGE);
	for (size_t k = 0; k < 400; k++)
		((volatile uint8_t *)pages)[k * PAGE] = 1;
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	assert_true(seam_ring_snapshot(&ring, &shot) > DATA - 24);
	/* Newest first.  Other faults, of a sanitizer's, may be among them. */
	for (; seam_ring_record(&shot.span, pos, &header); pos += header.size)
		if (word_at(shot.copy, pos + 8) == (uintptr_t)pages + i * PAGE)
			i--;
	assert_in_range(399 - i, DATA / 16 / 2, DATA / 16);
	munmap(pages, size);
	seam_ring_snapshot_fini(&shot);
	seam_ring_fini(&ring);
	close(fd);
}

UNIT_MAIN(NULL, NULL, NULL, close_fixture)
