/* SPDX-License-Identifier: MIT */
/* code_rows.c - pieces of code with their functions; see code_rows.h */
#include "unwind/compile/code_rows.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Compile what @fde has, if it is for this code.  A piece of code may be
 * aligned, so that its function ends after it.
 */
static int add_function(struct seam_unwind_code_rows *rows,
			const struct seam_eh_frame *eh,
			const struct seam_eh_fde *fde, uint64_t start,
			uint64_t size)
{
	struct seam_unwind_functions *f = &rows->functions;

	if (fde->start - start >= size) {
		rows->n_elsewhere++;
		return 0;
	}
	/* each piece pays for itself: there is no limit for all */
	f->bytes_left = SEAM_EH_MAX_FDE + SEAM_EH_MAX_CIE;
	return seam_unwind_functions_add(f, eh, fde, &rows->rules) < 0 ?
	       -ENOMEM : 0;
}

int64_t seam_unwind_code_rows_add(struct seam_unwind_code_rows *rows,
				  const struct seam_eh_frame *eh,
				  uint64_t start, uint64_t size)
{
	struct seam_unwind_functions *f = &rows->functions;
	size_t first = f->list.n, offset = 0, next;
	struct seam_eh_fde fde = { 0 };
	int r;

	while ((r = seam_eh_frame_entry(eh, offset, &fde, &next,
					&f->refused.n_broken)) >= 0 &&
	       f->list.n - first < SEAM_UNWIND_MAX_OF_CODE) {
		offset = next;
		if (r && add_function(rows, eh, &fde, start, size) < 0)
			return -ENOMEM;
	}
	if (f->list.n == first)
		return SEAM_NONE;
	if (!SEAM_ARRAY_ADD(&rows->pieces, (struct seam_unwind_piece) {
			start, (uint32_t)first,
			(uint32_t)(f->list.n - first) }))
		return -ENOMEM;
	return (int64_t)rows->pieces.n - 1;
}

uint16_t seam_unwind_code_rows_find(const struct seam_unwind_code_rows *rows,
				    uint32_t piece, uint64_t offset)
{
	const struct seam_unwind_piece *p;

	if (piece >= rows->pieces.n)
		return SEAM_UNWIND_NO_CFI;
	p = &rows->pieces.items[piece];
	for (uint32_t i = p->first; i < p->first + p->n; i++) {
		const struct seam_unwind_function *function =
			&rows->functions.list.items[i];
		uint64_t inside = p->start + offset - function->start;

		if (inside < function->size)
			return seam_unwind_functions_find(&rows->functions, i,
							  inside);
	}
	return SEAM_UNWIND_NO_CFI;
}

void seam_unwind_code_rows_fini(struct seam_unwind_code_rows *rows)
{
	seam_unwind_rules_fini(&rows->rules);
	seam_unwind_functions_fini(&rows->functions);
	free(rows->pieces.items);
	*rows = (struct seam_unwind_code_rows) { 0 };
}
