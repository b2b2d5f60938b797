/* SPDX-License-Identifier: MIT */
/* test_auxtrace.c - AUX data into a file, with a PMU in user space */
#include "record/perf/auxtrace.h"

#include "record/perf/drain.h"
#include "../ring/aux_writer.h"
#include "wire/perf/perf_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, DATA = 8192, AREA = 4096, MAX = 1 << 20 };

/* Both ends: a simulated PMU, and a recording of it. */
struct pmu {
	uint8_t *memory, *area;
	struct seam_ring_producer ring;
	struct aux_writer out;
	struct seam_event events[2];
	struct seam_sources sources;
	struct seam_data_file file;
	struct seam_drain drain;
};

static uint8_t byte_at(uint64_t pos)
{
	return (uint8_t)((pos * 0x9e3779b97f4a7c15) >> 56 | 1);
}

static void open_pmu(struct pmu *p, int cpu, int tid, uint64_t start,
		     bool free_running)
{
	struct seam_ring_control *control;
	struct seam_source_ring *ring;

	memset(p, 0, sizeof(*p));
	p->memory = aligned_alloc(PAGE, PAGE + DATA);
	p->area = aligned_alloc(PAGE, AREA);
	memset(p->memory, 0, PAGE + DATA);
	memset(p->area, 0, AREA);
	control = (void *)p->memory;
	atomic_store(&control->aux_head, start);
	atomic_store(&control->aux_tail, start);
	seam_ring_producer_init(&p->ring, p->memory, PAGE, DATA);
	aux_writer_init(&p->out, &p->ring, p->area, AREA, free_running);
	ring = SEAM_ARRAY_PUSH(&p->sources.rings);
	*ring = (struct seam_source_ring) {
		.cpu = cpu, .tid = tid, .fd = -1,
	};
	*SEAM_ARRAY_PUSH(&p->sources.live) = 0;
	seam_ring_attach(&ring->ring, p->memory, PAGE, DATA);
	seam_ring_aux_attach(&ring->aux, control, p->area, AREA);
	p->sources.events = p->events;
	p->sources.n_events = 2;
	p->sources.sideband = 1;
	for (size_t e = 0; e < 2; e++)
		p->events[e].attr.size = PERF_ATTR_SIZE_VER7;
	assert_int_equal(seam_data_file_begin(&p->file,
			 memfd_create("data", MFD_CLOEXEC), &p->sources,
			 NULL), 0);
	p->drain.sources = &p->sources;
	p->drain.file = &p->file;
	assert_int_equal(seam_drain_init(&p->drain, NULL), 0);
}

static void close_pmu(struct pmu *p)
{
	seam_drain_fini(&p->drain);
	seam_sources_fini(&p->sources);
	seam_data_file_fini(&p->file);
	free(p->area);
	free(p->memory);
}

static size_t emit(struct pmu *p, size_t n)
{
	uint8_t bytes[2 * AREA];

	assert_true(n <= sizeof(bytes));
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(p->out.pos + i);
	return aux_write(&p->out, bytes, n);
}

static struct seam_source_ring *ring_of(struct pmu *p)
{
	return &p->sources.rings.items[0];
}

static uint64_t u64_at(const uint8_t *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

/*
 * Each record of the index is one, and its bytes are those of their offset.
 * Returns how many bytes there are in all; *@first is the first's offset.
 */
static uint64_t check_file(struct pmu *p, uint64_t *first)
{
	uint64_t bytes = 0, next = 0;

	for (size_t i = 0; i < p->file.auxtraces.n; i++) {
		struct seam_auxtrace_entry entry = p->file.auxtraces.items[i];
		uint8_t *record = malloc(48 + MAX);
		uint64_t size, offset;

		/* of the record alone: perf checks it against its header */
		assert_int_equal(entry.size, 48);
		assert_true(pread(p->file.fd, record, 48 + MAX,
				  (off_t)entry.offset) >= 48);
		assert_int_equal(u32_at(record), SEAM_PERF_AUXTRACE);
		size = u64_at(record + 8);
		offset = u64_at(record + 16);
		assert_true(size <= MAX);
		assert_int_equal(size % 8, 0);
		assert_int_equal((int)u32_at(record + 36), ring_of(p)->tid);
		assert_int_equal((int)u32_at(record + 40), ring_of(p)->cpu);
		if (i == 0)
			*first = offset;
		else
			assert_int_equal(offset, next);
		next = offset + size;
		for (uint64_t b = 0; b < size; b++) {
			uint8_t got = record[48 + b];

			/* the last may be filled up with zeros */
			if (got == 0 && i == p->file.auxtraces.n - 1 &&
			    size - b < 8) {
				size = b;
				break;
			}
			assert_int_equal(got, byte_at(offset + b));
		}
		bytes += size;
		free(record);
	}
	assert_int_equal(bytes, p->file.counts.n_aux_bytes);
	return bytes;
}

/* As the recorder names its rings: per CPU, per thread, both. */
static const struct { int cpu, tid; } layouts[] = {
	{ 1, -1 }, { -1, 4711 }, { 3, 4711 },
};

static void the_file_has_each_byte_of_the_aux_buffer_in_its_order(void **state)
{
	(void)state;
	for (size_t l = 0; l < SEAM_ARRAY_SIZE(layouts); l++) {
		uint64_t wanted = 0, first;
		struct pmu p;

		open_pmu(&p, layouts[l].cpu, layouts[l].tid,
			 l == 2 ? -UINT64_C(8192) : 0, false);
		for (size_t n = 1; n < 2000; n = n * 2 + 5) {
			wanted += emit(&p, n);
			assert_true(seam_drain_round(&p.drain, NULL) > 0);
		}
		assert_true(seam_auxtrace_drain(&p.file, ring_of(&p), 0,
						true, NULL) >= 0);
		assert_int_equal(check_file(&p, &first), wanted);
		assert_int_equal(p.file.losses.n[SEAM_COUNT_AUX_TRUNCATED], 0);
		close_pmu(&p);
	}
}

static void counts_truncation_exactly_when_the_buffer_is_full(void **state)
{
	uint64_t first;
	struct pmu p;

	(void)state;
	open_pmu(&p, 0, -1, 0, false);
	assert_int_equal(emit(&p, AREA), AREA);
	assert_true(seam_drain_round(&p.drain, NULL) > 0);
	assert_int_equal(p.file.losses.n[SEAM_COUNT_AUX_TRUNCATED], 0);
	assert_int_equal(emit(&p, AREA + 8), AREA);
	assert_true(seam_drain_round(&p.drain, NULL) > 0);
	assert_int_equal(p.file.losses.n[SEAM_COUNT_AUX_TRUNCATED], 1);
	assert_int_equal(check_file(&p, &first), 2 * AREA);
	close_pmu(&p);
}

static void a_snapshot_is_the_newest_bytes_and_moves_no_tail(void **state)
{
	static const size_t heads[] = { 0, AREA - 1, AREA, AREA + 1 };

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++) {
		size_t n = heads[i], kept = n < AREA ? n : AREA;
		uint64_t first = 0;
		struct seam_ring_control *control;
		struct pmu p;

		open_pmu(&p, 0, -1, 0, true);
		control = (void *)p.memory;
		assert_int_equal(emit(&p, n), n);
		assert_int_equal(seam_auxtrace_snapshot(&p.file, ring_of(&p),
							7, 0, NULL), kept);
		assert_int_equal(check_file(&p, &first), kept);
		assert_int_equal(first, n - kept);
		assert_int_equal(atomic_load(&control->aux_tail), 0);
		close_pmu(&p);
	}
}

static void what_aux_records_say_is_counted(void **state)
{
	static const uint64_t flags[] = { 0, 1, 2, 4, 8, 15 };
	struct seam_counts losses = { 0 };

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags); i++)
		seam_auxtrace_count(&losses, &(struct seam_perf_aux) {
			.flags = flags[i] });
	assert_int_equal(losses.n[SEAM_COUNT_AUX_TRUNCATED], 2);
	assert_int_equal(losses.n[SEAM_COUNT_AUX_PARTIAL], 2);
	assert_int_equal(losses.n[SEAM_COUNT_AUX_COLLISION], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_file_has_each_byte_of_the_aux_buffer_in_its_order),
		cmocka_unit_test(
			counts_truncation_exactly_when_the_buffer_is_full),
		cmocka_unit_test(
			a_snapshot_is_the_newest_bytes_and_moves_no_tail),
		cmocka_unit_test(what_aux_records_say_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
