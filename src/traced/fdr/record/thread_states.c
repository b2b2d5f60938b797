/* SPDX-License-Identifier: MIT */
/* thread_states.c - see thread_states.h */
#include "traced/fdr/record/thread_states.h"

#include "traced/fdr/record/map_memory.h"
#include "traced/fdr/record/system.h"

#include <errno.h>

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
/* in a forked child as in its parent, but for seam_fdr_states_begin_child() */
static _Atomic uint64_t used[N_WORDS];

int seam_fdr_states_init(void)
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

void seam_fdr_states_give(struct seam_fdr_state *state)
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

void seam_fdr_states_begin_child(const struct seam_fdr_state *own)
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

bool seam_fdr_states_reap(void (*close)(struct seam_fdr_area *area))
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
			seam_fdr_states_give(state);
			any = true;
		}
	}
	return any;
}
