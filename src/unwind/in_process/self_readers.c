/* SPDX-License-Identifier: MIT */
/* self_readers.c - slots and epochs; see self_readers.h */
#include "unwind/in_process/self_readers.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct seam_self_thread seam_self_thread
	__attribute__((tls_model("initial-exec")));
_Atomic(struct seam_self_process *) seam_self_process;
_Atomic(const struct seam_self_images *) seam_self_current;

enum { MAX_TRIES = 64 };	/* slots of others, in a handler */

static _Atomic uint64_t current_epoch = 1;	/* the owner increments */
static _Atomic uint32_t n_serials;		/* any thread takes the next */

int seam_self_readers_init(void)
{
	size_t size = sizeof(struct seam_self_process);
	struct seam_self_process *none = NULL;
	void *pages;
	int r = 0;

	if (atomic_load(&seam_self_process))
		return 0;
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -errno;
	if (madvise(pages, size, MADV_WIPEONFORK))
		r = -errno;
	if (r || !atomic_compare_exchange_strong(&seam_self_process, &none,
						 pages))
		munmap(pages, size);
	return r;
}

/* In any process: a thread that shares our memory may be in another one. */
static bool is_dead(uint64_t thread)
{
	return syscall(SYS_tkill, (uint32_t)thread, 0) < 0 && errno == ESRCH;
}

/*
 * Find a slot for this thread.  One with its thread id is that of a thread
 * that is dead; where none is free, some more are tried.  False: none.
 */
static bool claim(struct seam_self_process *process,
		  struct seam_self_thread *self)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	/* relaxed: numbers only have to differ */
	uint64_t serial = atomic_fetch_add_explicit(&n_serials, 1,
						    memory_order_relaxed);
	uint64_t mine = serial << 32 | tid;

	for (uint32_t i = 0; i < SEAM_SELF_SLOTS + MAX_TRIES; i++) {
		struct seam_self_slot *slot =
			&process->slots[(tid + i) % SEAM_SELF_SLOTS];
		uint64_t thread = atomic_load(&slot->thread);

		if (thread && (uint32_t)thread != tid &&
		    (i < SEAM_SELF_SLOTS || !is_dead(thread)))
			continue;
		if (atomic_compare_exchange_strong(&slot->thread, &thread,
						   mine)) {
			self->slot = slot;
			self->slot_thread = mine;
			return true;
		}
	}
	return false;
}

/* Two addresses on one stack whose bounds are known. */
static bool is_one_stack(uint64_t a, uint64_t b, const stack_t *alternate)
{
	uint64_t low = (uint64_t)(uintptr_t)alternate->ss_sp;
	struct seam_self_range other = { low, low + alternate->ss_size };
	struct seam_self_range stack = seam_self_thread.stack;

	return (seam_self_range_has(stack, a) &&
		seam_self_range_has(stack, b)) ||
	       (!(alternate->ss_flags & SS_DISABLE) &&
		seam_self_range_has(other, a) &&
		seam_self_range_has(other, b));
}

struct seam_self_visit seam_self_enter(uint64_t here, const stack_t *alternate)
{
	struct seam_self_visit visit = { .images = NULL };
	struct seam_self_process *process = atomic_load(&seam_self_process);
	struct seam_self_thread *self = &seam_self_thread;
	uint64_t entered = atomic_load_explicit(&self->entered,
						memory_order_relaxed);

	if (!process)
		return visit;
	if (!self->slot || atomic_load_explicit(&self->slot->thread,
				memory_order_relaxed) != self->slot_thread) {
		/* of a new thread, or one that forked since */
		if (!claim(process, self))
			return visit;
		entered = 0;
	}
	visit.is_announced = true;
	/* a frame that lives is above those of handlers that interrupted it */
	visit.is_outermost = !entered ||
			     (entered <= here &&
			      is_one_stack(entered, here, alternate));
	/*
	 * A handler that interrupts between these two stores announces for
	 * both; one between those of seam_self_leave() is an outermost one.
	 */
	if (visit.is_outermost)
		atomic_store_explicit(&self->entered, here,
				      memory_order_relaxed);
	if (visit.is_outermost || !atomic_load(&self->slot->epoch))
		atomic_store(&self->slot->epoch, atomic_load(&current_epoch));
	visit.images = atomic_load(&seam_self_current);
	return visit;
}

void seam_self_leave(const struct seam_self_visit *visit)
{
	struct seam_self_thread *self = &seam_self_thread;

	if (!visit->is_outermost)
		return;
	atomic_store_explicit(&self->entered, 0, memory_order_relaxed);
	/* release: pairs with the load in seam_self_unused() */
	atomic_store_explicit(&self->slot->epoch, 0, memory_order_release);
}

uint64_t seam_self_retire(void)
{
	return atomic_fetch_add(&current_epoch, 1);
}

/* Free the slot of a thread that ended. */
static bool is_left(struct seam_self_slot *slot, uint64_t thread)
{
	/* fails where a new thread of that id has claimed it since */
	return is_dead(thread) &&
	       atomic_compare_exchange_strong(&slot->thread, &thread, 0);
}

void seam_self_free_slots(void)
{
	static uint32_t n_before;	/* only the owner calls */
	struct seam_self_process *process = atomic_load(&seam_self_process);
	uint32_t n = atomic_load(&n_serials);

	if (n - n_before < SEAM_SELF_SLOTS / 4)
		return;
	n_before = n;
	for (size_t i = 0; i < SEAM_SELF_SLOTS; i++) {
		uint64_t thread = atomic_load(&process->slots[i].thread);

		if (thread)
			is_left(&process->slots[i], thread);
	}
}

bool seam_self_unused(uint64_t epoch)
{
	struct seam_self_process *process = atomic_load(&seam_self_process);
	bool is_unused = true;

	for (size_t i = 0; i < SEAM_SELF_SLOTS; i++) {
		struct seam_self_slot *slot = &process->slots[i];
		uint64_t thread = atomic_load(&slot->thread);
		uint64_t announced = atomic_load(&slot->epoch);

		if (thread && announced && announced <= epoch &&
		    !is_left(slot, thread))
			is_unused = false;
	}
	return is_unused;
}
