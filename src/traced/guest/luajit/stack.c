/* SPDX-License-Identifier: MIT */
/*
 * stack.c - from activations to segments of frames; see luajit.h
 *
 *	a thread's stack	lua_State, and its frames from a base down
 *	its top			which function runs in the innermost activation
 *	segments		the frames of each activation
 */
#include "traced/guest/luajit/luajit.h"

enum {
	MAX_THREADS = 16,	/* in one sample */
	MAX_FRAMES = 1500,	/* of all of them */
	MAX_DEPTH = 40000,	/* frames looked at */
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

bool seam_luajit_read_thread(const struct seam_luajit *lj,
			     struct seam_guest_memory *memory, uint64_t addr,
			     struct seam_luajit_thread *thread)
{
	const struct seam_luajit_offsets *at = &lj->at;
	uint64_t main_thread, main_g, code;

	thread->addr = addr;
	/*
	 * The VM's main thread leads back to the VM, which has a table of
	 * addresses in its own library's interpreter: another copy of the
	 * library may have the same layout.
	 */
	return is_thread(lj, memory, addr, &thread->g) &&
	       seam_guest_u64(memory, thread->g + at->g_mainthref,
			      &main_thread) &&
	       is_thread(lj, memory, main_thread, &main_g) &&
	       main_g == thread->g &&
	       seam_guest_u64(memory, main_g + at->g_dispatch, &code) &&
	       seam_luajit_is_code(lj, code) &&
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

/*
 * The function at @frame, whose .addr is set: fills .object and .kind.  False:
 * there is none.  *@is_thread_mark: it is the mark of a stack's bottom.
 */
static bool read_function(const struct seam_luajit *lj,
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

/* The frame of the Lua function that called, by the call's instruction. */
static bool find_lua_caller(struct seam_guest_memory *memory, uint64_t frame,
			    uint64_t pc, uint64_t *caller)
{
	uint32_t instruction;

	if (pc < 4096 || pc >> 47 ||
	    !seam_guest_u32(memory, pc - 4, &instruction))
		return false;
	*caller = frame - 8 * (2 + (uint64_t)(instruction >> 8 & 0xff));
	return true;
}

/* The stack of a thread, as far as it was walked. */
struct lua_stack {
	struct seam_luajit_thread thread;
	struct seam_luajit_frame *frames;
	/*
	 * Where there is no room for all, .n_inner from the innermost on, and
	 * of .n_outer others those that a ring after them has: the outermost.
	 */
	uint32_t room, n_inner, n_outer;
	uint32_t n_segments;
	uint32_t next;		/* segment that the next activation has */
	uint8_t end;		/* enum seam_guest_end */
	bool is_first_empty;	/* the innermost activation has no frame yet */
};

/* Three quarters of the room stay, the others are a ring. */
static bool add_frame(struct lua_stack *stack,
		      const struct seam_luajit_frame *frame)
{
	uint32_t n_kept = stack->room - stack->room / 4;

	if (stack->n_inner < n_kept)
		stack->frames[stack->n_inner++] = *frame;
	else if (stack->room == n_kept)
		return false;
	else
		stack->frames[n_kept + stack->n_outer++ %
			      (stack->room - n_kept)] = *frame;
	return true;
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
	return find_lua_caller(memory, frame, link, &step->caller) &&
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
		       struct lua_stack *stack, struct stack_walk *w)
{
	struct step step;
	bool is_mark;

	if (!read_function(lj, memory, &stack->thread, &w->frame, &is_mark) ||
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

static void clear(struct lua_stack *stack)
{
	stack->n_inner = stack->n_outer = stack->n_segments = 0;
	stack->next = 0;
	stack->end = SEAM_GUEST_INVALID;
}

/*
 * Walk the stack down from the function whose first slot is @base.  @pc: its
 * next bytecode instruction, or 0; @link: its frame's link where that has not
 * been stored yet, or 0.  False: what is there is no stack of frames; the
 * stack is empty then.
 */
static bool walk_stack(const struct seam_luajit *lj,
		       struct seam_guest_memory *memory,
		       struct lua_stack *stack, uint64_t base, uint64_t pc,
		       uint64_t link)
{
	struct stack_walk w = { .frame = { .addr = base - 8, .pc = pc },
			     .link = link };
	uint64_t bottom = stack->thread.stack + 8;

	clear(stack);
	if (!seam_luajit_is_base(&stack->thread, base))
		return false;
	for (int i = 0; w.frame.addr > bottom; i++)
		if (i == MAX_DEPTH ||
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

/*
 * ---- the top
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

struct top {
	const struct seam_luajit *lj;
	struct seam_guest_memory *memory;
	const struct seam_guest_activation *activation;
	struct lua_stack *stack;
	uint64_t cframe, rbx, rdx, rbp;
};

/* The function at @base is a Lua function that has @pc. */
static bool has_pc(const struct top *t, uint64_t base, uint64_t pc)
{
	struct seam_luajit_frame frame = { .addr = base - 8 };
	bool is_mark;

	return seam_luajit_is_base(&t->stack->thread, base) &&
	       read_function(t->lj, t->memory, &t->stack->thread, &frame,
			     &is_mark) &&
	       !is_mark && frame.kind == SEAM_GUEST_FRAME_GUEST &&
	       seam_luajit_has_pc(t->lj, t->memory, frame.object, pc);
}

static bool walk_from(const struct top *t, uint64_t base, uint64_t pc,
		      uint64_t link)
{
	if (pc && !has_pc(t, base, pc))
		pc = 0;
	return walk_stack(t->lj, t->memory, t->stack, base, pc, link);
}

static uint64_t saved_pc(const struct top *t)
{
	uint64_t pc;

	return seam_guest_u64(t->memory,
			      t->cframe + t->lj->at.cf_pc, &pc) ? pc : 0;
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

	return find_lua_caller(t->memory, t->rdx - 8, t->rbx,
				      &frame) &&
	       has_pc(t, frame + 8, t->rbx) &&
	       walk_from(t, frame + 8, t->rbx, 0);
}

static bool walk_instruction(const struct top *t, uint32_t vmstate)
{
	uint64_t base = t->stack->thread.base;
	uint32_t n_results;

	/* negative: it runs a C function that has no frame on the stack */
	if (seam_guest_u32(t->memory, t->cframe + t->lj->at.cf_nres,
			   &n_results) && (int32_t)n_results < 0)
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

/* Walk the stack of the sample's innermost activation. */
static void walk_top(const struct seam_luajit *lj,
		     struct seam_guest_walk *walk,
		     const struct seam_guest_activation *activation,
		     struct lua_stack *stack)
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

/* ---- segments ---- */

/* In the sample's scratch. */
struct scratch {
	struct lua_stack stacks[MAX_THREADS];
	struct seam_luajit_frame frames[MAX_FRAMES];
	uint32_t n_stacks, n_frames;
};

_Static_assert(sizeof(struct scratch) <=
	       SEAM_GUEST_SCRATCH_WORDS * sizeof(uint64_t),
	       "an adapter's scratch has to fit into a sample");

struct emitting {
	const struct seam_luajit *lj;
	struct seam_guest_walk *walk;
	struct scratch *scratch;
	uint32_t vmstate;	/* as the innermost VM has it */
};

/* --- stacks of threads --- */

static struct lua_stack *find_stack(const struct emitting *e,
					    uint64_t thread)
{
	for (uint32_t i = 0; i < e->scratch->n_stacks; i++)
		if (e->scratch->stacks[i].thread.addr == thread)
			return &e->scratch->stacks[i];
	return NULL;
}

/* Walk the stack of the activation's thread; NULL: there are too many. */
static struct lua_stack *
open_stack(const struct emitting *e,
	   const struct seam_guest_activation *activation)
{
	struct scratch *scratch = e->scratch;
	struct lua_stack *stack = &scratch->stacks[scratch->n_stacks];
	uint32_t room = MAX_FRAMES - scratch->n_frames;

	if (scratch->n_stacks == MAX_THREADS)
		return NULL;
	scratch->n_stacks++;
	*stack = (struct lua_stack) {
		.frames = scratch->frames + scratch->n_frames,
		/* some is for those that resumed it */
		.room = room - room / 4,
		.end = SEAM_GUEST_INVALID };
	if (seam_luajit_read_thread(e->lj, &e->walk->memory,
				    activation->thread, &stack->thread))
		walk_top(e->lj, e->walk, activation, stack);
	else
		stack->thread.addr = activation->thread;
	scratch->n_frames += stack->n_outer ? stack->room : stack->n_inner;
	return stack;
}

/* Frame @i of those that were kept, from the innermost on. */
static struct seam_luajit_frame *frame_at(const struct lua_stack *stack,
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

static uint32_t n_kept(const struct lua_stack *stack)
{
	uint32_t n_ring = stack->room - stack->n_inner;

	return stack->n_inner +
	       (stack->n_outer < n_ring ? stack->n_outer : n_ring);
}

/* --- one segment --- */

static bool emit_frame(const struct emitting *e,
		       const struct lua_stack *stack, uint32_t i,
		       bool is_on_host)
{
	const struct seam_luajit_frame *frame = frame_at(stack, i), *caller;
	struct seam_guest_origin origin = { .is_on_host = is_on_host };
	uint32_t id, line;

	caller = i + 1 < stack->n_inner ? frame + 1 : NULL;
	id = seam_luajit_id(e->lj, e->walk, frame, caller, &origin, &line);
	return seam_guest_add_frame(e->walk,
				    (enum seam_guest_frame_kind)frame->kind,
				    id, line, &origin);
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
			 struct lua_stack *stack, uint32_t number)
{
	static const struct seam_guest_origin none;
	uint32_t n = n_kept(stack), i = 0;
	bool is_first = true, is_room = true;

	while (i < n && frame_at(stack, i)->segment < number)
		i++;
	for (; is_room && i < n && frame_at(stack, i)->segment == number;
	     i++) {
		struct seam_luajit_frame *frame = frame_at(stack, i);
		/* C code was called, and the VM's frame is not innermost */
		bool is_host = is_first && activation &&
			       frame->kind == SEAM_GUEST_FRAME_C &&
			       activation->kind == SEAM_LUAJIT_AT_CALL;

		if (is_first)
			find_pc(e, activation, frame);
		/* a mark in place of frames that were not kept */
		if (stack->end == SEAM_GUEST_CUT && i == stack->n_inner)
			is_room = seam_guest_add_frame(e->walk,
				SEAM_GUEST_FRAME_CUT, stack->n_outer -
				(stack->room - stack->n_inner), 0, &none);
		if (is_room && (!is_host || e->walk->sample->with_c))
			is_room = emit_frame(e, stack, i, is_host);
		is_first = false;
	}
	seam_guest_end_segment(e->walk, is_room ?
			       (enum seam_guest_end)stack->end :
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
		       struct lua_stack *stack)
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
	const struct lua_stack *stack = find_stack(e, inner->thread);

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
		      const struct lua_stack *stack, bool is_first)
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
	struct lua_stack *stack = find_stack(e, activation->thread);
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
		struct lua_stack *stack = &e->scratch->stacks[i];

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
	const struct seam_guest_activation *list = walk->sample->activations;
	const struct seam_guest_activation *inner = &list[first];

	e.scratch->n_stacks = e.scratch->n_frames = 0;
	e.vmstate = ~(uint32_t)SEAM_LUAJIT_INTERP;
	seam_guest_u32(&walk->memory, inner->vm + e.lj->at.g_vmstate,
		       &e.vmstate);
	for (size_t i = first; i < walk->n_activations; i++)
		emit_activation(&e, &list[i], i == first);
	emit_rest(&e);
	if (first > 0)
		return;
	walk->sample->head.vm = inner->vm;
	walk->sample->head.vmstate = (uint8_t)state_of(&e, inner);
}
