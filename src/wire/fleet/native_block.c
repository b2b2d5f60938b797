/* SPDX-License-Identifier: MIT */
/* native_block.c - columns of numbers, texts and arrays; see native_block.h */
#include "wire/fleet/native_block.h"

#include <errno.h>

#include "base/text.h"

const char *const seam_native_types[SEAM_N_NATIVE_TYPES] = {
	[SEAM_NATIVE_U8] = "UInt8",
	[SEAM_NATIVE_U16] = "UInt16",
	[SEAM_NATIVE_U32] = "UInt32",
	[SEAM_NATIVE_U64] = "UInt64",
	[SEAM_NATIVE_I32] = "Int32",
	[SEAM_NATIVE_DATE] = "Date",
	[SEAM_NATIVE_STRING] = "String",
	[SEAM_NATIVE_SHORTS] = "Array(UInt16)",
	[SEAM_NATIVE_NUMBERS] = "Array(UInt64)",
	[SEAM_NATIVE_STRINGS] = "Array(String)",
};

/* The type of the elements of an array; of all else the type itself. */
static enum seam_native_type element_of(enum seam_native_type type)
{
	return type == SEAM_NATIVE_SHORTS ? SEAM_NATIVE_U16 :
	       type == SEAM_NATIVE_NUMBERS ? SEAM_NATIVE_U64 :
	       type == SEAM_NATIVE_STRINGS ? SEAM_NATIVE_STRING : type;
}

size_t seam_native_size(enum seam_native_type type)
{
	switch (element_of(type)) {
	case SEAM_NATIVE_U8: return 1;
	case SEAM_NATIVE_U16: return 2;
	case SEAM_NATIVE_DATE: return 2;
	case SEAM_NATIVE_U32: return 4;
	case SEAM_NATIVE_I32: return 4;
	case SEAM_NATIVE_U64: return 8;
	default: return 0;
	}
}

/* -- write -------------------------------------------------------------- */

/* Room for @size bytes, or NULL with the buffer marked. */
static uint8_t *claim(struct seam_native_buffer *to, size_t size)
{
	if (to->is_bad || !SEAM_ARRAY_RESERVE(&to->bytes, size)) {
		to->is_bad = true;
		return NULL;
	}
	to->bytes.n += size;
	return to->bytes.items + to->bytes.n - size;
}

static void put_leb128(struct seam_native_buffer *to, uint64_t value)
{
	uint8_t bytes[10], *p;
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (uint8_t)(value | 0x80);
	bytes[n++] = (uint8_t)value;
	p = claim(to, n);
	if (p)
		memcpy(p, bytes, n);
}

void seam_native_put_text(struct seam_native_buffer *to, const char *text)
{
	size_t size = strlen(text);
	uint8_t *p;

	put_leb128(to, size);
	p = claim(to, size);
	if (p && size)
		memcpy(p, text, size);
}

void seam_native_put(struct seam_native_buffer *to, enum seam_native_type type,
		     uint64_t value)
{
	size_t size = seam_native_size(type);
	uint8_t *p = claim(to, size);

	for (size_t i = 0; p && i < size; i++, value >>= 8)
		p[i] = (uint8_t)value;
}

void seam_native_begin(struct seam_native_buffer *to, size_t n_columns,
		       size_t n_rows)
{
	put_leb128(to, n_columns);
	put_leb128(to, n_rows);
}

void seam_native_column(struct seam_native_buffer *to, const char *name,
			enum seam_native_type type)
{
	seam_native_put_text(to, name);
	seam_native_put_text(to, seam_native_types[type]);
}

/* -- read --------------------------------------------------------------- */

static int is_cut(const struct seam_cursor *c, struct seam_err *err)
{
	return seam_err_set(err, c->error, "a block is cut at byte %zu",
			    c->error_pos);
}

int seam_native_next_block(struct seam_native_block *block,
			   struct seam_cursor *from, size_t max_rows,
			   struct seam_err *err)
{
	uint64_t n_columns, n_rows;
	size_t at = from->pos;

	if (!from->error && !seam_cursor_left(from))
		return 0;
	n_columns = seam_cursor_uleb128(from);
	n_rows = seam_cursor_uleb128(from);
	/* two texts a column, which may be empty for all that is known yet */
	if (!from->error && seam_cursor_count(from, n_columns, 2) &&
	    n_rows > max_rows)
		seam_cursor_fail(from, -EBADMSG, at);
	if (!n_columns && n_rows)
		seam_cursor_fail(from, -EBADMSG, at);
	if (from->error == -EBADMSG)
		return seam_err_set(err, -EBADMSG, "byte %zu: a block of %ju "
				    "columns and %ju rows", at,
				    (uintmax_t)n_columns, (uintmax_t)n_rows);
	if (from->error)
		return is_cut(from, err);
	*block = (struct seam_native_block) {
		.from = from, .n_rows = (size_t)n_rows,
		.n_columns = (size_t)n_columns,
	};
	return 1;
}

static struct seam_bytes take_text(struct seam_cursor *c)
{
	uint64_t size = seam_cursor_uleb128(c);
	const uint8_t *text;

	if (size > SIZE_MAX)
		seam_cursor_fail(c, -ENODATA, c->pos);
	text = seam_cursor_bytes(c, (size_t)size);
	return text ? (struct seam_bytes) { text, (size_t)size } :
	       (struct seam_bytes) { 0 };
}

static enum seam_native_type type_of(struct seam_bytes name)
{
	unsigned int i = 0;

	while (i < SEAM_N_NATIVE_TYPES &&
	       (strlen(seam_native_types[i]) != name.size ||
		memcmp(seam_native_types[i], name.data, name.size) != 0))
		i++;
	return i;
}

static int no_such_type(struct seam_bytes type, struct seam_err *err)
{
	char text[64], shown[128];

	snprintf(text, sizeof(text), "%.*s", type.size < 40 ? (int)type.size :
		 40, (const char *)type.data);
	return seam_err_set(err, -ENOTSUP, "a column has type '%s'",
			    seam_text_copy(shown, sizeof(shown), text,
					   SEAM_TEXT_TERMINAL));
}

/* Where the arrays of all rows end; the last end is the number of elements. */
static void take_ends(struct seam_cursor *from, size_t n_rows,
		      struct seam_native_column *column)
{
	uint64_t end = 0, next;
	struct seam_cursor all;

	if (!seam_cursor_count(from, n_rows, sizeof(end)) && n_rows)
		return;
	column->ends = seam_cursor_split(from, n_rows * sizeof(end));
	all = column->ends;
	for (size_t i = 0; i < n_rows; i++, end = next) {
		next = seam_cursor_u64(&all);
		if (next < end || next > SIZE_MAX)
			seam_cursor_fail(from, -EBADMSG, from->pos);
	}
	column->n_values = (size_t)end;
}

/* Move @from past all values of @column, which begin there. */
static void take_values(struct seam_cursor *from,
			struct seam_native_column *column)
{
	size_t size = seam_native_size(column->type), start = from->pos;

	if (seam_cursor_count(from, column->n_values, size ? size : 1) !=
	    column->n_values)
		return;
	if (size)
		seam_cursor_skip(from, column->n_values * size);
	for (size_t i = 0; !size && !from->error && i < column->n_values; i++)
		take_text(from);
	if (!from->error)
		column->values = seam_cursor_make(from->base + start,
						  from->pos - start,
						  SEAM_LITTLE);
}

int seam_native_next_column(struct seam_native_block *block,
			    struct seam_native_column *column,
			    struct seam_err *err)
{
	struct seam_cursor *from = block->from;
	struct seam_bytes type;

	if (!block->n_columns)
		return 0;
	block->n_columns--;
	*column = (struct seam_native_column) { .name = take_text(from) };
	type = take_text(from);
	if (from->error)
		return is_cut(from, err);
	column->type = type_of(type);
	column->n_values = block->n_rows;
	if (column->type == SEAM_N_NATIVE_TYPES)
		return no_such_type(type, err);
	if (element_of(column->type) != column->type)
		take_ends(from, block->n_rows, column);
	take_values(from, column);
	if (from->error == -EBADMSG)
		return seam_err_set(err, -EBADMSG, "byte %zu: the sizes of a "
				    "column are wrong", from->error_pos);
	return from->error ? is_cut(from, err) : 1;
}

uint64_t seam_native_number(struct seam_native_column *column)
{
	switch (seam_native_size(column->type)) {
	case 1: return seam_cursor_u8(&column->values);
	case 2: return seam_cursor_u16(&column->values);
	case 4: return seam_cursor_u32(&column->values);
	default: return seam_cursor_u64(&column->values);
	}
}

struct seam_bytes seam_native_text(struct seam_native_column *column)
{
	return take_text(&column->values);
}

size_t seam_native_length(struct seam_native_column *column)
{
	uint64_t before = column->ends.pos ?
		seam_u64_at(column->ends.base + column->ends.pos - 8) : 0;

	/* in order: take_ends() looked at all of them */
	return (size_t)(seam_cursor_u64(&column->ends) - before);
}
