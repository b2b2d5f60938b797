/* SPDX-License-Identifier: MIT */
/* test_sample_stack.c - registers that are those after a call or a return */
#include "unwind/walk/sample_stack.h"

#include <linux/perf_event.h>

#include "unit.h"

#define CODE UINT64_C(0x401000)
#define STACK UINT64_C(0x7ffd0000)

static struct { const char *bytes; size_t size; } code;

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	size_t end = (size_t)(addr - CODE), n = end < SEAM_UNWIND_CALL_BYTES ?
		     end : SEAM_UNWIND_CALL_BYTES;

	(void)context;
	if (end > code.size)
		return 0;
	memcpy(bytes + SEAM_UNWIND_CALL_BYTES - n, code.bytes + end - n, n);
	return n;
}

/* All of it is code without call frame information. */
static bool find(void *context, uint64_t addr, struct seam_unwind_code *out)
{
	(void)context;
	*out = (struct seam_unwind_code) { .rules = NULL };
	return addr >= CODE && addr < CODE + 0x1000;
}

/*
 * At offset @at of @bytes, with @word at the stack pointer.  Whether a caller
 * could be searched; *@sp is the stack pointer that the walk began with.
 */
static bool precise(const char *bytes, size_t size, uint64_t at, uint64_t word,
		    uint64_t *sp)
{
	static struct seam_sample_stack stack;
	const struct seam_unwind_space space = {
		.find = find, .code_before = code_before,
	};
	/* the code seems to keep a frame pointer, and to have a caller */
	const uint64_t words[2] = { word, CODE + 0x800 };
	const uint64_t regs[3] = { STACK, STACK, CODE + at };	/* bp, sp, ip */
	const struct seam_perf_sample sample = {
		.user_regs = { .abi = PERF_SAMPLE_REGS_ABI_64,
			       .mask = 7 << 6,
			       .values = { (const uint8_t *)regs, 3, false } },
		.user_stack = { (const uint8_t *)words, sizeof(words) },
	};

	code.bytes = bytes;
	code.size = size;
	seam_sample_stack_walk(&stack, &sample, PERF_RECORD_MISC_EXACT_IP |
			       PERF_RECORD_MISC_USER, NULL, 0, &space);
	assert_in_range(stack.walk.n, 1, 2);
	*sp = stack.frames[0].sp;
	return stack.end != SEAM_STACK_LOST_REGISTER;
}

static const char calls[] =
	"\x90\xe8\x01\x02\x03\x04"			/* 1: call */
	"\xff\xd0"					/* 6: call *%rax */
	"\x67\xe8\x01\x02\x03\x04"			/* 8: addr32 call */
	"\x90\x90\x90\x90";

UNIT_TEST(the_return_address_of_a_call_is_taken_back)
{
	static const struct { uint64_t at, size; } at[] = {
		{ 1, 5 }, { 6, 2 }, { 8, 6 },
	};
	uint64_t sp;

	for (size_t i = 0; i < 3; i++) {
		assert_true(precise(calls, sizeof(calls), at[i].at,
				    CODE + at[i].at + at[i].size, &sp));
		assert_int_equal(sp, STACK + 8);
	}
}

UNIT_TEST(other_words_and_instructions_change_nothing)
{
	uint64_t sp;

	assert_true(precise(calls, sizeof(calls), 1, CODE + 100, &sp));
	assert_int_equal(sp, STACK);
	/* near enough, but not after a call */
	assert_true(precise(calls, sizeof(calls), 14, CODE + 17, &sp));
	assert_int_equal(sp, STACK);
	assert_true(precise(calls, sizeof(calls), 0, 0, &sp));
	assert_int_equal(sp, STACK);
}

UNIT_TEST(after_a_return_no_caller_is_known)
{
	uint64_t sp;

	assert_false(precise("\x90\xc3\x90", 3, 1, 7, &sp));
	assert_false(precise("\xf3\xc3", 2, 0, 7, &sp));
	assert_false(precise("\xf2\xc3", 2, 0, 7, &sp));
	assert_false(precise("\xc2\x08", 2, 0, 7, &sp));
	assert_true(precise("\x90\xc3", 2, 0, 7, &sp));
	/* its bytes cannot be read */
	assert_true(precise("\xc3", 1, 0, 7, &sp));
}

UNIT_MAIN("sample_stack", NULL, NULL)
