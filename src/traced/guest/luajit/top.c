/* SPDX-License-Identifier: MIT */
/*
 * top.c - which function runs in the innermost activation
 *
 * While the interpreter runs, rdx has BASE and rbx the next bytecode
 * instruction; in C code that it called, lua_State has base, but for some
 * functions of libm, around which rbp keeps BASE.  Between bytecode
 * instructions both change, one after the other:
 *
 *	call	rdx is the callee's, rbx still the caller's, until the link is
 *		stored: that instruction is known by its bytes
 *	return	rbx is the caller's, rdx still the callee's, whose function is
 *		overwritten by results: the caller's BASE is known by rbx's
 *		call instruction
 *	enter	from C: rbx is the distance of the first frame, which is not
 *		there yet: the activation is empty
 *	leave	to C: rbx is the BASE of the activation below
 *
 * Each guess is tested by walking to the bottom of the stack.
 */
#include "traced/guest/luajit/luajit.h"

struct top {
	const struct seam_luajit *lj;
	struct seam_guest_memory *memory;
	const struct seam_guest_activation *activation;
	struct seam_luajit_stack *stack;
	uint64_t cframe, rbx, rdx, rbp;
};

/* The function at @base is a Lua function that has @pc. */
static bool has_pc(const struct top *t, uint64_t base, uint64_t pc)
{
	struct seam_luajit_frame frame = { .addr = base - 8 };
	bool is_mark;

	return seam_luajit_is_base(&t->stack->thread, base) &&
	       seam_luajit_read_function(t->lj, t->memory, &t->stack->thread,
					 &frame, &is_mark) &&
	       !is_mark && frame.kind == SEAM_GUEST_FRAME_GUEST &&
	       seam_luajit_has_pc(t->lj, t->memory, frame.object, pc);
}

static bool walk_from(const struct top *t, uint64_t base, uint64_t pc,
		      uint64_t link)
{
	if (pc && !has_pc(t, base, pc))
		pc = 0;
	return seam_luajit_walk_stack(t->lj, t->memory, t->stack, base, pc,
				      link);
}

static uint64_t saved_pc(const struct top *t)
{
	uint64_t pc;

	return seam_guest_u64(t->memory,
			      t->cframe + t->lj->at.cf_pc, &pc) ? pc : 0;
}

/*
 * A negative number of results: the activation runs a C function that has no
 * frame on the stack.
 */
static bool is_without_frame(const struct top *t)
{
	uint32_t n;

	return seam_guest_u32(t->memory, t->cframe + t->lj->at.cf_nres, &n) &&
	       (int32_t)n < 0;
}

static bool walk_empty(const struct top *t, uint64_t base)
{
	bool is_walked = walk_from(t, base, 0, 0);
	uint64_t cframe = t->stack->thread.cframe;

	/* a coroutine that is resumed after a yield has its frames */
	t->stack->is_first_empty = is_walked && !(cframe & 1 &&
						  (cframe & ~UINT64_C(3)) ==
							  t->cframe);
	return is_walked;
}

/* --- interrupted in the interpreter --- */

/* The function has returned to C; its results are moved. */
static bool walk_leaving(const struct top *t)
{
	uint64_t base = t->stack->thread.base;

	if (walk_empty(t, t->rbx) || walk_empty(t, -t->rbx))
		return true;
	return (t->rdx != base && walk_from(t, base, t->rbx, 0)) ||
	       walk_from(t, t->rdx, t->rbx, 0);
}

/* "mov [rdx - 8], rbx" is next. */
static bool is_storing_link(const struct top *t)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x5a, 0xf8 };
	uint8_t bytes[sizeof(store)];

	return seam_guest_load(t->memory,
			       t->activation->notes[SEAM_LUAJIT_NOTE_PC],
			       bytes, sizeof(bytes)) &&
	       memcmp(bytes, store, sizeof(store)) == 0;
}

/* rbx is the distance of a frame from C code, or still only its type. */
static bool is_distance(const struct top *t)
{
	const struct seam_luajit_thread *thread = &t->stack->thread;
	uint64_t type = t->rbx & 7;

	return (type == SEAM_LUAJIT_FRAME_C || type == SEAM_LUAJIT_FRAME_CP) &&
	       t->rbx <= thread->maxstack - thread->stack;
}

/* The frame that C code has asked for is not there yet. */
static bool is_entering(const struct top *t)
{
	uint64_t pc = t->activation->notes[SEAM_LUAJIT_NOTE_PC], link;

	return pc - t->lj->entry_start < t->lj->entry_end -
					 t->lj->entry_start && is_distance(t) &&
	       (!seam_luajit_is_base(&t->stack->thread, t->rdx) ||
		!seam_guest_u64(t->memory, t->rdx - 8, &link) ||
		link != t->rbx);
}

/* By the call instruction before rbx: the callee's frame is gone. */
static bool walk_returned(const struct top *t)
{
	uint64_t frame;

	return seam_luajit_lua_caller(t->memory, t->rdx - 8, t->rbx,
				      &frame) &&
	       has_pc(t, frame + 8, t->rbx) &&
	       walk_from(t, frame + 8, t->rbx, 0);
}

static bool walk_instruction(const struct top *t, uint32_t vmstate)
{
	uint64_t base = t->stack->thread.base;

	if (is_without_frame(t))
		return walk_empty(t, base);
	if (vmstate == ~(uint32_t)SEAM_LUAJIT_C)
		return walk_leaving(t) || walk_returned(t);
	if (is_storing_link(t) && walk_from(t, t->rdx, 0, t->rbx))
		return true;
	if (is_entering(t))
		return walk_empty(t, base);
	/* a builtin that overwrites its link has stored the caller's place */
	return walk_from(t, t->rdx, t->rbx, 0) || walk_returned(t) ||
	       walk_from(t, t->rdx, 0, saved_pc(t)) ||
	       walk_from(t, base, t->rbx, 0) ||
	       walk_from(t, t->rbp, t->rbx, 0);
}

/* --- in C code --- */

/*
 * The stack was moved by growing it, and base still has the old place: the
 * function is one of the last slots of what was the stack, and has the
 * instruction that the C frame keeps.
 */
static bool walk_moved(const struct top *t)
{
	enum { MAX_SLOTS = 600 };
	const struct seam_luajit_thread *thread = &t->stack->thread;
	uint64_t pc = saved_pc(t), base;
	uint32_t n_slots;

	if (!seam_guest_u32(t->memory, thread->addr +
			    t->lj->at.l_stacksize, &n_slots) ||
	    seam_luajit_is_base(thread, thread->base))
		return false;
	base = thread->stack + 8 * (uint64_t)n_slots;
	for (int i = 0; i < MAX_SLOTS && base > thread->stack + 16; i++) {
		base -= 8;
		if (has_pc(t, base, pc) && walk_from(t, base, pc, 0))
			return true;
	}
	return false;
}

/* "mov rdx, rbp" is soon after the call. */
static bool keeps_base(const struct top *t)
{
	static const uint8_t moves[2][3] = { { 0x48, 0x89, 0xea },
					     { 0x48, 0x8b, 0xd5 } };
	enum { NEAR = 4 };
	uint64_t pc = t->activation->notes[SEAM_LUAJIT_NOTE_PC];
	uint8_t bytes[NEAR + 2];

	if (!seam_guest_load(t->memory, pc, bytes, sizeof(bytes)))
		return false;
	for (int i = 0; i < NEAR; i++)
		if (memcmp(bytes + i, moves[0], 3) == 0 ||
		    memcmp(bytes + i, moves[1], 3) == 0)
			return true;
	return false;
}

static bool walk_call(const struct top *t)
{
	uint64_t base = t->stack->thread.base;
	uint64_t pc = has_pc(t, base, t->rbx) ? t->rbx : saved_pc(t);

	if (keeps_base(t) && walk_from(t, t->rbp, t->rbx, 0))
		return true;
	/* what is called has no function yet: C code looks for one */
	if (is_distance(t) && saved_pc(t) == t->rbx)
		return walk_empty(t, base);
	return walk_from(t, base, pc, 0) || walk_moved(t) ||
	       walk_from(t, t->rbp, t->rbx, 0);
}

/* The function in which the trace was entered, or left. */
static bool walk_trace(const struct top *t)
{
	uint64_t base;

	return (seam_guest_u64(t->memory, t->stack->thread.g +
			       t->lj->at.g_jit_base, &base) && base &&
		walk_from(t, base, 0, 0)) ||
	       walk_from(t, t->stack->thread.base, saved_pc(t), 0) ||
	       walk_moved(t);
}

void seam_luajit_walk_top(const struct seam_luajit *lj,
			  struct seam_guest_walk *walk,
			  const struct seam_guest_activation *activation,
			  struct seam_luajit_stack *stack)
{
	const struct top t = {
		.lj = lj, .memory = &walk->memory, .activation = activation,
		.stack = stack,
		.cframe = activation->notes[SEAM_LUAJIT_NOTE_CFRAME],
		.rbx = activation->notes[SEAM_LUAJIT_NOTE_RBX],
		.rdx = activation->notes[SEAM_LUAJIT_NOTE_RDX],
		.rbp = activation->notes[SEAM_LUAJIT_NOTE_RBP] };
	uint32_t vmstate = 0;

	seam_guest_u32(&walk->memory, stack->thread.g + lj->at.g_vmstate,
		       &vmstate);
	switch ((enum seam_luajit_activation)activation->kind) {
	case SEAM_LUAJIT_AT_INSTRUCTION:
		walk_instruction(&t, vmstate);
		break;
	case SEAM_LUAJIT_AT_CALL:
		walk_call(&t);
		break;
	case SEAM_LUAJIT_IN_TRACE:
		walk_trace(&t);
		break;
	}
}
