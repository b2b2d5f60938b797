/* SPDX-License-Identifier: MIT */
/* guest_memory.c - which pages may be loaded from; see guest_memory.h */
#include "traced/guest/guest_memory.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

void seam_guest_memory_init(struct seam_guest_memory *memory)
{
	memset(memory, 0, sizeof(*memory));
}

bool seam_guest_memory_probe(struct seam_guest_memory *memory, uint64_t addr)
{
	enum { NO_SUCH_CHANGE = -1, SET_BYTES = 8 };
	uint64_t page = addr >> SEAM_GUEST_PAGE_SHIFT;
	uint8_t byte;

	if (memory->n_probes == SEAM_GUEST_MAX_PROBES)
		return false;
	memory->n_probes++;
	/*
	 * The kernel copies a signal set from there before it refuses the
	 * first argument, and changes nothing.  A sandbox may refuse the call.
	 */
	if (syscall(SYS_rt_sigprocmask, NO_SUCH_CHANGE,
		    page << SEAM_GUEST_PAGE_SHIFT, NULL, SET_BYTES) >= 0 ||
	    (errno != EINVAL && (errno == EFAULT ||
				 seam_self_read(addr, &byte, 1) != 1)))
		return false;
	seam_guest_memory_know(memory, addr);
	return true;
}
