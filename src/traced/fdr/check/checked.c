/* SPDX-License-Identifier: MIT */
/* checked.c - see checked.h */
#include "traced/fdr/check/checked.h"

#include "base/clock.h"
#include "ring/layout.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/trampolines.h"
#include "wire/xray/xray_functions.h"

#include <errno.h>
#include <sys/mman.h>

/* Of the process; set before the first sled is patched. */
uint64_t seam_fdr_min_ticks;
static uint32_t max_depth, n_arguments;
struct seam_fdr_trampolines seam_fdr_used = {
	seam_fdr_entry, seam_fdr_exit, seam_fdr_tail, seam_fdr_entry_only,
};

/*
 * ---- the calls of a thread that are open, by where their frames are ----
 *
 * A call is known by the address of its return address, from its entry to its
 * exit.  Exceptions and longjmp() leave frames without an exit, so calls are
 * not counted up and down: frames at or below the frame of a new call are gone.
 * (Frames of a handler are further below: a frame that was left counts there,
 * until the function that caught the exception calls another.)
 *
 * A thread's own; signal handlers may call these functions at any time, and
 * leave the filter as it was, as they return before the interrupted call goes
 * on.  Programs that switch stacks by themselves, and handlers on an alternate
 * stack above the thread's, may get the depth of another stack's calls.
 *
 * A handler that interrupts adds entries above n_open and removes them again.
 * So n_open is stored before the new entry is filled, and a value read from an
 * entry is used only after n_open was stored.  All accesses are relaxed: there is one thread.
 */

static uint32_t load(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t frame_of(const struct seam_fdr_filter *f, uint32_t i)
{
	return atomic_load_explicit(&f->open[i], memory_order_relaxed);
}

/*
 * A call begins at @frame.  Whether fewer than @max_depth recorded calls, at
 * most SEAM_FDR_MAX_DEPTH, are open; then the call is added.  With @is_inlined
 * the caller may have an equal frame.
 */
static bool depth_enter(struct seam_fdr_filter *f, uint64_t frame,
			bool is_inlined)
{
	uint32_t n = load(&f->n_open);

	while (n > 0 && frame_of(f, n - 1) <= frame - is_inlined)
		n--;
	if (n >= max_depth) {
		store(&f->n_open, n);
		return false;
	}
	/* again if a handler, between the stores, read the old entry as left */
	do {
		store(&f->n_open, n + 1);
		atomic_store_explicit(&f->open[n], frame, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	} while (load(&f->n_open) != n + 1);
	return true;
}

/* The call at @frame ends.  Whether the call is recorded. */
static bool depth_leave(struct seam_fdr_filter *f, uint64_t frame)
{
	uint32_t n = load(&f->n_open);
	bool found = false;

	/* most often */
	if (n > 0 && frame_of(f, n - 1) == frame) {
		store(&f->n_open, n - 1);
		return true;
	}
	while (n > 0 && !found && frame_of(f, n - 1) <= frame)
		found = frame_of(f, --n) == frame;
	store(&f->n_open, n);
	return found;
}

/* The place of a timed call; n: not found. */
static uint32_t find(const struct seam_fdr_filter *f, uint32_t n,
		     uint64_t frame, uint32_t function)
{
	for (uint32_t i = n; i > 0; i--)
		if (f->timed[i - 1].frame == frame &&
		    f->timed[i - 1].function == function)
			return i - 1;
	return n;
}

static uint32_t oldest(const struct seam_fdr_filter *f)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < SEAM_FDR_MAX_TIMED; i++)
		if (f->timed[i].tsc < f->timed[first].tsc)
			first = i;
	return first;
}

/* A call of @function begins at @frame and @tsc, and is to be timed. */
static void timed_enter(struct seam_fdr_filter *f, uint64_t frame,
			uint32_t function, uint64_t tsc)
{
	uint32_t n = load(&f->n_timed);
	/* a call that is found was left without an exit */
	uint32_t i = find(f, n, frame, function);

	if (i == SEAM_FDR_MAX_TIMED)
		i = oldest(f);
	else if (i == n)
		store(&f->n_timed, n + 1);
	f->timed[i] = (struct seam_fdr_timed) {
		.frame = frame, .tsc = tsc, .function = function,
	};
}

/* The call ends.  When it began; 0: not known. */
static uint64_t timed_leave(struct seam_fdr_filter *f, uint64_t frame,
			    uint32_t function)
{
	uint32_t n = load(&f->n_timed), i = find(f, n, frame, function);
	uint64_t tsc;

	if (i == n)
		return 0;
	tsc = f->timed[i].tsc;
	if (i != n - 1)
		f->timed[i] = f->timed[n - 1];
	store(&f->n_timed, n - 1);
	return tsc;
}

/* ---- triggers ---- */

enum {
	MAX_PER_S = 1000,		/* of each trigger */
	FUNCTIONS_BYTES = SEAM_FDR_MAX_TRIGGER_FUNCTION *
			  sizeof(*seam_fdr_trigger_functions),
};

/* Of the process; set before the first sled is patched. */
static struct {
	uint64_t limit;			/* ticks */
	_Atomic uint64_t next_tsc;	/* no hit before; any thread */
} triggers[SEAM_TRIGGER_MAX];
/* bit i: trigger i is of this kind */
static unsigned int are_calls, are_slow;
static uint64_t least_limit;		/* of the slow triggers */
static uint64_t pause_ticks;
static bool is_flight;

_Atomic uint16_t *seam_fdr_trigger_functions;

/* any thread adds; a number without a record is taken back */
static _Atomic uint32_t n_fired;
/* written by the recorder; NULL: no recorder */
static const _Atomic uint32_t *_Atomic resumed;

/* @ns as ticks, at most INT64_MAX. */
static uint64_t ticks_of(uint64_t ns, uint64_t ticks_per_s)
{
	uint64_t whole = ns / SEAM_NS_PER_S, rest = ns % SEAM_NS_PER_S;

	/* a TSC has less than 18 GHz */
	if (whole >= 1 << 28)
		return INT64_MAX;
	return whole * ticks_per_s + rest * ticks_per_s / SEAM_NS_PER_S;
}

/* Functions of a start before; memory locked into RAM is not given back. */
static void forget_functions(void)
{
	if (seam_fdr_syscall4(SYS_madvise, (long)seam_fdr_trigger_functions,
			      FUNCTIONS_BYTES, MADV_DONTNEED, 0) == 0)
		return;
	for (size_t i = 0; i < SEAM_FDR_MAX_TRIGGER_FUNCTION; i++)
		/* relaxed: no sled is patched */
		atomic_store_explicit(&seam_fdr_trigger_functions[i], 0,
				      memory_order_relaxed);
}

static int init_triggers(const struct seam_fdr_options *o, uint64_t ticks_per_s)
{
	is_flight = o->is_flight;
	pause_ticks = ticks_per_s / MAX_PER_S;
	are_calls = are_slow = 0;
	least_limit = UINT64_MAX;
	for (uint32_t i = 0; i < o->n_triggers; i++) {
		uint64_t limit = ticks_of(o->triggers[i].limit_ns, ticks_per_s);

		triggers[i].limit = limit;
		if (o->triggers[i].kind == SEAM_TRIGGER_CALLS) {
			are_calls |= 1u << i;
			continue;
		}
		are_slow |= 1u << i;
		least_limit = limit < least_limit ? limit : least_limit;
	}
	if (seam_fdr_trigger_functions)
		forget_functions();
	else if (o->n_triggers)
		seam_fdr_trigger_functions = seam_fdr_map(FUNCTIONS_BYTES);
	return seam_fdr_trigger_functions || !o->n_triggers ? 0 : -ENOMEM;
}

void seam_fdr_trigger_function(unsigned int trigger, uint32_t function)
{
	if (trigger < SEAM_TRIGGER_MAX && seam_fdr_trigger_functions &&
	    function < SEAM_FDR_MAX_TRIGGER_FUNCTION)
		atomic_fetch_or(&seam_fdr_trigger_functions[function],
				(uint16_t)(1u << trigger));
}

void seam_fdr_triggers_resume_at(const _Atomic uint32_t *n_resumed)
{
	atomic_store(&n_fired, 0);
	atomic_store(&resumed, n_resumed);
}

bool seam_fdr_may_begin_chunk(struct seam_fdr_state *state, uint64_t at)
{
	/* relaxed: a chunk begun before the trigger need not be stopped */
	uint32_t fired = atomic_load_explicit(&n_fired, memory_order_relaxed);
	const _Atomic uint32_t *word = atomic_load(&resumed);
	uint32_t done;

	if (!fired || !is_flight || !word)
		return true;
	/* acquire: the recorder's copies come before the number */
	done = atomic_load_explicit(word, memory_order_acquire);
	/* the largest number is SEAM_FDR_NO_MORE_SNAPSHOTS */
	if (done >= fired)
		return true;
	/* the oldest trigger is not copied: the calls before it must stay */
	if (state->follows != done + 1) {
		state->follows = done + 1;
		state->follows_from = at;
	}
	return at - state->follows_from < state->area.size / 2;
}

/* Rate-limit each trigger to MAX_PER_S. */
static bool may_fire(uint32_t trigger, uint64_t tsc)
{
	_Atomic uint64_t *next = &triggers[trigger].next_tsc;
	uint64_t from = atomic_load_explicit(next, memory_order_relaxed);

	/* relaxed, all: of two threads any may fire */
	return tsc >= from && atomic_compare_exchange_strong_explicit(
			next, &from, tsc + pause_ticks, memory_order_relaxed,
			memory_order_relaxed);
}

/*
 * Signals are blocked: a handler that does not return would leave a trigger
 * counted and not sent, and a record begun in a ring.
 */
static void fire(const struct seam_xray_trigger *t)
{
	struct seam_fdr_state *state;
	uint64_t blocked;

	if (!may_fire(t->trigger, t->tsc))
		return;
	blocked = seam_fdr_block();
	state = seam_fdr_thread();
	if (state) {
		uint32_t number = atomic_fetch_add(&n_fired, 1) + 1;
		struct seam_xray_announcement a = { .trigger = *t };

		a.kind = SEAM_XRAY_ANNOUNCED_TRIGGER;
		a.trigger.tid = state->tid;
		a.trigger.number = number;
		/* undo only if no later trigger has taken a number */
		if (!seam_fdr_call_saved(seam_fdr_send_trigger, &a))
			atomic_compare_exchange_strong(&n_fired, &number,
						       number - 1);
	}
	seam_fdr_unblock(blocked);
}

static __attribute__((noinline, cold))
void fire_calls(unsigned int of, uint32_t function, uint64_t tsc)
{
	for (; of; of &= of - 1)
		fire(&(struct seam_xray_trigger) {
			.trigger = (unsigned int)__builtin_ctz(of),
			.tsc = tsc, .function = function });
}

static __attribute__((noinline, cold))
void fire_slow(unsigned int of, uint32_t function, uint64_t tsc, uint64_t ticks)
{
	for (; of; of &= of - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(of);

		if (ticks > triggers[i].limit)
			fire(&(struct seam_xray_trigger) {
				.trigger = i, .tsc = tsc, .ticks = ticks,
				.function = function });
	}
}

/* A call of @function, which has the triggers @of, begins at @tsc. */
static void enter_triggers(unsigned int of, uint32_t function, uint64_t frame,
			   uint64_t tsc)
{
	if (__builtin_expect(of & are_calls, 0))
		fire_calls(of & are_calls, function, tsc);
	if (of & are_slow && seam_fdr_self.state->tid)
		timed_enter(&seam_fdr_self.state->filter, frame, function, tsc);
}

static void leave_triggers(unsigned int of, uint32_t function, uint64_t frame,
			   uint64_t tsc)
{
	uint64_t begin;

	if (!(of & are_slow))
		return;
	begin = timed_leave(&seam_fdr_self.state->filter, frame, function);
	if (__builtin_expect(begin && tsc - begin > least_limit, 0))
		fire_slow(of & are_slow, function, tsc, tsc - begin);
}

/* ---- in trampolines ---- */

static uint32_t action_of(uint32_t word)
{
	return word >> 1 & 7;
}

static __attribute__((noinline, cold))
uint64_t put_slowly(uint32_t word, const uint64_t *arguments, uint32_t n)
{
	seam_fdr_record(word, arguments, n);
	return seam_fdr_tsc();
}

/* Record, and return the time. */
static inline uint64_t put(uint32_t word, const uint64_t *arguments, uint32_t n)
{
	uint64_t tsc = seam_fdr_put_call(word, arguments, n);

	return tsc ? tsc : put_slowly(word, arguments, n);
}

/* NULL: the thread has no area, and its records are counted. */
static struct seam_fdr_filter *filter(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (!state->tid)
		state = seam_fdr_thread();
	return state ? &state->filter : NULL;
}

/* @is_inlined: its caller may have this frame. */
static inline bool is_too_deep(uint64_t frame, bool is_inlined)
{
	struct seam_fdr_filter *f = max_depth ? filter() : NULL;

	return f && !depth_enter(f, frame, is_inlined);
}

static inline uint64_t put_entry(uint32_t word, const uint64_t *arguments)
{
	uint32_t n = n_arguments;

	/* a function with xray_log_args(1) */
	if (n == 0 && action_of(word) == SEAM_XRAY_ENTRY_ARGS)
		n = 1;
	if (n)
		word |= SEAM_XRAY_ENTRY_ARGS << 1;
	return put(word, arguments, n);
}

/* @arguments: NULL: not known. */
static inline void enter(uint32_t word, uint64_t frame, bool is_inlined,
			 const uint64_t *arguments)
{
	uint32_t function = word >> 4;
	unsigned int of = seam_fdr_triggers_of(function);
	uint64_t tsc = 0;

	if (!is_too_deep(frame, is_inlined))
		tsc = arguments ? put_entry(word, arguments) :
				  put(word, NULL, 0);
	if (of)
		enter_triggers(of, function, frame, tsc ? tsc : seam_fdr_tsc());
}

/* Record the exit, or take the entry back.  The time; 0: not known. */
static inline uint64_t put_end(uint32_t word)
{
	uint64_t tsc;

	/* a tail exit is taken back with the call that follows */
	if (!seam_fdr_min_ticks || action_of(word) != SEAM_XRAY_EXIT)
		return put(word, NULL, 0);
	tsc = seam_fdr_put_end(word, n_arguments);
	if (tsc == 0 && !seam_fdr_take_back(word >> 4, seam_fdr_min_ticks))
		return put(word, NULL, 0);
	return tsc == SEAM_FDR_TAKEN_BACK ? 0 : tsc;
}

void seam_fdr_check_entry(uint32_t word, uint64_t frame,
			  const uint64_t *arguments)
{
	enter(word, frame, false, arguments);
}

void seam_fdr_check_end(uint32_t word, uint64_t frame)
{
	uint32_t function = word >> 4;
	unsigned int of = seam_fdr_triggers_of(function);
	struct seam_fdr_filter *f = max_depth ? filter() : NULL;
	uint64_t tsc = 0;

	if (!f || depth_leave(f, frame))
		tsc = put_end(word);
	if (of)
		leave_triggers(of, function, frame, tsc ? tsc : seam_fdr_tsc());
}

void seam_fdr_check_compiled(uint32_t word, uint64_t frame)
{
	if (action_of(word) == SEAM_XRAY_ENTRY)
		enter(word, frame, true, NULL);
	else
		seam_fdr_check_end(word, frame);
}

/* ---- at the start ---- */

static uint64_t clock_ns(void)
{
	struct timespec now;

	seam_fdr_clock(&now);
	return (uint64_t)now.tv_sec * SEAM_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* To 0.1 %: two readings of both clocks. */
static uint64_t measure_ticks_per_s(void)
{
	uint64_t begin_ns = clock_ns(), begin = seam_fdr_tsc(), ns;

	do
		ns = clock_ns() - begin_ns;
	while (ns < SEAM_NS_PER_MS);
	return (seam_fdr_tsc() - begin) * SEAM_NS_PER_S / ns;
}

/* min= and depth= do not apply to functions without exit sleds. */
static void use_trampolines(const struct seam_fdr_options *o)
{
	static bool is_again;
	bool all = o->depth || (o->n_triggers && is_again);
	bool entry = all || o->n_arguments, end = all || o->min_ns;
	bool entry_only = (o->n_arguments || o->n_triggers) && !o->min_ns &&
			  !o->depth;

	seam_fdr_used = (struct seam_fdr_trampolines) {
		.entry = entry ? seam_fdr_checked_entry : seam_fdr_entry,
		.exit = end ? seam_fdr_checked_exit : seam_fdr_exit,
		.tail = all ? seam_fdr_checked_tail : seam_fdr_tail,
		.entry_only = entry_only ? seam_fdr_checked_entry_only :
					   seam_fdr_entry_only,
	};
	is_again = true;
}

int seam_fdr_check_init(const struct seam_fdr_options *o)
{
	uint64_t ticks_per_s = o->min_ns || o->n_triggers ?
			       measure_ticks_per_s() : 0;

	seam_fdr_min_ticks = ticks_of(o->min_ns, ticks_per_s);
	max_depth = o->depth;
	n_arguments = o->n_arguments < SEAM_XRAY_MAX_ARGUMENTS ?
		      o->n_arguments : SEAM_XRAY_MAX_ARGUMENTS;
	use_trampolines(o);
	return init_triggers(o, ticks_per_s);
}

bool seam_fdr_is_checked(uint32_t function)
{
	return max_depth || seam_fdr_min_ticks ||
	       seam_fdr_triggers_of(function);
}

/* ---- the end of a short call ---- */

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_INSIDE = 16,	/* tail calls inside one another */
};

/* Backwards through the records of a chunk. */
struct backward {
	const struct seam_fdr_state *state;
	uint64_t cursor, at;	/* at the start; after the next record */
	uint64_t tsc;		/* of the record before at */
	uint64_t now, max_ticks;
	uint32_t function;	/* that ends */
	bool found;		/* its entry */
	uint32_t inside[MAX_INSIDE];	/* ended, their entries to be found */
	unsigned int n_inside;
	/* from here to the cursor all can be taken back; time of the record
	 * before */
	uint64_t to, to_tsc;
};

/* Word @n before @at; 0 in another chunk, or in the preamble. */
static uint64_t word_before(const struct backward *w, uint64_t at,
			    unsigned int n)
{
	const struct seam_fdr_area *area = &w->state->area;

	if (at % CHUNK < SEAM_XRAY_PREAMBLE_BYTES + n * 8)
		return 0;
	at = (at - n * 8) & (area->size - 1);
	return *(const uint64_t *)(const void *)(area->bytes + at);
}

/*
 * The function record before w->at, and its words, those of arguments included.
 * An argument's second word has zeroes where a function record has its delta.
 */
static uint64_t record_before(const struct backward *w, unsigned int *n_words)
{
	unsigned int n = 0;

	while (n < 2 * SEAM_XRAY_MAX_ARGUMENTS &&
	       word_before(w, w->at, n + 1) >> 8 == 0 &&
	       (word_before(w, w->at, n + 2) & 0xff) == SEAM_XRAY_CALL_ARGUMENT)
		n += 2;
	*n_words = n + 1;
	return word_before(w, w->at, n + 1);
}

static void step(struct backward *w, uint64_t record, unsigned int n_words)
{
	w->at -= n_words * 8;
	w->tsc -= record >> 32;
	if (w->found && w->n_inside == 0) {
		w->to = w->at;
		w->to_tsc = w->tsc;
	}
}

static bool take_entry(struct backward *w, uint32_t function)
{
	if (w->now - w->tsc >= w->max_ticks)
		return false;
	if (w->n_inside > 0)
		return w->inside[--w->n_inside] == function;
	if (w->found || function != w->function)
		return false;
	w->found = true;
	return true;
}

/* Step back one record; false if that record must not be removed. */
static bool walk_back(struct backward *w)
{
	unsigned int n_words;
	uint64_t record;
	uint32_t action;

	/* a payload can look like anything */
	if (!((w->at ^ w->state->event_end) & SEAM_RING_AUX_POSITION))
		return false;
	record = record_before(w, &n_words);
	action = (uint32_t)record & 15;
	/* metadata before the record, or a part of metadata */
	if (record >> 32 == 0 && w->at != w->state->entry_end)
		return false;
	if (action == SEAM_XRAY_TAIL_EXIT << 1) {
		if (w->n_inside == MAX_INSIDE)
			return false;
		w->inside[w->n_inside++] = (uint32_t)record >> 4;
	} else if ((action != SEAM_XRAY_ENTRY << 1 &&
		    action != SEAM_XRAY_ENTRY_ARGS << 1) ||
		   !take_entry(w, (uint32_t)record >> 4)) {
		return false;
	}
	step(w, record, n_words);
	return record >> 32 != 0;
}

static bool try_once(struct seam_fdr_state *state, uint32_t function,
		     uint64_t max_ticks)
{
	uint64_t cursor = atomic_load_explicit(state->area.cursor,
					       memory_order_relaxed);
	const struct seam_fdr_at *last = &state->at[cursor >> 3 & 1];
	struct backward w = {
		.state = state, .cursor = cursor, .at = cursor,
		.tsc = last->tsc, .max_ticks = max_ticks, .function = function,
	};
	struct seam_fdr_put put = {
		.state = state, .cursor = cursor, .cpu = seam_fdr_rseq_cpu(),
		.state_cpu = last->cpu, .held = state->area.held,
	};

	w.now = seam_fdr_tsc();
	while (walk_back(&w))
		;
	if (!w.to)
		return false;
	put.end = w.to + SEAM_RING_AUX_REWOUND;
	put.tsc = w.to_tsc;
	return seam_fdr_commit(&put);
}

bool seam_fdr_take_back(uint32_t function, uint64_t max_ticks)
{
	struct seam_fdr_state *state = seam_fdr_self.state;
	uint64_t blocked;
	bool done;

	if (!state->has_area)
		return false;
	/* a handler's records may be the last by now */
	if (seam_fdr_rseq_is_active())
		return try_once(state, function, max_ticks);
	blocked = seam_fdr_block();
	done = try_once(state, function, max_ticks);
	seam_fdr_unblock(blocked);
	return done;
}
