/* SPDX-License-Identifier: MIT */
/* entries.c - the table of all pieces of code, and memory without malloc */
#include <string.h>
#include <sys/mman.h>

#include "traced/jit/writer.h"

void *seam_writer_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void seam_writer_unmap(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

bool seam_writer_grow(void *array, size_t size, size_t new_size)
{
	void *p = seam_writer_map(new_size), *old;

	if (!p)
		return false;
	memcpy(&old, array, sizeof(old));
	if (old)
		memcpy(p, old, size);
	seam_writer_barrier();
	memcpy(array, &p, sizeof(p));
	seam_writer_barrier();
	seam_writer_unmap(old, size);
	return true;
}

uint64_t seam_writer_add_entry(struct seam_writer_entries *entries,
			       uint64_t addr, uint64_t code_size)
{
	if (entries->n == entries->cap) {
		size_t size = entries->cap * sizeof(*entries->items);
		size_t cap = entries->cap ? 2 * entries->cap : 1024;

		if (!seam_writer_grow(&entries->items, size,
				      cap * sizeof(*entries->items)))
			return 0;
		entries->cap = cap;
	}
	entries->items[entries->n] = (struct seam_writer_entry) {
		.addr = addr, .code_size = code_size, .is_loaded = true,
	};
	seam_writer_barrier();
	return ++entries->n;
}

struct seam_writer_entry *seam_writer_find_entry(
		const struct seam_writer_entries *entries, uint64_t id)
{
	if (!id || id > entries->n || !entries->items[id - 1].is_loaded)
		return NULL;
	return &entries->items[id - 1];
}

/* Positions rise with ids. */
void seam_writer_drop_records(struct seam_writer_entries *entries,
			      uint64_t pos)
{
	for (size_t i = entries->n; i; i--) {
		struct seam_writer_entry *entry = &entries->items[i - 1];

		if (entry->size && entry->records.pos < pos)
			return;
		entry->size = 0;
	}
}
