/* SPDX-License-Identifier: MIT */
/* self_thread.c - the bounds of a thread's stack; see self_walk.h */
#include <pthread.h>

#include "unwind/in_process/self_readers.h"
#include "unwind/in_process/self_walk.h"

int seam_self_thread_begin(void)
{
	struct seam_self_range *stack = &seam_self_thread.stack;
	pthread_attr_t attr;
	size_t size;
	void *low;
	int r = pthread_getattr_np(pthread_self(), &attr);

	if (r)
		return -r;
	r = pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	/* a handler in between sees an empty range */
	stack->low = UINT64_MAX;
	atomic_signal_fence(memory_order_seq_cst);
	stack->high = (uint64_t)(uintptr_t)low + size;
	atomic_signal_fence(memory_order_seq_cst);
	stack->low = (uint64_t)(uintptr_t)low;
	return 0;
}
