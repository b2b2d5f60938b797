/* SPDX-License-Identifier: MIT */
/* guard.c - zeros in place of pages that cannot be read; see guard.h */
#include "base/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_GUARDED = 4096 };

/*
 * Written by threads that map files, read by the handler in any thread.  A
 * slot is taken by @begin (0: free) and valid once @size is not 0.
 */
static struct slot {
	atomic_uintptr_t begin;
	atomic_size_t size;
	atomic_bool tripped;
} slots[MAX_GUARDED];

/* Slots that were ever used: the handler scans only these. */
static atomic_size_t n_slots;
static atomic_uint n_tripped;

/* Set by seam_guard_install(). */
static uintptr_t page_bytes;

void seam_guard_add(struct seam_bytes mapped)
{
	for (size_t i = 0; i < MAX_GUARDED && mapped.size; i++) {
		uintptr_t none = 0;
		size_t seen = atomic_load(&n_slots);

		if (!atomic_compare_exchange_strong(&slots[i].begin, &none,
						    (uintptr_t)mapped.data))
			continue;
		while (seen <= i &&
		       !atomic_compare_exchange_weak(&n_slots, &seen, i + 1))
			;
		atomic_store(&slots[i].tripped, false);
		atomic_store(&slots[i].size, mapped.size);
		return;
	}
}

void seam_guard_remove(struct seam_bytes mapped)
{
	size_t n = atomic_load(&n_slots);

	for (size_t i = 0; i < n && mapped.size; i++) {
		if (atomic_load(&slots[i].begin) != (uintptr_t)mapped.data)
			continue;
		atomic_store(&slots[i].size, 0);
		atomic_store(&slots[i].begin, 0);
		return;
	}
}

unsigned int seam_guard_tripped(void)
{
	return atomic_load(&n_tripped);
}

/*
 * Map zeros from the page of @addr to the end of the mapping.  mmap() is a
 * plain system call, so a signal handler may call it.
 */
static bool cover(struct slot *slot, uintptr_t addr)
{
	uintptr_t begin = atomic_load(&slot->begin);
	size_t size = atomic_load(&slot->size);
	uintptr_t page = addr & -page_bytes;
	void *p;

	if (addr < begin ||
	    addr - begin >= ((size + page_bytes - 1) & -page_bytes))
		return false;
	p = mmap((void *)page, begin + size - page, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (p == MAP_FAILED)
		return false;
	if (!atomic_exchange(&slot->tripped, true))
		atomic_fetch_add(&n_tripped, 1);
	return true;
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	size_t n = atomic_load(&n_slots);
	int before = errno;

	(void)context;
	for (size_t i = 0; i < n; i++) {
		if (cover(&slots[i], (uintptr_t)info->si_addr)) {
			errno = before;
			return;
		}
	}
	/* Not ours: the access faults again, with the default action. */
	signal(signal_number, SIG_DFL);
	errno = before;
}

void seam_guard_install(void)
{
	struct sigaction action = {
		.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO,
	};

	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
