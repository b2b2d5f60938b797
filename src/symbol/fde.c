/* SPDX-License-Identifier: MIT */
/* fde.c - CIEs and FDEs one after the other; the contract is in fde.h */
#include "symbol/fde.h"

#include <errno.h>

/* Pointer encodings.  Source: LSB 5.0 Core, 10.5.1 "DWARF Exception Header". */
enum {
	ABSPTR = 0x00,
	ULEB128 = 0x01,
	UDATA2 = 0x02,
	UDATA4 = 0x03,
	UDATA8 = 0x04,
	SLEB128 = 0x09,
	SDATA2 = 0x0a,
	SDATA4 = 0x0b,
	SDATA8 = 0x0c,
	FORMAT = 0x0f,
	PCREL = 0x10,
	APPLICATION = 0x70,
	INDIRECT = 0x80,
	OMIT = 0xff,
};

/* A length of this means that the real one has 64 bits and follows. */
#define LENGTH_IS_64 UINT32_MAX

/* Where augmentation strings end; real ones have at most six letters. */
enum { MAX_AUGMENTATION = 16 };

/* What FDEs need of their CIE. */
struct cie {
	uint8_t encoding;
	bool is_signal_frame;
};

/* The bytes of one entry behind its length. */
struct entry {
	struct seam_cursor c;
	size_t pos;		/* of these, in the section */
	bool is_64;
};

static struct seam_cursor cursor_at(const struct seam_fde_reader *r, size_t pos)
{
	return seam_cursor_make(r->bytes.data + pos, r->bytes.size - pos,
				r->endian);
}

/* False: there is none at @pos. */
static bool read_entry(const struct seam_fde_reader *r, size_t pos,
		       struct entry *out)
{
	struct seam_cursor c = cursor_at(r, pos);
	uint64_t length = seam_cursor_u32(&c);

	out->is_64 = length == LENGTH_IS_64;
	if (out->is_64)
		length = seam_cursor_u64(&c);
	if (c.error || length == 0 || length > seam_cursor_left(&c))
		return false;
	out->pos = pos + c.pos;
	out->c = seam_cursor_split(&c, (size_t)length);
	return true;
}

/* 0 in a CIE; in an FDE how far before this field its CIE is. */
static uint64_t read_id(struct entry *e)
{
	return e->is_64 ? seam_cursor_u64(&e->c) : seam_cursor_u32(&e->c);
}

static uint64_t read_value(struct seam_cursor *c, uint8_t format,
			   unsigned int addr_bytes)
{
	switch (format) {
	case ABSPTR:
		return addr_bytes == 4 ? seam_cursor_u32(c) :
		       seam_cursor_u64(c);
	case ULEB128:
		return seam_cursor_uleb128(c);
	case UDATA2:
		return seam_cursor_u16(c);
	case UDATA4:
		return seam_cursor_u32(c);
	case SLEB128:
		return (uint64_t)seam_cursor_sleb128(c);
	case SDATA2:
		return (uint64_t)(int16_t)seam_cursor_u16(c);
	case SDATA4:
		return (uint64_t)(int32_t)seam_cursor_u32(c);
	case UDATA8:
	case SDATA8:
		return seam_cursor_u64(c);
	}
	seam_cursor_fail(c, -ENOTSUP, c->pos);
	return 0;
}

/* A pointer that is at @addr. */
static uint64_t read_pointer(struct seam_cursor *c, uint8_t encoding,
			     uint64_t addr, unsigned int addr_bytes)
{
	uint64_t value = read_value(c, encoding & FORMAT, addr_bytes);

	if (encoding & INDIRECT ||
	    ((encoding & APPLICATION) != 0 &&
	     (encoding & APPLICATION) != PCREL))
		seam_cursor_fail(c, -ENOTSUP, c->pos);
	if ((encoding & APPLICATION) == PCREL)
		value += addr;
	return addr_bytes == 4 ? (uint32_t)value : value;
}

static const char *read_augmentation(struct seam_cursor *c)
{
	size_t left = seam_cursor_left(c);
	struct seam_cursor text = *c;
	const char *letters;

	text.size = c->pos + (left < MAX_AUGMENTATION ? left :
			      MAX_AUGMENTATION);
	letters = seam_cursor_cstr(&text);
	if (letters)
		seam_cursor_skip(c, text.pos - c->pos);
	else
		seam_cursor_fail(c, -EBADMSG, c->pos);
	return letters;
}

/* The personality routine's value is of no interest, only its size. */
static void skip_pointer(struct seam_cursor *c, unsigned int addr_bytes)
{
	uint8_t encoding = seam_cursor_u8(c);

	if (encoding != OMIT)
		read_value(c, encoding & FORMAT, addr_bytes);
}

static bool read_letters(struct seam_cursor *c, const char *letters,
			 unsigned int addr_bytes, struct cie *out)
{
	for (; *letters && !c->error; letters++) {
		switch (*letters) {
		case 'R':
			out->encoding = seam_cursor_u8(c);
			break;
		case 'P':
			skip_pointer(c, addr_bytes);
			break;
		case 'L':
			seam_cursor_u8(c);
			break;
		case 'S':
			out->is_signal_frame = true;
			break;
		case 'B':	/* pointer authentication, tagged stacks: */
		case 'G':	/* no data */
			break;
		default:
			return false;
		}
	}
	return !c->error;
}

static bool read_cie(const struct seam_fde_reader *r, size_t pos,
		     struct cie *out)
{
	const char *letters;
	struct entry e;
	uint8_t version;

	*out = (struct cie) { .encoding = ABSPTR };
	if (!read_entry(r, pos, &e) || read_id(&e) != 0)
		return false;
	version = seam_cursor_u8(&e.c);
	letters = read_augmentation(&e.c);
	if (!letters || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4)
		seam_cursor_skip(&e.c, 2);	/* sizes of addr, segment */
	seam_cursor_uleb128(&e.c);		/* code alignment */
	seam_cursor_sleb128(&e.c);		/* data alignment */
	if (version == 1)
		seam_cursor_u8(&e.c);		/* return address register */
	else
		seam_cursor_uleb128(&e.c);
	if (*letters == '\0')
		return !e.c.error;
	if (*letters != 'z')
		return false;
	seam_cursor_uleb128(&e.c);		/* bytes of what follows */
	return read_letters(&e.c, letters + 1, r->addr_bytes, out);
}

/* @e is an FDE, its CIE @id bytes before the id. */
static bool read_fde(const struct seam_fde_reader *r, struct entry *e,
		     uint64_t id, struct seam_fde *out)
{
	struct cie cie;

	if (e->c.error || id > e->pos ||
	    !read_cie(r, e->pos - (size_t)id, &cie))
		return false;
	out->start_addr = read_pointer(&e->c, cie.encoding,
				       r->addr + e->pos + e->c.pos,
				       r->addr_bytes);
	/* A size has the format of a pointer, and is relative to nothing. */
	out->size = read_pointer(&e->c, cie.encoding & FORMAT, 0,
				 r->addr_bytes);
	out->is_signal_frame = cie.is_signal_frame;
	return !e->c.error && out->size > 0 &&
	       out->size <= UINT64_MAX - out->start_addr;
}

bool seam_fde_next(struct seam_fde_reader *r, struct seam_fde *fde)
{
	struct entry e;

	while (r->pos < r->bytes.size && read_entry(r, r->pos, &e)) {
		uint64_t id = read_id(&e);

		r->pos = e.pos + e.c.size;
		if (id == 0)
			continue;
		if (read_fde(r, &e, id, fde))
			return true;
		r->n_bad++;
	}
	r->pos = r->bytes.size;
	return false;
}

bool seam_fde_find(struct seam_bytes header, uint64_t addr,
		   enum seam_endian endian, unsigned int addr_bytes,
		   uint64_t *eh_frame_addr)
{
	struct seam_cursor c = seam_cursor_make(header.data, header.size,
						endian);
	uint8_t version = seam_cursor_u8(&c);
	uint8_t encoding = seam_cursor_u8(&c);

	seam_cursor_skip(&c, 2);	/* encodings of the table behind it */
	if (version != 1 || encoding == OMIT)
		return false;
	*eh_frame_addr = read_pointer(&c, encoding, addr + c.pos, addr_bytes);
	return !c.error;
}
