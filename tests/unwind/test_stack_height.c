/* SPDX-License-Identifier: MIT */
/* test_stack_height.c - rbp - rsp by the instructions of a function */
#include "unwind/walk/stack_height.h"

#include "base/array.h"
#include "unit.h"

#define PROLOGUE "\x55\x48\x89\xe5"		/* push rbp; mov rbp, rsp */
#define PUSH_RBX "\x53"
#define PUSH_R12 "\x41\x54"
#define SUB_40 "\x48\x83\xec\x40"		/* sub rsp, 0x40 */
#define SUB_4096 "\x48\x81\xec\x00\x10\x00\x00"
#define ADD_16 "\x48\x83\xc4\x10"
#define PUSH_1 "\x6a\x01"
#define CALL "\xe8\x01\x00\x00\x00"
#define LEAVE_RET "\xc9\xc3"
#define MOV_EAX "\xb8\x01\x00\x00\x00"		/* mov eax, 1 */
#define SUB_RAX "\x48\x29\xc4"			/* sub rsp, rax */
#define ALIGN_32 "\x48\x83\xe4\xe0"		/* and rsp, -32 */

/*
 * After @before, of the function that goes on with @after.  SIZE_MAX: not
 * known.
 */
static uint64_t height(const char *before, size_t n_before, const char *after,
		       size_t n_after, uint64_t *align)
{
	struct seam_stack_height h = { 0 };
	uint8_t code[256];

	memcpy(code, before, n_before);
	memcpy(code + n_before, after, n_after);
	if (!seam_stack_height_after(code, n_before + n_after, n_before, &h))
		return SIZE_MAX;
	*align = h.align;
	return h.bytes;
}

#define HEIGHT(before, after, align) \
	height(before, sizeof(before) - 1, after, sizeof(after) - 1, align)

static void is_fixed(uint64_t found, const uint64_t *align, uint64_t bytes)
{
	assert_int_equal(found, bytes);
	assert_int_equal(*align, 0);
}

UNIT_TEST(pushes_and_constants_are_added_up)
{
	uint64_t align = 99;

	is_fixed(HEIGHT(PROLOGUE CALL, LEAVE_RET, &align), &align, 0);
	is_fixed(HEIGHT(PROLOGUE PUSH_RBX SUB_40 CALL, LEAVE_RET, &align),
		 &align, 0x48);
	/* gcc moves arguments between the pushes */
	is_fixed(HEIGHT("\xf3\x0f\x1e\xfa" PROLOGUE PUSH_R12 MOV_EAX PUSH_RBX
			SUB_4096 CALL, LEAVE_RET, &align), &align, 0x1010);
	/* arguments of a call are there until they are removed */
	is_fixed(HEIGHT(PROLOGUE SUB_40 PUSH_1 PUSH_1 CALL,
			ADD_16 LEAVE_RET, &align), &align, 0x50);
	is_fixed(HEIGHT(PROLOGUE SUB_40 PUSH_1 PUSH_1 CALL ADD_16 CALL,
			LEAVE_RET, &align), &align, 0x40);
}

UNIT_TEST(code_after_a_return_has_the_height_of_the_jump_to_it)
{
	uint64_t align = 99;

	/* push rbp..; sub; je +9; push 1; call; leave; ret; it: call */
	is_fixed(HEIGHT(PROLOGUE SUB_40 "\x74\x09" PUSH_1 CALL LEAVE_RET CALL,
			LEAVE_RET, &align), &align, 0x40);
	/* je +11; push 1; je +0; call; leave; ret; it: not the last jump's */
	is_fixed(HEIGHT(PROLOGUE SUB_40 "\x74\x0b" PUSH_1 "\x74\x00" CALL
			LEAVE_RET CALL, LEAVE_RET, &align), &align, 0x40);
	/* je to the next two; leave; ret; push 1; call: the second is reached */
	is_fixed(HEIGHT(PROLOGUE SUB_40 "\x74\x04\x74\x04" LEAVE_RET PUSH_1
			CALL, LEAVE_RET, &align), &align, 0x48);
	/* je to the call; leave; ret; push 1; call: reached after the push */
	is_fixed(HEIGHT(PROLOGUE SUB_40 "\x74\x04" LEAVE_RET PUSH_1 CALL,
			LEAVE_RET, &align), &align, 0x48);
	/* without a jump to it: that of the last jump; jump; leave; ret */
	is_fixed(HEIGHT(PROLOGUE SUB_40 "\x74\x00" PUSH_1 CALL LEAVE_RET CALL,
			LEAVE_RET, &align), &align, 0x40);
	/* lea rsp, [rbp - 8]; pop rbx; pop rbp; ret */
	is_fixed(HEIGHT(PROLOGUE PUSH_RBX SUB_40 "\x74\x0a\xeb\x08"
			"\x48\x8d\x65\xf8\x5b\x5d\xc3\x90" CALL,
			LEAVE_RET, &align), &align, 0x48);
}

UNIT_TEST(a_stack_that_may_be_dynamic_has_no_height)
{
	uint64_t align;

	assert_int_equal(HEIGHT(PROLOGUE SUB_40 SUB_RAX CALL, LEAVE_RET,
				&align), SIZE_MAX);
	/* mov rsp, rax: clang, without optimization */
	assert_int_equal(HEIGHT(PROLOGUE SUB_40 "\x48\x89\xc4" CALL, LEAVE_RET,
				&align), SIZE_MAX);
	/* on another way, before and after the place */
	assert_int_equal(HEIGHT(PROLOGUE SUB_40 "\x74\x03" SUB_RAX CALL,
				LEAVE_RET, &align), SIZE_MAX);
	assert_int_equal(HEIGHT(PROLOGUE SUB_40 CALL, LEAVE_RET SUB_RAX
				"\xeb\xf4", &align), SIZE_MAX);
	/* sub rsp, 4096; or [rsp], 0; cmp rsp, r11; jne: pages are probed */
	assert_int_equal(HEIGHT(PROLOGUE "\xeb\x00" SUB_4096
				"\x48\x83\x0c\x24\x00\x4c\x39\xdc\x75\xef" CALL,
				LEAVE_RET, &align), SIZE_MAX);
}

UNIT_TEST(an_aligned_stack_has_a_height_with_a_rest)
{
	uint64_t align = 0;

	assert_int_equal(HEIGHT(PROLOGUE PUSH_RBX ALIGN_32 SUB_40 CALL,
				LEAVE_RET, &align), 0x48);
	assert_int_equal(align, 32);
	/* and rsp, -512: each place would be tried */
	assert_int_equal(HEIGHT(PROLOGUE "\x48\x81\xe4\x00\xfe\xff\xff" CALL,
				LEAVE_RET, &align), SIZE_MAX);
	assert_int_equal(HEIGHT(PROLOGUE ALIGN_32 SUB_40 ALIGN_32 CALL,
				LEAVE_RET, &align), SIZE_MAX);
	/* lea r10, [rsp + 8]; and; push [r10 - 8]: aligned before rbp is set */
	is_fixed(HEIGHT("\x4c\x8d\x54\x24\x08" ALIGN_32 "\x41\xff\x72\xf8"
			PROLOGUE "\x41\x52" SUB_40 CALL,
			"\xc9\x49\x8d\x62\xf8\xc3", &align), &align, 0x48);
}

UNIT_TEST(what_compilers_do_not_write_has_no_height)
{
	uint64_t align;

	/* lea rsp, [r10 - 8], and something else than a return */
	assert_int_equal(HEIGHT(PROLOGUE SUB_40 CALL, "\x49\x8d\x62\xf8"
				MOV_EAX "\xc3", &align), SIZE_MAX);
	/* push bx */
	assert_int_equal(HEIGHT(PROLOGUE "\x66\x53" CALL, LEAVE_RET, &align),
			 SIZE_MAX);
}

UNIT_TEST(without_a_frame_pointer_there_is_no_height)
{
	uint64_t align;

	assert_int_equal(HEIGHT(SUB_40 CALL, "\x48\x83\xc4\x40\xc3", &align),
			 SIZE_MAX);
	/* before it is set, and after it is gone */
	assert_int_equal(HEIGHT("\x55", "\x48\x89\xe5" CALL LEAVE_RET, &align),
			 SIZE_MAX);
	assert_int_equal(HEIGHT(PROLOGUE "\x5d", "\xc3", &align), SIZE_MAX);
}

UNIT_TEST(a_place_inside_an_instruction_has_no_height)
{
	uint64_t align;

	assert_int_equal(HEIGHT(PROLOGUE "\xe8", "\x01\x02\x03\x04" LEAVE_RET,
				&align), SIZE_MAX);
	/* a function that is not read to its end */
	assert_int_equal(HEIGHT(PROLOGUE CALL, "\xe8\x01", &align), SIZE_MAX);
	/* bytes that are no instruction */
	assert_int_equal(HEIGHT(PROLOGUE CALL, "\x06\xc3", &align), SIZE_MAX);
}

UNIT_TEST(any_bytes_are_read_within_their_size)
{
	struct seam_stack_height h;
	uint32_t seed = 1;

	for (size_t i = 0; i < 200000; i++) {
		size_t n = 1 + i % 40;
		uint8_t *code = malloc(n);

		assert_non_null(code);
		memcpy(code, PROLOGUE, n < 4 ? n : 4);
		for (size_t k = 4; k < n; k++) {
			seed = seed * 1103515245 + 12345;
			code[k] = (uint8_t)(seed >> 16);
		}
		assert_in_range(seam_instruction_bytes(code, n), 0, n);
		(void)seam_stack_height_after(code, n, n, &h);
		free(code);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
