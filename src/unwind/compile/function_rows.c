/* SPDX-License-Identifier: MIT */
/* function_rows.c - one function at a time; see function_rows.h */
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

static int run(struct seam_unwind_functions *f,
	       const struct seam_eh_frame *frame,
	       const struct seam_eh_fde *fde, struct seam_unwind_rules *rules)
{
	struct compiling c = { f, rules, fde->start, f->starts.n };
	uint64_t bytes = fde->instructions.size + fde->cie.instructions.size;

	if (bytes > f->bytes_left || fde->end - fde->start > UINT32_MAX)
		return -EOVERFLOW;
	f->bytes_left -= bytes;
	return seam_unwind_program_rows(frame, fde, rules, append_row, &c);
}

static void truncate_rows(struct seam_unwind_functions *f, size_t n)
{
	f->starts.n = n;
	f->ids.n = n;
}

int64_t seam_unwind_functions_add(struct seam_unwind_functions *f,
				  const struct seam_eh_frame *frame,
				  const struct seam_eh_fde *fde,
				  struct seam_unwind_rules *rules)
{
	size_t first = f->starts.n;
	int r;

	if (first > UINT32_MAX / 2 || !SEAM_ARRAY_RESERVE(&f->list, 1))
		return -ENOMEM;
	r = run(f, frame, fde, rules);
	if (r < 0) {
		/* which of its rows are right is not known */
		truncate_rows(f, first);
		if (r == -ENOMEM || append(f, 0, SEAM_UNWIND_BAD_CFI) < 0)
			return -ENOMEM;
		seam_unwind_refuse(&f->refused, r);
	}
	f->list.items[f->list.n] = (struct seam_unwind_function) {
		.start = fde->start,
		.size = fde->end - fde->start > UINT32_MAX ? UINT32_MAX :
			(uint32_t)(fde->end - fde->start),
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

size_t seam_unwind_functions_bytes(const struct seam_unwind_functions *f)
{
	return f->list.cap * sizeof(*f->list.items) +
	       f->starts.cap * sizeof(*f->starts.items) +
	       f->ids.cap * sizeof(*f->ids.items);
}

void seam_unwind_functions_fini(struct seam_unwind_functions *f)
{
	free(f->list.items);
	free(f->starts.items);
	free(f->ids.items);
	*f = (struct seam_unwind_functions) { 0 };
}
