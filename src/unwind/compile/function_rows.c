/* SPDX-License-Identifier: MIT */
/* function_rows.c - functions, and pieces of JIT code; see function_rows.h */
#include "unwind/compile/function_rows.h"

#include "unwind/compile/program.h"

#include <errno.h>
#include <stdlib.h>

/* A function while it is compiled. */
struct compiling {
	struct seam_unwind_functions *functions;
	struct seam_unwind_rules *rules;
	uint64_t start;
	size_t first;		/* of its rows */
};

static int append(struct seam_unwind_functions *f, uint64_t offset, int id)
{
	if (!SEAM_ARRAY_RESERVE(&f->starts, 1) ||
	    !SEAM_ARRAY_RESERVE(&f->ids, 1))
		return -ENOMEM;
	f->starts.items[f->starts.n++] = (uint32_t)offset;
	f->ids.items[f->ids.n++] = (uint16_t)id;
	return 0;
}

static int append_row(void *context, uint64_t start,
		      const struct seam_unwind_row *row)
{
	struct compiling *c = context;
	struct seam_unwind_functions *f = c->functions;
	int id = seam_unwind_rules_intern(c->rules, row);

	/* the same rules as before need no row */
	if (id >= 0 && f->ids.n > c->first && f->ids.items[f->ids.n - 1] == id)
		return 0;
	return id < 0 ? id : append(f, start - c->start, id);
}

int64_t seam_unwind_functions_add(struct seam_unwind_functions *f,
				  const struct seam_eh_frame *frame,
				  const struct seam_eh_fde *fde,
				  struct seam_unwind_rules *rules)
{
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;
	uint64_t size = fde->end - fde->start;
	size_t first = f->starts.n;
	struct compiling c = { f, rules, fde->start, first };
	int r = -EOVERFLOW;

	if (first > UINT32_MAX / 2 || !SEAM_ARRAY_RESERVE(&f->list, 1))
		return -ENOMEM;
	if (bytes <= f->bytes_left && size <= UINT32_MAX) {
		f->bytes_left -= bytes;
		r = seam_unwind_program_rows(frame, fde, rules, append_row, &c);
	}
	if (r < 0) {
		/* which of its rows are right is not known */
		f->starts.n = f->ids.n = first;
		if (r == -ENOMEM || append(f, 0, SEAM_UNWIND_BAD_CFI) < 0)
			return -ENOMEM;
	}
	f->list.items[f->list.n] = (struct seam_unwind_function) {
		.start = fde->start,
		.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
		.first = (uint32_t)first,
		.n = (uint32_t)(f->starts.n - first),
	};
	return (int64_t)f->list.n++;
}

uint16_t seam_unwind_functions_find(const struct seam_unwind_functions *f,
				    uint32_t i, uint64_t offset)
{
	const struct seam_unwind_function *function = &f->list.items[i];
	const uint32_t *starts = f->starts.items + function->first;
	size_t n = SEAM_ARRAY_SEARCH(k, function->n, starts[k] <= offset);

	return n ? f->ids.items[function->first + n - 1] :
		   (uint16_t)SEAM_UNWIND_NO_CFI;
}

void seam_unwind_functions_fini(struct seam_unwind_functions *f)
{
	free(f->list.items);
	free(f->starts.items);
	free(f->ids.items);
	*f = (struct seam_unwind_functions) { 0 };
}

/* ---- code of JITs ---- */

int64_t seam_unwind_code_rows_add(struct seam_unwind_code_rows *rows,
				  const struct seam_eh_frame *eh,
				  uint64_t start, uint64_t size)
{
	struct seam_unwind_functions *f = &rows->functions;
	size_t first = f->list.n, offset = 0, next;
	struct seam_eh_fde fde = { 0 };
	int r;

	while ((r = seam_eh_frame_entry(eh, offset, &fde, &next)) >= 0 &&
	       f->list.n - first < SEAM_UNWIND_MAX_OF_CODE) {
		offset = next;
		/* for this code; aligned, it may end before its function */
		if (!r || fde.start - start >= size)
			continue;
		/* each piece pays for itself: there is no limit for all */
		f->bytes_left = SEAM_EH_MAX_FDE + SEAM_EH_MAX_CIE;
		if (seam_unwind_functions_add(f, eh, &fde, &rows->rules) < 0)
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
