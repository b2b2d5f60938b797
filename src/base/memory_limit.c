/* SPDX-License-Identifier: MIT */
/* memory_limit.c - RLIMIT_DATA, and a flag; see memory_limit.h */
#include "base/memory_limit.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

/* Any thread writes, the printer reads; orders nothing else. */
static atomic_bool ran_out;

void seam_memory_limit(uint64_t bytes)
{
	struct rlimit limit;

	if (bytes == 0)
		bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			(uint64_t)sysconf(_SC_PAGESIZE) / 4 * 3;
	/* AddressSanitizer reserves terabytes, which count as data */
	if (SEAM_IS_SANITIZED || getrlimit(RLIMIT_DATA, &limit) ||
	    bytes >= limit.rlim_cur)
		return;
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_DATA, &limit);
}

uint64_t seam_memory_limited(void)
{
	struct rlimit limit;

	/* RLIM_INFINITY is UINT64_MAX */
	return getrlimit(RLIMIT_DATA, &limit) ? UINT64_MAX : limit.rlim_cur;
}

void *seam_memory_refused(void)
{
	atomic_store_explicit(&ran_out, true, memory_order_relaxed);
	return NULL;
}

bool seam_memory_ran_out(void)
{
	return atomic_load_explicit(&ran_out, memory_order_relaxed);
}
