/* SPDX-License-Identifier: MIT */
/* stack_joins.c - a table of callers, four ways; see stack_joins.h */
#include "unwind/walk/stack_joins.h"

#include "base/hash.h"
#include "unwind/walk/recursion.h"

#include <stdlib.h>

enum {
	LEARNED_AT_ONCE = 32,
	COUNTED = 1 << 16,	/* callers of a thread */
	MAX_RECURSIONS = 8,	/* that are followed in one stack */
};

/* A key is made of the hashes of its frames, outermost last. */
static uint64_t begin_key(int32_t tid, size_t n)
{
	return (uint32_t)tid | (uint64_t)n << 32;
}

static uint64_t add_frame(uint64_t key, uint64_t frame_hash)
{
	return seam_sip_rotate(key, 17) ^ frame_hash;
}

static uint64_t end_key(uint64_t key)
{
	return seam_hash_u64(key) | 1;
}

static uint64_t hash_of(const struct seam_unwind_frame *frame)
{
	return seam_hash_add(frame->pc, frame->sp);
}

/* The key of the @n frames that end with @last, of thread @tid. */
static uint64_t key_of(int32_t tid, const struct seam_unwind_frame *last,
		       size_t n)
{
	uint64_t key = begin_key(tid, n);

	for (last -= n - 1; n > 0; n--, last++)
		key = add_frame(key, hash_of(last));
	return end_key(key);
}

/* The keys of one frame after the other: each is hashed once. */
struct rolling_key {
	uint64_t hashes[SEAM_STACK_JOIN_FRAMES];	/* of the last frames */
	size_t n;
};

/* 0: there were too few frames. */
static uint64_t next_key(struct rolling_key *r, int32_t tid,
			 const struct seam_unwind_frame *frame)
{
	uint64_t key = begin_key(tid, SEAM_STACK_JOIN_FRAMES);

	r->hashes[r->n++ % SEAM_STACK_JOIN_FRAMES] = hash_of(frame);
	if (r->n < SEAM_STACK_JOIN_FRAMES)
		return 0;
	for (size_t i = 0; i < SEAM_STACK_JOIN_FRAMES; i++)
		key = add_frame(key, r->hashes[(r->n + i) %
					       SEAM_STACK_JOIN_FRAMES]);
	return end_key(key);
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

/* Enter @caller for @key.  Whether @key has had different callers. */
static bool enter(struct seam_stack_joins *joins,
		  struct seam_stack_join_thread *thread, uint64_t key,
		  const struct seam_unwind_frame *caller, bool is_root)
{
	struct seam_stack_join *e = place_of(joins, key);
	bool is_same = e->pc == caller->pc && e->sp == caller->sp &&
		       e->is_root == is_root;

	if (e->key != key) {
		*e = (struct seam_stack_join) { .key = key };
	} else {
		if (thread)
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
	return e->n_changed > 0;
}

/* Enter the caller of frame @i of @stack, whose @key is known. */
static void enter_frame(struct seam_stack_joins *joins, int32_t tid,
			const struct seam_unwind_stack *stack, size_t i,
			uint64_t key)
{
	const struct seam_unwind_frame *frame = &stack->frames[i];
	bool is_root = stack->end == SEAM_UNWIND_ROOT && i + 2 == stack->n;

	if (enter(joins, thread_of(joins, tid), key, frame + 1, is_root) &&
	    i >= SEAM_STACK_JOIN_MORE_FRAMES)
		enter(joins, NULL, key_of(tid, frame,
					  SEAM_STACK_JOIN_MORE_FRAMES),
		      frame + 1, is_root);
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
	struct rolling_key rolling = { .n = 0 };
	uint64_t keys[LEARNED_AT_ONCE];

	/* where a stack ended otherwise, its last frame may be a false one */
	if (stack->end != SEAM_UNWIND_ROOT &&
	    stack->end != SEAM_UNWIND_TRUNCATED)
		return;
	if (!joins->items)
		joins->items = calloc(SEAM_STACK_JOINS_MAX,
				      sizeof(*joins->items));
	if (!joins->items)
		return;
	joins->n_learned++;
	/* the innermost frame is no return address */
	for (size_t i = 1, n; i + 1 < stack->n; i += n) {
		n = stack->n - 1 - i;
		n = n < LEARNED_AT_ONCE ? n : LEARNED_AT_ONCE;
		for (size_t k = 0; k < n; k++) {
			keys[k] = next_key(&rolling, tid,
					   &stack->frames[i + k]);
			prefetch(joins, keys[k]);
		}
		for (size_t k = 0; k < n; k++)
			if (keys[k])
				enter_frame(joins, tid, stack, i + k, keys[k]);
	}
}

/* The caller of @stack's last frame, if it is likely to be the same still. */
static const struct seam_stack_join *
find_caller(const struct seam_stack_joins *joins, int32_t tid, bool is_steady,
	    const struct seam_unwind_stack *stack)
{
	const struct seam_unwind_frame *last = &stack->frames[stack->n - 1];
	const struct seam_stack_join *e =
		find(joins, key_of(tid, last, SEAM_STACK_JOIN_FRAMES));

	if (e && e->n_changed && stack->n > SEAM_STACK_JOIN_MORE_FRAMES)
		e = find(joins, key_of(tid, last,
				       SEAM_STACK_JOIN_MORE_FRAMES));
	if (!e || e->sp <= last->sp)
		return NULL;
	return e->n_equal >= (e->n_changed ?
			      SEAM_STACK_JOIN_EQUAL_AGAIN * e->n_changed :
			      is_steady ? 0 : SEAM_STACK_JOIN_EQUAL) ?
	       e : NULL;
}

static void append(struct seam_unwind_stack *stack, uint64_t pc, uint64_t sp)
{
	stack->frames[stack->n++] = (struct seam_unwind_frame) {
		.pc = pc, .sp = sp, .quality = SEAM_UNWIND_BY_CFI,
	};
}

/*
 * Follow a recursion from the end of @stack on, by what the stack repeats,
 * until the callers of other samples agree for some frames.  False: it repeats
 * nothing, or they do not.
 */
static bool follow_recursion(const struct seam_stack_joins *joins, int32_t tid,
			     struct seam_unwind_stack *stack)
{
	struct seam_recursion recursion;
	size_t n_agreed = 0;

	if (!seam_recursion_find(&recursion, stack))
		return false;
	while (n_agreed < SEAM_STACK_JOIN_MORE_FRAMES) {
		const struct seam_stack_join *e =
			find_caller(joins, tid, true, stack);
		const struct seam_unwind_frame *again =
			&stack->frames[stack->n - recursion.period];
		uint64_t sp = again->sp + recursion.bytes;

		if (stack->n == stack->max)
			return false;
		n_agreed = e && e->pc == again->pc && e->sp == sp &&
			   !e->is_root ? n_agreed + 1 : 0;
		append(stack, again->pc, sp);
	}
	return true;
}

/* Append the callers of other samples.  Whether they lead to the root. */
static bool follow(const struct seam_stack_joins *joins, int32_t tid,
		   bool is_steady, struct seam_unwind_stack *stack)
{
	while (stack->n < stack->max) {
		const struct seam_stack_join *e =
			find_caller(joins, tid, is_steady, stack);

		if (!e)
			return false;
		append(stack, e->pc, e->sp);
		if (e->is_root)
			return true;
	}
	return false;
}

size_t seam_stack_joins_complete(struct seam_stack_joins *joins, int32_t tid,
				 bool is_last_try,
				 struct seam_unwind_stack *stack)
{
	bool steady = is_steady(thread_of(joins, tid)), is_whole;
	size_t first = stack->n, n;

	if (!joins->items || first <= SEAM_STACK_JOIN_FRAMES)
		return 0;
	is_whole = follow(joins, tid, steady, stack);
	for (unsigned int i = 0; !is_whole && is_last_try && steady &&
	     i < MAX_RECURSIONS && follow_recursion(joins, tid, stack); i++)
		is_whole = follow(joins, tid, steady, stack);
	n = stack->n - first;
	if (!is_whole)
		stack->n = first;
	return is_whole ? n : 0;
}

void seam_stack_joins_fini(struct seam_stack_joins *joins)
{
	free(joins->items);
	*joins = (struct seam_stack_joins) { 0 };
}
