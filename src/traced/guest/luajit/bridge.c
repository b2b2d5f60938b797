/* SPDX-License-Identifier: MIT */
/*
 * bridge.c - from a frame of the VM to its caller on the host's stack
 *
 * The interpreter's call frame information is right while the interpreter
 * runs: rsp is the C frame of the activation.  It is wrong in prologues and
 * epilogues, in subroutines, on the way out of a trace; and traces have none.
 * There the C frame is found by the chain that begins in lua_State, of which
 * an activation on the stack is the next above rsp.
 */
#include "traced/guest/luajit/luajit.h"

enum {
	RDX = 1, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13, R14 = 14,
	R15 = 15, RIP = 16,

	MAX_CHAIN = 256,	/* C frames of one thread */
	MAX_TRACE_BYTES = 1 << 16, /* of stack below its C frame */
	TRACE_SPACE = 16,	/* that a trace has there at least */
	/* Code of traces is where a jump of 32 bits reaches it. */
	TRACE_DISTANCE = 1 << 30,
};

/* A bridge in work. */
struct bridging {
	const struct seam_luajit *lj;
	struct seam_guest_walk *walk;
	struct seam_unwind_registers *regs;
	bool is_exact;
};

static bool read_stack(const struct bridging *b, uint64_t addr,
		       uint64_t *word)
{
	return seam_unwind_read(b->walk->stack, addr, word);
}

bool seam_luajit_has_code(const void *object, uint64_t pc, bool is_in_image)
{
	const struct seam_luajit *lj = object;
	uint64_t distance = pc - lj->code_start;

	if (is_in_image)
		return seam_luajit_is_code(lj, pc);
	return distance < TRACE_DISTANCE || -distance < TRACE_DISTANCE;
}

/* --- the chain of C frames --- */

static uint64_t raw(uint64_t cframe)
{
	return cframe & ~UINT64_C(3);
}

/*
 * The first C frame of @thread that is @low to @high; 0: none is.  The search
 * begins after the activation that was found last.
 */
static uint64_t find_cframe(const struct bridging *b,
			    const struct seam_luajit_thread *thread,
			    uint64_t low, uint64_t high)
{
	size_t n = b->walk->n_activations;
	const struct seam_guest_activation *last =
		n ? &b->walk->sample->activations[n - 1] : NULL;
	uint64_t cframe = raw(thread->cframe);

	if (last && last->thread == thread->addr &&
	    !read_stack(b, last->notes[SEAM_LUAJIT_NOTE_CFRAME] +
			   b->lj->at.cf_prev, &cframe))
		return 0;
	for (int i = 0; i < MAX_CHAIN && raw(cframe); i++) {
		if (raw(cframe) >= low && raw(cframe) <= high)
			return raw(cframe);
		if (!read_stack(b, raw(cframe) + b->lj->at.cf_prev, &cframe))
			return 0;
	}
	return 0;
}

/* Whether the activation's C frame is at @sp, and of which thread. */
static bool is_cframe(const struct bridging *b, uint64_t sp,
		      struct seam_luajit_thread *thread)
{
	uint64_t addr;

	return !(sp & 7) && read_stack(b, sp + b->lj->at.cf_l, &addr) &&
	       seam_luajit_read_thread(b->lj, &b->walk->memory, addr,
				       thread) &&
	       find_cframe(b, thread, sp, sp) == sp;
}

/* The thread that runs, of the VM whose dispatch table is in r14. */
static bool running_thread(const struct bridging *b,
			   struct seam_luajit_thread *thread)
{
	const struct seam_luajit_offsets *at = &b->lj->at;
	uint64_t g, addr;
	size_t n = b->walk->n_activations;

	if (seam_unwind_has(b->regs, R14)) {
		g = b->regs->value[R14] - at->g_dispatch;
		if (seam_guest_u64(&b->walk->memory, g + at->g_cur_l, &addr) &&
		    seam_luajit_read_thread(b->lj, &b->walk->memory, addr,
					    thread) && thread->g == g)
			return true;
	}
	return n && seam_luajit_read_thread(b->lj, &b->walk->memory,
			b->walk->sample->activations[n - 1].thread, thread);
}

/* --- from a C frame to its caller --- */

static bool restore(const struct bridging *b, uint64_t addr,
		    unsigned int column)
{
	if (!read_stack(b, addr, &b->regs->value[column]))
		return false;
	b->regs->known |= UINT64_C(1) << column;
	return true;
}

static enum seam_unwind_end leave(const struct bridging *b,
				     uint64_t cframe, bool is_trace)
{
	const uint64_t preserved = UINT64_C(1) << R12 | UINT64_C(1) << R13;
	uint64_t cfa = cframe + b->lj->at.cf_bytes;

	b->regs->known &= preserved;
	if (!restore(b, cfa - 8, RIP) || !restore(b, cfa - 16, RBP) ||
	    !restore(b, cfa - 24, RBX) || !restore(b, cfa - 32, R15) ||
	    !restore(b, cfa - 40, R14) ||
	    (is_trace && (!restore(b, cframe, R12) ||
			  !restore(b, cframe - 8, R13))))
		return SEAM_UNWIND_UNKNOWN_REGISTER;
	b->regs->value[RSP] = cfa;
	b->regs->known |= UINT64_C(1) << RSP;
	return SEAM_UNWIND_CALLER;
}

static uint64_t register_or_0(const struct bridging *b, unsigned int column)
{
	return seam_unwind_has(b->regs, column) ? b->regs->value[column] : 0;
}

static enum seam_unwind_end
activate(const struct bridging *b, const struct seam_luajit_thread *thread,
	 uint64_t cframe, enum seam_luajit_activation kind)
{
	struct seam_guest_activation *activation =
		seam_guest_activate(b->walk, thread->g, thread->addr);
	const struct seam_unwind_memory *stack = b->walk->stack;
	uint64_t last = cframe + b->lj->at.cf_bytes - 1;

	if (!activation)
		return SEAM_UNWIND_UNKNOWN_REGISTER;
	/* read later: its pages are of the own stack, or were read */
	if (cframe - stack->stack_addr < stack->stack_bytes &&
	    last - stack->stack_addr < stack->stack_bytes) {
		seam_guest_memory_know(&b->walk->memory, cframe);
		seam_guest_memory_know(&b->walk->memory, last);
	}
	activation->kind = (uint8_t)kind;
	activation->notes[SEAM_LUAJIT_NOTE_CFRAME] = cframe;
	activation->notes[SEAM_LUAJIT_NOTE_PC] = b->regs->value[RIP];
	activation->notes[SEAM_LUAJIT_NOTE_RBX] =
		register_or_0(b, RBX);
	activation->notes[SEAM_LUAJIT_NOTE_RBP] =
		register_or_0(b, RBP);
	activation->notes[SEAM_LUAJIT_NOTE_RDX] =
		register_or_0(b, RDX);
	return leave(b, cframe, kind == SEAM_LUAJIT_IN_TRACE);
}

/* --- code in which rsp is not the C frame --- */

/* A prologue or an epilogue: what was pushed and not popped is known. */
static enum seam_unwind_end leave_edge(const struct bridging *b,
					  uint32_t distance)
{
	static const uint8_t saved[] = { RIP, RBP, RBX, R15, R14 };
	uint64_t cfa = b->regs->value[RSP] + distance;

	for (unsigned int i = 0; i < sizeof(saved) && 8 * (i + 1) <= distance;
	     i++)
		if (!restore(b, cfa - 8 * (i + 1), saved[i]))
			return SEAM_UNWIND_UNKNOWN_REGISTER;
	b->regs->value[RSP] = cfa;
	return SEAM_UNWIND_CALLER;
}

static const struct seam_luajit_edge *find_edge(const struct seam_luajit *lj,
						uint64_t pc)
{
	const struct seam_luajit_edge *edges = lj->edges;
	uint64_t offset = pc - lj->code_start;
	size_t n = lj->n_edges;

	while (n > 0) {
		size_t half = n / 2;

		if (edges[half].addr == offset)
			return &edges[half];
		if (edges[half].addr < offset) {
			edges += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return NULL;
}

/* Whether the code that ends at @pc may be a call. */
static bool is_after_call(const struct bridging *b, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];

	return pc > 4096 && pc >> 47 == 0 &&
	       seam_guest_load(&b->walk->memory, pc - sizeof(bytes), bytes,
			       sizeof(bytes)) &&
	       seam_unwind_is_call(bytes + sizeof(bytes), sizeof(bytes));
}

/* A subroutine that C code, or a trace, called: it keeps its registers. */
static enum seam_unwind_end leave_subroutine(const struct bridging *b,
					     uint64_t return_addr)
{
	b->regs->value[RIP] = return_addr;
	b->regs->value[RSP] += 8;
	return SEAM_UNWIND_CALLER;
}

/* The C frame that is at, or a little above, rsp. */
static enum seam_unwind_end bridge_above(const struct bridging *b,
					    enum seam_luajit_activation kind)
{
	uint64_t sp = b->regs->value[RSP], cframe;
	struct seam_luajit_thread thread;

	if (!running_thread(b, &thread))
		return SEAM_UNWIND_WITHOUT_CFI;
	cframe = find_cframe(b, &thread, sp, sp + MAX_TRACE_BYTES);
	return cframe ? activate(b, &thread, cframe, kind) :
			SEAM_UNWIND_WITHOUT_CFI;
}

/* --- the interpreter --- */

/* Interrupted in it. */
static enum seam_unwind_end bridge_instruction(const struct bridging *b)
{
	uint64_t pc = b->regs->value[RIP], sp = b->regs->value[RSP], caller;
	const struct seam_luajit_edge *edge = find_edge(b->lj, pc);
	struct seam_luajit_thread thread;

	if (edge)
		return leave_edge(b, edge->bytes);
	if (is_cframe(b, sp, &thread))
		return activate(b, &thread, sp, SEAM_LUAJIT_AT_INSTRUCTION);
	if (pc - b->lj->exit_start < b->lj->exit_end - b->lj->exit_start)
		return bridge_above(b, SEAM_LUAJIT_IN_TRACE);
	/* about to enter a trace */
	if (is_cframe(b, sp + TRACE_SPACE, &thread))
		return activate(b, &thread, sp + TRACE_SPACE,
				SEAM_LUAJIT_AT_INSTRUCTION);
	/* entering or leaving, L is not linked to its C frame */
	if (pc - b->lj->exit_end >= b->lj->subroutines_end - b->lj->exit_end ||
	    !read_stack(b, sp, &caller) || !is_after_call(b, caller))
		return SEAM_UNWIND_WITHOUT_CFI;
	if (seam_luajit_is_code(b->lj, caller) &&
	    is_cframe(b, sp + 8, &thread))
		return activate(b, &thread, sp + 8,
				SEAM_LUAJIT_AT_INSTRUCTION);
	return leave_subroutine(b, caller);
}

/* It called C code. */
static enum seam_unwind_end bridge_call(const struct bridging *b)
{
	uint64_t pc = b->regs->value[RIP], sp = b->regs->value[RSP];
	struct seam_luajit_thread thread;

	if (is_cframe(b, sp, &thread))
		return activate(b, &thread, sp, SEAM_LUAJIT_AT_CALL);
	if (pc - b->lj->exit_start < b->lj->exit_end - b->lj->exit_start)
		return bridge_above(b, SEAM_LUAJIT_IN_TRACE);
	/* a callback is entered: L is not linked to its C frame */
	if (pc >= b->lj->subroutines_end)
		return SEAM_UNWIND_WITHOUT_CFI;
	/*
	 * libgcc goes back to a frame of the VM, for an error: it stores that
	 * frame's registers over those that its own frame has saved.
	 */
	return bridge_above(b, SEAM_LUAJIT_AT_CALL);
}

/*
 * Code in no image: a trace, or the stub of a callback, which has pushed
 * nothing, or rbp.
 */
static enum seam_unwind_end bridge_outside(const struct bridging *b)
{
	enum seam_unwind_end bridged = bridge_above(b, SEAM_LUAJIT_IN_TRACE);
	uint64_t sp = b->regs->value[RSP], caller;

	if (bridged != SEAM_UNWIND_WITHOUT_CFI)
		return bridged;
	if (!b->is_exact)
		return SEAM_UNWIND_NO_MAPPING;
	if (read_stack(b, sp, &caller) && is_after_call(b, caller))
		return leave_subroutine(b, caller);
	if (!read_stack(b, sp + 8, &caller) || !is_after_call(b, caller))
		return SEAM_UNWIND_NO_MAPPING;
	return leave_edge(b, 16);
}

enum seam_unwind_end
seam_luajit_bridge(const void *object, struct seam_guest_walk *walk,
		   struct seam_unwind_registers *regs, bool is_exact)
{
	const struct bridging b = { object, walk, regs, is_exact };

	if (!seam_luajit_is_code(b.lj, regs->value[RIP] - !is_exact))
		return bridge_outside(&b);
	return is_exact ? bridge_instruction(&b) : bridge_call(&b);
}
