/* SPDX-License-Identifier: MIT */
/* thread_area.c - see fdr_thread.h */
#include "traced/fdr/record/fdr_thread.h"

#include <errno.h>
#include <pthread.h>

#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/xray_functions.h"

enum { RETRY_TICKS = 1 << 24 };		/* some milliseconds */

/*
 * ---- the states of all threads ----
 *
 * The bits of states in use are outside of the memory that a fork zeroes, so a
 * forked child never gives the state of its first thread to another thread.
 * The states of its parent's other threads stay in use: zero pages.
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

/* The process whose memory this is; 0 in a forked child, until it asks. */
static _Atomic uint32_t *memory_pid;
/*
 * Places for PER_WORD states each, mapped as threads need them; any thread sets
 * a place, once.  In a forked child places are at the same addresses, zeroed.
 */
static void *_Atomic blocks[N_WORDS];
static _Atomic uint64_t used[N_WORDS];

uint32_t seam_fdr_states_pid(void)
{
	uint32_t own = (uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0);
	uint32_t pid = 0;

	return !memory_pid ||
	       atomic_compare_exchange_strong(memory_pid, &pid, own) ? own :
								       pid;
}

/* A zeroed state; NULL: N_STATES threads have one. */
static struct seam_fdr_state *take_state(void)
{
	for (unsigned int i = 0; i < N_WORDS; i++) {
		/* relaxed: the exchange decides */
		uint64_t word = atomic_load_explicit(&used[i],
						     memory_order_relaxed);
		struct place *places = NULL;

		if (~word)
			places = seam_fdr_map_once(&blocks[i],
						   PER_WORD * sizeof(*places),
						   seam_fdr_map_per_process);

		while (places && ~word) {
			int bit = __builtin_ctzll(~word);

			/* acquire: pairs with the release of give_state() */
			if (atomic_compare_exchange_weak_explicit(
					&used[i], &word, word | 1ULL << bit,
					memory_order_acquire,
					memory_order_relaxed))
				return &places[bit].state;
		}
	}
	return NULL;
}

static void give_state(struct seam_fdr_state *state)
{
	unsigned int i = 0;
	uintptr_t at;

	for (;; i++) {
		at = (uintptr_t)state - (uintptr_t)atomic_load(&blocks[i]);
		if (at < PER_WORD * sizeof(struct place))
			break;
	}
	*state = (struct seam_fdr_state) { 0 };
	/* release: the zeroes come before it */
	atomic_fetch_and_explicit(&used[i],
				  ~(1ULL << at / sizeof(struct place)),
				  memory_order_release);
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

/*
 * Not 0 while the thread is in the source, with signals blocked.  What the
 * source calls may be the program's own, with sleds: such a record gets no new
 * area.
 */
static __thread uint32_t n_in_source
	__attribute__((tls_model("initial-exec")));

const struct seam_fdr_source *seam_fdr_source;
_Atomic uint64_t *seam_fdr_n_lost;
_Atomic uint32_t seam_fdr_connection;

_Atomic bool seam_fdr_is_quiet;

static pthread_key_t key;
static bool has_key;

static void end_thread(void *unused)
{
	(void)unused;
	seam_fdr_thread_end();
}

/*
 * When the library is loaded, for a small number: setting a value of a later
 * key allocates, which a trampoline inside of the program's malloc() may not.
 * Without a key threads end unnoticed, and their areas are not used again.
 * Source: glibc, nptl/pthread_setspecific.c, PTHREAD_KEY_2NDLEVEL_SIZE
 */
__attribute__((constructor))
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
	if (!memory_pid) {
		memory_pid = seam_fdr_map_per_process(sizeof(*memory_pid));
		seam_fdr_call_saved_init();
	}
	if (!memory_pid)
		return -ENOMEM;
	(void)seam_fdr_states_pid();
	seam_fdr_source = source;
	return 0;
}

/*
 * The caller's own state, used or wiped by a fork, or a new state.  NULL: no
 * state is left; or the caller is a child of vfork(), whose thread-local memory
 * is its parent's.
 */
static struct seam_fdr_state *own_state(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;
	uint32_t pid = seam_fdr_states_pid();

	if ((uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0) != pid)
		return NULL;
	if (state == &no_state)
		state = take_state();
	if (!state || state->tid)
		return state;
	/* a child must not write to its parent's area */
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
	/* what the source calls may have sleds, and come here */
	state->retry_tsc = seam_fdr_tsc() + RETRY_TICKS;
	if (seam_fdr_source->claim(state->tid, area))
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
	if (n_in_source++ == 0 && seam_fdr_source)
		state = own_state();
	if (state) {
		seam_fdr_rseq_register();
		done = seam_fdr_has_area(state) || claim_area(state);
	}
	n_in_source--;
	seam_fdr_unblock(blocked);
	errno = error;
	return done;
}

void seam_fdr_thread_end(void)
{
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (state != &no_state) {
		seam_fdr_self = (struct seam_fdr_self) NO_AREA;
		n_in_source++;
		if (seam_fdr_has_area(state))
			seam_fdr_source->close(&state->area);
		n_in_source--;
		give_state(state);
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
				     seam_xray_write_announcement(
					payload, sizeof(payload), trigger));
}
