/* SPDX-License-Identifier: MIT */
/* stack_joins.c - a table of callers, four ways; see stack_joins.h */
#include "unwind/walk/stack_joins.h"

#include "base/hash.h"

#include <stdlib.h>

enum {
	LEARNED_AT_ONCE = 32,
	COUNTED = 1 << 16,	/* callers of a thread */
};

/* The frames before the one whose caller is looked for, as a hash. */
struct join_context {
	uint64_t tid;
	uint64_t frames[SEAM_STACK_JOIN_FRAMES];	/* the last ones */
	size_t n;
};

/* The key of the frames so far; 0: there are too few. */
static uint64_t next_key(struct join_context *c,
			 const struct seam_unwind_frame *frame)
{
	uint64_t key = c->tid;

	c->frames[c->n++ % SEAM_STACK_JOIN_FRAMES] =
		seam_hash_add(frame->pc, frame->sp);
	if (c->n < SEAM_STACK_JOIN_FRAMES)
		return 0;
	for (size_t i = 0; i < SEAM_STACK_JOIN_FRAMES; i++)
		key = seam_sip_rotate(key, 17) ^
		      c->frames[(c->n + i) % SEAM_STACK_JOIN_FRAMES];
	return seam_hash_u64(key) | 1;
}

static struct seam_stack_join *set_of(const struct seam_stack_joins *joins,
				      uint64_t key)
{
	size_t n_sets = SEAM_STACK_JOINS_MAX / SEAM_STACK_JOIN_WAYS;

	return &joins->items[(key >> 32) % n_sets * SEAM_STACK_JOIN_WAYS];
}

/* The table is larger than a cache: load the places of many keys at once. */
static void prefetch(const struct seam_stack_joins *joins, uint64_t key)
{
	const struct seam_stack_join *set = set_of(joins, key);

	__builtin_prefetch(&set[0], 1);
	__builtin_prefetch(&set[SEAM_STACK_JOIN_WAYS - 1], 1);
}

static struct seam_stack_join *find(const struct seam_stack_joins *joins,
				    uint64_t key)
{
	struct seam_stack_join *set = set_of(joins, key);

	for (size_t i = 0; i < SEAM_STACK_JOIN_WAYS; i++)
		if (set[i].key == key)
			return &set[i];
	return NULL;
}

/* The entry of @key, or the one that was not used for the longest time. */
static struct seam_stack_join *place_of(const struct seam_stack_joins *joins,
					uint64_t key)
{
	struct seam_stack_join *set = set_of(joins, key), *oldest = &set[0];

	for (size_t i = 0; i < SEAM_STACK_JOIN_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (oldest->key && (!set[i].key || joins->n_learned -
		    set[i].used > joins->n_learned - oldest->used))
			oldest = &set[i];
	}
	return oldest;
}

static struct seam_stack_join_thread *
thread_of(struct seam_stack_joins *joins, int32_t tid)
{
	return &joins->threads[(uint32_t)tid % SEAM_STACK_JOIN_THREADS];
}

/* What was longer ago counts less. */
static void count(struct seam_stack_join_thread *thread, bool has_changed)
{
	thread->n_changed += has_changed;
	thread->n_equal += !has_changed;
	if (thread->n_equal < COUNTED && thread->n_changed < COUNTED)
		return;
	thread->n_equal /= 2;
	thread->n_changed /= 2;
}

static bool is_steady(const struct seam_stack_join_thread *thread)
{
	return thread->n_equal >= SEAM_STACK_JOIN_STEADY &&
	       thread->n_changed <= thread->n_equal / SEAM_STACK_JOIN_STEADY;
}

static void enter(struct seam_stack_joins *joins,
		  struct seam_stack_join_thread *thread, uint64_t key,
		  const struct seam_unwind_frame *caller, bool is_root)
{
	struct seam_stack_join *e = place_of(joins, key);
	bool is_same = e->pc == caller->pc && e->sp == caller->sp &&
		       e->is_root == is_root;

	if (e->key != key) {
		*e = (struct seam_stack_join) { .key = key };
	} else {
		count(thread, !is_same);
		if (!is_same && e->n_changed < SEAM_STACK_JOIN_MAX_CHANGES)
			e->n_changed++;
		e->n_equal = !is_same ? 0 : e->n_equal < UINT16_MAX ?
			     e->n_equal + 1 : UINT16_MAX;
	}
	e->pc = caller->pc;
	e->sp = caller->sp;
	e->is_root = is_root;
	e->used = joins->n_learned;
}

bool seam_stack_joins_want(const struct seam_unwind_stack *stack,
			   size_t copy_bytes)
{
	if (stack->end == SEAM_UNWIND_TRUNCATED)
		return true;
	return stack->n > 1 &&
	       stack->frames[stack->n - 1].sp - stack->frames[0].sp >=
		       copy_bytes / SEAM_STACK_JOIN_PART;
}

void seam_stack_joins_learn(struct seam_stack_joins *joins, int32_t tid,
			    const struct seam_unwind_stack *stack)
{
	bool is_complete = stack->end == SEAM_UNWIND_ROOT;
	struct join_context c = { .tid = (uint32_t)tid };
	struct seam_stack_join_thread *thread = thread_of(joins, tid);
	uint64_t keys[LEARNED_AT_ONCE];

	/* where a stack ended otherwise, its last frame may be a false one */
	if (!is_complete && stack->end != SEAM_UNWIND_TRUNCATED)
		return;
	if (!joins->items)
		joins->items = calloc(SEAM_STACK_JOINS_MAX,
				      sizeof(*joins->items));
	if (!joins->items)
		return;
	joins->n_learned++;
	for (size_t i = 1, n; i + 1 < stack->n; i += n) {
		n = stack->n - 1 - i;
		n = n < LEARNED_AT_ONCE ? n : LEARNED_AT_ONCE;
		for (size_t k = 0; k < n; k++) {
			keys[k] = next_key(&c, &stack->frames[i + k]);
			prefetch(joins, keys[k]);
		}
		for (size_t k = 0; k < n; k++)
			if (keys[k])
				enter(joins, thread, keys[k],
				      &stack->frames[i + k + 1],
				      is_complete && i + k + 2 == stack->n);
	}
}

/* Whether the caller is likely to be the same still. */
static bool is_reliable(const struct seam_stack_join *e,
			const struct seam_stack_join_thread *thread)
{
	if (!e->n_changed && is_steady(thread))
		return true;
	return e->n_equal >= (e->n_changed ?
			      SEAM_STACK_JOIN_EQUAL_AGAIN * e->n_changed :
			      SEAM_STACK_JOIN_EQUAL);
}

size_t seam_stack_joins_complete(struct seam_stack_joins *joins, int32_t tid,
				 struct seam_unwind_stack *stack)
{
	struct join_context c = { .tid = (uint32_t)tid };
	const struct seam_stack_join_thread *thread = thread_of(joins, tid);
	size_t first = stack->n, n = first;
	uint64_t key = 0;

	for (size_t i = first > SEAM_STACK_JOIN_FRAMES ?
			first - SEAM_STACK_JOIN_FRAMES : 1; i < first; i++)
		key = next_key(&c, &stack->frames[i]);
	while (joins->items && key && n < stack->max) {
		const struct seam_stack_join *e = find(joins, key);

		if (!e || !is_reliable(e, thread) ||
		    e->sp <= stack->frames[n - 1].sp)
			return 0;
		stack->frames[n++] = (struct seam_unwind_frame) {
			.pc = e->pc, .sp = e->sp,
			.quality = SEAM_UNWIND_BY_CFI,
		};
		if (e->is_root) {
			stack->n = n;
			return n - first;
		}
		key = next_key(&c, &stack->frames[n - 1]);
	}
	return 0;
}

void seam_stack_joins_fini(struct seam_stack_joins *joins)
{
	free(joins->items);
	*joins = (struct seam_stack_joins) { 0 };
}
