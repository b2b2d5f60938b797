/* SPDX-License-Identifier: MIT */
/*
 * array.h - growable arrays of any type
 *
 *	SEAM_ARRAY(uint32_t) ids = { 0 };
 *
 *	if (!SEAM_ARRAY_ADD(&ids, 7))
 *		return -ENOMEM;
 *	...
 *	free(ids.items);
 *
 * The struct owns the items until free(items).  The capacity doubles, so a
 * push costs O(1), amortized.  A push invalidates pointers
 * into items.
 */
#pragma once

#include <stdlib.h>

#include "base/base.h"

#define SEAM_ARRAY(type) struct { type *items; size_t n, cap; }

/*
 * Make room for @need elements of @size bytes in *@items, which holds *@cap.
 * Returns the array, moved or not, or NULL with everything as it was when
 * memory ran out or the size would overflow.
 */
void *seam_array_reserve(void *items, size_t *cap, size_t need, size_t size);

/* Room for @extra more elements.  True on success. */
#define SEAM_ARRAY_RESERVE(a, extra)					\
	({								\
		void *items_ = seam_array_reserve((a)->items, &(a)->cap,\
						  (a)->n + (extra),	\
						  sizeof(*(a)->items));	\
		if (items_)						\
			(a)->items = items_;				\
		items_ != NULL;						\
	})

/* A pointer to one more element, its bytes not initialised; NULL on failure. */
#define SEAM_ARRAY_PUSH(a)						\
	((a)->n < (a)->cap || SEAM_ARRAY_RESERVE(a, 1) ?		\
	 &(a)->items[(a)->n++] : NULL)

/* Append a value, which is evaluated after the element is there: (a)->n. */
#define SEAM_ARRAY_ADD(a, ...)						\
	({								\
		__typeof__((a)->items) slot_ = SEAM_ARRAY_PUSH(a);	\
									\
		if (slot_)						\
			*slot_ = (__VA_ARGS__);				\
		slot_ != NULL;						\
	})

/* Append @extra elements, copied from @from.  True on success. */
#define SEAM_ARRAY_EXTEND(a, from, extra)				\
	({								\
		const size_t extra_ = (extra);				\
		bool has_room_ = !extra_ || SEAM_ARRAY_RESERVE(a, extra_); \
									\
		if (has_room_ && extra_) {				\
			memcpy((a)->items + (a)->n, from,		\
			       extra_ * sizeof(*(a)->items));		\
			(a)->n += extra_;				\
		}							\
		has_room_;						\
	})

/* Sort as qsort() does; an array without memory too. */
#define SEAM_ARRAY_SORT(a, compare)					\
	seam_array_sort((a)->items, (a)->n, sizeof(*(a)->items), compare)

static inline void seam_array_sort(void *items, size_t n, size_t size,
				   int (*compare)(const void *, const void *))
{
	if (n > 1)
		qsort(items, n, size, compare);
}

/* Append zeroed elements until there are @count.  True on success. */
#define SEAM_ARRAY_GROW(a, count)					\
	({								\
		size_t n_ = (count), old_ = (a)->n;			\
		bool ok_ = n_ <= old_ || SEAM_ARRAY_RESERVE(a, n_ - old_); \
									\
		if (ok_ && n_ > old_) {					\
			memset((a)->items + old_, 0,			\
			       (n_ - old_) * sizeof(*(a)->items));	\
			(a)->n = n_;					\
		}							\
		ok_;							\
	})

/*
 * The first @i of [0, @n) for which @is_before, an expression of @i, is false;
 * @n if there is none.  It is true for all before that one and false after it.
 */
#define SEAM_ARRAY_SEARCH(i, n, is_before)				\
	({								\
		size_t low_ = 0, high_ = (n);				\
									\
		while (low_ < high_) {					\
			size_t i = low_ + (high_ - low_) / 2;		\
									\
			if (is_before)					\
				low_ = i + 1;				\
			else						\
				high_ = i;				\
		}							\
		low_;							\
	})
