/* SPDX-License-Identifier: MIT */
/* self_table.c - a table moved to read-only pages; see self_table.h */
#include "unwind/in_process/self_table.h"

#include <sys/mman.h>

#include "base/hash.h"

static size_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* Copy @items to *@to, which advances.  Where they are now. */
static void *place(uint8_t **to, const void *items, size_t size)
{
	void *at = *to;

	if (size)
		memcpy(at, items, size);
	*to += aligned(size);
	return at;
}

static size_t packed_bytes(const struct seam_unwind_table *table)
{
	const struct seam_unwind_rules *rules = &table->rules;

	return sizeof(struct seam_self_table) +
	       aligned(table->n * sizeof(*table->starts)) +
	       aligned(table->n * sizeof(*table->ids)) +
	       aligned(table->n_blocks * sizeof(*table->blocks)) +
	       aligned(rules->rules.n * sizeof(*rules->rules.items)) +
	       aligned(rules->saved.n * sizeof(*rules->saved.items)) +
	       aligned(rules->expressions.n);
}

static struct seam_self_table *pack(const struct seam_unwind_table *from)
{
	const struct seam_unwind_rules *rules = &from->rules;
	size_t size = packed_bytes(from);
	struct seam_self_table *packed =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct seam_unwind_table *to = &packed->table;
	uint8_t *at = (uint8_t *)(packed + 1);

	if (packed == MAP_FAILED)
		return NULL;
	packed->n_pages_bytes = size;
	to->base_addr = from->base_addr;
	to->n = from->n;
	to->starts = place(&at, from->starts,
			   from->n * sizeof(*from->starts));
	to->ids = place(&at, from->ids, from->n * sizeof(*from->ids));
	to->n_blocks = from->n_blocks;
	to->block_shift = from->block_shift;
	to->blocks = place(&at, from->blocks,
			   from->n_blocks * sizeof(*from->blocks));
	to->rules.rules.n = rules->rules.n;
	to->rules.rules.items = place(&at, rules->rules.items,
		rules->rules.n * sizeof(*rules->rules.items));
	to->rules.saved.n = rules->saved.n;
	to->rules.saved.items = place(&at, rules->saved.items,
		rules->saved.n * sizeof(*rules->saved.items));
	to->rules.expressions.n = rules->expressions.n;
	to->rules.expressions.items = place(&at, rules->expressions.items,
					    rules->expressions.n);
	return packed;
}

uint64_t seam_self_table_hash(const struct seam_eh_frame *frame)
{
	uint64_t hash = seam_hash_bytes(frame->header.data, frame->header.size,
					frame->header_addr);

	return seam_hash_bytes(frame->entries.data, frame->entries.size,
			       seam_hash_add(hash, frame->entries_addr));
}

struct seam_self_table *
seam_self_table_new(const struct seam_eh_frame *frame, uint64_t hash)
{
	struct seam_unwind_table table;
	struct seam_self_table *packed = NULL;

	if (seam_unwind_table_build(&table, frame, NULL) < 0)
		return NULL;
	if (table.n)
		packed = pack(&table);
	seam_unwind_table_fini(&table);
	if (!packed)
		return NULL;
	packed->hash = hash;
	packed->frame_bytes = frame->entries.size;
	mprotect(packed, packed->n_pages_bytes, PROT_READ);
	return packed;
}

void seam_self_table_free(struct seam_self_table *table)
{
	munmap(table, table->n_pages_bytes);
}
