/* SPDX-License-Identifier: MIT */
/* test_aux.c - the promises of ring/aux.h */
#include "fixture.h"

#include <sys/syscall.h>

static uint8_t record[UINT16_MAX];

/* The byte that a writer of ours puts at a position: never 0. */
static uint8_t byte_at(uint64_t pos)
{
	pos &= SEAM_RING_AUX_POSITION;
	return (uint8_t)((pos * 0x9e3779b97f4a7c15) >> 56 | 1);
}

/* One chunk of @n bytes; how many of them were taken. */
static size_t put_chunk(size_t n)
{
	uint8_t *bytes = malloc(n + 1);
	size_t taken;

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(f.aux_out.pos + i);
	taken = aux_write(&f.aux_out, bytes, n);
	free(bytes);
	return taken;
}

static void expect_record(uint64_t offset, uint64_t size, uint64_t flags)
{
	assert_int_equal(take_record(record), PERF_RECORD_AUX);
	assert_int_equal(word_at(record, 8), offset);
	assert_int_equal(word_at(record, 16), size);
	assert_int_equal(word_at(record, 24), flags);
}

/* Drain the area, which holds @n bytes from @pos on. */
static void expect_bytes(uint64_t pos, size_t n)
{
	struct seam_ring_span span;

	assert_int_equal(seam_ring_aux_peek(&f.aux_in, &span), n);
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < span.size[part]; i++)
			assert_int_equal(span.part[part][i], byte_at(pos++));
	seam_ring_aux_advance(&f.aux_in, &span);
}

UNIT_TEST(drains_what_was_written_byte_for_byte)
{
	static const uint64_t starts[] = { 0, (UINT64_C(1) << 32) - 100,
					   -UINT64_C(5000) };
	for (size_t s = 0; s < SEAM_ARRAY_SIZE(starts); s++) {
		uint64_t pos = starts[s];

		open_fixture(starts[s] & ~7ull, false);
		pos &= ~7ull;
		for (size_t n = 1; n < 300; n += 7) {
			assert_int_equal(put_chunk(n), n);
			assert_int_equal(put_chunk(3 * n), 3 * n);
			expect_record(pos, n, 0);
			expect_record(pos + n, 3 * n, 0);
			expect_bytes(pos, 4 * n);
			pos += 4 * n;
		}
	}
}

static void expect_snapshot(uint64_t head, size_t n)
{
	struct seam_ring_aux_snapshot shot;

	assert_int_equal(seam_ring_aux_snapshot_init(&shot, &f.aux_in,
						     NULL), 0);
	assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot), n);
	assert_int_equal(shot.offset, (head - n) & SEAM_RING_AUX_POSITION);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(shot.data[i], byte_at(head - n + i));
	seam_ring_aux_snapshot_fini(&shot);
}

UNIT_TEST(a_snapshot_is_the_last_bytes_up_to_a_whole_aux_buffer)
{
	static const uint64_t starts[] = { 0, (UINT64_C(1) << 32) - 8,
					   -UINT64_C(8), -(uint64_t)AREA };
	static const size_t sizes[] = { 0, 1, AREA - 1, AREA, AREA + 1,
					2 * AREA, 2 * AREA + 1, 3 * AREA + 7 };
	for (size_t s = 0; s < SEAM_ARRAY_SIZE(starts); s++)
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(sizes); i++) {
			size_t n = sizes[i];

			open_fixture(starts[s], true);
			assert_int_equal(put_chunk(n), n);
			expect_snapshot(starts[s] + n, n < AREA ? n : AREA);
			/* the tail is not touched, and nothing is told */
			assert_int_equal(atomic_load(&f.control->aux_tail),
					 starts[s]);
			assert_int_equal(take_record(record), 0);
		}
}

UNIT_TEST(leaves_out_what_is_being_written_over)
{
	struct seam_ring_aux_snapshot shot;

	open_fixture(0, true);
	put_chunk(2 * AREA);
	seam_ring_aux_snapshot_init(&shot, &f.aux_in, NULL);
	atomic_store(&f.state->aux_head, 2 * AREA + 1000);
	memset(f.area, 0xff, 1000);
	assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot),
			 AREA - 1000);
	for (size_t i = 0; i < shot.bytes; i++)
		assert_int_equal(shot.data[i], byte_at(AREA + 1000 + i));
	/* reservations that cannot be */
	atomic_store(&f.state->aux_head, 3 * AREA + 1);
	assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot), 0);
	atomic_store(&f.state->aux_head, 5);
	assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot), 0);
	seam_ring_aux_snapshot_fini(&shot);
}

UNIT_TEST(shows_nothing_of_an_earlier_owner)
{
	open_fixture(0, true);
	put_chunk(3000);
	expect_snapshot(3000, 3000);
	f.aux_in.first = f.aux_in.last_head;
	put_chunk(100);
	expect_snapshot(3100, 100);
}

/* A driver such as Intel PT's: its head is an offset in the area. */
UNIT_TEST(finds_the_wrap_of_a_head_that_never_passes_the_size)
{
	static const struct {
		size_t written;		/* bytes since the start */
		size_t bytes;		/* that a snapshot must have */
	} cases[] = {
		{ 0, 0 }, { 1, 1 }, { AREA - 1, AREA - 1 }, { AREA, AREA },
		{ AREA + 1, AREA }, { 2 * AREA - 1, AREA },
		{ 2 * AREA, AREA }, { 3 * AREA + 100, AREA },
	};
	struct seam_ring_aux_snapshot shot;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		size_t n = cases[i].written;

		open_fixture(0, true);
		put_chunk(n);
		atomic_store(&f.control->aux_head, n % AREA);
		seam_ring_aux_snapshot_init(&shot, &f.aux_in, NULL);
		assert_int_equal(seam_ring_aux_snapshot(&f.aux_in, &shot),
				 cases[i].bytes);
		for (size_t k = 0; k < shot.bytes; k++)
			assert_int_equal(shot.data[k],
					 byte_at(n - shot.bytes + k));
		seam_ring_aux_snapshot_fini(&shot);
	}
}

UNIT_TEST(positions_of_such_a_head_grow_from_snapshot_to_snapshot)
{
	static const size_t heads[] = { 100, 3000, 50, 4000, 3999 };
	static const uint64_t ends[] = { 100, 3000, AREA + 50, AREA + 4000,
					 2 * AREA + 3999 };
	struct seam_ring_aux_snapshot shot;

	open_fixture(0, true);
	seam_ring_aux_snapshot_init(&shot, &f.aux_in, NULL);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++) {
		atomic_store(&f.control->aux_head, heads[i]);
		seam_ring_aux_snapshot(&f.aux_in, &shot);
		assert_int_equal(shot.offset + shot.bytes, ends[i]);
		assert_int_equal(shot.bytes, ends[i] < AREA ? ends[i] : AREA);
	}
	seam_ring_aux_snapshot_fini(&shot);
}

UNIT_TEST(survives_heads_that_cannot_be)
{
	static const uint64_t heads[] = {
		AREA + 1, SEAM_RING_AUX_POSITION - AREA, 1ull << 55,
	};
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_span span;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++) {
		open_fixture(0, false);
		atomic_store(&f.control->aux_head, heads[i]);
		assert_int_equal(seam_ring_aux_peek(&f.aux_in, &span), 0);
		assert_int_equal(f.aux_in.n_resyncs, 1);
		atomic_store(&f.control->aux_head, heads[i] + 10);
		assert_int_equal(seam_ring_aux_peek(&f.aux_in, &span), 10);
		seam_ring_aux_advance(&f.aux_in, &span);
		/* backwards */
		atomic_store(&f.control->aux_head, heads[i]);
		assert_int_equal(seam_ring_aux_peek(&f.aux_in, &span), 0);
		assert_int_equal(f.aux_in.n_resyncs, 2);

		seam_ring_aux_snapshot_init(&shot, &f.aux_in, NULL);
		f.aux_in.last_head = f.aux_in.first = 5000;
		atomic_store(&f.control->aux_head, 4000);
		atomic_store(&f.state->aux_head, 4000);
		assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot),
				 0);
		assert_int_equal(f.aux_in.n_resyncs, 3);
		atomic_store(&f.control->aux_head, 4010);
		atomic_store(&f.state->aux_head, 4010);
		assert_int_equal(seam_ring_aux_snapshot_program(&f.aux_in, &shot),
				 10);
		seam_ring_aux_snapshot_fini(&shot);
	}
}

/* The two mappings that perf_event_open() would give, of one file. */
UNIT_TEST(maps_an_aux_buffer_after_the_ring)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_aux aux;
	struct seam_ring ring;

	assert_int_equal(ftruncate(fd, PAGE + DATA + AREA), 0);
	assert_int_equal(pwrite(fd, "bytes", 5, PAGE + DATA), 5);
	for (int overwrite = 0; overwrite < 2; overwrite++) {
		assert_int_equal(seam_ring_map(&ring, fd, DATA, false, NULL), 0);
		assert_int_equal(seam_ring_aux_map(&aux, &ring, fd, AREA,
						   overwrite, NULL), 0);
		assert_int_equal(ring.control->aux_offset, PAGE + DATA);
		assert_int_equal(ring.control->aux_size, AREA);
		atomic_store(&ring.control->aux_head, AREA + 5);
		seam_ring_aux_snapshot_init(&shot, &aux, NULL);
		assert_int_equal(seam_ring_aux_snapshot(&aux, &shot), AREA);
		assert_memory_equal(shot.data + AREA - 5, "bytes", 5);
		seam_ring_aux_snapshot_fini(&shot);
		seam_ring_aux_fini(&aux);
		seam_ring_fini(&ring);
	}
	close(fd);
}

UNIT_TEST(names_an_event_that_has_no_aux_buffer)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS, .exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);
	struct seam_ring_aux aux;
	struct seam_ring ring;
	struct seam_err err;

	if (fd < 0) { /* as in a sandbox, where there is nothing to map */
		assert_true(errno == EACCES || errno == EPERM ||
			    errno == ENOSYS);
		return;
	}
	assert_int_equal(seam_ring_map(&ring, fd, DATA, false, NULL), 0);
	assert_int_equal(seam_ring_aux_map(&aux, &ring, fd, AREA, true,
					   &err), -EOPNOTSUPP);
	seam_ring_aux_fini(&aux);
	seam_ring_fini(&ring);
	close(fd);
}

UNIT_TEST(a_zeroed_aux_buffer_is_empty)
{
	struct seam_ring_aux aux = { 0 };
	struct seam_ring_aux_snapshot shot = { 0 };
	struct seam_ring_span span;

	assert_int_equal(seam_ring_aux_peek(&aux, &span), 0);
	seam_ring_aux_advance(&aux, &span);
	assert_int_equal(seam_ring_aux_snapshot(&aux, &shot), 0);
	assert_int_equal(seam_ring_aux_snapshot_program(&aux, &shot), 0);
	seam_ring_aux_snapshot_fini(&shot);
	seam_ring_aux_fini(&aux);
}

UNIT_MAIN(NULL, NULL, NULL, close_fixture)
