/* SPDX-License-Identifier: MIT */
/* kernel_chain.c - the rest of a stack; the contract is in kernel_chain.h */
#include "unwind/walk/kernel_chain.h"

#include <linux/perf_event.h>

enum {
	/* Frames: a hostile recursion would take its length squared. */
	MAX_COMPARED = 256,
	NOP = 0x90,
	MAX_FALSE = 1,		/* frames before one that is in no code */
};

struct seam_unwind_chain seam_unwind_chain_of(const uint64_t *words, size_t n)
{
	struct seam_unwind_chain c = { .words = words };
	size_t i;

	while (c.n_kernel < n &&
	       words[c.n_kernel] != (uint64_t)PERF_CONTEXT_USER)
		c.n_kernel++;
	if (c.n_kernel == n)
		return c;
	c.user = words + c.n_kernel + 1;
	for (i = c.n_kernel + 1; i < n && words[i] < (uint64_t)PERF_CONTEXT_MAX;
	     i++)
		c.n_user++;
	c.has_more = i < n;
	return c;
}

bool seam_unwind_chain_is_cut(const struct seam_unwind_chain *chain,
			      size_t max)
{
	size_t n = chain->n_kernel - (chain->n_kernel > 0) + chain->n_user;

	return chain->has_more || n >= max;
}

/* Whether the last frame is right, and only its caller was not found. */
static bool is_cut(const struct seam_unwind_stack *stack)
{
	switch ((enum seam_unwind_end)stack->end) {
	case SEAM_UNWIND_TRUNCATED:
	case SEAM_UNWIND_UNREADABLE:
	case SEAM_UNWIND_UNKNOWN_REGISTER:
	case SEAM_UNWIND_WITHOUT_CFI:
	case SEAM_UNWIND_BROKEN_CFI:
		return stack->n > 0;
	default:
		return false;
	}
}

/* How many frames are equal, from the last one and @chain[@at] inwards. */
static size_t equal_frames(const struct seam_unwind_stack *stack,
			   const uint64_t *chain, size_t at)
{
	size_t n = 0;

	while (n < stack->n && n <= at && n < MAX_COMPARED &&
	       stack->frames[stack->n - 1 - n].pc == chain[at - n])
		n++;
	return n;
}

size_t seam_unwind_kernel_rest(const struct seam_unwind_stack *stack,
			       const uint64_t *chain, size_t n)
{
	size_t most = 0, rest = n;

	if (!is_cut(stack))
		return n;
	for (size_t i = 0; i < n && most < stack->n; i++) {
		size_t equal = equal_frames(stack, chain, i);

		if (equal > most) {
			most = equal;
			rest = i + 1;
		}
	}
	return rest;
}

/*
 * Whether @pc is a return address that was made up: after a nop, not a call.
 * Source: Go, runtime/asm_amd64.s, goexit, "The top-most function running on a
 * goroutine returns to goexit+PCQuantum".
 */
static bool is_after_nop(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];
	const uint8_t *end = bytes + sizeof(bytes);
	size_t n = space->code_before(space->context, pc, bytes);

	return n > 0 && end[-1] == NOP && !seam_unwind_is_call(end, n);
}

/* Whether nothing called the code before @pc, as far as is known of it. */
static bool may_be_root(const struct seam_unwind_space *space, uint64_t pc)
{
	const struct seam_unwind_memory nothing = { .stack = NULL };
	struct seam_unwind_registers regs = { .known = ~UINT64_C(0) };
	struct seam_unwind_code code = { .rules = NULL };

	if (!space->find(space->context, pc - 1, &code))
		return false;
	if (code.is_entry || !code.rules || code.id == SEAM_UNWIND_NO_CFI ||
	    is_after_nop(space, pc))
		return true;
	/* a root's rules say so without a look at the stack */
	return seam_unwind_step(code.rules, code.id, &nothing, &regs) ==
	       SEAM_UNWIND_ROOT;
}

static struct seam_unwind_rest
follow(const struct seam_unwind_space *space,
       const struct seam_unwind_stack *stack, const uint64_t *chain, size_t n,
       bool is_cut)
{
	size_t first = seam_unwind_kernel_rest(stack, chain, n), i = first;
	struct seam_unwind_code code = { .rules = NULL };

	while (i < n && space->find(space->context, chain[i] - 1, &code))
		i++;
	return (struct seam_unwind_rest) {
		.first = first, .n = i - first,
		.is_whole = i > first && i == n && !is_cut &&
			    may_be_root(space, chain[n - 1]),
	};
}

struct seam_unwind_rest
seam_unwind_kernel_follow(const struct seam_unwind_space *space,
			  struct seam_unwind_stack *stack,
			  const uint64_t *chain, size_t n, bool is_cut)
{
	struct seam_unwind_stack inner = *stack;

	if (stack->end != SEAM_UNWIND_NO_MAPPING)
		return follow(space, stack, chain, n, is_cut);
	inner.end = SEAM_UNWIND_UNREADABLE;
	for (size_t i = 0; i <= MAX_FALSE && inner.n > 1; i++, inner.n--) {
		struct seam_unwind_rest rest = follow(space, &inner, chain, n,
						      is_cut);

		if (rest.is_whole) {
			stack->n = inner.n;
			return rest;
		}
	}
	return (struct seam_unwind_rest) { .n = 0 };
}
