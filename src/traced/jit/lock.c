/* SPDX-License-Identifier: MIT */
/* lock.c - a lock that outlives forks, signals and its owners; see lock.h */
#include "traced/jit/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * The word, 0 when the lock is free.  It changes in one step, so that a handler
 * which interrupts its own thread at any instruction sees the owner:
 *
 *	pid 22 bits | serial 19 bits | WAITERS 1 bit | tid 22 bits
 *
 * The serial distinguishes threads that had the same tid one after another.
 * The half that the futex waits on has the tid, WAITERS and 9 bits of the
 * serial.
 * Source: PID_MAX_LIMIT is 2^22, linux/threads.h.
 */
enum { TID_BITS = 22, SERIAL_BITS = 19, SERIAL_AT = TID_BITS + 1,
       PID_AT = SERIAL_AT + SERIAL_BITS };

#define WAITERS (UINT64_C(1) << TID_BITS)
#define ID_MASK (WAITERS - 1)

enum {
	WAIT_NS = 10 * 1000 * 1000,	/* then the owner is checked */
	TIMEOUT_NS = 1000 * 1000 * 1000,
	STAT_BYTES = 256,	/* of /proc/.../stat: the state is in them */
};

/*
 * A page that the kernel zeroes in a child (Linux 4.14): it has our pid, or 0
 * right after a fork.  NULL where the kernel cannot do that.
 * Any thread writes it, all the same value.
 */
static _Atomic(_Atomic int32_t *) pid_page;

/*
 * The thread's id, and the process in which it was read: a fork makes it stale.
 * A new thread has zeros here, also where its tid was another's before.
 */
static __thread struct { int32_t pid, tid; uint32_t serial; } self
	__attribute__((tls_model("initial-exec")));

static _Atomic uint32_t n_serials;	/* any thread takes the next */

void seam_lock_init(void)
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

int32_t seam_lock_pid(void)
{
	/* relaxed: any value in it is right, 0 included */
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

int32_t seam_lock_tid(void)
{
	int32_t pid = seam_lock_pid();

	if (self.pid != pid) {
		self.tid = (int32_t)syscall(SYS_gettid);
		/* relaxed: they only have to differ */
		self.serial = atomic_fetch_add_explicit(
				&n_serials, 1, memory_order_relaxed);
		self.pid = pid;
	}
	return self.tid;
}

/* The half of the word that the futex waits on. */
static uint32_t *futex_of(struct seam_lock *lock)
{
	uint32_t *halves = (uint32_t *)(uintptr_t)&lock->word;

	return halves + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* ---- the word ---- */

static uint64_t own_word(void)
{
	uint64_t tid = (uint32_t)seam_lock_tid() & ID_MASK;
	uint64_t serial = self.serial & ((1u << SERIAL_BITS) - 1);

	return ((uint64_t)(uint32_t)self.pid & ID_MASK) << PID_AT |
	       serial << SERIAL_AT | tid;
}

static bool is_same_thread(uint64_t a, uint64_t b)
{
	return ((a ^ b) & ~WAITERS) == 0;
}

/* A word of another pid was stored before a fork: no thread here has it. */
static bool is_held(uint64_t word, uint64_t mine)
{
	return word && word >> PID_AT == mine >> PID_AT;
}

/* Replace *@seen by @mine; or false, and the current word in *@seen. */
static bool replace(struct seam_lock *lock, uint64_t *seen, uint64_t mine)
{
	/* acquire: pairs with the release in seam_lock_release() */
	return atomic_compare_exchange_strong_explicit(
			&lock->word, seen, mine, memory_order_acquire,
			memory_order_relaxed);
}

/* Acquire the lock as @mine; or false, and the owner in *@seen. */
static bool try_acquire(struct seam_lock *lock, uint64_t mine, uint64_t *seen)
{
	/* relaxed: the exchange decides */
	*seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
	while (!is_held(*seen, mine))
		if (replace(lock, seen, mine))
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

/* Whether the owner in @seen has died; false if that is not known. */
static bool is_dead(uint64_t seen, bool is_late)
{
	int32_t tid = (int32_t)(seen & ID_MASK);

	if (syscall(SYS_tgkill, self.pid, tid, 0) && errno == ESRCH)
		return true;
	return is_late && is_zombie((uint32_t)tid);
}

/* ---- waiting ---- */

struct seam_lock_wait {
	uint64_t last_ns;		/* 0: it has not begun */
	uint64_t waited_ns;
	uint32_t n_released;		/* of the lock, when it began */
};

/* Mark that a thread waits, and sleep until the lock may be free. */
static void wait_once(struct seam_lock *lock, uint64_t seen)
{
	struct timespec timeout = { .tv_nsec = WAIT_NS };
	uint64_t with_waiters = seen | WAITERS;

	if (seen == with_waiters ||
	    atomic_compare_exchange_strong(&lock->word, &seen, with_waiters))
		syscall(SYS_futex, futex_of(lock), FUTEX_WAIT_PRIVATE,
			(uint32_t)with_waiters, &timeout, NULL, 0);
}

/*
 * Whether the caller has waited for TIMEOUT_NS.  A stop of the whole process
 * counts as 2 * WAIT_NS at most: the owner was stopped too.
 */
static bool is_timeout(const struct seam_lock *lock, struct seam_lock_wait *w)
{
	uint64_t now = seam_clock_ns(), slept = now - w->last_ns;

	if (!w->last_ns) {
		/* relaxed, here and below: a count that is compared alone */
		w->n_released = atomic_load_explicit(&lock->n_released,
						     memory_order_relaxed);
		slept = 0;
	}
	w->waited_ns += slept > 2 * WAIT_NS ? 2 * WAIT_NS : slept;
	w->last_ns = now;
	return w->waited_ns > TIMEOUT_NS;
}

/* If no owner released the lock all the time, others do not wait for it. */
static void mark_stuck(struct seam_lock *lock, const struct seam_lock_wait *w)
{
	if (w->last_ns &&
	    atomic_load_explicit(&lock->n_released, memory_order_relaxed) ==
	    w->n_released)
		/* relaxed: a hint; a release clears it */
		atomic_store_explicit(&lock->is_stuck, 1,
				      memory_order_relaxed);
}

static bool is_stuck(const struct seam_lock *lock)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&lock->is_stuck, memory_order_relaxed);
}

static void clear_stuck(struct seam_lock *lock)
{
	if (is_stuck(lock))
		atomic_store_explicit(&lock->is_stuck, 0,
				      memory_order_relaxed);
}

/* Acquire the lock if its owner @seen has died. */
static bool take_over(struct seam_lock *lock, uint64_t seen, uint64_t mine,
		      bool is_late)
{
	bool is_own_tid = ((seen ^ mine) & ID_MASK) == 0;

	if (!is_own_tid && !is_dead(seen, is_late))
		return false;
	/* Other threads may wait: keep the mark. */
	if (!replace(lock, &seen, mine | WAITERS))
		return false;
	clear_stuck(lock);
	return true;
}

int seam_lock_acquire(struct seam_lock *lock)
{
	uint64_t mine = own_word(), seen;
	struct seam_lock_wait w = { 0 };

	/* After a wait, other threads may wait as well: keep the mark. */
	while (!try_acquire(lock, w.last_ns ? mine | WAITERS : mine, &seen)) {
		bool is_first = !w.last_ns, is_late;

		if (is_same_thread(seen, mine))
			return -EDEADLK;
		is_late = is_stuck(lock) || is_timeout(lock, &w);
		/* Not before the first wait: most owners are just busy. */
		if ((is_late || !is_first) &&
		    take_over(lock, seen, mine, is_late))
			return SEAM_LOCK_OWNER_DIED;
		if (is_late) {
			mark_stuck(lock, &w);
			return -EBUSY;
		}
		wait_once(lock, seen);
	}
	clear_stuck(lock);
	return SEAM_LOCK_WAS_FREE;
}

enum seam_lock_state seam_lock_seize(struct seam_lock *lock)
{
	uint64_t mine = own_word();
	/* acquire: pairs with the release in seam_lock_release() */
	uint64_t was = atomic_exchange_explicit(&lock->word, mine,
						memory_order_acquire);

	clear_stuck(lock);
	return is_held(was, mine) ? SEAM_LOCK_OWNER_DIED : SEAM_LOCK_WAS_FREE;
}

void seam_lock_release(struct seam_lock *lock)
{
	uint64_t was;

	clear_stuck(lock);
	/* relaxed: see is_timeout() */
	atomic_fetch_add_explicit(&lock->n_released, 1, memory_order_relaxed);
	/* release: pairs with the acquire in replace() */
	was = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
	if (was & WAITERS)
		syscall(SYS_futex, futex_of(lock), FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}
