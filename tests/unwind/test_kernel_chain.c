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

/* A nop before 270, a call whose last byte is one before 280. */
static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	memset(bytes, addr == 270 || addr == 280 ? 0x90 : 0,
	       SEAM_UNWIND_CALL_BYTES);
	bytes[2] = addr == 280 ? 0xe8 : 0;
	return SEAM_UNWIND_CALL_BYTES;
}

static const struct seam_unwind_space space = {
	.find = find, .code_before = code_before,
};

static struct seam_unwind_rest follow(const uint64_t *chain, size_t n,
				      bool is_cut)
{
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
		/* nothing returns to a place after a nop */
		{ 270, true }, { 280, false },
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

static void what_a_walk_out_of_code_found_last_is_left_out(void **state)
{
	static const uint64_t chain[] = { 1, 150, 260, 350 };
	struct seam_unwind_frame frames[] = {
		{ .pc = 1 }, { .pc = 150 }, { .pc = 222 }, { .pc = 223 },
	};
	struct seam_unwind_stack stack = {
		.frames = frames, .max = 4, .end = SEAM_UNWIND_NO_MAPPING,
	};
	struct seam_unwind_rest rest;

	(void)state;
	called = intern(SEAM_UNWIND_AT_CFA);
	root = intern(SEAM_UNWIND_UNDEFINED);
	for (stack.n = 2; stack.n <= 3; stack.n++) {
		size_t n = stack.n;

		rest = seam_unwind_kernel_follow(&space, &stack, chain, 4,
						 false);
		assert_true(rest.is_whole);
		assert_int_equal(stack.n, 2);
		assert_int_equal(rest.first, 2);
		assert_int_equal(rest.n, 2);
		/* not by a chain that leads nowhere */
		stack.n = n;
		rest = seam_unwind_kernel_follow(&space, &stack, chain, 3,
						 false);
		assert_int_equal(rest.n, 0);
		assert_int_equal(stack.n, n);
	}
	/* two false frames are too many */
	stack.n = 4;
	rest = seam_unwind_kernel_follow(&space, &stack, chain, 4, false);
	assert_int_equal(rest.n, 0);
	assert_int_equal(stack.n, 4);
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
		cmocka_unit_test(
			what_a_walk_out_of_code_found_last_is_left_out),
		cmocka_unit_test(a_chain_goes_on_through_code_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
