/* SPDX-License-Identifier: MIT */
/* thread.c - lua_State and its stack of frames; see luajit.h */
#include "traced/guest/luajit/luajit.h"

enum {
	MAX_STACK_BYTES = 64 << 20,
	MAX_INSTRUCTIONS = 1 << 26,
	BYTES_BEYOND = 64,	/* above maxstack, that are used at times */
	IS_C = 1,		/* GCfunc.ffid: a plain C function */
	CONT_FFI_CALLBACK = 1,	/* instead of a continuation's address */
};

/* --- lua_State --- */

static bool is_thread(const struct seam_luajit *lj,
		      struct seam_guest_memory *memory, uint64_t addr,
		      uint64_t *g)
{
	return seam_luajit_is(memory, addr, SEAM_LUAJIT_THREAD) &&
	       seam_guest_u64(memory, addr + lj->at.l_glref, g);
}

/*
 * Each VM has a table of addresses in its own library's interpreter: another
 * copy of the library may have the same layout.
 */
static bool is_own_vm(const struct seam_luajit *lj,
		      struct seam_guest_memory *memory, uint64_t g)
{
	uint64_t code;

	return seam_guest_u64(memory, g + lj->at.g_dispatch, &code) &&
	       seam_luajit_is_code(lj, code);
}

bool seam_luajit_read_thread(const struct seam_luajit *lj,
			     struct seam_guest_memory *memory, uint64_t addr,
			     struct seam_luajit_thread *thread)
{
	const struct seam_luajit_offsets *at = &lj->at;
	uint64_t main_thread, main_g;

	thread->addr = addr;
	/* the VM's main thread leads back to the VM */
	return is_thread(lj, memory, addr, &thread->g) &&
	       seam_guest_u64(memory, thread->g + at->g_mainthref,
			      &main_thread) &&
	       is_thread(lj, memory, main_thread, &main_g) &&
	       main_g == thread->g && is_own_vm(lj, memory, main_g) &&
	       seam_guest_u64(memory, addr + at->l_base, &thread->base) &&
	       seam_guest_u64(memory, addr + at->l_stack, &thread->stack) &&
	       seam_guest_u64(memory, addr + at->l_maxstack,
			      &thread->maxstack) &&
	       seam_guest_u64(memory, addr + at->l_cframe, &thread->cframe) &&
	       !(thread->stack & 7) && thread->maxstack > thread->stack &&
	       thread->maxstack - thread->stack < MAX_STACK_BYTES;
}

/* --- a frame --- */

static bool read_lua_function(const struct seam_luajit *lj,
			      struct seam_guest_memory *memory,
			      uint64_t function,
			      struct seam_luajit_frame *frame)
{
	uint64_t code;

	if (!seam_guest_u64(memory, function + lj->at.f_pc, &code) ||
	    code & 3 || code < lj->at.pt_bytes)
		return false;
	frame->object = code - lj->at.pt_bytes;
	frame->kind = SEAM_GUEST_FRAME_GUEST;
	return seam_luajit_is(memory, frame->object, SEAM_LUAJIT_PROTO);
}

bool seam_luajit_read_function(const struct seam_luajit *lj,
			       struct seam_guest_memory *memory,
			       const struct seam_luajit_thread *thread,
			       struct seam_luajit_frame *frame,
			       bool *is_thread_mark)
{
	const uint64_t mask = (UINT64_C(1) << SEAM_LUAJIT_TYPE_SHIFT) - 1;
	uint64_t value, function;
	uint8_t number;
	int64_t type;

	*is_thread_mark = false;
	if (frame->addr < thread->stack + 8 ||
	    frame->addr > thread->maxstack + BYTES_BEYOND ||
	    !seam_guest_u64(memory, frame->addr - 8, &value))
		return false;
	type = (int64_t)value >> SEAM_LUAJIT_TYPE_SHIFT;
	function = value & mask;
	*is_thread_mark = type == ~SEAM_LUAJIT_THREAD;
	if (*is_thread_mark)
		return true;
	if (type != ~SEAM_LUAJIT_FUNCTION ||
	    !seam_luajit_is(memory, function, SEAM_LUAJIT_FUNCTION) ||
	    !seam_guest_u8(memory, function + 10, &number))
		return false;
	if (number == 0)
		return read_lua_function(lj, memory, function, frame);
	frame->kind = SEAM_GUEST_FRAME_BUILTIN;
	frame->object = number;
	if (number != IS_C)
		return true;
	frame->kind = SEAM_GUEST_FRAME_C;
	return seam_guest_u64(memory, function + lj->at.f_c, &frame->object);
}

bool seam_luajit_has_pc(const struct seam_luajit *lj,
			struct seam_guest_memory *memory, uint64_t proto,
			uint64_t pc)
{
	uint64_t code = proto + lj->at.pt_bytes;
	uint32_t n;

	return pc > code && !(pc & 3) &&
	       seam_guest_u32(memory, proto + lj->at.pt_sizebc, &n) &&
	       n < MAX_INSTRUCTIONS && pc <= code + 4 * (uint64_t)n;
}

/* --- the stack --- */

/* The next frame's room: three quarters stay, the others are a ring. */
static struct seam_luajit_frame *next_room(struct seam_luajit_stack *stack)
{
	uint32_t n_kept = stack->room - stack->room / 4;

	if (stack->n_inner < n_kept)
		return &stack->frames[stack->n_inner++];
	if (stack->room == n_kept)
		return NULL;
	return &stack->frames[n_kept + stack->n_outer++ %
			      (stack->room - n_kept)];
}

static bool add_frame(struct seam_luajit_stack *stack,
		      const struct seam_luajit_frame *frame)
{
	struct seam_luajit_frame *to = next_room(stack);

	if (to)
		*to = *frame;
	return to != NULL;
}

/* What a link says of the frame below. */
struct step {
	uint64_t caller, pc;
	bool is_boundary;	/* C code was between them */
	bool is_vararg;		/* both frames are of one call */
};

/* A link that is a distance and a type. */
static bool step_by_distance(struct seam_guest_memory *memory,
			     const struct seam_luajit_thread *thread,
			     uint64_t frame, uint64_t link, struct step *step)
{
	uint64_t distance = link & ~UINT64_C(7), type = link & 7, cont = 0;

	step->caller = frame - distance;
	if (distance == 0 || distance > frame - thread->stack ||
	    step->caller < thread->stack + 8)
		return false;
	step->is_vararg = type == SEAM_LUAJIT_FRAME_VARG;
	step->is_boundary = (type & 3) == SEAM_LUAJIT_FRAME_C;
	if (type != SEAM_LUAJIT_FRAME_CONT)
		return true;
	if (!seam_guest_u64(memory, frame - 24, &cont) ||
	    !seam_guest_u64(memory, frame - 16, &step->pc))
		return false;
	step->is_boundary = cont == CONT_FFI_CALLBACK;
	if (step->is_boundary)
		step->pc = 0;
	return true;
}

static bool read_step(struct seam_guest_memory *memory,
		      const struct seam_luajit_thread *thread, uint64_t frame,
		      uint64_t link, struct step *step)
{
	*step = (struct step) { .caller = 0 };
	if (link & 3)
		return step_by_distance(memory, thread, frame, link, step);
	step->pc = link;
	return seam_luajit_lua_caller(memory, frame, link, &step->caller) &&
	       step->caller > thread->stack + 8;
}

/* The frame that is looked at, and what the one above says of it. */
struct stack_walk {
	struct seam_luajit_frame frame;
	uint64_t link;		/* 0: it is in the frame */
	bool is_called;		/* by its bytecode, which has to fit */
	bool is_open;		/* its segment has a frame */
};

/* Whether .pc is right; one that may be wrong is dropped. */
static bool check_pc(const struct seam_luajit *lj,
		     struct seam_guest_memory *memory, struct stack_walk *w,
		     bool is_mark)
{
	if (!w->frame.pc || (w->frame.kind == SEAM_GUEST_FRAME_GUEST &&
			     !is_mark &&
			     seam_luajit_has_pc(lj, memory, w->frame.object,
						w->frame.pc)))
		return true;
	w->frame.pc = 0;
	return !w->is_called;
}

/* Add the frame, and go to its caller's; false: it is none. */
static bool walk_frame(const struct seam_luajit *lj,
		       struct seam_guest_memory *memory,
		       struct seam_luajit_stack *stack, struct stack_walk *w)
{
	struct step step;
	bool is_mark;

	if (!seam_luajit_read_function(lj, memory, &stack->thread, &w->frame,
				       &is_mark) ||
	    (!w->link && !seam_guest_u64(memory, w->frame.addr, &w->link)) ||
	    !check_pc(lj, memory, w, is_mark) ||
	    !read_step(memory, &stack->thread, w->frame.addr, w->link, &step))
		return false;
	if (!is_mark && !step.is_vararg) {
		if (!add_frame(stack, &w->frame))
			return false;
		w->is_open = true;
	}
	w->is_called = !(w->link & 3) || step.is_vararg;
	/* the lower frame of a vararg call is at the same instruction */
	if (!step.is_vararg)
		w->frame.pc = step.pc;
	if (step.is_boundary) {
		w->frame.segment++;
		w->is_open = false;
	}
	w->frame.addr = step.caller;
	w->link = 0;
	return true;
}

static void clear(struct seam_luajit_stack *stack)
{
	stack->n_inner = stack->n_outer = stack->n_segments = 0;
	stack->next = 0;
	stack->end = SEAM_GUEST_INVALID;
}

bool seam_luajit_walk_stack(const struct seam_luajit *lj,
			    struct seam_guest_memory *memory,
			    struct seam_luajit_stack *stack, uint64_t base,
			    uint64_t pc, uint64_t link)
{
	struct stack_walk w = { .frame = { .addr = base - 8, .pc = pc },
			     .link = link };
	uint64_t bottom = stack->thread.stack + 8;

	clear(stack);
	if (!seam_luajit_is_base(&stack->thread, base))
		return false;
	for (int i = 0; w.frame.addr > bottom; i++)
		if (i == SEAM_LUAJIT_MAX_DEPTH ||
		    !walk_frame(lj, memory, stack, &w))
			break;
	if (w.frame.addr != bottom) {
		clear(stack);
		return false;
	}
	/* what has no C code below it is what resumed a coroutine */
	stack->n_segments = w.frame.segment + w.is_open;
	stack->end = stack->n_outer > stack->room / 4 ?
		     SEAM_GUEST_CUT : SEAM_GUEST_COMPLETE;
	return true;
}
