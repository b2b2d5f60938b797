/* SPDX-License-Identifier: MIT */
/* eh_frame.c - CIEs, FDEs and their table of contents; see eh_frame.h */
#include "wire/eh_frame.h"

#include <errno.h>

#include "base/array.h"

enum {
	LENGTH_IS_64 = 0xffffffff,
	HEADER_VERSION = 1,
	/* Formats.  Source: LSB Core 5.0, table 10-1. */
	INDIRECT = 0x80,	/* a bit: the address of the address */
	ULEB128 = 0x01, UDATA2 = 0x02, UDATA4 = 0x03, UDATA8 = 0x04,
	SLEB128 = 0x09, SDATA2 = 0x0a, SDATA8 = 0x0c,
	/* Bytes of a row in the table of contents: two of SDATA4. */
	ROW_BYTES = 8,
};

/* A value of @format, sign-extended where it has a sign. */
static uint64_t stored(struct seam_cursor *c, uint8_t format,
		       uint8_t address_bytes)
{
	if (format == SEAM_EH_PE_ABSPTR)
		format = address_bytes == 4 ? UDATA4 : UDATA8;
	switch (format) {
	case ULEB128:
		return seam_cursor_uleb128(c);
	case SLEB128:
		return (uint64_t)seam_cursor_sleb128(c);
	case UDATA2:
		return seam_cursor_u16(c);
	case SDATA2:
		return (uint64_t)(int16_t)seam_cursor_u16(c);
	case UDATA4:
		return seam_cursor_u32(c);
	case SEAM_EH_PE_SDATA4:
		return (uint64_t)(int32_t)seam_cursor_u32(c);
	case UDATA8:
	case SDATA8:
		return seam_cursor_u64(c);
	default:
		seam_cursor_fail(c, -ENOTSUP, c->pos);
		return 0;
	}
}

uint64_t seam_eh_address(struct seam_cursor *c, uint8_t encoding,
			 uint8_t address_bytes, uint64_t addr,
			 uint64_t data_addr)
{
	uint64_t here = addr + c->pos;
	uint64_t value = stored(c, encoding & SEAM_EH_PE_FORMAT,
				address_bytes);

	if (encoding & INDIRECT)
		seam_cursor_fail(c, -ENOTSUP, c->pos);
	switch (encoding & SEAM_EH_PE_BASE) {
	case SEAM_EH_PE_ABSPTR:
		break;
	case SEAM_EH_PE_PCREL:
		value += here;
		break;
	case SEAM_EH_PE_DATAREL:
		value += data_addr;
		break;
	default:
		seam_cursor_fail(c, -ENOTSUP, c->pos);
	}
	return address_bytes == 4 ? (uint32_t)value : value;
}

/* --- entries --- */

/* An entry's body as a window.  Its id distinguishes CIE from FDE. */
struct cfi_entry {
	struct seam_cursor c;
	size_t body_offset;	/* in the section, of @c's first byte */
	size_t next;		/* offset in the section */
	uint64_t id;
	size_t id_offset;	/* in the section */
	bool is_empty;		/* a terminator */
};

static int read_entry(const struct seam_eh_frame *frame, size_t offset,
		      struct cfi_entry *e)
{
	struct seam_cursor c = seam_cursor_make(frame->entries.data,
						frame->entries.size,
						frame->endian);
	uint64_t length;
	bool is_64;

	seam_cursor_skip(&c, offset);
	length = seam_cursor_u32(&c);
	is_64 = length == LENGTH_IS_64;
	if (is_64)
		length = seam_cursor_u64(&c);
	*e = (struct cfi_entry) { .body_offset = c.pos };
	if (c.error || length > seam_cursor_left(&c))
		return -ENODATA;
	e->c = seam_cursor_split(&c, (size_t)length);
	e->next = c.pos;
	e->is_empty = length == 0;
	e->id_offset = e->body_offset;
	/* in .eh_frame the id has 4 bytes whatever the length has */
	e->id = is_64 && frame->is_debug_frame ? seam_cursor_u64(&e->c) :
						 seam_cursor_u32(&e->c);
	if (frame->is_debug_frame && !is_64 && e->id == UINT32_MAX)
		e->id = UINT64_MAX;
	return 0;
}

static bool is_cie(const struct seam_eh_frame *frame, const struct cfi_entry *e)
{
	return e->id == (frame->is_debug_frame ? UINT64_MAX : 0);
}

/*
 * The data of each letter of an augmentation.  An unknown letter ends the
 * reading: the size of its data is not known.  With "z" the whole has a size.
 */
static void read_augmentation(struct seam_cursor *data, const char *letters,
			      struct seam_eh_cie *cie)
{
	uint8_t encoding;

	for (; *letters && !data->error; letters++) {
		switch (*letters) {
		case 'R':
			cie->address_encoding = seam_cursor_u8(data);
			break;
		case 'L':
			seam_cursor_skip(data, 1);
			break;
		case 'P':
			encoding = seam_cursor_u8(data);
			if (encoding != SEAM_EH_PE_OMIT)
				stored(data, encoding & SEAM_EH_PE_FORMAT,
				       cie->address_bytes);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':		/* arm64: pointers signed by key B */
		case 'G':		/* arm64: the stack is tagged */
			break;
		default:
			return;
		}
	}
}

static int read_cie(const struct seam_eh_frame *frame, size_t offset,
		    struct seam_eh_cie *cie)
{
	struct seam_cursor data;
	const char *letters;
	struct cfi_entry e;
	uint8_t version;

	if (read_entry(frame, offset, &e) < 0 || e.is_empty || e.c.error ||
	    e.c.size > SEAM_EH_MAX_CIE || !is_cie(frame, &e))
		return -EBADMSG;
	*cie = (struct seam_eh_cie) {
		.offset = offset, .address_bytes = frame->address_bytes,
	};
	version = seam_cursor_u8(&e.c);
	letters = seam_cursor_cstr(&e.c);
	if (e.c.error || (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	if (version == 4) {
		cie->address_bytes = seam_cursor_u8(&e.c);
		if (seam_cursor_u8(&e.c) != 0)	/* segment selectors */
			return -EBADMSG;
	}
	cie->code_factor = seam_cursor_uleb128(&e.c);
	cie->data_factor = seam_cursor_sleb128(&e.c);
	cie->return_register = version == 1 ? seam_cursor_u8(&e.c) :
					      seam_cursor_uleb128(&e.c);
	if (letters[0] == 'z') {
		cie->has_augmentation_data = true;
		data = seam_cursor_split(&e.c, seam_cursor_count(&e.c,
				seam_cursor_uleb128(&e.c), 1));
		read_augmentation(&data, letters + 1, cie);
		if (data.error)
			return -EBADMSG;
	} else if (letters[0]) {
		return -EBADMSG;	/* "eh" of gcc 2 */
	}
	if (e.c.error ||
	    (cie->address_bytes != 4 && cie->address_bytes != 8))
		return -EBADMSG;
	cie->instructions = (struct seam_bytes) {
		e.c.base + e.c.pos, seam_cursor_left(&e.c) };
	cie->instructions_offset = e.body_offset + e.c.pos;
	return 0;
}

static int read_fde(const struct seam_eh_frame *frame, struct cfi_entry *e,
		    struct seam_eh_fde *fde)
{
	size_t at = SIZE_MAX;		/* where its CIE begins */
	const struct seam_eh_cie *cie = &fde->cie;
	uint64_t body_addr = frame->entries_addr + e->body_offset;
	uint64_t range;

	if (frame->is_debug_frame && e->id < frame->entries.size)
		at = (size_t)e->id;
	else if (!frame->is_debug_frame && e->id <= e->id_offset)
		at = e->id_offset - (size_t)e->id;
	if (at == SIZE_MAX || e->c.size > SEAM_EH_MAX_FDE)
		return -EBADMSG;
	if ((!cie->instructions.data || cie->offset != at) &&
	    read_cie(frame, at, &fde->cie) < 0) {
		fde->cie.instructions.data = NULL;
		return -EBADMSG;
	}
	fde->start = seam_eh_address(&e->c, cie->address_encoding,
				     cie->address_bytes, body_addr, 0);
	range = stored(&e->c, cie->address_encoding & SEAM_EH_PE_FORMAT,
		       cie->address_bytes);
	if (cie->has_augmentation_data)
		seam_cursor_skip(&e->c, seam_cursor_count(&e->c,
				 seam_cursor_uleb128(&e->c), 1));
	if (e->c.error || range == 0 || range > UINT64_MAX - fde->start)
		return -EBADMSG;
	fde->end = fde->start + range;
	fde->instructions = (struct seam_bytes) {
		e->c.base + e->c.pos, seam_cursor_left(&e->c) };
	fde->instructions_offset = e->body_offset + e->c.pos;
	return 0;
}

int seam_eh_frame_entry(const struct seam_eh_frame *frame, size_t offset,
			struct seam_eh_fde *fde, size_t *next)
{
	struct cfi_entry e;

	if (offset >= frame->entries.size ||
	    read_entry(frame, offset, &e) < 0)
		return -ENODATA;
	if (e.is_empty && frame->ends_at_terminator)
		return -ENODATA;
	*next = e.next;
	return !e.is_empty && !e.c.error && !is_cie(frame, &e) &&
	       read_fde(frame, &e, fde) == 0;
}

/* --- the table of contents --- */

struct contents {
	const uint8_t *rows;
	size_t n;
	bool swap;
};

static int read_contents(const struct seam_eh_frame *frame,
			 struct contents *contents)
{
	struct seam_cursor c = seam_cursor_make(frame->header.data,
						frame->header.size,
						frame->endian);
	uint8_t version = seam_cursor_u8(&c), entries = seam_cursor_u8(&c);
	uint8_t count = seam_cursor_u8(&c), table = seam_cursor_u8(&c);
	uint64_t n;

	if (frame->header.size == 0 || version != HEADER_VERSION ||
	    entries == SEAM_EH_PE_OMIT || count == SEAM_EH_PE_OMIT ||
	    table != (SEAM_EH_PE_DATAREL | SEAM_EH_PE_SDATA4))
		return -ENOTSUP;
	stored(&c, entries & SEAM_EH_PE_FORMAT, frame->address_bytes);
	n = stored(&c, count & SEAM_EH_PE_FORMAT, frame->address_bytes);
	contents->n = seam_cursor_count(&c, n, ROW_BYTES);
	contents->rows = c.base + c.pos;
	contents->swap = c.swap;
	return c.error ? -EBADMSG : 0;
}

/* Column @column of row @i, an address relative to the header's. */
static int32_t cell(const struct contents *contents, size_t i, size_t column)
{
	uint32_t value;

	memcpy(&value, contents->rows + i * ROW_BYTES + 4 * column, 4);
	return (int32_t)(contents->swap ? __builtin_bswap32(value) : value);
}

int seam_eh_frame_find(const struct seam_eh_frame *frame, uint64_t addr,
		       struct seam_eh_fde *fde)
{
	struct contents contents;
	uint64_t entry_addr;
	struct cfi_entry e;
	size_t row;
	int r = read_contents(frame, &contents);

	if (r < 0)
		return r;
	/* rows that begin at or before @addr */
	row = SEAM_ARRAY_SEARCH(i, contents.n, cell(&contents, i, 0) <=
				(int64_t)(addr - frame->header_addr));
	if (row == 0)
		return 0;
	entry_addr = frame->header_addr +
		     (uint64_t)(int64_t)cell(&contents, row - 1, 1);
	if (entry_addr - frame->entries_addr >= frame->entries.size ||
	    read_entry(frame, (size_t)(entry_addr - frame->entries_addr),
		       &e) < 0 ||
	    e.is_empty || e.c.error || is_cie(frame, &e) ||
	    read_fde(frame, &e, fde) < 0)
		return -EBADMSG;
	return addr >= fde->start && addr < fde->end;
}

bool seam_eh_frame_addr(const struct seam_eh_frame *frame, uint64_t *addr)
{
	struct seam_cursor c = seam_cursor_make(frame->header.data,
						frame->header.size,
						frame->endian);
	uint8_t version = seam_cursor_u8(&c), encoding = seam_cursor_u8(&c);

	seam_cursor_skip(&c, 2);	/* encodings of count and table */
	if (version != HEADER_VERSION || encoding == SEAM_EH_PE_OMIT)
		return false;
	*addr = seam_eh_address(&c, encoding, frame->address_bytes,
				frame->header_addr, frame->header_addr);
	return !c.error;
}
