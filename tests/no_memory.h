/* SPDX-License-Identifier: MIT */
/*
 * no_memory.h - let one allocation fail, for tests that try each in turn
 *
 *	for (n = 1; ; n++) {
 *		until_failure = n;
 *		... do it; it says -ENOMEM, or does without ...
 *		if (until_failure > 0)
 *			break;		// there are fewer than n
 *	}
 *	until_failure = 0;
 *
 * Included once by a test program that is linked with --wrap for malloc,
 * calloc and realloc: calls of Seam's own code come here, libraries keep
 * theirs.  What an error path forgot to free, LeakSanitizer reports.
 */
#ifndef SEAM_TESTS_NO_MEMORY_H
#define SEAM_TESTS_NO_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* At 1 the next allocation fails; 0 and less: none is to come. */
static atomic_long until_failure;

static bool fails_now(void)
{
	return atomic_fetch_sub(&until_failure, 1) == 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}

#endif /* SEAM_TESTS_NO_MEMORY_H */
