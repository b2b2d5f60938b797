/* SPDX-License-Identifier: MIT */
/*
 * native_block.h - blocks of columns in ClickHouse's format Native
 *
 * A block is a number of columns, a number of rows, and for each column its
 * name, its type and all its values.  A server stores a block at once or, where
 * the block is cut, not at all.  The form without a protocol version, which
 * HTTP has: all servers read and write it.
 *
 * Source: ClickHouse, docs "Formats / Native", and src/Formats/
 * NativeReader.cpp (18.16: dbms/src/DataStreams/NativeBlockInputStream.cpp),
 * server_revision 0.
 *
 *	block	= LEB128 columns, LEB128 rows, column*
 *	column	= text name, text type, value{rows}
 *	text	= LEB128 size, byte{size}
 *	value	of UInt*, Int32, Date (UInt16, days since 1970): little-endian
 *		of String: text
 *		of Array(T): UInt64 ends of all rows, then all elements
 */
#pragma once

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"

enum seam_native_type {
	SEAM_NATIVE_U8,
	SEAM_NATIVE_U16,
	SEAM_NATIVE_U32,
	SEAM_NATIVE_U64,
	SEAM_NATIVE_I32,
	SEAM_NATIVE_DATE,
	SEAM_NATIVE_STRING,
	SEAM_NATIVE_SHORTS,	/* Array(UInt16) */
	SEAM_NATIVE_NUMBERS,	/* Array(UInt64) */
	SEAM_NATIVE_STRINGS,	/* Array(String) */
	SEAM_N_NATIVE_TYPES,
};

/* "UInt8", ..., "Array(String)". */
extern const char *const seam_native_types[SEAM_N_NATIVE_TYPES];

/* Bytes of a value; of an array those of an element; 0 of strings. */
size_t seam_native_size(enum seam_native_type type);

/* -- write -------------------------------------------------------------- */

/* Zeroed is valid and empty; free(bytes.items) ends it. */
struct seam_native_buffer {
	SEAM_ARRAY(uint8_t) bytes;
	bool is_bad;		/* memory ran out: the bytes are incomplete */
};

void seam_native_begin(struct seam_native_buffer *to, size_t n_columns,
		       size_t n_rows);
void seam_native_column(struct seam_native_buffer *to, const char *name,
			enum seam_native_type type);
/* The next value of a column, or element of an array. */
void seam_native_put(struct seam_native_buffer *to, enum seam_native_type type,
		     uint64_t value);
void seam_native_put_text(struct seam_native_buffer *to, const char *text);

/* -- read --------------------------------------------------------------- */

struct seam_native_block {
	struct seam_cursor *from;
	size_t n_rows;
	size_t n_columns;	/* that are not yet read */
};

/* Borrows; its values are read in their order. */
struct seam_native_column {
	struct seam_bytes name;
	enum seam_native_type type;
	struct seam_cursor ends;	/* of arrays: where each row ends */
	struct seam_cursor values;
	size_t n_values;
};

/*
 * 1 with the next block of @from, whose rows are at most @max_rows; 0 at the
 * end of the data; -ENODATA where it is cut, -EBADMSG where it is damaged.
 */
int seam_native_next_block(struct seam_native_block *block,
			   struct seam_cursor *from, size_t max_rows,
			   struct seam_err *err);

/*
 * 1 with the next column, all of whose values are whole; 0 after the last; or
 * -errno: also -ENOTSUP, of a type that is not listed above.
 */
int seam_native_next_column(struct seam_native_block *block,
			    struct seam_native_column *column,
			    struct seam_err *err);

/* The next number: of Int32 with the bits of a negative one. */
uint64_t seam_native_number(struct seam_native_column *column);
struct seam_bytes seam_native_text(struct seam_native_column *column);
/* How many elements the next row of an array has. */
size_t seam_native_length(struct seam_native_column *column);
