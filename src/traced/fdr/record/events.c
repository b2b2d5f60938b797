/* SPDX-License-Identifier: MIT */
/*
 * events.c - record what event sleds pass; see trampolines.h
 *
 * Compilers before LLVM 19 move the operands of such a sled one after the
 * other, and an operand may overwrite another: address and size may be any
 * numbers.  So the payload is checked before it is read.
 */
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/system.h"

#include <errno.h>

enum {
	PAGE = 4096,
	SET_BYTES = 8,		/* of the kernel's signal set */
	NO_SUCH_HOW = -1,
};

/*
 * Whether 8 bytes at @address can be read: the kernel reads the set before it
 * refuses to do anything with it.  Source: rt_sigprocmask(2), EFAULT comes
 * before EINVAL.
 */
static bool is_readable(uintptr_t address)
{
	/* no set at all is no error */
	return address >= SET_BYTES &&
	       seam_fdr_syscall4(SYS_rt_sigprocmask, NO_SUCH_HOW,
				 (long)(address & ~(uintptr_t)7), 0,
				 SET_BYTES) != -EFAULT;
}

static void record(enum seam_xray_kind kind, uint16_t type, const void *data,
		   size_t bytes)
{
	uintptr_t first = (uintptr_t)data, last;

	if (bytes > SEAM_XRAY_MAX_PAYLOAD)
		bytes = SEAM_XRAY_MAX_PAYLOAD;
	last = first + bytes - 1;
	/* without a payload that is not memory; a range has two pages at most */
	if (bytes && (last < first || !is_readable(first) ||
		      (first / PAGE != last / PAGE && !is_readable(last))))
		bytes = 0;
	seam_fdr_event(kind, type, data, bytes);
}

void seam_fdr_record_custom(const void *data, size_t bytes)
{
	record(SEAM_XRAY_CUSTOM, 0, data, bytes);
}

void seam_fdr_record_typed(size_t type, const void *data, size_t bytes)
{
	record(SEAM_XRAY_TYPED, (uint16_t)type, data, bytes);
}
