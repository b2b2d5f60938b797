/* SPDX-License-Identifier: MIT */
/*
 * self_walk.h - a signal handler walks the stack that it interrupted
 *
 *	static void on_signal(int signal, siginfo_t *info, void *context)
 *	{
 *		struct seam_unwind_frame frames[128];
 *		struct seam_unwind_stack stack = {
 *			.frames = frames, .max = 128,
 *		};
 *
 *		seam_self_walk(context, &stack);
 *		...
 *	}
 *
 * The walk is walk.h's, with the images of self_images.h: code without call
 * frame information is left by its frame pointer, frames of a virtual machine
 * by its adapter.  It takes no lock, allocates nothing and calls nothing but
 * memcpy() and system calls (gettid once a thread; process_vm_readv for memory
 * that is not on the stack), errno stays as it was, and no content of
 * registers, stack or call frame information makes it fault, or run for more
 * than stack->max frames.  It needs about 4 KiB of stack.
 *
 * A program counter that is in no image and belongs to no adapter ends the
 * stack with SEAM_UNWIND_NO_MAPPING and is stack->end_pc, but no frame, unless
 * it is that of the registers.
 *
 * A sandbox that kills a process for a refused system call, instead of failing
 * the call, has to allow process_vm_readv.
 *
 * x86-64 only.
 */
#pragma once

#include <ucontext.h>

#include "unwind/walk/walk.h"

/* Walk from @context, as the kernel passed it to the handler that runs. */
void seam_self_walk(const ucontext_t *context, struct seam_unwind_stack *stack);

/*
 * Stacks that ended at a program counter of no image: when the number grows,
 * seam_self_refresh() may help.
 */
uint64_t seam_self_n_unmapped(void);

/*
 * Find the bounds of this thread's stack, so that its walks load from it
 * directly.  Without this call, or where it fails, they copy it by windows,
 * which takes two to three times as long.  Not in a handler; it allocates.
 * 0, or the errno of pthread_getattr_np().
 */
int seam_self_thread_begin(void);

/*
 * A virtual machine's frames.  Both functions run in handlers, at any moment:
 * they take no lock, allocate nothing, do bounded work, and read what may be
 * gone by @memory alone.
 */
struct seam_self_adapter {
	/*
	 * Whether the code at @pc, which a loaded image has or has not, is
	 * the machine's; used for every frame.
	 */
	bool (*has_code)(void *context, uint64_t pc, bool is_in_image);
	struct seam_unwind_adapter adapter;	/* its context is has_code's */
};

enum { SEAM_SELF_MAX_ADAPTERS = 8 };

/*
 * Use @adapter, which the caller owns, before the tables, and adapters in the
 * order in which they were added.  0; -ENOSPC.  Not in a handler.
 */
int seam_self_add_adapter(const struct seam_self_adapter *adapter);

/*
 * Use it no longer.  0 when no handler can be in its functions; until then
 * -EBUSY, and it has to stay: call again.
 */
int seam_self_remove_adapter(const struct seam_self_adapter *adapter);
