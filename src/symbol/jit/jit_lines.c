/* SPDX-License-Identifier: MIT */
/* jit_lines.c - line tables, with corrections; see jit_lines.h */
#include "symbol/jit/jit_lines.h"

#include <errno.h>
#include <stdlib.h>

#include "base/radix_sort.h"

enum {
	OVERWRITTEN = 16,	/* bytes of a name that V8 may have lost */
	NEARBY = 256,		/* records searched on each side for it */
	ENTRY_FIXED = 16,	/* bytes of an entry before its name */
};

void seam_jit_shift_add(struct seam_jit_shift *shift,
			const struct seam_jitdump_debug_info *info,
			enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(info->entries, endian);
	uint64_t offset = seam_cursor_u64(&c) - info->code_addr;

	if (c.error || !info->nr_entry)
		return;
	shift->n++;
	shift->n_at_shift += offset == SEAM_JIT_SHIFT_BYTES;
	shift->n_below += offset < SEAM_JIT_SHIFT_BYTES;
}

uint64_t seam_jit_shift_bytes(const struct seam_jit_shift *shift)
{
	return shift->n_at_shift * 2 > shift->n && !shift->n_below ?
	       SEAM_JIT_SHIFT_BYTES : 0;
}

/* The first name of a record that can be walked, or NULL. */
static const char *whole_name(const struct seam_jitdump_debug_info *info,
			      enum seam_endian endian)
{
	struct seam_jitdump_lines lines = seam_jitdump_lines_make(info, endian);
	struct seam_jitdump_debug_entry entry;

	if (lines.is_stepped || !seam_jitdump_line(&lines, &entry))
		return NULL;
	return entry.name;
}

static bool is_same_name(const char *whole, const char *lost, size_t size)
{
	return whole && size > OVERWRITTEN && strlen(whole) == size &&
	       memcmp(whole + OVERWRITTEN, lost + OVERWRITTEN,
		      size - OVERWRITTEN) == 0;
}

/* The name of @size bytes that @lost once was, or "". */
static const char *find_name(const struct seam_jitdump_debug_info *infos,
			     size_t n, size_t at, enum seam_endian endian,
			     const char *lost, size_t size)
{
	for (size_t d = 1; d <= NEARBY; d++) {
		const char *name = NULL;

		if (d <= at)
			name = whole_name(&infos[at - d], endian);
		if (is_same_name(name, lost, size))
			return name;
		name = d < n - at ? whole_name(&infos[at + d], endian) : NULL;
		if (is_same_name(name, lost, size))
			return name;
	}
	return "";
}

int seam_jit_lines_read(const struct seam_jitdump_debug_info *infos, size_t n,
			size_t at, enum seam_endian endian, uint64_t shift,
			uint64_t start_addr, uint64_t size,
			struct seam_arena *arena,
			struct seam_jit_line_table *table)
{
	const struct seam_jitdump_debug_info *info = &infos[at];
	struct seam_jitdump_lines lines = seam_jitdump_lines_make(info, endian);
	size_t max = info->entries.size / (ENTRY_FIXED + 1);
	size_t step = lines.step;
	struct seam_jitdump_debug_entry entry;
	const char *found = NULL;

	*table = (struct seam_jit_line_table) { 0 };
	if (max > info->nr_entry)
		max = (size_t)info->nr_entry;
	table->items = seam_arena_alloc(arena, (max + 1) *
				       sizeof(*table->items));
	if (!table->items)
		return -ENOMEM;
	while (seam_jitdump_line(&lines, &entry)) {
		uint64_t addr = entry.code_addr - shift;

		if (addr - start_addr >= size)
			continue;
		/* One function's names were lost alike. */
		if (step && !found)
			found = find_name(infos, n, at, endian, entry.name,
					  step - ENTRY_FIXED - 1);
		table->items[table->n++] = (struct seam_jit_line) {
			.addr = addr,
			.line = entry.line,
			.column = entry.discrim,
			.file = step ? found : entry.name,
		};
	}
	table->has_lost_names = found && !*found;
	/* Rows of one address stay in order, so that the last one wins. */
	return SEAM_RADIX_SORT(table, addr);
}
