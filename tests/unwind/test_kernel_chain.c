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

/*
 * Addresses from 100 on: code without CFI; from 200 on: with CFI, and a caller;
 * from 300 on: with CFI, and a root; from 400 on: an entry; others: no code.
 */
static struct seam_unwind_rules rules;
static uint16_t called, root;

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	(void)context;
	*code = (struct seam_unwind_code) {
		.rules = addr / 100 == 1 ? NULL : &rules,
		.id = addr / 100 == 2 ? called : addr / 100 == 3 ? root :
		      SEAM_UNWIND_NO_CFI,
		.is_entry = addr / 100 == 4,
	};
	return addr >= 100 && addr < 500;
}

static uint16_t intern(enum seam_unwind_how of_return_address)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP, .cfa_value = 8,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP,
	};

	row.how[SEAM_X86_64_RIP] = (uint8_t)of_return_address;
	row.value[SEAM_X86_64_RIP] = -8;
	return (uint16_t)seam_unwind_rules_intern(&rules, &row);
}

static struct seam_unwind_rest follow(const uint64_t *chain, size_t n,
				      bool is_cut)
{
	const struct seam_unwind_space space = { .find = find };
	struct seam_unwind_frame frames[] = { { .pc = 1 }, { .pc = 150 } };
	struct seam_unwind_stack stack = {
		.frames = frames, .max = 2, .n = 2,
		.end = SEAM_UNWIND_TRUNCATED,
	};

	return seam_unwind_kernel_follow(&space, &stack, chain, n, is_cut);
}

static void a_chain_is_whole_if_it_ends_at_a_root(void **state)
{
	static const struct {
		uint64_t last;
		bool is_whole;
	} ends[] = {
		{ 180, true }, { 250, false }, { 350, true }, { 450, true },
		/* the call may be the last instruction of its function */
		{ 400, true }, { 300, false },
	};

	(void)state;
	called = intern(SEAM_UNWIND_AT_CFA);
	root = intern(SEAM_UNWIND_UNDEFINED);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ends); i++) {
		const uint64_t chain[] = { 1, 150, 260, ends[i].last };
		struct seam_unwind_rest rest = follow(chain, 4, false);

		assert_int_equal(rest.first, 2);
		assert_int_equal(rest.n, 2);
		assert_int_equal(rest.is_whole, ends[i].is_whole);
		assert_false(follow(chain, 4, true).is_whole);
	}
	seam_unwind_rules_fini(&rules);
}

static void a_chain_goes_on_through_code_only(void **state)
{
	static const uint64_t chain[] = { 1, 150, 160, 5, 170 };
	static const uint64_t nothing[] = { 1, 150, 5, 170 };
	struct seam_unwind_rest rest = follow(chain, 5, false);

	(void)state;
	assert_int_equal(rest.first, 2);
	assert_int_equal(rest.n, 1);
	assert_false(rest.is_whole);
	rest = follow(nothing, 4, false);
	assert_int_equal(rest.n, 0);
	assert_false(rest.is_whole);
	assert_int_equal(follow(chain, 2, false).n, 0);
	assert_int_equal(follow(chain, 0, false).n, 0);
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
		cmocka_unit_test(a_chain_is_whole_if_it_ends_at_a_root),
		cmocka_unit_test(a_chain_goes_on_through_code_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
