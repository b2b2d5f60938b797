/* SPDX-License-Identifier: MIT */
/* sample_stack.c - walk, continuation, end, chain; see sample_stack.h */
#include "unwind/walk/sample_stack.h"

#include "unwind/walk/repair.h"

#include <linux/perf_event.h>

/* ---- precise samples ---- */

/* A prefix may be before the longest call. */
enum { MIN_CALL_BYTES = 2, MAX_CALL_BYTES = SEAM_UNWIND_CALL_BYTES + 1 };

/* "ret", "ret n", with "rep" or "bnd" before it. */
static bool is_return(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES] = { 0 };
	const uint8_t *code = bytes + sizeof(bytes) - 2;

	if (space->code_before(space->context, pc + 2, bytes) < 2)
		return false;
	if (code[0] == 0xf2 || code[0] == 0xf3)
		code++;
	return code[0] == 0xc3 || code[0] == 0xc2;
}

/* Make @regs those before the instruction.  False: that cannot be done. */
static bool correct_registers(const struct seam_unwind_space *space,
			      const struct seam_unwind_memory *memory,
			      struct seam_unwind_registers *regs)
{
	uint64_t pc = regs->value[SEAM_X86_64_RIP], pushed;
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];

	if (seam_unwind_read(memory, regs->value[SEAM_X86_64_RSP], &pushed) &&
	    pushed - pc >= MIN_CALL_BYTES && pushed - pc <= MAX_CALL_BYTES &&
	    seam_unwind_is_call(bytes + sizeof(bytes),
				space->code_before(space->context, pushed,
						   bytes))) {
		regs->value[SEAM_X86_64_RSP] += sizeof(pushed);
		return true;
	}
	return !is_return(space, pc);
}

/* ---- the kernel's chain ---- */

enum { MAX_FALSE = 1 };		/* frames before one that is in no code */

/* The parts of the @n @words, which are borrowed. */
static struct seam_unwind_chain chain_of(const uint64_t *words, size_t n)
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

/*
 * The callers of the last frame of @stack, a walk from @start in @memory, that
 * @chain has.
 *
 * A walk that left the code went wrong a frame before, or two, as where Go
 * switches stacks (runtime.systemstack): the last frame of @stack is removed,
 * if only without it the chain leads to a root.
 */
static struct seam_unwind_rest
follow_chain(const struct seam_unwind_space *space,
	     const struct seam_unwind_memory *memory,
	     const struct seam_unwind_registers *start,
	     const struct seam_unwind_chain *chain,
	     struct seam_unwind_stack *stack)
{
	bool is_false = stack->end == SEAM_UNWIND_NO_MAPPING;
	struct seam_unwind_rest rest = { .n = 0 };
	size_t n = stack->n;

	/* is the last frame right, and was only its caller not found? */
	if (!is_false && stack->end != SEAM_UNWIND_TRUNCATED &&
	    stack->end != SEAM_UNWIND_UNREADABLE &&
	    stack->end != SEAM_UNWIND_UNKNOWN_REGISTER &&
	    stack->end != SEAM_UNWIND_WITHOUT_CFI &&
	    stack->end != SEAM_UNWIND_BROKEN_CFI)
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

/* ---- one sample ---- */

static void walk(const struct seam_unwind_space *space,
		 const struct seam_unwind_memory *memory,
		 struct seam_unwind_registers regs, uint16_t misc,
		 struct seam_unwind_stack *stack)
{
	/* in the kernel, the user registers are those of its entry */
	bool is_precise = misc & PERF_RECORD_MISC_EXACT_IP &&
			  (misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				  PERF_RECORD_MISC_USER;
	size_t max = stack->max;

	if (is_precise && !correct_registers(space, memory, &regs))
		stack->max = 1;
	if (seam_unwind_has(&regs, SEAM_X86_64_RBP))
		seam_unwind_walk(space, memory, &regs, stack);
	else
		seam_unwind_walk_repaired(space, memory, &regs, stack);
	if (stack->max < max && stack->end == SEAM_UNWIND_TOO_DEEP)
		stack->end = SEAM_UNWIND_UNKNOWN_REGISTER;
	stack->max = max;
}

/* Why the code of the last frame has no rules that are right. */
static enum seam_stack_end why_no_rules(const struct seam_unwind_space *space,
					const struct seam_unwind_stack *stack)
{
	const struct seam_unwind_frame *last = &stack->frames[stack->n - 1];
	struct seam_unwind_code code = { .why = SEAM_STACK_COMPLETE };

	space->find(space->context, last->pc - !last->is_interrupted, &code);
	return code.why ? (enum seam_stack_end)code.why :
	       stack->end == SEAM_UNWIND_BROKEN_CFI ? SEAM_STACK_BROKEN_CFI :
	       SEAM_STACK_WITHOUT_CFI;
}

static enum seam_stack_end end_of(const struct seam_unwind_space *space,
				  const struct seam_unwind_stack *stack)
{
	switch ((enum seam_unwind_end)stack->end) {
	case SEAM_UNWIND_ROOT: return SEAM_STACK_COMPLETE;
	case SEAM_UNWIND_UNREADABLE: return SEAM_STACK_UNREADABLE;
	case SEAM_UNWIND_UNKNOWN_REGISTER: return SEAM_STACK_LOST_REGISTER;
	case SEAM_UNWIND_WITHOUT_CFI:
	case SEAM_UNWIND_BROKEN_CFI: return why_no_rules(space, stack);
	case SEAM_UNWIND_NO_PROGRESS: return SEAM_STACK_NO_PROGRESS;
	case SEAM_UNWIND_TRUNCATED:
		return stack->end_cfa && stack->end_cfa - stack->frames[0].sp >
		       SEAM_STACK_MAX_COPY ? SEAM_STACK_BEYOND :
		       SEAM_STACK_TRUNCATED;
	case SEAM_UNWIND_NO_MAPPING: return SEAM_STACK_NO_MAPPING;
	case SEAM_UNWIND_OTHER_STACK: return SEAM_STACK_OTHER_STACK;
	case SEAM_UNWIND_CALLER:	/* a walk does not end so */
	case SEAM_UNWIND_TOO_DEEP: break;
	}
	return SEAM_STACK_TOO_DEEP;
}

void seam_sample_stack_walk(struct seam_sample_stack *s,
			    const struct seam_perf_sample *sample,
			    uint16_t misc, const uint64_t *chain, size_t n,
			    const struct seam_unwind_space *space)
{
	struct seam_unwind_registers regs = { .known = 0 };
	struct seam_unwind_memory memory;

	s->walk = (struct seam_unwind_stack) {
		.frames = s->frames, .max = SEAM_SAMPLE_STACK_FRAMES,
	};
	s->rest = (struct seam_unwind_rest) { .n = 0 };
	s->recorded = chain_of(chain, n);
	/* within exec() they are 0; a page fault may leave the copy empty */
	if (!seam_perf_registers_x86_64(&sample->user_regs, regs.value,
					&regs.known) ||
	    !regs.value[SEAM_X86_64_RSP]) {
		s->end = sample->user_regs.abi == PERF_SAMPLE_REGS_ABI_32 ?
			 SEAM_STACK_OF_32_BIT : SEAM_STACK_ABSENT;
		return;
	}
	memory = (struct seam_unwind_memory) {
		.stack = sample->user_stack.data,
		.stack_addr = regs.value[SEAM_X86_64_RSP],
		.stack_bytes = sample->user_stack.size,
	};
	walk(space, &memory, regs, misc, &s->walk);
	s->rest = follow_chain(space, &memory, &regs, &s->recorded, &s->walk);
	s->end = s->rest.is_whole ? SEAM_STACK_COMPLETE :
				    end_of(space, &s->walk);
	/* a precise event names its own instruction */
	if (s->recorded.n_kernel == 0 && s->recorded.n_user)
		s->frames[0].pc = s->recorded.user[0];
}

/* ---- results ---- */

bool seam_sample_stack_chain(struct seam_sample_stack *s)
{
	const struct seam_unwind_chain *c = &s->recorded;

	s->words.n = 0;
	if (!SEAM_ARRAY_RESERVE(&s->words, c->n_kernel + 1 + s->walk.n +
				s->rest.n))
		return false;
	(void)SEAM_ARRAY_EXTEND(&s->words, c->words, c->n_kernel);
	s->words.items[s->words.n++] = (uint64_t)PERF_CONTEXT_USER;
	for (size_t i = 0; i < s->walk.n; i++)
		s->words.items[s->words.n++] = s->frames[i].pc;
	if (s->rest.n)
		(void)SEAM_ARRAY_EXTEND(&s->words, c->user + s->rest.first,
					s->rest.n);
	return true;
}

struct seam_bytes seam_sample_stack_raw(struct seam_sample_stack *s)
{
	size_t n = 0;

	for (size_t i = 1; i < s->walk.n; i++)
		s->cfas[n++] = s->frames[i].sp;
	if (s->walk.n && s->walk.end_cfa)
		s->cfas[n++] = s->walk.end_cfa;
	return (struct seam_bytes) {
		s->raw, seam_unwound_write(s->raw, (uint8_t)s->end, s->walk.n,
					   s->cfas, n),
	};
}
