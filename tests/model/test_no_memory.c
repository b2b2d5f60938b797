/* SPDX-License-Identifier: MIT */
/*
 * test_no_memory.c - every allocation of a load fails once
 *
 * The n-th call of malloc, calloc or realloc in Seam's own code fails, for
 * n = 1, 2, ... until a load gets through.  Each time the load must say
 * -ENOMEM, or do without; LeakSanitizer sees what was forgotten.
 */
#include "model/load_perf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "../perf_bytes.h"
#include "../no_memory.h"

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

static int load(const struct bytes *bytes, size_t *n_samples)
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
		*n_samples = profile.samples.n;
		seam_symbols_free(symbols);
		seam_profile_fini(&profile);
	}
	return r;
}

static void any_allocation_may_fail(void **state)
{
	struct bytes file = a_recording();
	size_t n_samples = 0;
	long n = 0;
	int r;

	(void)state;
	do {
		until_failure = ++n;
		r = load(&file, &n_samples);
		assert_true(r == 0 || r == -ENOMEM);
		if (until_failure > 0)	/* there are fewer than n */
			break;
	} while (n < 100000);
	until_failure = 0;
	assert_int_equal(r, 0);
	assert_int_equal(n_samples, 200);
	assert_true(n > 50);
	free(file.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("no_memory", tests, NULL, NULL);
}
