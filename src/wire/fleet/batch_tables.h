/* SPDX-License-Identifier: MIT */
/*
 * batch_tables.h - the tables of a store of batches, and their columns
 *
 * One list, from which the tables are created in an engine, batches are encoded
 * as blocks of these tables (native_block.h), and blocks, of files and of the
 * answers of an engine, are decoded.
 */
#pragma once

#include "wire/fleet/batch.h"
#include "wire/fleet/native_block.h"

/* In the order in which they are stored: what rows refer to comes first. */
enum seam_batch_table_id {
	SEAM_TABLE_FRAMES,
	SEAM_TABLE_STACKS,
	SEAM_TABLE_SAMPLES,
	SEAM_TABLE_CALLS,
	SEAM_TABLE_LOSSES,
	SEAM_TABLE_BATCHES,	/* of the batch itself, one row */
	SEAM_N_BATCH_TABLES,
};

/* Where the value of a column is. */
enum seam_column_place {
	SEAM_COLUMN_ROW,	/* in the row */
	SEAM_COLUMN_ORIGIN,	/* in the row's origin; of BATCHES: the first */
	SEAM_COLUMN_BATCH,	/* in the batch */
	SEAM_COLUMN_DAY,	/* the day of from_ns */
	SEAM_COLUMN_COUNT,	/* the rows of the table @offset */
};

/* The elements of an array. */
enum seam_column_list {
	SEAM_COLUMN_NO_LIST,
	SEAM_COLUMN_FRAME_IDS,
	SEAM_COLUMN_LABELS,
	SEAM_COLUMN_BUCKETS,		/* before COUNTS */
	SEAM_COLUMN_BUCKET_COUNTS,
};

struct seam_batch_column {
	const char *name;
	enum seam_native_type type;
	enum seam_column_place place;
	/*
	 * Bytes from the start of the row, origin or batch: of a number with
	 * the size of its type, of a string's id, of a bool, of the first
	 * element of an array, which the number of elements follows.
	 */
	size_t offset;
	enum seam_column_list list;
	bool is_bool;
	bool is_signed;		/* -1 where a block has no such column */
};

struct seam_batch_table {
	const char *name;
	const struct seam_batch_column *columns;
	size_t n_columns;
	const char *key;	/* ORDER BY */
	/* rows of equal key are one: ReplacingMergeTree */
	bool is_replacing;
	bool by_day;		/* PARTITION BY day */
	size_t origin_offset;	/* of a row's origin; SIZE_MAX: it has none */
};

extern const struct seam_batch_table seam_batch_tables[SEAM_N_BATCH_TABLES];

/* How many rows @batch has for @table. */
size_t seam_batch_n_rows(const struct seam_batch *batch,
			 enum seam_batch_table_id table);

/* Days since 1970. */
uint16_t seam_batch_day(uint64_t utc_ns);

/* One block of all rows of @table, appended to @to, which is marked if bad. */
void seam_batch_encode(const struct seam_batch *batch,
		       enum seam_batch_table_id table,
		       struct seam_native_buffer *to);

/*
 * Append the rows of the next block of @from to @batch: 1, or 0 at the end of
 * the data, or -errno, with @batch to be freed.  Columns are found by name, in
 * any order; of those that are missing the values are 0 or -1, and columns of
 * the batch itself (day, agent, seq) are skipped.  -EBADMSG of a type that is
 * not the column's.  Names that are too long are cut.
 */
int seam_batch_decode(struct seam_batch *batch, enum seam_batch_table_id table,
		      struct seam_cursor *from, struct seam_err *err);
