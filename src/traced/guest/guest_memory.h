/* SPDX-License-Identifier: MIT */
/*
 * guest_memory.h - reads of a VM's data in a signal handler
 *
 * A pointer in the data of a VM that was interrupted may be anything, and a
 * load that faults would end somebody else's program.  So a word is loaded
 * only from pages that a system call has read from in this sample.
 *
 * They are the VM's: its heap belongs to the thread that runs it, which is in
 * this handler, so that nobody unmaps them meanwhile.  A page of another
 * owner, reached by a pointer that was not one, could be unmapped by another
 * thread between the system call and the load; every pointer is checked for
 * its tag and back pointer first, so that such a page is reached by an
 * accident of several words.
 *
 * Cost: a comparison and a load; about 0.1 us for each new page.  Reading the
 * same by process_vm_readv() costs 0.35 us a place, however many are batched
 * (bench/guest).
 */
#pragma once

#include "base/base.h"
#include "unwind/in_process/self_memory.h"

enum {
	SEAM_GUEST_PAGE_SHIFT = 12,	/* the smallest */
	SEAM_GUEST_PAGES = 64,		/* remembered; a power of two */
	SEAM_GUEST_MAX_PROBES = 4096,	/* system calls in a sample */
};

struct seam_guest_memory {
	uint64_t n_probes;
	uint64_t pages[SEAM_GUEST_PAGES];	/* number of a page, plus 1 */
};

void seam_guest_memory_init(struct seam_guest_memory *memory);

/* Whether the page of @addr can be read; remembers it.  Changes errno. */
bool seam_guest_memory_probe(struct seam_guest_memory *memory, uint64_t addr);

/* Take the page of @addr as one that can be read. */
static inline void seam_guest_memory_know(struct seam_guest_memory *memory,
					  uint64_t addr)
{
	uint64_t page = addr >> SEAM_GUEST_PAGE_SHIFT;

	memory->pages[page % SEAM_GUEST_PAGES] = page + 1;
}

static inline bool seam_guest_memory_has(struct seam_guest_memory *memory,
					 uint64_t addr)
{
	uint64_t page = addr >> SEAM_GUEST_PAGE_SHIFT;

	return memory->pages[page % SEAM_GUEST_PAGES] == page + 1 ||
	       seam_guest_memory_probe(memory, addr);
}

/* A value of @size bytes that lies in one page: aligned, or a byte. */
static inline bool seam_guest_load_aligned(struct seam_guest_memory *memory,
					   uint64_t addr, void *to,
					   size_t size)
{
	if (SEAM_IS_SANITIZED)
		return seam_self_read(addr, to, size) == size;
	if (!seam_guest_memory_has(memory, addr))
		return false;
	memcpy(to, (const void *)(uintptr_t)addr, size);
	return true;
}

/* Any value of at most a page: both of its pages have to be there. */
static inline bool seam_guest_load(struct seam_guest_memory *memory,
				   uint64_t addr, void *to, size_t size)
{
	return (SEAM_IS_SANITIZED ||
		seam_guest_memory_has(memory, addr + size - 1)) &&
	       seam_guest_load_aligned(memory, addr, to, size);
}

static inline bool seam_guest_u64(struct seam_guest_memory *memory,
				  uint64_t addr, uint64_t *value)
{
	return (addr & 7) == 0 &&
	       seam_guest_load_aligned(memory, addr, value, 8);
}

static inline bool seam_guest_u32(struct seam_guest_memory *memory,
				  uint64_t addr, uint32_t *value)
{
	return (addr & 3) == 0 &&
	       seam_guest_load_aligned(memory, addr, value, 4);
}

static inline bool seam_guest_u8(struct seam_guest_memory *memory,
				 uint64_t addr, uint8_t *value)
{
	return seam_guest_load_aligned(memory, addr, value, 1);
}
