/* SPDX-License-Identifier: MIT */
/* test_kernel_chain.c - where the kernel's callchain goes on after a walk */
#include "unwind/walk/kernel_chain.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Where @chain goes on after a walk over @pcs that ended by @end. */
static size_t rest_after(const uint64_t *pcs, size_t n_pcs,
			 enum seam_unwind_end end, const uint64_t *chain,
			 size_t n)
{
	struct seam_unwind_frame frames[16] = { 0 };
	struct seam_unwind_stack stack = {
		.frames = frames, .max = 16, .n = n_pcs, .end = (uint8_t)end,
	};

	for (size_t i = 0; i < n_pcs; i++)
		frames[i].pc = pcs[i];
	return seam_unwind_kernel_rest(&stack, chain, n);
}

static void the_chain_goes_on_after_the_last_return_address(void **state)
{
	static const uint64_t pcs[] = { 1, 2, 3 };
	static const uint64_t chain[] = { 1, 3, 4, 5 };

	(void)state;
	assert_int_equal(rest_after(pcs, 3, SEAM_UNWIND_TRUNCATED, chain, 4),
			 2);
	assert_int_equal(rest_after(pcs, 3, SEAM_UNWIND_WITHOUT_CFI, chain, 4),
			 2);
	assert_int_equal(rest_after(pcs, 3, SEAM_UNWIND_UNREADABLE, chain, 4),
			 2);
}

static void a_walk_that_is_complete_needs_no_more(void **state)
{
	static const uint64_t pcs[] = { 1, 2 };
	static const uint64_t chain[] = { 1, 2, 3 };

	(void)state;
	assert_int_equal(rest_after(pcs, 2, SEAM_UNWIND_ROOT, chain, 3), 3);
	assert_int_equal(rest_after(pcs, 2, SEAM_UNWIND_TOO_DEEP, chain, 3),
			 3);
	/* the last address is no code: its caller was not found either */
	assert_int_equal(rest_after(pcs, 2, SEAM_UNWIND_NO_MAPPING, chain, 3),
			 3);
}

static void a_chain_that_has_not_the_address_adds_nothing(void **state)
{
	static const uint64_t pcs[] = { 1, 2 };
	static const uint64_t chain[] = { 1, 3, 4 };

	(void)state;
	assert_int_equal(rest_after(pcs, 2, SEAM_UNWIND_TRUNCATED, chain, 3),
			 3);
	assert_int_equal(rest_after(pcs, 2, SEAM_UNWIND_TRUNCATED, chain, 0),
			 0);
	assert_int_equal(rest_after(pcs, 0, SEAM_UNWIND_TRUNCATED, chain, 3),
			 3);
}

static void a_recursion_goes_on_at_its_depth(void **state)
{
	static const uint64_t pcs[] = { 1, 7, 7, 7 };
	static const uint64_t chain[] = { 1, 7, 7, 7, 7, 7, 9 };
	static const uint64_t other[] = { 5, 6, 7, 7, 7, 7, 9 };

	(void)state;
	assert_int_equal(rest_after(pcs, 4, SEAM_UNWIND_TRUNCATED, chain, 7),
			 4);
	/* of equal ones, the innermost */
	assert_int_equal(rest_after(pcs, 4, SEAM_UNWIND_TRUNCATED, other, 7),
			 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_chain_goes_on_after_the_last_return_address),
		cmocka_unit_test(a_walk_that_is_complete_needs_no_more),
		cmocka_unit_test(
			a_chain_that_has_not_the_address_adds_nothing),
		cmocka_unit_test(a_recursion_goes_on_at_its_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
