/* SPDX-License-Identifier: MIT */
/* segments.c - from activations to segments of frames; see luajit.h */
#include "traced/guest/luajit/luajit.h"

_Static_assert(sizeof(struct seam_luajit_scratch) <=
	       SEAM_GUEST_SCRATCH_WORDS * sizeof(uint64_t),
	       "an adapter's scratch has to fit into a sample");

struct emitting {
	const struct seam_luajit *lj;
	struct seam_guest_walk *walk;
	struct seam_luajit_scratch *scratch;
	uint32_t vmstate;	/* as the innermost VM has it */
};

/* --- stacks of threads --- */

static struct seam_luajit_stack *find_stack(const struct emitting *e,
					    uint64_t thread)
{
	for (uint32_t i = 0; i < e->scratch->n_stacks; i++)
		if (e->scratch->stacks[i].thread.addr == thread)
			return &e->scratch->stacks[i];
	return NULL;
}

/* Walk the stack of the activation's thread; NULL: there are too many. */
static struct seam_luajit_stack *
open_stack(const struct emitting *e,
	   const struct seam_guest_activation *activation)
{
	struct seam_luajit_scratch *scratch = e->scratch;
	struct seam_luajit_stack *stack = &scratch->stacks[scratch->n_stacks];
	uint32_t room = SEAM_LUAJIT_MAX_FRAMES - scratch->n_frames;

	if (scratch->n_stacks == SEAM_LUAJIT_MAX_THREADS)
		return NULL;
	scratch->n_stacks++;
	*stack = (struct seam_luajit_stack) {
		.frames = scratch->frames + scratch->n_frames,
		/* some is for those that resumed it */
		.room = room - room / 4,
		.end = SEAM_GUEST_INVALID };
	if (seam_luajit_read_thread(e->lj, &e->walk->memory,
				    activation->thread, &stack->thread))
		seam_luajit_walk_top(e->lj, e->walk, activation, stack);
	else
		stack->thread.addr = activation->thread;
	scratch->n_frames += stack->n_outer ? stack->room : stack->n_inner;
	return stack;
}

/* Frame @i of those that were kept, from the innermost on. */
static struct seam_luajit_frame *frame_at(const struct seam_luajit_stack *stack,
					  uint32_t i)
{
	uint32_t n_ring = stack->room - stack->n_inner;

	if (i < stack->n_inner)
		return &stack->frames[i];
	i -= stack->n_inner;
	if (stack->n_outer > n_ring)
		i = (stack->n_outer + i) % n_ring;
	return &stack->frames[stack->n_inner + i];
}

static uint32_t n_kept(const struct seam_luajit_stack *stack)
{
	uint32_t n_ring = stack->room - stack->n_inner;

	return stack->n_inner +
	       (stack->n_outer < n_ring ? stack->n_outer : n_ring);
}

/* --- one segment --- */

/* The line at which a frame is; 0: not known. */
static uint32_t line_of(const struct emitting *e,
			const struct seam_luajit_frame *frame)
{
	return frame->kind == SEAM_GUEST_FRAME_GUEST && frame->pc ?
	       seam_luajit_line(e->lj, &e->walk->memory, frame->object,
				frame->pc) : 0;
}

static bool emit_frame(const struct emitting *e,
		       const struct seam_luajit_stack *stack, uint32_t i,
		       bool is_on_host)
{
	const struct seam_luajit_frame *frame = frame_at(stack, i), *caller;
	struct seam_guest_origin origin = { .is_on_host = is_on_host };
	uint32_t id;

	caller = i + 1 < stack->n_inner ? frame + 1 : NULL;
	id = seam_luajit_id(e->lj, e->walk, frame, caller, &origin);
	return seam_guest_add_frame(e->walk, frame->kind, id,
				    line_of(e, frame), &origin);
}

/* The mark in place of frames that were not kept. */
static bool emit_cut(const struct emitting *e,
		     const struct seam_luajit_stack *stack)
{
	struct seam_guest_origin none = { .address = 0 };

	return seam_guest_add_frame(e->walk, SEAM_GUEST_FRAME_CUT,
				    stack->n_outer -
				    (stack->room - stack->n_inner), 0, &none);
}

/*
 * A C function is in the host's stack where C code was called, and the VM's
 * frame is not its innermost.
 */
static bool is_on_host(const struct seam_guest_activation *activation,
		       const struct seam_luajit_frame *frame)
{
	return frame->kind == SEAM_GUEST_FRAME_C && activation &&
	       activation->kind == SEAM_LUAJIT_AT_CALL;
}

/* The instruction of the first Lua function, where only C's frame has it. */
static void find_pc(const struct emitting *e,
		    const struct seam_guest_activation *activation,
		    struct seam_luajit_frame *frame)
{
	uint64_t pc;

	if (frame->kind == SEAM_GUEST_FRAME_GUEST && !frame->pc &&
	    activation && activation->kind == SEAM_LUAJIT_AT_CALL &&
	    seam_guest_u64(&e->walk->memory,
			   activation->notes[SEAM_LUAJIT_NOTE_CFRAME] +
			   e->lj->at.cf_pc, &pc) &&
	    seam_luajit_has_pc(e->lj, &e->walk->memory, frame->object, pc))
		frame->pc = pc;
}

/* The frames of the thread's segment @number. */
static void emit_segment(const struct emitting *e,
			 const struct seam_guest_activation *activation,
			 struct seam_luajit_stack *stack, uint32_t number)
{
	uint32_t n = n_kept(stack), i = 0;
	bool is_first = true, is_room = true;

	while (i < n && frame_at(stack, i)->segment < number)
		i++;
	for (; is_room && i < n && frame_at(stack, i)->segment == number;
	     i++) {
		struct seam_luajit_frame *frame = frame_at(stack, i);
		bool is_host = is_first && is_on_host(activation, frame);

		if (is_first)
			find_pc(e, activation, frame);
		if (stack->end == SEAM_GUEST_CUT && i == stack->n_inner)
			is_room = emit_cut(e, stack);
		if (is_room && (!is_host || e->walk->sample->with_c))
			is_room = emit_frame(e, stack, i, is_host);
		is_first = false;
	}
	seam_guest_end_segment(e->walk, is_room ? stack->end :
						  SEAM_GUEST_CUT);
}

/* --- the innermost --- */

static bool is_trace(const struct emitting *e)
{
	return (int32_t)e->vmstate >= 0;
}

/* The trace, callee of the function in which it was entered. */
static void emit_trace(const struct emitting *e,
		       const struct seam_guest_activation *activation,
		       struct seam_luajit_stack *stack)
{
	struct seam_guest_origin origin = { .address = e->vmstate };
	struct seam_luajit_frame *top = n_kept(stack) ? frame_at(stack, 0) :
							NULL;
	uint64_t start = 0;
	uint32_t id = seam_luajit_trace(e->lj, e->walk, activation->vm,
					e->vmstate, &origin, &start);

	if (!id)
		return;
	e->walk->sample->trace = e->vmstate;
	seam_guest_add_frame(e->walk, SEAM_GUEST_FRAME_TRACE, id,
			     origin.first_line, &origin);
	/* where in the function it is, is not known better */
	if (top && top->kind == SEAM_GUEST_FRAME_GUEST && !top->pc &&
	    start && seam_luajit_has_pc(e->lj, &e->walk->memory, top->object,
					start))
		top->pc = start;
}

/* Of the states that LuaJIT has; INTERP and C by the function that runs. */
static enum seam_vmstate state_of(const struct emitting *e,
				  const struct seam_guest_activation *inner)
{
	static const uint8_t states[SEAM_LUAJIT_N_STATES] = {
		[SEAM_LUAJIT_INTERP] = SEAM_VMSTATE_INTERP,
		[SEAM_LUAJIT_C] = SEAM_VMSTATE_CFUNC,
		[SEAM_LUAJIT_GC] = SEAM_VMSTATE_GC,
		[SEAM_LUAJIT_EXIT] = SEAM_VMSTATE_EXIT,
		[SEAM_LUAJIT_RECORD] = SEAM_VMSTATE_RECORD,
		[SEAM_LUAJIT_OPT] = SEAM_VMSTATE_OPT,
		[SEAM_LUAJIT_ASM] = SEAM_VMSTATE_ASM,
	};
	const struct seam_luajit_stack *stack = find_stack(e, inner->thread);

	if (is_trace(e))
		return inner->kind == SEAM_LUAJIT_IN_TRACE ?
		       SEAM_VMSTATE_TRACE : SEAM_VMSTATE_EXIT;
	if (~e->vmstate >= SEAM_LUAJIT_N_STATES)
		return SEAM_VMSTATE_NONE;
	if (~e->vmstate != SEAM_LUAJIT_INTERP || !stack || !n_kept(stack))
		return (enum seam_vmstate)states[~e->vmstate];
	switch (frame_at(stack, 0)->kind) {
	case SEAM_GUEST_FRAME_GUEST:
		return SEAM_VMSTATE_LFUNC;
	case SEAM_GUEST_FRAME_BUILTIN:
		return SEAM_VMSTATE_FFUNC;
	default:
		return SEAM_VMSTATE_CFUNC;
	}
}

/* --- all of them --- */

/*
 * Whether the activation has a frame on its thread's stack: not while it is
 * entered or left, and not where C code without a frame runs in it: then the
 * number of results is that of bytes between the stack's bottom and its top
 * at that time, negative.
 */
static bool has_frame(const struct emitting *e,
		      const struct seam_guest_activation *activation,
		      const struct seam_luajit_stack *stack, bool is_first)
{
	const struct seam_luajit_frame *frame = NULL;
	uint32_t n = n_kept(stack), n_results;

	if (is_first && stack->is_first_empty)
		return false;
	for (uint32_t i = 0; i < n && !frame; i++)
		if (frame_at(stack, i)->segment >= stack->next)
			frame = frame_at(stack, i);
	if (!frame || activation->kind == SEAM_LUAJIT_IN_TRACE ||
	    !seam_guest_u32(&e->walk->memory,
			    activation->notes[SEAM_LUAJIT_NOTE_CFRAME] +
			    e->lj->at.cf_nres, &n_results))
		return frame != NULL;
	return (int32_t)n_results >= 0 ||
	       frame->addr >= stack->thread.stack +
			      (uint64_t)-(int64_t)(int32_t)n_results;
}

static void emit_activation(const struct emitting *e,
			    const struct seam_guest_activation *activation,
			    bool is_first)
{
	struct seam_luajit_stack *stack = find_stack(e, activation->thread);
	bool is_new = !stack;

	if (!stack)
		stack = open_stack(e, activation);
	if (!seam_guest_begin_segment(e->walk, activation,
				      activation->thread) || !stack) {
		seam_guest_note_end(e->walk, SEAM_GUEST_CUT);
		return;
	}
	if (is_first && is_trace(e) &&
	    activation->kind == SEAM_LUAJIT_IN_TRACE)
		emit_trace(e, activation, stack);
	if (stack->end == SEAM_GUEST_INVALID)
		seam_guest_end_segment(e->walk, SEAM_GUEST_UNSETTLED);
	else if (has_frame(e, activation, stack, is_new))
		emit_segment(e, activation, stack, stack->next++);
}

/* Segments for which the host's stack has no activation. */
static void emit_rest(const struct emitting *e)
{
	bool is_host_whole = e->walk->sample->stack.end == SEAM_UNWIND_ROOT;

	for (uint32_t i = 0; i < e->scratch->n_stacks; i++) {
		struct seam_luajit_stack *stack = &e->scratch->stacks[i];

		if (stack->next >= stack->n_segments)
			continue;
		seam_guest_note_end(e->walk, is_host_whole ?
				    SEAM_GUEST_UNSETTLED :
				    SEAM_GUEST_HOST_ENDED);
		/* only the last segment may be without a place */
		if (i + 1 == e->scratch->n_stacks &&
		    seam_guest_begin_segment(e->walk, NULL,
					     stack->thread.addr))
			for (; stack->next < stack->n_segments; stack->next++)
				emit_segment(e, NULL, stack, stack->next);
	}
}

void seam_luajit_walk(const void *object, struct seam_guest_walk *walk,
		      size_t first)
{
	struct emitting e = { .lj = object, .walk = walk,
			      .scratch = (void *)walk->sample->scratch };
	const struct seam_guest_activation *inner =
		seam_guest_activation(walk, first);

	e.scratch->n_stacks = e.scratch->n_frames = 0;
	e.vmstate = ~(uint32_t)SEAM_LUAJIT_INTERP;
	seam_guest_u32(&walk->memory, inner->vm + e.lj->at.g_vmstate,
		       &e.vmstate);
	for (size_t i = first; i < walk->n_activations; i++)
		emit_activation(&e, seam_guest_activation(walk, i),
				i == first);
	emit_rest(&e);
	if (first > 0)
		return;
	seam_guest_set_state(walk, inner->vm, state_of(&e, inner));
}
