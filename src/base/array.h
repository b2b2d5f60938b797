/* SPDX-License-Identifier: MIT */
/*
 * array.h - growable arrays of any type
 *
 *	struct { uint32_t *items; size_t n, cap; } ids = { 0 };
 *	uint32_t *slot = SEAM_ARRAY_PUSH(&ids);
 *
 *	if (!slot)
 *		return -ENOMEM;
 *	*slot = 7;
 *	...
 *	free(ids.items);
 *
 * The struct owns the items until free(items).  The capacity doubles, so a
 * push costs O(1), amortized.  A push invalidates pointers
 * into items.
 */
#ifndef SEAM_ARRAY_H
#define SEAM_ARRAY_H

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

#endif /* SEAM_ARRAY_H */
