/* SPDX-License-Identifier: MIT */
/*
 * test_no_memory.c - every allocation of a load fails once
 *
 * The n-th call of malloc, calloc or realloc in Seam's own code fails, for
 * n = 1, 2, ... until a load gets through.  Each time the load must say
 * -ENOMEM, or do without; LeakSanitizer sees what was forgotten.
 */
#include "model/perf/load_perf.h"

#include "../no_memory.h"
#include "../guest_file.h"
#include "unit.h"

/* Something of every kind: names, forks, mappings, chains, losses. */
static struct bytes a_recording(void)
{
	uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010,
		(uint64_t)PERF_CONTEXT_USER, 0x401100, 0x7000,
	};
	struct bytes b = { .endian = SEAM_LITTLE }, file;

	put_comm(&b, 7, 7, "parent", true, 10);
	put_mmap2(&b, 7, 0x400000, 0x4000, 0, "/bin/parent", 11);
	put_task(&b, PERF_RECORD_FORK, 8, 7, 8, 7, 20);
	put_mmap2(&b, 8, 0x7000, 0x1000, 0, "//anon", 21);
	for (uint64_t i = 0; i < 200; i++) {
		chain[3] = 0x401000 + 16 * i;
		put_sample(&b, i % 2 ? TEST_ID_1 : TEST_ID_2,
			   i % 3 ? 7 : 8, 7 + (int32_t)(i % 40), 30 + i,
			   chain, 5);
	}
	put_lost(&b, TEST_ID_1, 30);
	file = make_file(&b);
	free(b.data);
	return file;
}

/* Samples that count by the difference to the one before. */
static struct bytes a_recording_of_counters(void)
{
	struct bytes b = { .endian = SEAM_LITTLE }, file;

	for (uint64_t i = 0; i < 400; i++)
		put_read_sample(&b, 5 + i % 200, 1000 + i, i);
	file = make_file(&b);
	make_read_event(&file);
	free(b.data);
	return file;
}

/* Chunks, names and lines; some functions without a symbol record. */
static struct bytes a_recording_of_a_vm(void)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_USER, 0x401100, 0x402100, 0x403100,
	};
	static const struct seam_guest_segment segment = { 1, 1, 2, 0, 0 };
	struct bytes b = { .endian = SEAM_LITTLE }, file;
	char chunk[16];

	for (uint32_t i = 1; i <= 100; i++) {
		struct seam_guest_frame frames[] = { { i, i }, { 101 - i, 1 } };

		put_guest(&b, &(struct guest_instant) {
			7, 7, i, 1000, chain, 4, {
				.adapter = 1, .table = 1, .n_segments = 1,
				.n_ticks = 1, .vmstate = SEAM_VMSTATE_GC,
			}, &segment, frames,
		});
		snprintf(chunk, sizeof(chunk), "%s%u", i % 2 ? "@" : "return ",
			 i / 4);
		if (i % 5)
			put_symbol(&b, 7, i, (struct seam_guest_symbol) {
				.table = 1, .id = i, .line = i,
				.kind = i % 4 }, i % 4 < 2 ? chunk : "", "f");
	}
	file = make_guest_file(&b, true);
	free(b.data);
	return file;
}

struct got {
	size_t n_samples;
	uint64_t weight;
};

static int load(const struct bytes *bytes, struct got *got)
{
	struct seam_file file = { .bytes = { bytes->data, bytes->size } };
	struct seam_symbols *symbols = NULL;
	struct seam_profile profile;
	struct seam_err err = { 0 };
	int r = seam_profile_init(&profile);

	if (r == 0) {
		symbols = seam_symbols_new(
			&(struct seam_symbols_options) { 0 });
		r = symbols ? seam_load_perf(&profile,
			&(struct seam_perf_input) { .data = &file }, symbols,
			&err) : -ENOMEM;
		if (r < 0 && symbols)
			assert_true(err.n_causes > 0);
		*got = (struct got) { .n_samples = profile.samples.n };
		for (size_t i = 0; i < profile.samples.n; i++)
			got->weight += seam_samples_weight(&profile.samples, i);
		seam_symbols_free(symbols);
		seam_profile_fini(&profile);
	}
	return r;
}

/* Try each; what comes out in spite of it must be all of @want. */
static void fail_each(struct bytes file, struct got want)
{
	struct got got = { 0 };
	long n = 0;
	int r;

	do {
		until_failure = ++n;
		r = load(&file, &got);
		assert_true(r == 0 || r == -ENOMEM);
		if (r == 0) {
			assert_int_equal(got.n_samples, want.n_samples);
			assert_int_equal(got.weight, want.weight);
		}
		if (until_failure > 0)	/* there are fewer than n */
			break;
	} while (n < 100000);
	until_failure = 0;
	assert_int_equal(r, 0);
	assert_true(n > 50);
	free(file.data);
}

UNIT_TEST(any_allocation_may_fail)
{
	fail_each(a_recording(), (struct got) { 200, 200 * 250000 });
	/* 200 counters that show 1000 to 1199, then 200 more each. */
	fail_each(a_recording_of_counters(), (struct got) {
		400, 200 * 1000 + 200 * 199 / 2 + 200 * 200 });
	fail_each(a_recording_of_a_vm(), (struct got) { 100, 100 * 1000 });
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
