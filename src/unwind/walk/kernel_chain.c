/* SPDX-License-Identifier: MIT */
/* kernel_chain.c - the rest of a stack; the contract is in kernel_chain.h */
#include "unwind/walk/kernel_chain.h"

#include <linux/perf_event.h>

enum { MAX_FALSE = 1 };		/* frames before one that is in no code */

struct seam_unwind_chain seam_unwind_chain_of(const uint64_t *words, size_t n)
{
	struct seam_unwind_chain c = { .words = words };

	while (c.n_kernel < n &&
	       words[c.n_kernel] != (uint64_t)PERF_CONTEXT_USER)
		c.n_kernel++;
	if (c.n_kernel == n)
		return c;
	c.user = words + c.n_kernel + 1;
	for (size_t i = c.n_kernel + 1;
	     i < n && words[i] < (uint64_t)PERF_CONTEXT_MAX; i++)
		c.n_user++;
	return c;
}

/*
 * The index in @chain of the frame @last: the kernel read its return address at
 * the same place.  n_user: frame pointers do not lead there.
 */
static size_t place_of(const struct seam_unwind_frame *last,
		       const struct seam_unwind_memory *memory,
		       const struct seam_unwind_registers *start,
		       const struct seam_unwind_chain *chain)
{
	uint64_t fp = start->value[SEAM_X86_64_RBP], saved, pc;

	for (size_t i = 1; i < chain->n_user; i++, fp = saved) {
		if (!seam_unwind_read(memory, fp, &saved) ||
		    !seam_unwind_read(memory, fp + 8, &pc) ||
		    pc != chain->user[i])
			break;
		if (fp + 16 == last->sp)
			return pc == last->pc ? i : chain->n_user;
	}
	return chain->n_user;
}

static bool has_cfi(const struct seam_unwind_code *code)
{
	return code->rules && code->id > SEAM_UNWIND_BAD_CFI;
}

/*
 * Whether the frame pointer of the code is that of its frame, as far as is
 * known of code without rules.
 */
static bool keeps_frame_pointer(const struct seam_unwind_code *code)
{
	const struct seam_unwind_rule *rule = !has_cfi(code) ? NULL :
		&code->rules->rules.items[code->id];

	return !rule || (rule->cfa_how == SEAM_UNWIND_CFA_REGISTER &&
			 rule->cfa_column == SEAM_X86_64_RBP &&
			 rule->cfa_value == 16);
}

/* Whether nothing called the code before @pc. */
static bool is_root(const struct seam_unwind_space *space,
		    const struct seam_unwind_code *code, uint64_t pc)
{
	const struct seam_unwind_memory nothing = { .stack = NULL };
	struct seam_unwind_registers regs = { .known = ~UINT64_C(0) };

	if (code->is_entry || seam_unwind_is_stack_entry(space, pc))
		return true;
	/* a root's rules say so without a look at the stack */
	return has_cfi(code) && seam_unwind_step(code->rules, code->id,
						 &nothing, &regs) ==
				SEAM_UNWIND_ROOT;
}

/* The frames of @chain from @first on, whose caller must keep the pointer. */
static struct seam_unwind_rest follow(const struct seam_unwind_space *space,
				      const struct seam_unwind_chain *chain,
				      size_t first)
{
	struct seam_unwind_rest rest = { .first = first };
	struct seam_unwind_code code = { .rules = NULL };
	size_t i = first - 1;		/* the walk's last frame */

	while (space->find(space->context, chain->user[i] - 1, &code) &&
	       keeps_frame_pointer(&code) && ++i < chain->n_user &&
	       space->find(space->context, chain->user[i] - 1, &code)) {
		rest.n++;
		rest.is_whole = is_root(space, &code, chain->user[i]);
		if (rest.is_whole)
			break;
	}
	return rest;
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
		return true;
	default:
		return false;
	}
}

struct seam_unwind_rest
seam_unwind_kernel_follow(const struct seam_unwind_space *space,
			  const struct seam_unwind_memory *memory,
			  const struct seam_unwind_registers *start,
			  const struct seam_unwind_chain *chain,
			  struct seam_unwind_stack *stack)
{
	bool is_false = stack->end == SEAM_UNWIND_NO_MAPPING;
	struct seam_unwind_rest rest = { .n = 0 };
	size_t n = stack->n;

	if (!is_false && !is_cut(stack))
		return rest;
	for (size_t i = 0; i <= (is_false ? MAX_FALSE : 0) && n > 1; i++, n--) {
		size_t at = place_of(&stack->frames[n - 1], memory, start,
				     chain);

		if (at < chain->n_user)
			rest = follow(space, chain, at + 1);
		if (rest.is_whole || !is_false)
			break;
		rest.n = 0;
	}
	if (rest.is_whole)
		stack->n = n;
	return rest;
}
