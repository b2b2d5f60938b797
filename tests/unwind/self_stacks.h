/* SPDX-License-Identifier: MIT */
/* self_stacks.h - a handler's walk beside libgcc's, and what code is loaded */
#ifndef SELF_STACKS_H
#define SELF_STACKS_H

#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

#include <link.h>
#include <signal.h>
#include <unwind.h>

enum { MAX_SELF_FRAMES = 512 };

/*
 * By a pointer that the compiler does not see through: raise() is declared as
 * one that changes no variable of its caller's file.
 */
static int (*volatile send_signal)(int signal) = raise;

/* libgcc's: the handler, the signal's frame, and what it interrupted. */
struct their_stack {
	uint64_t pc[MAX_SELF_FRAMES + 16];
	size_t n;
};

static inline _Unwind_Reason_Code
add_their_frame(struct _Unwind_Context *context, void *of)
{
	struct their_stack *stack = of;
	uint64_t pc = _Unwind_GetIP(context);

	if (pc == 0 || stack->n == MAX_SELF_FRAMES + 16)
		return _URC_END_OF_STACK;
	stack->pc[stack->n++] = pc;
	return _URC_NO_REASON;
}

/* Whether @theirs, from the interrupted frame on, is @ours. */
static inline bool is_equal_stack(const struct seam_unwind_stack *ours,
				  const struct their_stack *theirs)
{
	size_t first = 0;

	while (first < theirs->n && theirs->pc[first] != ours->frames[0].pc)
		first++;
	if (theirs->n - first != ours->n)
		return false;
	for (size_t i = 0; i < ours->n; i++)
		if (theirs->pc[first + i] != ours->frames[i].pc)
			return false;
	return true;
}

/* --- executable segments, read without the code under test --- */

static struct {
	struct { uint64_t start, end; } list[256];
	size_t n;
} code_ranges;

static inline int add_ranges(struct dl_phdr_info *info, size_t size,
			     void *context)
{
	(void)size;
	(void)context;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
		    code_ranges.n < 256) {
			code_ranges.list[code_ranges.n].start = start;
			code_ranges.list[code_ranges.n++].end =
				start + p->p_memsz;
		}
	}
	return 0;
}

static inline void read_code_ranges(void)
{
	code_ranges.n = 0;
	dl_iterate_phdr(add_ranges, NULL);
}

static inline bool is_code(uint64_t pc)
{
	for (size_t i = 0; i < code_ranges.n; i++)
		if (pc >= code_ranges.list[i].start &&
		    pc < code_ranges.list[i].end)
			return true;
	return false;
}

#endif /* SELF_STACKS_H */
