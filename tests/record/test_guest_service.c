/* SPDX-License-Identifier: MIT */
/*
 * test_guest_service.c - records of samplers, which may be of any program
 *
 * The oracle is the reader of perf.data: what the service accepts must be a
 * sample for it, with RAW data that the guest record's decoder reads.
 */

#include "record/services/guest_service.h"
#include "wire/guest/guest_decode.h"
#include "wire/guest/guest_encode.h"
#include "wire/perf/perf_record.h"
#include "wire/perf/perf_sample.h"
#include "unit.h"

enum {
	PERIOD_NS = 1000000,
	CHAIN_AT = 56,		/* in the record */
	RAW_AT = CHAIN_AT + 8 + 6 * 8 + 4,
	TICKS_AT = RAW_AT + 12,
	MAX_BYTES = 512,
};

struct built {
	uint8_t bytes[MAX_BYTES];
	size_t size;
};

static void put(struct built *b, const void *bytes, size_t size)
{
	memcpy(b->bytes + b->size, bytes, size);
	b->size += size;
}

static void put64(struct built *b, uint64_t value)
{
	put(b, &value, sizeof(value));
}

/* A sample of two kernel and two user addresses, with two guest frames. */
static struct built build(uint64_t time_ns)
{
	const struct seam_guest_head head = {
		.adapter = SEAM_GUEST_LUAJIT, .table = 7, .n_segments = 1,
		.n_ticks = 3,
	};
	const struct seam_guest_segment segment = {
		.join = 1, .n_replaced = 1, .n_frames = 2,
	};
	const struct seam_guest_frame frames[] = {
		seam_guest_frame_make(SEAM_GUEST_FRAME_GUEST, 1, 10),
		seam_guest_frame_make(SEAM_GUEST_FRAME_GUEST, 2, 20),
	};
	struct seam_ring_header header = { .type = PERF_RECORD_SAMPLE };
	uint8_t raw[MAX_BYTES] = { 0 };
	struct built b = { .size = 0 };
	uint32_t n = (uint32_t)seam_guest_encode_sample(
			raw, sizeof(raw), &head, &segment, frames);

	n += n % 8 == 4 ? 0 : 4;
	put(&b, &header, sizeof(header));
	for (int i = 0; i < 3; i++)
		put64(&b, 0);			/* id, ip, pid and tid */
	put64(&b, time_ns);
	put64(&b, 0);				/* cpu */
	put64(&b, 12345);			/* a period that is not so */
	put64(&b, 6);
	put64(&b, (uint64_t)PERF_CONTEXT_KERNEL);
	put64(&b, UINT64_C(0xffffffff81000010));
	put64(&b, UINT64_C(0xffffffff81000020));
	put64(&b, (uint64_t)PERF_CONTEXT_USER);
	put64(&b, 0x401000);
	put64(&b, 0x402000);
	put(&b, &n, sizeof(n));
	put(&b, raw, n);
	header.size = (uint16_t)b.size;
	memcpy(b.bytes, &header, sizeof(header));
	return b;
}

static struct seam_guest_service g;

static int set_up(void **state)
{
	seam_guest_service_init(&g, PERIOD_NS);
	return 0;
}

static int tear_down(void **state)
{
	seam_guest_service_fini(&g);
	return 0;
}

static bool take(struct built *b)
{
	struct seam_service_stream stream = { .service = &g.guest };

	return g.guest.take(&stream, b->bytes, b->size);
}

/* Whether readers of "data" understand the sample. */
static bool is_readable(const struct built *b)
{
	struct perf_event_attr opened = {
		.sample_type = g.guest.sample_type, .size = sizeof(opened),
	};
	struct seam_perf_attr attr = seam_perf_attr_of(&opened);
	struct seam_guest_reader reader;
	struct seam_perf_sample sample;
	struct seam_bytes payload = {
		b->bytes + sizeof(struct seam_ring_header),
		b->size - sizeof(struct seam_ring_header),
	};

	return seam_perf_sample_read(&attr, SEAM_NATIVE, payload, &sample) ==
	       0 && sample.callchain.n == 6 && sample.period == 3 * PERIOD_NS &&
	       seam_guest_read_sample(sample.raw, &reader, NULL) == 0;
}

UNIT_TEST(the_recorder_sets_period_and_mode)
{
	struct seam_ring_header header;
	struct built b = build(1);
	uint64_t ip;

	assert_true(take(&b));
	assert_true(is_readable(&b));
	memcpy(&header, b.bytes, sizeof(header));
	memcpy(&ip, b.bytes + 16, sizeof(ip));
	assert_int_equal(header.misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(ip, UINT64_C(0xffffffff81000010));
	assert_int_equal(g.counts.n[SEAM_COUNT_GUEST_SAMPLES], 1);
	assert_int_equal(g.counts.n[SEAM_COUNT_GUEST_WITH_GUEST], 1);
	assert_int_equal(g.counts.n[SEAM_COUNT_GUEST_TICKS], 3);
}

UNIT_TEST(refuses_a_record_that_is_cut_anywhere)
{
	struct built whole = build(1);

	for (size_t size = sizeof(struct seam_ring_header); size < whole.size;
	     size++) {
		struct built b = whole;

		b.size = size;
		assert_false(take(&b));
	}
	assert_int_equal(g.counts.n[SEAM_COUNT_GUEST_SAMPLES], 0);
}

/* Bits that decide how the rest is read: counts, contexts, sizes, the record. */
UNIT_TEST(a_changed_bit_is_refused_or_can_be_read)
{
	struct built whole = build(1);
	size_t n_refused = 0, n_read = 0;

	for (size_t bit = CHAIN_AT * 8; bit < whole.size * 8; bit++) {
		struct built b = whole;
		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (!take(&b)) {
			n_refused++;
			continue;
		}
		/* a weight is the program's own, within its time: below */
		if (bit / 8 >= TICKS_AT && bit / 8 < TICKS_AT + 4)
			continue;
		assert_true(is_readable(&b));
		n_read++;
	}
	assert_true(n_refused > 200 && n_read > 200);
}

/* Samples with weight 3, of which the first has @n_first. */
static uint64_t ticks_of(uint32_t n_first, uint64_t samples)
{
	struct seam_service_stream stream = {
		.service = &g.guest, .tid = 42,
		.since_ns = UINT64_C(1000) * PERIOD_NS,
	};
	uint64_t n;

	for (uint64_t i = 0; i < samples; i++) {
		struct built b = build(UINT64_C(2000) * PERIOD_NS);

		if (i == 0)
			memcpy(b.bytes + TICKS_AT, &n_first, sizeof(n_first));
		g.guest.preview(&g.guest, &stream, b.bytes, b.size);
		g.guest.take(&stream, b.bytes, b.size);
	}
	n = g.counts.n[SEAM_COUNT_GUEST_TICKS];
	tear_down(NULL);
	set_up(NULL);
	return n;
}

/* A thousand periods have passed since the program connected. */
UNIT_TEST(weights_are_not_more_than_the_time_that_has_passed)
{
	assert_int_equal(ticks_of(1000, 1), 1000);
	assert_int_equal(ticks_of(UINT32_MAX, 1), 0);
	assert_int_equal(ticks_of(UINT32_MAX, 10), 27);
	assert_in_range(ticks_of(3, 5000), 990, 1100);
	assert_in_range(ticks_of(1000, 5000), 1000, 1100);
}

static bool supersedes(uint32_t tid, uint64_t time_ns)
{
	return g.guest.supersedes(&g.guest, tid, time_ns);
}

UNIT_TEST(only_samples_of_an_samplers_time_are_superseded)
{
	enum { MS = 1000000, TID = 42, SILENT_MS = 20 + 8 };
	struct seam_service_stream stream = { .pid = TID, .tid = TID };
	const struct seam_owner_counts none = { 0 };
	const struct seam_perf_sideband exec = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm.pid = TID, .sample_id.time = 190 * MS,
	};

	for (uint64_t ms = 100; ms <= 200; ms++) {
		struct built b = build(ms * MS);

		g.guest.preview(&g.guest, &stream, b.bytes, b.size);
	}
	assert_false(supersedes(TID, 98 * MS));
	assert_true(supersedes(TID, 100 * MS));
	assert_true(supersedes(TID, 150 * MS));
	assert_false(supersedes(TID + 1, 150 * MS));
	/* the newest are not here yet; but for long it is silent */
	assert_true(supersedes(TID, (200 + SILENT_MS) * (uint64_t)MS));
	assert_false(supersedes(TID, (201 + SILENT_MS) * (uint64_t)MS));
	/* another program from there on, until it has a sampler */
	g.guest.sideband(&g.guest, &exec);
	assert_true(supersedes(TID, 190 * MS));
	assert_false(supersedes(TID, 191 * MS));
	stream.service = &g.guest;
	g.guest.end(&stream, &none);
	assert_true(supersedes(TID, 150 * MS));
}

/* The recorder's samples hold what a sampler's do not. */
UNIT_TEST(an_invalid_record_supersedes_nothing)
{
	enum { TID = 42 };
	struct seam_service_stream stream = {
		.service = &g.guest, .tid = TID,
		.since_ns = UINT64_C(1000) * PERIOD_NS,
	};
	const uint64_t at_ns = UINT64_C(1010) * PERIOD_NS;
	struct built b = build(at_ns);

	for (size_t size = 0; size < b.size; size += 8)
		g.guest.preview(&g.guest, &stream, b.bytes, size);
	memset(b.bytes + TICKS_AT, 0xff, 4);
	g.guest.preview(&g.guest, &stream, b.bytes, b.size);
	assert_false(supersedes(TID, at_ns));
	/* nor does a time that has not come, or is before it connected */
	b = build(UINT64_MAX);
	g.guest.preview(&g.guest, &stream, b.bytes, b.size);
	b = build(0);
	g.guest.preview(&g.guest, &stream, b.bytes, b.size);
	assert_false(supersedes(TID, at_ns));
	assert_false(supersedes(TID, UINT64_MAX / 2));
}

UNIT_TEST(of_streams_that_have_ended_the_newest_are_kept)
{
	enum { N = 2000, MS = 1000000 };
	const struct seam_owner_counts none = { 0 };

	for (uint32_t i = 1; i <= N; i++) {
		struct seam_service_stream stream = { .tid = i };
		struct built b = build(100 * MS);

		g.guest.preview(&g.guest, &stream, b.bytes, b.size);
		assert_true(supersedes(i, 100 * MS));
		stream.service = &g.guest;
		g.guest.end(&stream, &none);
	}
	assert_true(g.streams.n < N / 2);
	assert_false(supersedes(1, 100 * MS));
	for (uint32_t i = N - 200; i <= N; i++)
		assert_true(supersedes(i, 100 * MS));
}

UNIT_TEST(what_is_refused_is_damage)
{
	struct built b = build(1);

	b.bytes[b.size - 1] = 1;
	assert_false(take(&b));
	assert_int_equal(g.counts.n[SEAM_COUNT_BAD_BYTES], b.size);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
