/* SPDX-License-Identifier: MIT */
/* turn.c - a lock that forks, signals and lost owners cannot wedge; turn.h */
#include "target/jit/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * The word: pid << 32 | WAITED_FOR or 0 | tid of the owner, 0: free.  All in
 * one, so that a handler which interrupts its own thread at any instruction
 * sees whose turn it is.
 */
#define WAITED_FOR UINT32_C(0x80000000)

enum { NAP_NS = 10 * 1000 * 1000, PATIENCE_NS = 1000 * 1000 * 1000 };

/*
 * A page that the kernel empties in a child (Linux 4.14): it holds our pid,
 * or 0 right after a fork.  NULL where that cannot be had.
 * Any thread writes it, all the same value.
 */
static _Atomic(_Atomic int32_t *) pid_page;

/* The thread's id and the process it was asked in: a fork makes it stale. */
static __thread struct { int32_t pid, tid; } self
	__attribute__((tls_model("initial-exec")));

void seam_turn_init(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic int32_t *none = NULL;
	void *page;

	if (atomic_load(&pid_page))
		return;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	if (madvise(page, size, MADV_WIPEONFORK) ||
	    !atomic_compare_exchange_strong(&pid_page, &none, page))
		munmap(page, size);
}

int32_t seam_turn_pid(void)
{
	/* relaxed: the page is filled before it is known to others */
	_Atomic int32_t *page = atomic_load_explicit(&pid_page,
						     memory_order_relaxed);
	int32_t pid;

	if (!page)
		return getpid();
	pid = atomic_load_explicit(page, memory_order_relaxed);
	if (!pid) {
		pid = getpid();
		atomic_store_explicit(page, pid, memory_order_relaxed);
	}
	return pid;
}

int32_t seam_turn_tid(void)
{
	int32_t pid = seam_turn_pid();

	if (self.pid != pid) {
		self.tid = (int32_t)syscall(SYS_gettid);
		self.pid = pid;
	}
	return self.tid;
}

/* The half of the word that is waited on. */
static uint32_t *state_of(struct seam_turn *turn)
{
	uint32_t *halves = (uint32_t *)(uintptr_t)&turn->word;

	return halves + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Take the turn as @mine, or have what is in its way in *@seen. */
static bool try_take(struct seam_turn *turn, uint64_t mine, uint64_t *seen)
{
	*seen = atomic_load_explicit(&turn->word, memory_order_relaxed);
	/* A word of another pid was taken before a fork: nobody has it. */
	while (*seen >> 32 != mine >> 32 || !(uint32_t)*seen) {
		/* acquire: pairs with the release in seam_turn_give() */
		if (atomic_compare_exchange_weak_explicit(
				&turn->word, seen, mine,
				memory_order_acquire, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Say that somebody waits, and sleep until the turn may be free. */
static void wait_a_little(struct seam_turn *turn, uint64_t seen)
{
	struct timespec timeout = { .tv_nsec = NAP_NS };
	uint64_t waited_for = seen | WAITED_FOR;

	if (seen == waited_for ||
	    atomic_compare_exchange_strong(&turn->word, &seen, waited_for))
		syscall(SYS_futex, state_of(turn), FUTEX_WAIT_PRIVATE,
			(uint32_t)waited_for, &timeout, NULL, 0);
}

int seam_turn_take(struct seam_turn *turn)
{
	uint32_t tid = (uint32_t)seam_turn_tid();
	uint64_t mine = (uint64_t)(uint32_t)seam_turn_pid() << 32 | tid;
	uint64_t since = 0;		/* ns, when waiting began; 0: not yet */
	uint64_t seen;

	/* Who waited may not be alone in that: keep the mark. */
	while (!try_take(turn, since ? mine | WAITED_FOR : mine, &seen)) {
		if (((uint32_t)seen & ~WAITED_FOR) == tid)
			return -EDEADLK;
		/* By the clock: others may go first any number of times. */
		if (!since)
			since = seam_clock_ns();
		else if (seam_clock_ns() - since > PATIENCE_NS)
			return -EBUSY;
		wait_a_little(turn, seen);
	}
	return 0;
}

void seam_turn_give(struct seam_turn *turn)
{
	/* release: pairs with the acquire in try_take() */
	uint64_t was = atomic_exchange_explicit(&turn->word, 0,
						memory_order_release);

	if ((uint32_t)was & WAITED_FOR)
		syscall(SYS_futex, state_of(turn), FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}
