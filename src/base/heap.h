/* SPDX-License-Identifier: MIT */
/*
 * heap.h - a binary heap of pointers, the first element on top
 *
 * For merging sequences: the sequence on top has the next element; after it
 * has advanced, it sinks to its new place.
 */
#ifndef SEAM_HEAP_H
#define SEAM_HEAP_H

#include "base/base.h"

typedef bool seam_heap_before(const void *a, const void *b);

/* Restore the order below element @at of @n, the only one out of place. */
void seam_heap_sink(void **items, size_t n, size_t at,
		    seam_heap_before *is_before);

/* Restore the order above element @at, which has just been put there. */
void seam_heap_rise(void **items, size_t at, seam_heap_before *is_before);

#endif /* SEAM_HEAP_H */
