/* SPDX-License-Identifier: MIT */
/*
 * build_id.c - three small reads: header, program headers, notes
 *
 * Files of the other byte order are not read: they do not run here.
 */
#include "symbol/elf/build_id.h"

#include "base/cursor.h"

#include <elf.h>
#include <unistd.h>

enum {
	MAX_SEGMENTS = 64,
	MAX_NOTE_BYTES = 16 * 1024,
	/* Source: ELF-64 Object File Format; and those of ELF-32. */
	PHOFF_POS_64 = 32, PHENTSIZE_POS_64 = 54,
	PHOFF_POS_32 = 28, PHENTSIZE_POS_32 = 42,
};

struct segments {
	uint64_t base;		/* of the file, in what is read */
	bool is_64;
	uint64_t offset;	/* in the file */
	uint16_t entry_bytes;
	uint16_t n;
	uint8_t table[MAX_SEGMENTS * sizeof(Elf64_Phdr)];
	size_t table_bytes;
};

static bool read_header(int fd, uint64_t base, struct segments *out)
{
	uint8_t bytes[64];
	ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)base);
	struct seam_cursor c = seam_cursor_make(bytes, n > 0 ? (size_t)n : 0,
						SEAM_NATIVE);
	const uint8_t *ident = seam_cursor_bytes(&c, EI_NIDENT);

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return false;
	out->base = base;
	out->is_64 = ident[EI_CLASS] == ELFCLASS64;
	c.pos = out->is_64 ? PHOFF_POS_64 : PHOFF_POS_32;
	out->offset = out->is_64 ? seam_cursor_u64(&c) : seam_cursor_u32(&c);
	c.pos = out->is_64 ? PHENTSIZE_POS_64 : PHENTSIZE_POS_32;
	out->entry_bytes = seam_cursor_u16(&c);
	out->n = seam_cursor_u16(&c);
	return !c.error && out->n <= MAX_SEGMENTS &&
	       out->entry_bytes == (out->is_64 ? sizeof(Elf64_Phdr) :
				    sizeof(Elf32_Phdr));
}

static void read_table(int fd, struct segments *segments)
{
	ssize_t n = pread(fd, segments->table,
			  (size_t)segments->n * segments->entry_bytes,
			  (off_t)(segments->base + segments->offset));

	segments->table_bytes = n > 0 ? (size_t)n : 0;
}

/* The place of a segment's bytes; false when it holds no notes. */
static bool read_segment(const struct segments *segments, size_t i,
			 uint64_t *offset, uint64_t *size)
{
	struct seam_cursor c = seam_cursor_make(segments->table,
						segments->table_bytes,
						SEAM_NATIVE);
	uint32_t type;

	seam_cursor_skip(&c, i * segments->entry_bytes);
	type = seam_cursor_u32(&c);
	if (segments->is_64) {
		seam_cursor_skip(&c, 4);	/* p_flags */
		*offset = seam_cursor_u64(&c);
		seam_cursor_skip(&c, 16);	/* p_vaddr, p_paddr */
		*size = seam_cursor_u64(&c);
	} else {
		*offset = seam_cursor_u32(&c);
		seam_cursor_skip(&c, 8);
		*size = seam_cursor_u32(&c);
	}
	return !c.error && type == PT_NOTE;
}

size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20])
{
	struct seam_cursor c = seam_cursor_over(notes, SEAM_NATIVE);

	while (!c.error && seam_cursor_left(&c) > 0) {
		uint32_t name_bytes = seam_cursor_u32(&c);
		uint32_t bytes = seam_cursor_u32(&c);
		uint32_t type = seam_cursor_u32(&c);
		const uint8_t *name = seam_cursor_bytes(&c, name_bytes);
		const uint8_t *value;

		seam_cursor_align(&c, 4);
		value = seam_cursor_bytes(&c, bytes);
		if (!c.error && type == NT_GNU_BUILD_ID && name_bytes == 4 &&
		    memcmp(name, "GNU", 4) == 0 && bytes > 0 && bytes <= 20) {
			memcpy(id, value, bytes);
			return bytes;
		}
		seam_cursor_align(&c, 4);
	}
	return 0;
}

size_t seam_build_id_read(int fd, uint8_t id[20])
{
	return seam_build_id_read_at(fd, 0, id);
}

size_t seam_build_id_read_at(int fd, uint64_t base, uint8_t id[20])
{
	uint8_t notes[MAX_NOTE_BYTES];
	struct segments segments;

	if (!read_header(fd, base, &segments))
		return 0;
	read_table(fd, &segments);
	for (size_t i = 0; i < segments.n; i++) {
		uint64_t offset, size;
		ssize_t n;
		size_t found;

		if (!read_segment(&segments, i, &offset, &size))
			continue;
		n = pread(fd, notes, size < sizeof(notes) ? (size_t)size :
			  sizeof(notes), (off_t)(base + offset));
		if (n <= 0)
			continue;
		found = seam_build_id_in_notes(
			(struct seam_bytes) { notes, (size_t)n }, id);
		if (found)
			return found;
	}
	return 0;
}
