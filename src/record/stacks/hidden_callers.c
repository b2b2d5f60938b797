/* SPDX-License-Identifier: MIT */
/* hidden_callers.c - a table of places; see hidden_callers.h */
#include "record/stacks/hidden_callers.h"

#include "base/hash.h"

#include <stdlib.h>

enum { NO_ROOT = 2 };

static uint64_t place_of(int32_t tid, uint64_t sp)
{
	return seam_hash_add((uint32_t)tid, sp) | 1;
}

static struct seam_hidden_caller *
set_of(const struct seam_hidden_callers *hidden, uint64_t place)
{
	size_t n_sets = SEAM_HIDDEN_CALLERS_MAX / SEAM_HIDDEN_CALLERS_WAYS;

	return &hidden->items[(place >> 32) % n_sets *
			      SEAM_HIDDEN_CALLERS_WAYS];
}

void seam_hidden_callers_want(struct seam_hidden_callers *hidden, int32_t tid)
{
	hidden->wanted[(uint32_t)tid % SEAM_HIDDEN_CALLERS_THREADS] =
		hidden->n_learned + SEAM_HIDDEN_CALLERS_WANTED;
	if (!hidden->items)
		hidden->items = calloc(SEAM_HIDDEN_CALLERS_MAX,
				       sizeof(*hidden->items));
}

bool seam_hidden_callers_is_wanted(const struct seam_hidden_callers *hidden,
				   int32_t tid)
{
	uint32_t until = hidden->wanted[(uint32_t)tid %
					SEAM_HIDDEN_CALLERS_THREADS];

	return hidden->items && (int32_t)(until - hidden->n_learned) > 0;
}

/* The entry of a frame at @place with that caller, or the oldest. */
static struct seam_hidden_caller *
entry_of(const struct seam_hidden_callers *hidden, uint64_t place,
	 uint64_t caller_pc)
{
	struct seam_hidden_caller *set = set_of(hidden, place);
	struct seam_hidden_caller *oldest = &set[0];

	for (size_t i = 0; i < SEAM_HIDDEN_CALLERS_WAYS; i++) {
		if (set[i].place == place &&
		    set[i].callers[0].pc == caller_pc)
			return &set[i];
		if (oldest->place && (!set[i].place || hidden->n_learned -
		    set[i].used > hidden->n_learned - oldest->used))
			oldest = &set[i];
	}
	return oldest;
}

/* The frame at @frame; of the @n frames from there on the last is the root. */
static void enter(struct seam_hidden_callers *hidden, int32_t tid,
		  const struct seam_unwind_frame *frame, uint8_t root)
{
	struct seam_hidden_caller now = {
		.place = place_of(tid, frame->sp), .pc = frame->pc,
		.callers = { { frame[1].pc, frame[1].sp } },
		.used = hidden->n_learned, .root = root,
	};
	struct seam_hidden_caller *e = entry_of(hidden, now.place,
						now.callers[0].pc);

	if (root > 0) {
		now.callers[1].pc = frame[2].pc;
		now.callers[1].sp = frame[2].sp;
	}
	if (e->place == now.place && e->callers[0].pc == now.callers[0].pc) {
		bool is_same = e->root == root &&
			memcmp(e->callers, now.callers,
			       sizeof(now.callers)) == 0;

		now.n_changed = e->n_changed;
		if (!is_same && e->n_changed < SEAM_STACK_JOIN_MAX_CHANGES)
			now.n_changed++;
		now.n_equal = !is_same ? 0 : e->n_equal < UINT16_MAX ?
			      e->n_equal + 1 : UINT16_MAX;
	}
	*e = now;
}

void seam_hidden_callers_learn(struct seam_hidden_callers *hidden, int32_t tid,
			       const struct seam_unwind_stack *stack)
{
	bool is_whole = stack->end == SEAM_UNWIND_ROOT;

	hidden->n_learned++;
	if (!seam_hidden_callers_is_wanted(hidden, tid) ||
	    (!is_whole && stack->end != SEAM_UNWIND_TRUNCATED))
		return;
	for (size_t i = 0; i + 1 + !is_whole < stack->n; i++) {
		size_t n_callers = stack->n - 1 - i;

		enter(hidden, tid, &stack->frames[i],
		      is_whole && n_callers <= 2 ? (uint8_t)(n_callers - 1) :
						   NO_ROOT);
	}
}

/* Whether these are likely to be the frame's callers still. */
static bool is_reliable(const struct seam_hidden_caller *e)
{
	return e->n_equal >= (e->n_changed ?
			      SEAM_STACK_JOIN_EQUAL_AGAIN * e->n_changed :
			      SEAM_STACK_JOIN_EQUAL);
}

/*
 * The entry of the only caller at @place that calls the function of @callee,
 * and the address after that call; NULL: there is none, or perhaps several.
 */
static const struct seam_hidden_caller *
find_caller(struct seam_hidden_callers *hidden, uint64_t place,
	    struct seam_sample_code *code, uint64_t callee, uint64_t *pc)
{
	const struct seam_hidden_caller *set = set_of(hidden, place);
	const struct seam_hidden_caller *found = NULL;

	for (size_t i = 0; i < SEAM_HIDDEN_CALLERS_WAYS; i++) {
		uint64_t at;

		if (set[i].place != place)
			continue;
		at = seam_sample_code_call(code, &hidden->calls, set[i].pc - 1,
					   callee);
		if (at == SEAM_CALL_UNKNOWN || (at && found))
			return NULL;
		if (at) {
			found = &set[i];
			*pc = at;
		}
	}
	return found && is_reliable(found) ? found : NULL;
}

static void append(struct seam_unwind_stack *stack, uint64_t pc, uint64_t sp)
{
	stack->frames[stack->n++] = (struct seam_unwind_frame) {
		.pc = pc, .sp = sp, .quality = SEAM_UNWIND_BY_CFI,
	};
}

size_t seam_hidden_callers_complete(struct seam_hidden_callers *hidden,
				    struct seam_stack_joins *joins,
				    int32_t tid, struct seam_sample_code *code,
				    uint64_t place,
				    struct seam_unwind_stack *stack)
{
	const struct seam_unwind_frame *last = &stack->frames[stack->n - 1];
	const struct seam_hidden_caller *e;
	size_t first = stack->n;
	uint64_t pc;

	if (!hidden->items || place <= last->sp || first + 3 > stack->max)
		return 0;
	e = find_caller(hidden, place_of(tid, place), code,
			last->pc - !last->is_interrupted, &pc);
	if (!e)
		return 0;
	/* as it was seen, for the keys of what follows */
	append(stack, e->pc, place);
	for (size_t i = 0; i < 2 && (i == 0 || e->root > 0); i++)
		append(stack, e->callers[i].pc, e->callers[i].sp);
	if (e->root == NO_ROOT &&
	    !seam_stack_joins_complete(joins, tid, true, stack))
		stack->n = first;
	else
		stack->frames[first].pc = pc;
	return stack->n - first;
}

void seam_hidden_callers_fini(struct seam_hidden_callers *hidden)
{
	free(hidden->items);
	*hidden = (struct seam_hidden_callers) { 0 };
}
