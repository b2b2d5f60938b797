/* SPDX-License-Identifier: MIT */
/* thread_area.c - see thread_area.h */
#include "target/fdr/thread_area.h"

#include "target/fdr/rseq.h"
#include "target/fdr/system.h"
#include "target/fdr/trampolines.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

enum {
	N_STATES = 1 << 14,		/* threads that record at a time */
	PER_WORD = 64,
	RETRY_TICKS = 1 << 24,		/* some milliseconds */
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

const struct seam_fdr_source *seam_fdr_source;

/* trampolines.S wants the state aligned: 32. */
struct place {
	struct seam_fdr_state state;
} __attribute__((aligned(64)));

static struct place *places;
static _Atomic uint64_t used[N_STATES / PER_WORD];
static pthread_key_t key;

static void end_thread(void *unused)
{
	(void)unused;
	seam_fdr_thread_end();
}

int seam_fdr_thread_init(const struct seam_fdr_source *source)
{
	void *p;
	int r;

	if (places) {
		seam_fdr_source = source;
		return 0;
	}
	p = mmap(NULL, N_STATES * sizeof(*places), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	if (madvise(p, N_STATES * sizeof(*places), MADV_WIPEONFORK)) {
		r = -errno;
		munmap(p, N_STATES * sizeof(*places));
		return r;
	}
	r = -pthread_key_create(&key, end_thread);
	if (r < 0) {
		munmap(p, N_STATES * sizeof(*places));
		return r;
	}
	seam_fdr_call_saved_init();
	places = p;
	seam_fdr_source = source;
	return 0;
}

static struct seam_fdr_state *take_state(void)
{
	for (unsigned int i = 0; i < N_STATES / PER_WORD; i++) {
		/* relaxed, both: a state has one thread, and no content */
		uint64_t word = atomic_load_explicit(&used[i],
						     memory_order_relaxed);

		while (~word) {
			int bit = __builtin_ctzll(~word);

			if (atomic_compare_exchange_weak_explicit(
					&used[i], &word, word | 1ULL << bit,
					memory_order_relaxed,
					memory_order_relaxed))
				return &places[i * PER_WORD +
					       (unsigned int)bit].state;
		}
	}
	return NULL;
}

static void give_state(struct seam_fdr_state *state)
{
	size_t i = (size_t)((struct place *)(void *)state - places);

	*state = (struct seam_fdr_state) { 0 };
	/* release: the zeroes come before it */
	atomic_fetch_and_explicit(&used[i / PER_WORD],
				  ~(1ULL << i % PER_WORD),
				  memory_order_release);
}

/* The caller's own, used or wiped by a fork, or a new one; NULL: none left. */
static struct seam_fdr_state *own_state(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (state == &no_state)
		state = take_state();
	if (!state || state->tid)
		return state;
	/* in a child its parent's area must not be written any more */
	seam_fdr_self = (struct seam_fdr_self) NO_AREA;
	state->tid = (uint32_t)seam_fdr_syscall4(SYS_gettid, 0, 0, 0, 0);
	state->pid = (uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0);
	seam_fdr_self.state = state;
	return state;
}

static bool claim_area(struct seam_fdr_state *state)
{
	struct seam_fdr_area *area = &state->area;

	if (seam_fdr_source->claim(state->tid, area)) {
		state->retry_tsc = seam_fdr_tsc() + RETRY_TICKS;
		return false;
	}
	/* relaxed: the thread's own */
	state->wakeup_at = atomic_load_explicit(area->cursor,
						memory_order_relaxed);
	state->has_area = true;
	seam_fdr_self = (struct seam_fdr_self) {
		.cursor = area->cursor, .area = area->bytes,
		.mask = area->size - 1, .state = state,
	};
	pthread_setspecific(key, &seam_fdr_self);
	return true;
}

static uint64_t begin_thread(void *unused)
{
	int error = errno;
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = own_state();
	bool done = false;

	(void)unused;
	if (state) {
		seam_fdr_rseq_register();
		done = state->has_area || claim_area(state);
	}
	seam_fdr_unblock(blocked);
	errno = error;
	return done;
}

struct seam_fdr_state *seam_fdr_thread(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (state->has_area)
		return state;
	if (!seam_fdr_source || (state->tid &&
				 seam_fdr_tsc() < state->retry_tsc))
		return NULL;
	return seam_fdr_call_saved(begin_thread, NULL) ? seam_fdr_self.state :
							 NULL;
}

void seam_fdr_thread_end(void)
{
	uint64_t blocked = seam_fdr_block();
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (state != &no_state) {
		if (state->has_area)
			seam_fdr_source->close(&state->area);
		seam_fdr_self = (struct seam_fdr_self) NO_AREA;
		give_state(state);
	}
	seam_fdr_unblock(blocked);
}
