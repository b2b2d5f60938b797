/* SPDX-License-Identifier: MIT */
/* embedded.c - one table a path; the contract is in embedded.h */
#include "model/perf/embedded.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/perf/simpleperf.h"

struct seam_embedded_file {
	uint32_t path;		/* string */
	uint32_t order;		/* in the recording */
	uint32_t type;		/* enum seam_simpleperf_type */
	uint64_t min_vaddr, offset;
	struct seam_symtab table;
};

static int add_symbols(struct seam_embedded *embedded,
		       struct seam_simpleperf_file *from,
		       struct seam_symtab *table)
{
	struct seam_simpleperf_symbol s;
	int r = 0;

	while (!r && seam_simpleperf_symbol(from, &s)) {
		const char *name;

		if (s.name.size == 0)
			continue;
		name = seam_arena_text(&embedded->arena,
				       (const char *)s.name.data, s.name.size);
		if (!name)
			return -ENOMEM;
		r = seam_symtab_add(table, &(struct seam_symbol) {
			.start = s.vaddr, .limit = s.vaddr, .name = name,
			.end = s.size < UINT64_MAX - s.vaddr ?
			       s.vaddr + s.size : s.vaddr,
		});
	}
	return r ? r : seam_symtab_sort(table);
}

static int add_file(struct seam_embedded *embedded,
		    struct seam_simpleperf_file *from,
		    struct seam_strings *strings)
{
	struct seam_embedded_file file = {
		.order = (uint32_t)embedded->files.n, .type = from->type,
		.min_vaddr = from->min_vaddr, .offset = from->offset,
		.path = seam_strings_add(strings,
					 (const char *)from->path.data,
					 from->path.size),
	};

	if (file.path == SEAM_NONE || !SEAM_ARRAY_ADD(&embedded->files, file))
		return -ENOMEM;
	return add_symbols(embedded, from,
			   &embedded->files.items[file.order].table);
}

static int by_path(const void *a, const void *b)
{
	const struct seam_embedded_file *x = a, *y = b;

	return SEAM_COMPARE(x->path, y->path) ?:
	       SEAM_COMPARE(x->order, y->order);
}

int seam_embedded_read(struct seam_embedded *embedded,
		       const struct seam_perf_data *data,
		       struct seam_strings *strings)
{
	bool is_proto = data->features[SEAM_SIMPLEPERF_FILE].size == 0;
	struct seam_simpleperf_reader reader = seam_simpleperf_begin(
		data->features[is_proto ? SEAM_SIMPLEPERF_FILE2 :
			       SEAM_SIMPLEPERF_FILE], data->endian, is_proto);
	struct seam_simpleperf_file file;
	int r = 0;

	while (!r && seam_simpleperf_next(&reader, &file))
		if (file.path.size > 0)
			r = add_file(embedded, &file, strings);
	SEAM_ARRAY_SORT(&embedded->files, by_path);
	return r;
}

void seam_embedded_fini(struct seam_embedded *embedded)
{
	for (size_t i = 0; i < embedded->files.n; i++)
		seam_symtab_fini(&embedded->files.items[i].table);
	free(embedded->files.items);
	seam_arena_fini(&embedded->arena);
	*embedded = (struct seam_embedded) { 0 };
}

/* The first of a path; those with the same follow it.  NULL: none. */
static struct seam_embedded_file *find(const struct seam_embedded *embedded,
				       uint32_t path)
{
	struct seam_embedded_file *files = embedded->files.items;
	size_t at = SEAM_ARRAY_SEARCH(i, embedded->files.n,
				      files[i].path < path);

	return at < embedded->files.n && files[at].path == path ? &files[at] :
	       NULL;
}

/* The address in the form that the table of @file has. */
static uint64_t vaddr_of(const struct seam_embedded_file *file,
			 const struct seam_embedded_query *q)
{
	uint64_t in_mapping = q->addr - q->start_addr;

	if (q->is_jit)
		return q->addr;
	switch (file->type) {
	case SEAM_SIMPLEPERF_ELF:
		if (file->offset == UINT64_MAX)
			return in_mapping + file->min_vaddr;
		return in_mapping + q->pgoff - file->offset + file->min_vaddr;
	case SEAM_SIMPLEPERF_KERNEL_MODULE:
		return in_mapping + file->min_vaddr -
		       (file->offset == UINT64_MAX ? 0 : file->offset);
	case SEAM_SIMPLEPERF_DEX:
		return in_mapping + q->pgoff;
	}
	return q->addr;
}

const char *seam_embedded_find(struct seam_embedded *embedded,
			       const struct seam_embedded_query *query)
{
	const struct seam_embedded_file *end = embedded->files.items +
					       embedded->files.n;
	struct seam_embedded_file *file = find(embedded, query->path);

	for (; file && file < end && file->path == query->path; file++) {
		const char *name = seam_symtab_name(&file->table,
			vaddr_of(file, query), &embedded->arena);

		if (name)
			return name;
	}
	return NULL;
}

bool seam_embedded_by_addr(const struct seam_embedded *embedded, uint32_t path)
{
	const struct seam_embedded_file *file = find(embedded, path);

	return file && (file->type >= SEAM_SIMPLEPERF_SYMBOL_MAP ||
			(file->type == SEAM_SIMPLEPERF_ELF &&
			 file->offset == UINT64_MAX));
}
