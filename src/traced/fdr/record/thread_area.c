/* SPDX-License-Identifier: MIT */
/* thread_area.c - see thread_area.h */
#include "traced/fdr/record/thread_area.h"

#include <errno.h>
#include <pthread.h>

#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/xray_functions.h"

enum {
	RETRY_TICKS = 1 << 24,		/* some milliseconds */
	REAP_TICKS = 1 << 26,
};

/*
 * ---- the states of all threads ----
 *
 * Which of them are in use is noted outside of the memory that a fork zeroes: a
 * child does not reuse a state that a thread of its own has; those of its
 * parent's other threads are freed by states_begin_child().
 */

enum {
	N_STATES = 1 << 14,		/* threads that record at a time */
	PER_WORD = 64,
	N_WORDS = N_STATES / PER_WORD,
};

/* trampolines.S wants the state aligned: 32. */
struct place {
	struct seam_fdr_state state;
} __attribute__((aligned(64)));

/* Zeroes in a forked child. */
struct memory {
	_Atomic uint32_t pid;		/* whose it is; 0: not noted yet */
	/* those that threads of this process have tried to take, or more */
	_Atomic uint64_t tried[N_WORDS];
};

static struct memory *memory;
/*
 * Places for PER_WORD states each, mapped as threads need them; any thread sets
 * one, once.  In a forked child they have the same addresses, and zeroes.
 */
static struct place *_Atomic blocks[N_WORDS];
/* in a forked child as in its parent, but for states_begin_child() */
static _Atomic uint64_t used[N_WORDS];

/* 0 or -ENOMEM, also of a kernel before 4.14, which cannot do it. */
static int states_init(void)
{
	memory = seam_fdr_map_per_process(sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	(void)seam_fdr_states_pid();
	return 0;
}

uint32_t seam_fdr_states_pid(void)
{
	uint32_t own = (uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0);
	uint32_t pid = 0;

	return !memory || atomic_compare_exchange_strong(&memory->pid, &pid,
							 own) ? own : pid;
}

static struct place *load_block(unsigned int i)
{
	/* acquire: pairs with the release in block() */
	return atomic_load_explicit(&blocks[i], memory_order_acquire);
}

/* NULL: no memory. */
static struct place *block(unsigned int i)
{
	struct place *found = load_block(i), *mapped;

	if (found)
		return found;
	mapped = seam_fdr_map_per_process(PER_WORD * sizeof(*mapped));
	/* release: pairs with the acquire in load_block() */
	if (!mapped || atomic_compare_exchange_strong_explicit(
				&blocks[i], &found, mapped,
				memory_order_acq_rel, memory_order_acquire))
		return mapped;
	seam_fdr_unmap(mapped, PER_WORD * sizeof(*mapped));
	return found;
}

/* N_STATES: of no block. */
static size_t number_of(const struct seam_fdr_state *state)
{
	for (unsigned int i = 0; i < N_WORDS; i++) {
		uintptr_t at = (uintptr_t)state - (uintptr_t)load_block(i);

		if (at < PER_WORD * sizeof(struct place))
			return i * PER_WORD + at / sizeof(struct place);
	}
	return N_STATES;
}

struct seam_fdr_state *seam_fdr_states_take(void)
{
	for (unsigned int i = 0; i < N_WORDS; i++) {
		/* relaxed: the exchange decides */
		uint64_t word = atomic_load_explicit(&used[i],
						     memory_order_relaxed);
		struct place *places = ~word ? block(i) : NULL;

		while (places && ~word) {
			int bit = __builtin_ctzll(~word);

			/* before it is used: else keep_own() takes it away */
			atomic_fetch_or_explicit(&memory->tried[i],
						 1ULL << bit,
						 memory_order_relaxed);
			/*
			 * acquire: pairs with the release of give(); release:
			 * with the acquire of keep_own()
			 */
			if (atomic_compare_exchange_weak_explicit(
					&used[i], &word, word | 1ULL << bit,
					memory_order_acq_rel,
					memory_order_relaxed))
				return &places[bit].state;
		}
	}
	return NULL;
}

static void states_give(struct seam_fdr_state *state)
{
	size_t i = number_of(state);

	*state = (struct seam_fdr_state) { 0 };
	/* release: the zeroes come before it */
	atomic_fetch_and_explicit(&used[i / PER_WORD],
				  ~(1ULL << i % PER_WORD),
				  memory_order_release);
}

/* Of word @i only those stay used that threads of this process have taken. */
static void keep_own(unsigned int i)
{
	/* acquire: a thread that has one has tried before */
	uint64_t word = atomic_load_explicit(&used[i], memory_order_acquire);
	uint64_t own;

	do {
		own = word & atomic_load_explicit(&memory->tried[i],
						  memory_order_relaxed);
	} while (own != word &&
		 /* release: as in give() */
		 !atomic_compare_exchange_weak_explicit(
				&used[i], &word, own, memory_order_acq_rel,
				memory_order_acquire));
}

/*
 * In a forked child, by the thread that forked: those of its parent's other
 * threads are free.  @own is its own, from its parent; NULL: it has none, or
 * one that it has taken in this process.  From any context, also again, and
 * while threads of this process take and give.
 */
static void states_begin_child(const struct seam_fdr_state *own)
{
	size_t number = own ? number_of(own) : N_STATES;

	if (!memory)
		return;
	if (number < N_STATES)
		atomic_fetch_or_explicit(&memory->tried[number / PER_WORD],
					 1ULL << number % PER_WORD,
					 memory_order_relaxed);
	for (unsigned int i = 0; i < N_WORDS; i++)
		keep_own(i);
}

/* Whether @state was a dead thread's, and is the caller's now. */
static bool take_dead(struct seam_fdr_state *state)
{
	uint32_t tid = __atomic_load_n(&state->tid, __ATOMIC_RELAXED);

	return tid && seam_fdr_syscall4(SYS_tgkill, state->pid, tid, 0, 0) ==
		      -ESRCH &&
	       __atomic_compare_exchange_n(&state->tid, &tid, 0, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/*
 * Give those of threads that are no more, after @close of the areas they had.
 * Whether there were any.  Cost: a system call for each thread.
 */
static bool states_reap(void (*close)(struct seam_fdr_area *area))
{
	bool any = false;

	for (unsigned int i = 0; i < N_WORDS; i++) {
		/* relaxed: a thread's own state is not a dead one's */
		uint64_t word = atomic_load_explicit(&used[i],
						     memory_order_relaxed);

		for (; word; word &= word - 1) {
			struct seam_fdr_state *state =
				&load_block(i)[__builtin_ctzll(word)].state;

			if (!take_dead(state))
				continue;
			if (state->has_area)
				close(&state->area);
			states_give(state);
			any = true;
		}
	}
	return any;
}

/* ---- areas ---- */

/* Before the first record: a cursor at the start of a chunk, on no CPU. */
static _Atomic uint64_t no_cursor;
static struct seam_fdr_state no_state __attribute__((aligned(64)));
static uint64_t no_area;

#define NO_AREA {							\
	.cursor = &no_cursor, .area = (uint8_t *)&no_area,		\
	.state = &no_state,						\
}

__thread struct seam_fdr_self seam_fdr_self
	__attribute__((tls_model("initial-exec"))) = NO_AREA;

__thread uint32_t seam_fdr_n_in_source
	__attribute__((tls_model("initial-exec")));

const struct seam_fdr_source *seam_fdr_source;
_Atomic uint64_t *seam_fdr_n_lost;
_Atomic uint32_t seam_fdr_connection;

_Atomic bool seam_fdr_is_quiet;

static pthread_key_t key;
static bool has_key;
static _Atomic uint64_t reap_tsc;	/* when to look for dead threads */

static void end_thread(void *unused)
{
	(void)unused;
	seam_fdr_thread_end();
}

/*
 * Setting a value of a later key allocates, which a trampoline inside of the
 * program's malloc() may not.  Without a key threads end unnoticed.
 * Source: glibc, nptl/pthread_setspecific.c, PTHREAD_KEY_2NDLEVEL_SIZE
 */
static void make_key(void)
{
	enum { FIRST_LEVEL = 32 };

	if (pthread_key_create(&key, end_thread))
		return;
	has_key = key < FIRST_LEVEL;
	if (!has_key)
		pthread_key_delete(key);
}

int seam_fdr_thread_init(const struct seam_fdr_source *source)
{
	static bool is_ready;
	int r = is_ready ? 0 : states_init();

	if (r < 0)
		return r;
	if (!is_ready) {
		make_key();
		seam_fdr_call_saved_init();
	}
	is_ready = true;
	seam_fdr_source = source;
	return 0;
}

static void close_area(struct seam_fdr_area *area)
{
	if (seam_fdr_is_connected(area))
		seam_fdr_source->close(area);
}

/* Close areas of threads that ended unnoticed; at intervals, for its cost. */
static bool reap(void)
{
	uint64_t now = seam_fdr_tsc();
	/* relaxed, both: a time */
	uint64_t next = atomic_load_explicit(&reap_tsc, memory_order_relaxed);

	return now >= next &&
	       atomic_compare_exchange_strong_explicit(
			&reap_tsc, &next, now + REAP_TICKS,
			memory_order_relaxed, memory_order_relaxed) &&
	       states_reap(close_area);
}

/*
 * The caller's own, used or wiped by a fork, or a new one.  NULL: none is left;
 * or it is a child of vfork(), whose thread-local memory is its parent's.
 */
static struct seam_fdr_state *own_state(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;
	uint32_t pid = seam_fdr_states_pid();

	if ((uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0) != pid)
		return NULL;
	if (state == &no_state)
		state = seam_fdr_states_take();
	if (!state && reap())
		state = seam_fdr_states_take();
	if (!state || state->tid)
		return state;
	if (state == seam_fdr_self.state)
		states_begin_child(state);
	/* in a child its parent's area must not be written any more */
	seam_fdr_self = (struct seam_fdr_self) NO_AREA;
	state->pid = pid;
	state->tid = (uint32_t)seam_fdr_syscall4(SYS_gettid, 0, 0, 0, 0);
	seam_fdr_self.state = state;
	return state;
}

static bool claim_area(struct seam_fdr_state *state)
{
	struct seam_fdr_area *area = &state->area;

	/* of a connection before */
	state->has_area = false;
	state->event_end = state->entry_end = 0;
	/* what it calls may have sleds, and come here */
	state->retry_tsc = seam_fdr_tsc() + RETRY_TICKS;
	if (seam_fdr_source->claim(state->tid, area) &&
	    (!reap() || seam_fdr_source->claim(state->tid, area)))
		return false;
	area->connection = atomic_load(&seam_fdr_connection);
	state->has_area = true;
	seam_fdr_self = (struct seam_fdr_self) {
		.cursor = area->cursor, .area = area->bytes,
		.mask = area->size - 1, .state = state,
	};
	if (has_key)
		pthread_setspecific(key, &seam_fdr_self);
	return true;
}

uint64_t seam_fdr_begin_thread(void *unused)
{
	int error = errno;
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = NULL;
	bool done = false;

	(void)unused;
	if (seam_fdr_n_in_source++ == 0 && seam_fdr_source)
		state = own_state();
	if (state) {
		seam_fdr_rseq_register();
		done = seam_fdr_has_area(state) || claim_area(state);
	}
	seam_fdr_n_in_source--;
	seam_fdr_unblock(blocked);
	errno = error;
	return done;
}

void seam_fdr_thread_begin_child(void)
{
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = seam_fdr_self.state;

	states_begin_child(state == &no_state ? NULL : state);
	seam_fdr_unblock(blocked);
}

void seam_fdr_thread_end(void)
{
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (state != &no_state) {
		seam_fdr_self = (struct seam_fdr_self) NO_AREA;
		seam_fdr_n_in_source++;
		if (state->has_area)
			close_area(&state->area);
		seam_fdr_n_in_source--;
		states_give(state);
	}
	seam_fdr_unblock(blocked);
}

/* ---- what trampolines call with vector registers saved ---- */

uint64_t seam_fdr_wake(void *of)
{
	const struct seam_fdr_area *area = of;

	return seam_ring_wakeup_send(area->wakeup);
}

uint64_t seam_fdr_send_trigger(void *trigger)
{
	struct seam_fdr_area *area = &seam_fdr_self.state->area;
	uint8_t payload[64];

	return seam_fdr_source->send &&
	       seam_fdr_source->send(area, payload,
				     seam_xray_write_trigger(payload,
							     sizeof(payload),
							     trigger));
}
