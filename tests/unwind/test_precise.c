/* SPDX-License-Identifier: MIT */
/* test_precise.c - registers that are those after a call or a return */
#include "unwind/walk/precise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

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

/* At offset @at of @bytes, with @word at the stack pointer. */
static bool precise(const char *bytes, size_t size, uint64_t at, uint64_t word,
		    uint64_t *sp)
{
	const struct seam_unwind_space space = { .code_before = code_before };
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)&word, .stack_addr = STACK,
		.stack_bytes = sizeof(word),
	};
	struct seam_unwind_registers regs = {
		.value[SEAM_X86_64_RIP] = CODE + at,
		.value[SEAM_X86_64_RSP] = STACK, .known = UINT64_MAX,
	};
	bool is_known;

	code.bytes = bytes;
	code.size = size;
	is_known = seam_unwind_precise(&space, &memory, &regs);
	*sp = regs.value[SEAM_X86_64_RSP];
	return is_known;
}

static const char calls[] =
	"\x90\xe8\x01\x02\x03\x04"			/* 1: call */
	"\xff\xd0"					/* 6: call *%rax */
	"\x67\xe8\x01\x02\x03\x04"			/* 8: addr32 call */
	"\x90\x90\x90\x90";

static void the_return_address_of_a_call_is_taken_back(void **state)
{
	static const struct { uint64_t at, size; } at[] = {
		{ 1, 5 }, { 6, 2 }, { 8, 6 },
	};
	uint64_t sp;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_true(precise(calls, sizeof(calls), at[i].at,
				    CODE + at[i].at + at[i].size, &sp));
		assert_int_equal(sp, STACK + 8);
	}
}

static void other_words_and_instructions_change_nothing(void **state)
{
	uint64_t sp;

	(void)state;
	assert_true(precise(calls, sizeof(calls), 1, CODE + 100, &sp));
	assert_int_equal(sp, STACK);
	/* near enough, but not after a call */
	assert_true(precise(calls, sizeof(calls), 14, CODE + 17, &sp));
	assert_int_equal(sp, STACK);
	assert_true(precise(calls, sizeof(calls), 0, 0, &sp));
	assert_int_equal(sp, STACK);
}

static void after_a_return_no_caller_is_known(void **state)
{
	uint64_t sp;

	(void)state;
	assert_false(precise("\x90\xc3\x90", 3, 1, 7, &sp));
	assert_false(precise("\xf3\xc3", 2, 0, 7, &sp));
	assert_false(precise("\xf2\xc3", 2, 0, 7, &sp));
	assert_false(precise("\xc2\x08", 2, 0, 7, &sp));
	assert_true(precise("\x90\xc3", 2, 0, 7, &sp));
	/* its bytes cannot be read */
	assert_true(precise("\xc3", 1, 0, 7, &sp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_return_address_of_a_call_is_taken_back),
		cmocka_unit_test(other_words_and_instructions_change_nothing),
		cmocka_unit_test(after_a_return_no_caller_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
