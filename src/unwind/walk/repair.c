/* SPDX-License-Identifier: MIT */
/* repair.c - find rbp by the code, verify it by the stack; see repair.h */
#include "unwind/walk/repair.h"

#include "unwind/walk/stack_height.h"

enum {
	MAX_FUNCTION = 64 << 10,	/* bytes; larger ones are not repaired */
	/* Of a stack that is cut by the copy, for rbp to be right. */
	MIN_FRAMES = 4,
	FRAME_ALIGN = 16,		/* System V ABI for AMD64 1.0, 3.2.2 */
};

struct repair {
	const struct seam_unwind_space *space;
	const struct seam_unwind_memory *memory;
	const struct seam_unwind_registers *regs;	/* of the last frame */
	struct seam_unwind_frame last;
	size_t n;				/* frames, the last included */
	struct seam_unwind_stack *stack;
	bool is_cut;	/* the copy ends too early for an answer */
};

static bool is_after_call(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];
	size_t n = space->code_before(space->context, pc, bytes);

	return seam_unwind_is_call(bytes + sizeof(bytes), n);
}

/* Walk from the last frame on, with @rbp.  Whether that is verified. */
static bool try(struct repair *r, uint64_t rbp)
{
	struct seam_unwind_registers regs = *r->regs;
	struct seam_unwind_stack *stack = r->stack;
	uint64_t pc;

	if (!seam_unwind_read(r->memory, rbp + 8, &pc)) {
		r->is_cut |= seam_unwind_unreadable(r->memory, rbp + 8) ==
			     SEAM_UNWIND_TRUNCATED;
		return false;
	}
	if (!is_after_call(r->space, pc))
		return false;
	regs.value[SEAM_X86_64_RBP] = rbp;
	regs.known |= UINT64_C(1) << SEAM_X86_64_RBP;
	stack->n = r->n - 1;
	seam_unwind_walk_on(r->space, r->memory, &regs, &r->last, stack);
	if (stack->n <= r->n || stack->frames[r->n].pc != pc)
		return false;
	if (stack->end != SEAM_UNWIND_TRUNCATED &&
	    stack->end != SEAM_UNWIND_OTHER_STACK)
		return stack->end == SEAM_UNWIND_ROOT;
	r->is_cut |= stack->n - r->n < MIN_FRAMES;
	return stack->n - r->n >= MIN_FRAMES;
}

static void repair(struct repair *r)
{
	uint64_t sp = r->regs->value[SEAM_X86_64_RSP], found = 0;
	struct seam_stack_height height;
	uint8_t code[MAX_FUNCTION];
	size_t before, size, n_found = 0;

	size = r->space->function(r->space->context, r->last.pc, code,
				  sizeof(code), &before);
	if (!size || !seam_stack_height_after(code, size, before, &height))
		return;
	for (uint64_t more = 0; more == 0 || more < height.align; more += 8) {
		uint64_t rbp = sp + height.bytes + more;

		/* of a function that aligns its stack, all keep to the ABI */
		if ((height.align && rbp % FRAME_ALIGN) || !try(r, rbp))
			continue;
		found = rbp;
		n_found++;
	}
	if (n_found == 1 && try(r, found))
		return;
	r->stack->n = r->n;
	r->stack->end = r->is_cut ? SEAM_UNWIND_TRUNCATED :
				    SEAM_UNWIND_UNKNOWN_REGISTER;
	r->stack->end_pc = r->last.pc;
	r->stack->end_cfa = 0;
}

void seam_unwind_walk_repaired(const struct seam_unwind_space *space,
			       const struct seam_unwind_memory *memory,
			       const struct seam_unwind_registers *start,
			       struct seam_unwind_stack *stack)
{
	struct seam_unwind_registers regs = *start;
	const struct seam_unwind_frame first = { .is_interrupted = true };
	struct repair r = {
		.space = space, .memory = memory, .regs = &regs, .stack = stack,
	};

	stack->n = 0;
	seam_unwind_walk_on(space, memory, &regs, &first, stack);
	if (stack->end != SEAM_UNWIND_UNKNOWN_REGISTER || !space->function ||
	    seam_unwind_has(&regs, SEAM_X86_64_RBP))
		return;
	r.n = stack->n;
	r.last = stack->frames[r.n - 1];
	repair(&r);
}
