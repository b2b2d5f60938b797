/* SPDX-License-Identifier: MIT */
/* guest_take.c - one sample: host's stack, then the guests'; guest_sample.h */
#include <errno.h>

#include "traced/guest/guest_adapter.h"
#include "unwind/in_process/self_readers.h"

/*
 * The sample that this thread's handler takes.  Within the space for
 * initial-exec variables that libc keeps for libraries loaded at run time.
 */
static __thread struct seam_guest_walk *current
	__attribute__((tls_model("initial-exec")));

__thread bool seam_guest_is_proving
	__attribute__((tls_model("initial-exec")));
struct seam_guest_slot seam_guest_slots[SEAM_GUEST_MAX_VMS];

/* --- while the host's stack is walked --- */

/* Not one that another thread proves, or that is not used any more. */
static bool is_usable(const struct seam_guest_slot *slot)
{
	/* acquire: what the slot has was filled before */
	uint32_t state = atomic_load_explicit(&slot->state,
					      memory_order_acquire);

	return state == SEAM_GUEST_USED ||
	       (state == SEAM_GUEST_TRIAL && seam_guest_is_proving);
}

bool seam_guest_has_code(void *slot, uint64_t pc, bool is_in_image)
{
	const struct seam_guest_slot *s = slot;

	return is_usable(s) && s->vm->has_code(s->object, pc, is_in_image);
}

/* Call bridge of @slot's adapter; whether it found an activation. */
static bool bridge_by(const struct seam_guest_slot *slot,
		      struct seam_guest_walk *walk, bool is_exact,
		      struct seam_unwind_registers *regs,
		      enum seam_unwind_end *end)
{
	size_t n_before = walk->n_activations;

	*end = slot->vm->bridge(slot->object, walk, regs, is_exact);
	for (size_t i = n_before; i < walk->n_activations; i++)
		walk->owner[i] = (uint8_t)(slot - seam_guest_slots);
	return walk->n_activations > n_before;
}

/*
 * Code in no image may be that of each VM: it is that of the one whose adapter
 * finds an activation.  @first does not.
 */
static void bridge_by_others(const struct seam_guest_slot *first,
			     struct seam_guest_walk *walk, bool is_exact,
			     const struct seam_unwind_registers *regs,
			     struct seam_unwind_registers *caller,
			     enum seam_unwind_end *end)
{
	uint64_t pc = regs->value[SEAM_X86_64_RIP] - !is_exact;

	if (first->vm->has_code(first->object, pc, true))
		return;
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++) {
		const struct seam_guest_slot *slot = &seam_guest_slots[i];
		struct seam_unwind_registers found = *regs;
		enum seam_unwind_end by_this;

		if (slot == first || !is_usable(slot) ||
		    !slot->vm->has_code(slot->object, pc, false) ||
		    !bridge_by(slot, walk, is_exact, &found, &by_this))
			continue;
		*caller = found;
		*end = by_this;
		return;
	}
}

enum seam_unwind_end
seam_guest_step(void *slot, const struct seam_unwind_memory *memory,
		struct seam_unwind_registers *regs)
{
	struct seam_guest_walk *walk = current;
	const struct seam_unwind_stack *stack;
	struct seam_unwind_registers caller = *regs;
	enum seam_unwind_end end;
	bool is_exact;

	/* another user of the unwinder walks, not seam_guest_take() */
	if (!walk)
		return SEAM_UNWIND_WITHOUT_CFI;
	stack = &walk->sample->stack;
	is_exact = stack->frames[stack->n - 1].is_interrupted;
	walk->stack = memory;
	if (!bridge_by(slot, walk, is_exact, &caller, &end))
		bridge_by_others(slot, walk, is_exact, regs, &caller, &end);
	if (end == SEAM_UNWIND_CALLER)
		*regs = caller;
	return end;
}

/* --- what adapters call --- */

struct seam_guest_activation *
seam_guest_activate(struct seam_guest_walk *walk, uint64_t vm, uint64_t thread)
{
	struct seam_guest_activation *activation;

	if (walk->n_activations == SEAM_GUEST_MAX_SEGMENTS)
		return NULL;
	activation = &walk->sample->activations[walk->n_activations++];
	*activation = (struct seam_guest_activation) {
		.vm = vm, .thread = thread,
		.host = (uint16_t)(walk->sample->stack.n - 1) };
	return activation;
}

bool seam_guest_begin_segment(struct seam_guest_walk *walk,
			      const struct seam_guest_activation *activation,
			      uint64_t thread)
{
	struct seam_guest_sample *sample = walk->sample;
	size_t n = sample->head.n_segments;

	/* only the last segment may be without a place: remove another */
	if (n && sample->segments[n - 1].join == SEAM_GUEST_NO_JOIN) {
		sample->n_frames -= sample->segments[n - 1].n_frames;
		sample->head.n_segments--;
	}
	if (sample->head.n_segments == SEAM_GUEST_MAX_SEGMENTS)
		return false;
	sample->segments[sample->head.n_segments++] =
		(struct seam_guest_segment) {
			.join = activation ? activation->host :
					     SEAM_GUEST_NO_JOIN,
			.n_replaced = activation != NULL,
			.thread = thread };
	return true;
}

bool seam_guest_add_frame(struct seam_guest_walk *walk,
			  enum seam_guest_frame_kind kind, uint32_t id,
			  uint32_t line,
			  const struct seam_guest_origin *origin)
{
	struct seam_guest_sample *sample = walk->sample;

	if (sample->n_frames == SEAM_GUEST_MAX_FRAMES ||
	    sample->head.n_segments == 0)
		return false;
	/* a record has no id 0: a mark in place of a frame without one */
	if (id == 0) {
		kind = SEAM_GUEST_FRAME_CUT;
		id = 1;
		line = 0;
		seam_guest_end_segment(walk, SEAM_GUEST_CUT);
	}
	sample->origins[sample->n_frames] = *origin;
	sample->frames[sample->n_frames++] =
		seam_guest_frame_make(kind, id, line);
	sample->segments[sample->head.n_segments - 1].n_frames++;
	return true;
}

void seam_guest_note_end(struct seam_guest_walk *walk, enum seam_guest_end end)
{
	struct seam_guest_head *head = &walk->sample->head;

	if (head->guest_end == SEAM_GUEST_COMPLETE)
		head->guest_end = (uint8_t)end;
}

void seam_guest_end_segment(struct seam_guest_walk *walk,
			    enum seam_guest_end end)
{
	struct seam_guest_head *head = &walk->sample->head;
	struct seam_guest_segment *segment;

	if (head->n_segments == 0)
		return;
	segment = &walk->sample->segments[head->n_segments - 1];
	if (segment->end == SEAM_GUEST_COMPLETE)
		segment->end = (uint16_t)end;
	seam_guest_note_end(walk, end);
}

/* --- the sample --- */

static uint8_t host_end_of(uint8_t end)
{
	static const uint8_t ends[] = {
		[SEAM_UNWIND_ROOT] = SEAM_STACK_COMPLETE,
		[SEAM_UNWIND_UNREADABLE] = SEAM_STACK_UNREADABLE,
		[SEAM_UNWIND_UNKNOWN_REGISTER] = SEAM_STACK_LOST_REGISTER,
		[SEAM_UNWIND_WITHOUT_CFI] = SEAM_STACK_WITHOUT_CFI,
		[SEAM_UNWIND_BROKEN_CFI] = SEAM_STACK_BROKEN_CFI,
		[SEAM_UNWIND_NO_PROGRESS] = SEAM_STACK_NO_PROGRESS,
		[SEAM_UNWIND_TRUNCATED] = SEAM_STACK_TRUNCATED,
		[SEAM_UNWIND_NO_MAPPING] = SEAM_STACK_NO_MAPPING,
		[SEAM_UNWIND_TOO_DEEP] = SEAM_STACK_TOO_DEEP,
		[SEAM_UNWIND_OTHER_STACK] = SEAM_STACK_OTHER_STACK,
	};

	return end < SEAM_ARRAY_SIZE(ends) ? ends[end] : SEAM_STACK_NO_MAPPING;
}

/* The segments of all activations: each VM's in turn, as they follow. */
static void walk_guests(struct seam_guest_walk *walk)
{
	size_t first = 0;

	while (first < walk->n_activations) {
		const struct seam_guest_slot *slot =
			&seam_guest_slots[walk->owner[first]];
		size_t n_all = walk->n_activations, next = first + 1;

		while (next < n_all &&
		       walk->owner[next] == walk->owner[first])
			next++;
		if (first == 0)
			walk->sample->head.adapter = slot->vm->number;
		walk->n_activations = next;
		slot->vm->walk(slot->object, walk, first);
		walk->n_activations = n_all;
		first = next;
	}
}

void seam_guest_take(const ucontext_t *context,
		     struct seam_guest_sample *sample)
{
	struct seam_guest_walk walk, *outer = current;
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct seam_self_visit visit;
	int saved_errno = errno;

	/* adapters stay in place until the guests were walked */
	visit = seam_self_enter(here, &context->uc_stack);
	sample->stack.frames = sample->host;
	sample->stack.max = SEAM_GUEST_MAX_HOST;
	sample->stack.n = 0;
	sample->head = (struct seam_guest_head) {
		.vmstate = SEAM_VMSTATE_NONE };
	sample->n_frames = sample->n_fresh = 0;
	sample->trace = 0;
	walk.sample = sample;
	walk.n_activations = 0;
	seam_guest_memory_init(&walk.memory);
	current = &walk;
	seam_self_walk(context, &sample->stack);
	current = outer;
	sample->head.host_end = host_end_of(sample->stack.end);
	if (walk.n_activations)
		walk_guests(&walk);
	else
		sample->head.guest_end = SEAM_GUEST_ABSENT;
	seam_self_leave(&visit);
	errno = saved_errno;
}
