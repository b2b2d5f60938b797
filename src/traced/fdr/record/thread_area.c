/* SPDX-License-Identifier: MIT */
/* thread_area.c - see thread_area.h */
#include "traced/fdr/record/thread_area.h"

#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/thread_states.h"

#include <errno.h>
#include <pthread.h>

enum {
	RETRY_TICKS = 1 << 24,		/* some milliseconds */
	REAP_TICKS = 1 << 26,
};

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
	int r = is_ready ? 0 : seam_fdr_states_init();

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
	       seam_fdr_states_reap(seam_fdr_source->close);
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
		seam_fdr_states_begin_child(state);
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

	/* what it calls may have sleds, and come here */
	state->retry_tsc = seam_fdr_tsc() + RETRY_TICKS;
	if (seam_fdr_source->claim(state->tid, area) &&
	    (!reap() || seam_fdr_source->claim(state->tid, area)))
		return false;
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
		done = state->has_area || claim_area(state);
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

	seam_fdr_states_begin_child(state == &no_state ? NULL : state);
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
			seam_fdr_source->close(&state->area);
		seam_fdr_n_in_source--;
		seam_fdr_states_give(state);
	}
	seam_fdr_unblock(blocked);
}
