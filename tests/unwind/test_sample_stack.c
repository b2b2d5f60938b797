/* SPDX-License-Identifier: MIT */
/*
 * test_sample_stack.c - where the kernel's callchain goes on after a walk, and
 * registers that are those after a call or a return
 */
#include "unwind/walk/sample_stack.c"

#include "unit.h"

/* ---- the kernel's chain ---- */

/*
 * Addresses from 100 on: code without CFI; from 200 on: with CFI, and a frame
 * pointer; from 300 on: with CFI, and a root; from 400 on: an entry; from 500
 * on: with CFI, and no frame pointer; others: no code.
 */
static struct seam_unwind_rules rules;
static uint16_t called, root, without;

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	(void)context;
	*code = (struct seam_unwind_code) {
		.rules = addr / 100 == 1 ? NULL : &rules,
		.id = addr / 100 == 2 ? called : addr / 100 == 3 ? root :
		      addr / 100 == 5 ? without : SEAM_UNWIND_NO_CFI,
		.is_entry = addr / 100 == 4,
	};
	return addr >= 100 && addr < 600;
}

static uint16_t intern(uint8_t cfa_column, int32_t cfa_value,
		       enum seam_unwind_how of_return_address)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = cfa_column, .cfa_value = cfa_value,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP,
	};

	row.how[SEAM_X86_64_RIP] = (uint8_t)of_return_address;
	row.value[SEAM_X86_64_RIP] = -8;
	return (uint16_t)seam_unwind_rules_intern(&rules, &row);
}

static int set_up(void **state)
{
	called = intern(SEAM_X86_64_RBP, 16, SEAM_UNWIND_AT_CFA);
	root = intern(SEAM_X86_64_RSP, 8, SEAM_UNWIND_UNDEFINED);
	without = intern(SEAM_X86_64_RSP, 16, SEAM_UNWIND_AT_CFA);
	return 0;
}

static int tear_down(void **state)
{
	seam_unwind_rules_fini(&rules);
	return 0;
}

/* "nop; call" before and at 270: an address that runtime.goexit() has. */
static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	memset(bytes, 0, SEAM_UNWIND_CALL_BYTES);
	if (addr == 270)
		bytes[6] = 0x90;
	if (addr == 271)
		memcpy(bytes + 5, (uint8_t[]) { 0x90, 0xe8 }, 2);
	return SEAM_UNWIND_CALL_BYTES;
}

static const struct seam_unwind_space space = {
	.find = find, .code_before = code_before,
};

enum { STACK = 0x7000, SP = STACK + 16, MAX = 8 };

/* Frame records from STACK on, each 32 bytes above the one before. */
static uint64_t words[64];

static void put_records(const uint64_t *chain, size_t n)
{
	memset(words, 0, sizeof(words));
	for (size_t i = 1; i < n; i++) {
		words[4 * (i - 1)] = STACK + 32 * i;
		words[4 * (i - 1) + 1] = chain[i];
	}
}

/* Where the frame of chain[@i] is, once its callee has returned. */
static uint64_t sp_of(size_t i)
{
	return STACK + 32 * (i - 1) + 16;
}

/* A walk that found frames @pcs, which are those of the chain's first @n. */
struct walked {
	struct seam_unwind_frame frames[MAX];
	struct seam_unwind_stack stack;
};

static void walked(struct walked *w, const uint64_t *pcs, size_t n,
		   enum seam_unwind_end end)
{
	*w = (struct walked) { .stack = {
		.frames = w->frames, .max = MAX, .n = n, .end = (uint8_t)end,
	} };
	for (size_t i = 0; i < n; i++)
		w->frames[i] = (struct seam_unwind_frame) {
			.pc = pcs[i], .sp = i ? sp_of(i) : STACK - 64,
		};
}

static struct seam_unwind_rest go_on(struct walked *w, const uint64_t *chain,
				     size_t n)
{
	const struct seam_unwind_chain user = { .user = chain, .n_user = n };
	const struct seam_unwind_registers start = {
		.value = { [SEAM_X86_64_RBP] = STACK },
		.known = ~UINT64_C(0),
	};
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)words, .stack_addr = STACK,
		/* the copy: so much that the walk has its last frame */
		.stack_bytes = sizeof(words),
	};

	return follow_chain(&space, &memory, &start, &user, &w->stack);
}

static struct seam_unwind_rest after(const uint64_t *pcs, size_t n_pcs,
				     enum seam_unwind_end end,
				     const uint64_t *chain, size_t n)
{
	struct walked w;

	put_records(chain, n);
	walked(&w, pcs, n_pcs, end);
	return go_on(&w, chain, n);
}

UNIT_TEST(the_chain_goes_on_after_the_last_return_address)
{
	static const uint64_t chain[] = { 210, 220, 230, 240, 250 };
	static const enum seam_unwind_end ends[] = {
		SEAM_UNWIND_TRUNCATED, SEAM_UNWIND_WITHOUT_CFI,
		SEAM_UNWIND_UNREADABLE, SEAM_UNWIND_UNKNOWN_REGISTER,
		SEAM_UNWIND_BROKEN_CFI,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ends); i++) {
		struct seam_unwind_rest rest = after(chain, 3, ends[i], chain,
						     5);

		assert_int_equal(rest.first, 3);
		assert_int_equal(rest.n, 2);
		assert_false(rest.is_whole);
	}
}

UNIT_TEST(a_walk_that_is_not_cut_needs_no_more)
{
	static const uint64_t chain[] = { 210, 220, 230 };
	static const enum seam_unwind_end ends[] = {
		SEAM_UNWIND_ROOT, SEAM_UNWIND_TOO_DEEP, SEAM_UNWIND_NO_MAPPING,
		SEAM_UNWIND_OTHER_STACK, SEAM_UNWIND_NO_PROGRESS,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ends); i++)
		assert_int_equal(after(chain, 2, ends[i], chain, 3).n, 0);
}

/* As after a handler on an alternate stack, whose callers are in the chain. */
UNIT_TEST(an_equal_address_at_another_place_is_another_frame)
{
	static const uint64_t pcs[] = { 210, 240, 250, 220 };
	static const uint64_t chain[] = { 210, 220, 230, 240, 250 };
	static const uint64_t recursion[] = { 210, 220, 220, 220, 220, 230 };
	struct seam_unwind_rest rest;
	struct walked w;

	assert_int_equal(after(pcs, 4, SEAM_UNWIND_TRUNCATED, chain, 5).n, 0);
	rest = after(recursion, 3, SEAM_UNWIND_TRUNCATED, recursion, 6);
	assert_int_equal(rest.first, 3);
	assert_int_equal(rest.n, 3);
	/* a function without a frame pointer is not in the chain */
	put_records(chain, 5);
	walked(&w, chain, 3, SEAM_UNWIND_TRUNCATED);
	w.frames[2].sp += 8;
	assert_int_equal(go_on(&w, chain, 5).n, 0);
	/* nor is the chain that of these frame pointers */
	walked(&w, chain, 3, SEAM_UNWIND_TRUNCATED);
	words[1]++;
	assert_int_equal(go_on(&w, chain, 5).n, 0);
}

UNIT_TEST(a_frame_without_frame_pointer_ends_the_chain)
{
	static const uint64_t last[] = { 210, 220, 510, 240 };
	static const uint64_t beyond[] = { 210, 220, 230, 510, 250, 310 };

	/* the kernel skips its caller */
	assert_int_equal(after(last, 3, SEAM_UNWIND_TRUNCATED, last, 4).n, 0);
	assert_int_equal(after(beyond, 3, SEAM_UNWIND_TRUNCATED, beyond, 6).n,
			 1);
}

UNIT_TEST(a_chain_is_whole_if_it_ends_at_a_root)
{
	static const struct {
		uint64_t last;
		bool is_whole;
	} ends[] = {
		/* that code has no CFI does not make it a root */
		{ 180, false }, { 250, false }, { 350, true }, { 450, true },
		/* the call may be the last instruction of its function */
		{ 500, true }, { 400, true }, { 300, false },
		{ 270, true }, { 271, false },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ends); i++) {
		const uint64_t chain[] = { 210, 150, 260, ends[i].last, 240 };
		struct seam_unwind_rest rest =
			after(chain, 2, SEAM_UNWIND_TRUNCATED, chain, 5);

		assert_int_equal(rest.first, 2);
		assert_int_equal(rest.is_whole, ends[i].is_whole);
		assert_int_equal(rest.n, ends[i].is_whole ? 2 : 3);
	}
}

UNIT_TEST(what_a_walk_out_of_code_found_last_is_left_out)
{
	static const uint64_t chain[] = { 210, 150, 260, 350 };
	static const uint64_t pcs[] = { 210, 150, 222, 223 };
	struct walked w;

	put_records(chain, 4);
	for (size_t n = 2; n <= 3; n++) {
		struct seam_unwind_rest rest;

		walked(&w, pcs, n, SEAM_UNWIND_NO_MAPPING);
		rest = go_on(&w, chain, 4);
		assert_true(rest.is_whole);
		assert_int_equal(w.stack.n, 2);
		assert_int_equal(rest.first, 2);
		assert_int_equal(rest.n, 2);
		/* not by a chain that leads nowhere */
		walked(&w, pcs, n, SEAM_UNWIND_NO_MAPPING);
		assert_int_equal(go_on(&w, chain, 3).n, 0);
		assert_int_equal(w.stack.n, n);
	}
	/* two false frames are too many */
	walked(&w, pcs, 4, SEAM_UNWIND_NO_MAPPING);
	assert_int_equal(go_on(&w, chain, 4).n, 0);
	assert_int_equal(w.stack.n, 4);
}

UNIT_TEST(a_chain_goes_on_through_code_only)
{
	static const uint64_t chain[] = { 210, 150, 160, 5, 170 };
	static const uint64_t nothing[] = { 210, 150, 5, 170 };

	assert_int_equal(after(chain, 2, SEAM_UNWIND_TRUNCATED, chain, 5).n, 1);
	assert_int_equal(after(nothing, 2, SEAM_UNWIND_TRUNCATED, nothing,
			       4).n, 0);
	assert_int_equal(after(chain, 2, SEAM_UNWIND_TRUNCATED, chain, 2).n, 0);
	assert_int_equal(after(chain, 2, SEAM_UNWIND_TRUNCATED, chain, 0).n, 0);
	/* nothing is known of the frame of the innermost function */
	assert_int_equal(after(chain, 1, SEAM_UNWIND_TRUNCATED, chain, 5).n, 0);
}

/* ---- precise samples ---- */

#define CODE UINT64_C(0x401000)
#define TOP UINT64_C(0x7ffd0000)

static struct { const char *bytes; size_t size; } code;

static size_t precise_code_before(void *context, uint64_t addr, uint8_t *bytes)
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
static bool find_any(void *context, uint64_t addr, struct seam_unwind_code *out)
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
	const struct seam_unwind_space all = {
		.find = find_any, .code_before = precise_code_before,
	};
	/* the code seems to keep a frame pointer, and to have a caller */
	const uint64_t stacked[2] = { word, CODE + 0x800 };
	const uint64_t regs[3] = { TOP, TOP, CODE + at };	/* bp, sp, ip */
	const struct seam_perf_sample sample = {
		.user_regs = { .abi = PERF_SAMPLE_REGS_ABI_64,
			       .mask = 7 << 6,
			       .values = { (const uint8_t *)regs, 3, false } },
		.user_stack = { (const uint8_t *)stacked, sizeof(stacked) },
	};

	code.bytes = bytes;
	code.size = size;
	seam_sample_stack_walk(&stack, &sample, PERF_RECORD_MISC_EXACT_IP |
			       PERF_RECORD_MISC_USER, NULL, 0, &all);
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
		assert_int_equal(sp, TOP + 8);
	}
}

UNIT_TEST(other_words_and_instructions_change_nothing)
{
	uint64_t sp;

	assert_true(precise(calls, sizeof(calls), 1, CODE + 100, &sp));
	assert_int_equal(sp, TOP);
	/* near enough, but not after a call */
	assert_true(precise(calls, sizeof(calls), 14, CODE + 17, &sp));
	assert_int_equal(sp, TOP);
	assert_true(precise(calls, sizeof(calls), 0, 0, &sp));
	assert_int_equal(sp, TOP);
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

UNIT_MAIN(set_up, tear_down, NULL, NULL)
