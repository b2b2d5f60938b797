/* SPDX-License-Identifier: MIT */
/* gopclntab.c - header, table and names; the contract is in gopclntab.h */
#include "symbol/elf/gopclntab.h"

/* Source: src/internal/abi/symtab.go. */
enum {
	MAGIC_1_2 = 0xfffffffb,
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
};

/* Longer names are damage. */
enum { MAX_NAME = 64 * 1024 };

static struct seam_cursor cursor_at(const struct seam_gopclntab *t,
				    uint64_t pos)
{
	size_t at = pos < t->bytes.size ? (size_t)pos : t->bytes.size;

	return seam_cursor_make(t->bytes.data + at, t->bytes.size - at,
				t->endian);
}

static uint64_t read_word(struct seam_cursor *c, unsigned int bytes)
{
	return bytes == 4 ? seam_cursor_u32(c) : seam_cursor_u64(c);
}

/* The header after the eight bytes that all versions begin with. */
static void read_places(struct seam_gopclntab *t, struct seam_cursor *c,
			uint32_t magic)
{
	t->n = (size_t)read_word(c, t->addr_bytes);
	t->word_bytes = t->addr_bytes;
	if (magic == MAGIC_1_2) {
		t->table_pos = c->pos;
		return;
	}
	read_word(c, t->addr_bytes);		/* files */
	if (magic != MAGIC_1_16) {
		t->word_bytes = 4;
		t->text_addr_pos = c->pos;
		t->text_addr = read_word(c, t->addr_bytes);
	}
	t->names_pos = read_word(c, t->addr_bytes);
	read_word(c, t->addr_bytes);		/* compilation units */
	read_word(c, t->addr_bytes);		/* names of files */
	read_word(c, t->addr_bytes);		/* pc-value tables */
	t->table_pos = read_word(c, t->addr_bytes);
}

bool seam_gopclntab_open(struct seam_gopclntab *t, struct seam_bytes bytes,
			 enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(bytes, endian);
	uint32_t magic = seam_cursor_u32(&c);

	*t = (struct seam_gopclntab) { .bytes = bytes, .endian = endian };
	seam_cursor_skip(&c, 3);		/* 0, 0, unit of code */
	t->addr_bytes = seam_cursor_u8(&c);
	if ((magic != MAGIC_1_2 && magic != MAGIC_1_16 &&
	     magic != MAGIC_1_18 && magic != MAGIC_1_20) ||
	    (t->addr_bytes != 4 && t->addr_bytes != 8))
		return false;
	read_places(t, &c, magic);
	if (c.error)
		return false;
	/* After the last function's entry comes the end of its code. */
	c = cursor_at(t, t->table_pos);
	return seam_cursor_count(&c, t->n, 2 * (size_t)t->word_bytes) > 0;
}

bool seam_gopclntab_function(const struct seam_gopclntab *t, size_t i,
			     struct seam_gofunction *out)
{
	struct seam_cursor c = cursor_at(t, t->table_pos +
					 i * 2 * t->word_bytes);
	uint64_t start = read_word(&c, t->word_bytes);
	uint64_t function = read_word(&c, t->word_bytes);
	uint64_t end = read_word(&c, t->word_bytes);
	uint32_t name;

	if (c.error || i >= t->n || function > t->bytes.size)
		return false;
	/* Offsets of functions count from the table since it has a header. */
	c = cursor_at(t, function + (t->names_pos ? t->table_pos : 0));
	read_word(&c, t->word_bytes);		/* its first address again */
	name = seam_cursor_u32(&c);
	if (c.error || name > t->bytes.size || t->names_pos > t->bytes.size)
		return false;
	c = cursor_at(t, t->names_pos + name);
	if (c.size > MAX_NAME)
		c.size = MAX_NAME;
	*out = (struct seam_gofunction) {
		.start_addr = t->text_addr + start,
		.end_addr = t->text_addr + end,
		.name = seam_cursor_cstr(&c),
	};
	return out->name && *out->name && out->end_addr > out->start_addr;
}
