/* SPDX-License-Identifier: MIT */
/* turn.c - a lock that forks, signals and lost owners cannot wedge; turn.h */
#include "target/jit/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * The word, 0 when it is free; all in one, so that a handler which interrupts
 * its own thread at any instruction sees whose turn it is:
 *
 *	pid 22 bits | serial 19 bits | WAITED_FOR 1 bit | tid 22 bits
 *
 * The serial tells threads apart that had one tid after another.  The half
 * that is waited on has the tid, the mark and 9 bits of the serial.
 * Source: PID_MAX_LIMIT is 2^22, linux/threads.h.
 */
enum { TID_BITS = 22, SERIAL_BITS = 19, SERIAL_AT = TID_BITS + 1,
       PID_AT = SERIAL_AT + SERIAL_BITS };

#define WAITED_FOR (UINT64_C(1) << TID_BITS)
#define ID_MASK (WAITED_FOR - 1)

enum {
	NAP_NS = 10 * 1000 * 1000,
	PATIENCE_NS = 1000 * 1000 * 1000,
	STAT_BYTES = 256,	/* of /proc/.../stat: the state is in them */
};

/*
 * A page that the kernel empties in a child (Linux 4.14): it holds our pid,
 * or 0 right after a fork.  NULL where that cannot be had.
 * Any thread writes it, all the same value.
 */
static _Atomic(_Atomic int32_t *) pid_page;

/*
 * The thread's id and the process it was asked in: a fork makes it stale.
 * A new thread has zeros here, also where its tid was another's before.
 */
static __thread struct { int32_t pid, tid; uint32_t serial; } self
	__attribute__((tls_model("initial-exec")));

static _Atomic uint32_t n_serials;	/* any thread takes the next */

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
		/* relaxed: each is another, nothing is ordered by them */
		self.serial = atomic_fetch_add_explicit(
				&n_serials, 1, memory_order_relaxed);
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

/* ---- the word ---- */

static uint64_t own_word(void)
{
	uint64_t tid = (uint32_t)seam_turn_tid() & ID_MASK;
	uint64_t serial = self.serial & ((1u << SERIAL_BITS) - 1);

	return ((uint64_t)(uint32_t)self.pid & ID_MASK) << PID_AT |
	       serial << SERIAL_AT | tid;
}

static bool is_same_thread(uint64_t a, uint64_t b)
{
	return ((a ^ b) & ~WAITED_FOR) == 0;
}

/* A word of another pid was taken before a fork: nobody has it. */
static bool is_taken(uint64_t word, uint64_t mine)
{
	return word && word >> PID_AT == mine >> PID_AT;
}

/* Put @mine in the place of *@seen; what is there instead goes to *@seen. */
static bool replace(struct seam_turn *turn, uint64_t *seen, uint64_t mine)
{
	/* acquire: pairs with the release in seam_turn_give() */
	return atomic_compare_exchange_strong_explicit(
			&turn->word, seen, mine, memory_order_acquire,
			memory_order_relaxed);
}

/* Take the turn as @mine, or have what is in its way in *@seen. */
static bool try_take(struct seam_turn *turn, uint64_t mine, uint64_t *seen)
{
	/* relaxed: the exchange decides */
	*seen = atomic_load_explicit(&turn->word, memory_order_relaxed);
	while (!is_taken(*seen, mine))
		if (replace(turn, seen, mine))
			return true;
	return false;
}

/* ---- the owner's life ---- */

/* "/proc/self/task/TID/stat" */
static void put_path(char *path, uint32_t tid)
{
	static const char before[] = "/proc/self/task/", after[] = "/stat";
	char digits[10];
	size_t n = 0;

	memcpy(path, before, sizeof(before) - 1);
	path += sizeof(before) - 1;
	do
		digits[n++] = (char)('0' + tid % 10);
	while (tid /= 10);
	while (n)
		*path++ = digits[--n];
	memcpy(path, after, sizeof(after));
}

/* The first thread of a process stays as a zombie while others run. */
static bool is_zombie(uint32_t tid)
{
	char path[48], text[STAT_BYTES];
	long n, fd;

	/* Not open() and read(): a thread may be cancelled in those. */
	put_path(path, tid);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = syscall(SYS_read, (int)fd, text, sizeof(text));
	syscall(SYS_close, (int)fd);
	/* Its name, in parentheses, may hold any byte. */
	while (n > 2 && text[n - 3] != ')')
		n--;
	return n > 2 && (text[n - 1] == 'Z' || text[n - 1] == 'X');
}

/* Whether the owner that @seen names has died.  Not known: it lives. */
static bool is_dead(uint64_t seen, bool is_late)
{
	int32_t tid = (int32_t)(seen & ID_MASK);

	if (syscall(SYS_tgkill, self.pid, tid, 0) && errno == ESRCH)
		return true;
	return is_late && is_zombie((uint32_t)tid);
}

/* ---- waiting ---- */

struct waiting {
	uint64_t last_ns;		/* 0: it has not begun */
	uint64_t waited_ns;
	uint32_t n_given;		/* of the turn, when it began */
};

/* Note that somebody waits, and sleep until the turn may be free. */
static void wait_a_little(struct seam_turn *turn, uint64_t seen)
{
	struct timespec timeout = { .tv_nsec = NAP_NS };
	uint64_t waited_for = seen | WAITED_FOR;

	if (seen == waited_for ||
	    atomic_compare_exchange_strong(&turn->word, &seen, waited_for))
		syscall(SYS_futex, state_of(turn), FUTEX_WAIT_PRIVATE,
			(uint32_t)waited_for, &timeout, NULL, 0);
}

/*
 * Whether the caller has waited for as long as anybody should.  A stop of the
 * whole process counts as two naps and no more: the owner was stopped too.
 */
static bool is_patience_over(const struct seam_turn *turn, struct waiting *w)
{
	uint64_t now = seam_clock_ns(), slept = now - w->last_ns;

	if (!w->last_ns) {
		/* relaxed, here and below: a count that is compared alone */
		w->n_given = atomic_load_explicit(&turn->n_given,
						  memory_order_relaxed);
		slept = 0;
	}
	w->waited_ns += slept > 2 * NAP_NS ? 2 * NAP_NS : slept;
	w->last_ns = now;
	return w->waited_ns > PATIENCE_NS;
}

/* Nobody gave the turn all the while: others shall not wait for it. */
static void give_up(struct seam_turn *turn, const struct waiting *w)
{
	if (w->last_ns &&
	    atomic_load_explicit(&turn->n_given, memory_order_relaxed) ==
	    w->n_given)
		/* relaxed: a hint; giving the turn takes it back */
		atomic_store_explicit(&turn->is_stuck, 1,
				      memory_order_relaxed);
}

static bool is_stuck(const struct seam_turn *turn)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&turn->is_stuck, memory_order_relaxed);
}

static void clear_stuck(struct seam_turn *turn)
{
	if (is_stuck(turn))
		atomic_store_explicit(&turn->is_stuck, 0,
				      memory_order_relaxed);
}

/* The turn is @seen's.  Take it if that is a thread that is no more. */
static bool take_over(struct seam_turn *turn, uint64_t seen, uint64_t mine,
		      bool is_late)
{
	bool is_own_tid = ((seen ^ mine) & ID_MASK) == 0;

	if (!is_own_tid && !is_dead(seen, is_late))
		return false;
	/* Others may wait: keep the mark. */
	if (!replace(turn, &seen, mine | WAITED_FOR))
		return false;
	clear_stuck(turn);
	return true;
}

int seam_turn_take(struct seam_turn *turn)
{
	uint64_t mine = own_word(), seen;
	struct waiting w = { 0 };

	/* Who waited may not be alone in that: keep the mark. */
	while (!try_take(turn, w.last_ns ? mine | WAITED_FOR : mine, &seen)) {
		bool is_first = !w.last_ns, is_late;

		if (is_same_thread(seen, mine))
			return -EDEADLK;
		is_late = is_stuck(turn) || is_patience_over(turn, &w);
		/* Not before the first nap: most owners are just busy. */
		if ((is_late || !is_first) &&
		    take_over(turn, seen, mine, is_late))
			return SEAM_TURN_ABANDONED;
		if (is_late) {
			give_up(turn, &w);
			return -EBUSY;
		}
		wait_a_little(turn, seen);
	}
	clear_stuck(turn);
	return SEAM_TURN_FREE;
}

enum seam_turn_taken seam_turn_seize(struct seam_turn *turn)
{
	uint64_t mine = own_word();
	/* acquire: pairs with the release in seam_turn_give() */
	uint64_t was = atomic_exchange_explicit(&turn->word, mine,
						memory_order_acquire);

	clear_stuck(turn);
	return is_taken(was, mine) ? SEAM_TURN_ABANDONED : SEAM_TURN_FREE;
}

void seam_turn_give(struct seam_turn *turn)
{
	uint64_t was;

	clear_stuck(turn);
	/* relaxed: see wait_more() */
	atomic_fetch_add_explicit(&turn->n_given, 1, memory_order_relaxed);
	/* release: pairs with the acquire in replace() */
	was = atomic_exchange_explicit(&turn->word, 0, memory_order_release);
	if (was & WAITED_FOR)
		syscall(SYS_futex, state_of(turn), FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}
