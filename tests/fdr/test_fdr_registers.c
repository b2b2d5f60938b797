/* SPDX-License-Identifier: MIT */
/*
 * test_fdr_registers.c - a trampoline leaves no trace in the program
 *
 * Through each trampoline, with random registers and stacks of any alignment,
 * by each way through the recorder: general registers, flags, MXCSR, x87,
 * vectors of 512 bits and their masks, and the stack above stay as they are.
 */
#include "fdr/source_local.h"

#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/trampolines.h"

#include <cpuid.h>

#include "unit.h"

/* registers.S has the offsets. */
struct registers {
	uint64_t gpr[13], flags, mxcsr, sp;
	uint8_t x87[2][16];
	uint16_t masks[8];
	uint64_t r11, r10;
	uint8_t vectors[32][64];
};

_Static_assert(offsetof(struct registers, x87) == 128, "");
_Static_assert(offsetof(struct registers, masks) == 160, "");
_Static_assert(offsetof(struct registers, r11) == 176, "");
_Static_assert(offsetof(struct registers, vectors) == 192, "");

extern void through(struct registers *registers, const char *trampoline,
		    int is_exit, void *stack);

int has_avx512;
static _Atomic uint64_t never_read;

enum way {
	FAST,
	NEW_CHUNK,
	NEW_CPU,
	WRAP,
	NEW_THREAD,
	FULL,
	N_WAYS,
};

enum {
	STACK = 16 << 10,
	FLAGS = 0xcd5,		/* CF PF AF ZF SF DF OF, without DF: below */
	DIRECTION = 0x400,
	ROUNDS = 2400,
};

static const struct {
	const char *name, *code;
	bool is_exit;
	bool keeps_flags, keeps_r10, keeps_r11;
} trampolines[] = {
	{ "entry", .code = seam_fdr_entry },
	{ "exit", .code = seam_fdr_exit, .is_exit = true },
	{ "tail", .code = seam_fdr_tail, .keeps_flags = true,
	  .keeps_r11 = true },
	{ "entry only", .code = seam_fdr_entry_only, .keeps_r10 = true },
	{ "checked entry", .code = seam_fdr_checked_entry },
	{ "checked exit", .code = seam_fdr_checked_exit, .is_exit = true },
	{ "checked tail", .code = seam_fdr_checked_tail, .keeps_flags = true,
	  .keeps_r11 = true },
	{ "checked entry only", .code = seam_fdr_checked_entry_only,
	  .keeps_r10 = true },
	/* with any number as the address of the data */
	{ "custom event", .code = seam_fdr_custom_event, .keeps_flags = true,
	  .keeps_r10 = true, .keeps_r11 = true },
	{ "typed event", .code = seam_fdr_typed_event, .keeps_flags = true,
	  .keeps_r10 = true, .keeps_r11 = true },
};

enum { N_TRAMPOLINES = sizeof(trampolines) / sizeof(trampolines[0]) };

static void fill(void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)random();
}

/* Any, but of numbers that the FPU stores as it loaded them. */
static void make_random(struct registers *r)
{
	fill(r, sizeof(*r));
	r->flags = (r->flags & FLAGS & ~(uint64_t)DIRECTION) | 2;
	r->mxcsr = 0x1f80 | (r->mxcsr & 0x6000);
	for (int i = 0; i < 2; i++) {
		r->x87[i][7] |= 0x80;	/* normal */
		r->x87[i][8] = 0xff;
		r->x87[i][9] = 0x3f;
	}
	if (!has_avx512)
		for (int i = 0; i < 32; i++)
			memset(r->vectors[i] + (i < 16 ? 16 : 0), 0,
			       i < 16 ? 48 : 64);
}

static void set_way(enum way way)
{
	struct seam_fdr_state *state;
	uint64_t at;

	if (way == NEW_THREAD) {
		seam_fdr_thread_end();
		return;
	}
	seam_fdr_record(seam_xray_word(1, SEAM_XRAY_ENTRY), NULL, 0);
	state = seam_fdr_self.state;
	at = *state->area.cursor >> 3 & 1;
	if (way == NEW_CHUNK || way == FULL)
		while (*state->area.cursor % SEAM_XRAY_CHUNK_BYTES)
			seam_fdr_record(seam_xray_word(1, SEAM_XRAY_ENTRY),
					NULL, 0);
	if (way == NEW_CPU)
		state->at[at].cpu ^= 1;
	if (way == WRAP)
		state->at[at].tsc -= UINT64_C(1) << 33;
	state->area.tail = way == FULL ? &never_read : NULL;
}

static void check(size_t t, enum way way, size_t misalign, size_t *most)
{
	static uint8_t stack[STACK + 1024], before[sizeof(stack)];
	struct registers in, out;
	uint8_t *sp = stack + STACK - misalign;
	uint64_t flags = trampolines[t].keeps_flags ? FLAGS : 0;
	uint32_t word = seam_xray_word(7, SEAM_XRAY_ENTRY);
	size_t used = STACK - misalign;

	make_random(&in);
	*(trampolines[t].keeps_r10 ? &in.r11 : &in.r10) = word;
	out = in;
	fill(stack, sizeof(stack));
	memcpy(before, stack, sizeof(stack));
	set_way(way);
	through(&out, trampolines[t].code, trampolines[t].is_exit, sp);
	assert_memory_equal(out.gpr, in.gpr, sizeof(in.gpr));
	if (trampolines[t].keeps_r10)
		assert_int_equal(out.r10, in.r10);
	if (trampolines[t].keeps_r11)
		assert_int_equal(out.r11, in.r11);
	assert_int_equal(out.flags & (flags | DIRECTION), in.flags & flags);
	assert_int_equal((uint32_t)out.mxcsr, (uint32_t)in.mxcsr);
	assert_int_equal(out.sp, (uintptr_t)sp);
	assert_memory_equal(out.x87[0], in.x87[0], 10);
	assert_memory_equal(out.x87[1], in.x87[1], 10);
	assert_memory_equal(out.masks + 1, in.masks + 1,
			    sizeof(in.masks) - sizeof(in.masks[0]));
	assert_memory_equal(out.vectors, in.vectors, sizeof(in.vectors));
	assert_memory_equal(sp, before + (sp - stack),
			    sizeof(stack) - (size_t)(sp - stack));
	for (size_t i = 0; i < used; i++)
		if (stack[i] != before[i]) {
			*most = used - i > *most ? used - i : *most;
			break;
		}
}

UNIT_TEST(registers_and_stack_stay)
{
	size_t most = 0;

	for (size_t i = 0; i < ROUNDS; i++) {
		size_t t = i % N_TRAMPOLINES;
		enum way way = (enum way)(i / N_TRAMPOLINES % N_WAYS);

		check(t, way, 8 * (size_t)(random() % 16), &most);
	}
	print_message("# of the stack %zu bytes are used\n", most);
	assert_in_range(most, 64, 6000);
}

enum {
	HANDLER_STACK = 32 << 10,
	/* of an old program's 8 KiB, the kernel takes 3.5 with AVX-512 */
	HANDLER_MOST = 3000,
};

static uint8_t handler_stack[HANDLER_STACK] __attribute__((aligned(64)));
static size_t handler_used;
static uint64_t handler_vector, handler_mask;

/* What a handler finds unused is so after a chunk has begun. */
static void handle(int unused)
{
	uint8_t *here = __builtin_frame_address(0), *low = handler_stack;

	/* not by memset(), which uses vectors */
	for (uint8_t *at = low; at < here - 512; at++)
		*(volatile uint8_t *)at = 0xa5;
	seam_fdr_record(seam_xray_word(1, SEAM_XRAY_ENTRY), NULL, 0);
	if (has_avx512)
		__asm__ volatile("vmovq %%xmm29, %0; kmovq %%k5, %1"
				 : "=r" (handler_vector), "=r" (handler_mask));
	while (*low == 0xa5)
		low++;
	handler_used = (size_t)(here - low);
}

UNIT_TEST(a_handler_needs_little_stack)
{
	const stack_t stack = {
		.ss_sp = handler_stack, .ss_size = sizeof(handler_stack),
	};
	struct sigaction action = {
		.sa_handler = handle, .sa_flags = SA_ONSTACK,
	};

	assert_int_equal(sigaltstack(&stack, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	set_way(NEW_THREAD);
	raise(SIGUSR1);
	print_message("# of a handler's stack %zu bytes are used\n",
		      handler_used);
	assert_in_range(handler_used, 64, HANDLER_MOST);
	assert_int_equal(handler_vector, 0);
	assert_int_equal(handler_mask, 0);
}

/* libc may use any of these. */
static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	__asm__ volatile("fldpi; fstp %%st(0); pxor %%xmm0, %%xmm0;"
			 "pxor %%xmm7, %%xmm7; pxor %%xmm15, %%xmm15"
			 ::: "xmm0", "xmm7", "xmm15");
	if (has_avx512)
		__asm__ volatile("vpxorq %%zmm3, %%zmm3, %%zmm3;"
				 "vpternlogq $255, %%zmm29, %%zmm29, %%zmm29;"
				 "kxnorw %%k5, %%k5, %%k5; vzeroall"
				 ::: "memory");
	return source_local.claim(tid, area);
}

static void close_area(struct seam_fdr_area *area)
{
	source_local.close(area);
}

int main(void)
{
	static const struct seam_fdr_source source = {
		.claim = claim, .close = close_area,
	};
	uint32_t a, b, c, d, low = 0, high;

	if (__get_cpuid(1, &a, &b, &c, &d) && c >> 27 & 1)
		__asm__("xgetbv" : "=a" (low), "=d" (high) : "c" (0));
	has_avx512 = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 16 & 1 &&
		     (low & 0xe6) == 0xe6;
	local_bytes = 4 * SEAM_XRAY_CHUNK_BYTES;
	local_free_running = true;
	seam_fdr_rseq_init(false);
	if (seam_fdr_thread_init(&source))
		return 1;
	return unit_run(NULL, NULL, NULL, NULL);
}
