/* SPDX-License-Identifier: MIT */
/* c_functions.c - sorted runs of growing size; see c_functions.h */
#include "model/sysprof/c_functions.h"

#include <errno.h>

static size_t run_end(const struct seam_c_functions *f, size_t run)
{
	return run + 1 < f->runs.n ? f->runs.items[run + 1] : f->items.n;
}

const struct seam_c_function *
seam_c_functions_find(const struct seam_c_functions *f, uint64_t addr)
{
	const struct seam_c_function *items = f->items.items, *best = NULL;

	for (size_t run = 0; run < f->runs.n; run++) {
		size_t begin = f->runs.items[run];
		size_t n = SEAM_ARRAY_SEARCH(i, run_end(f, run) - begin,
					     items[begin + i].addr <= addr);

		/* of equal ones that of the later run, which was added later */
		if (n && (!best || items[begin + n - 1].addr >= best->addr))
			best = &items[begin + n - 1];
	}
	return best;
}

/* Merge the last two runs; a later function replaces one before it. */
static int merge(struct seam_c_functions *f)
{
	size_t begin = f->runs.items[f->runs.n - 2];
	size_t a = begin, b = f->runs.items[f->runs.n - 1], middle = b;
	size_t end = f->items.n;
	const struct seam_c_function *items = f->items.items;

	f->merged.n = 0;
	if (!SEAM_ARRAY_RESERVE(&f->merged, end - begin))
		return -ENOMEM;
	while (a < middle || b < end) {
		bool is_later = a == middle ||
				(b < end && items[b].addr <= items[a].addr);

		if (is_later && a < middle && items[a].addr == items[b].addr)
			a++;
		f->merged.items[f->merged.n++] =
			is_later ? items[b++] : items[a++];
	}
	memcpy(f->items.items + begin, f->merged.items,
	       f->merged.n * sizeof(*items));
	f->items.n = begin + f->merged.n;
	f->runs.n--;
	return 0;
}

int seam_c_functions_add(struct seam_c_functions *f, uint64_t addr,
			 uint32_t name)
{
	const struct seam_c_function *known = seam_c_functions_find(f, addr);

	if (known && known->addr == addr && known->name == name)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&f->runs, 1) ||
	    !SEAM_ARRAY_ADD(&f->items, (struct seam_c_function) { addr, name }))
		return -ENOMEM;
	f->runs.items[f->runs.n++] = f->items.n - 1;
	while (f->runs.n > 1) {
		size_t last = f->runs.items[f->runs.n - 1];
		size_t before = last - f->runs.items[f->runs.n - 2];

		if (before > f->items.n - last)
			break;
		if (merge(f))
			return -ENOMEM;
	}
	return 1;
}

void seam_c_functions_fini(struct seam_c_functions *f)
{
	free(f->items.items);
	free(f->runs.items);
	free(f->merged.items);
}
