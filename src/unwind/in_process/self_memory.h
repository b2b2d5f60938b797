/* SPDX-License-Identifier: MIT */
/*
 * self_memory.h - a handler reads the memory of its own process
 *
 * An address that was computed from call frame information may be anything, and
 * a load that faults would end somebody else's program.  So a word is loaded
 * directly only where memory is mapped for certain:
 *
 *  - between the handler's own frame and the highest address of the stack on
 *    which it runs: pages in use by this thread;
 *  - on the thread's stack, while the handler runs on an alternate one: from
 *    the interrupted stack pointer up, after one checked read there.
 *
 * All other reads are process_vm_readv() of the own process, which returns an
 * error where nothing is mapped; one call brings up to SEAM_SELF_WINDOW bytes.
 *
 * Cost: a direct read is a comparison and a load; a window about 1 us.
 * Threads: one; the struct is in the handler's frame.
 */
#pragma once

#include <signal.h>

#include "unwind/step/step.h"

enum {
	SEAM_SELF_WINDOW = 1024,
	SEAM_SELF_PAGE = 4096,		/* the smallest */
};

/* [low, high); zeroed it is empty. */
struct seam_self_range {
	uint64_t low, high;
};

struct seam_self_memory {
	struct seam_unwind_memory memory;	/* what a walk reads */
	struct seam_self_range alternate;	/* of the handler's stack */
	uint64_t window_addr;
	size_t window_bytes;			/* 0: no window yet */
	uint8_t window[SEAM_SELF_WINDOW];
};

/*
 * @here: an address in the frame of the handler's function, or of one that it
 * called; @sp: the interrupted stack pointer; @alternate: uc_stack of the
 * handler's context; @stack: the thread's stack, or an empty range.
 */
void seam_self_memory_init(struct seam_self_memory *memory, uint64_t here,
			   uint64_t sp, const stack_t *alternate,
			   struct seam_self_range stack);

/*
 * Copy up to @size bytes from @addr on.  The number of bytes that could be
 * read, 0 where nothing is mapped.  Changes errno.
 */
size_t seam_self_read(uint64_t addr, void *bytes, size_t size);

static inline bool seam_self_range_has(struct seam_self_range range,
				       uint64_t addr)
{
	return addr >= range.low && addr < range.high;
}
