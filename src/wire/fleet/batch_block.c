/* SPDX-License-Identifier: MIT */
/* batch_block.c - rows of a batch to and from columns; see batch_tables.h */
#include "wire/fleet/batch_tables.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* The rows of a table. */
struct rows {
	uint8_t *items;
	size_t n, size;		/* bytes of each */
};

#define ROWS(array) { (uint8_t *)(array).items, (array).n, \
		      sizeof(*(array).items) }

static struct rows rows_of(const struct seam_batch *batch,
			   enum seam_batch_table_id table)
{
	switch (table) {
	case SEAM_TABLE_FRAMES:
		return (struct rows)ROWS(batch->frames);
	case SEAM_TABLE_STACKS:
		return (struct rows)ROWS(batch->stacks);
	case SEAM_TABLE_SAMPLES:
		return (struct rows)ROWS(batch->samples);
	case SEAM_TABLE_CALLS:
		return (struct rows)ROWS(batch->calls);
	case SEAM_TABLE_LOSSES:
		return (struct rows)ROWS(batch->losses);
	default:
		return (struct rows) { .n = 1 };
	}
}

/* -- encode ------------------------------------------------------------- */

/* What a column's offset is of, for row @i. */
static const uint8_t *record_of(const struct seam_batch *batch,
				const struct seam_batch_table *table,
				const struct seam_batch_column *column,
				struct rows rows, size_t i)
{
	static const struct seam_batch_origin none;
	const uint8_t *row = rows.items ? rows.items + i * rows.size : NULL;
	uint32_t origin = 0;

	if (column->place == SEAM_COLUMN_ROW)
		return row;
	if (column->place != SEAM_COLUMN_ORIGIN)
		return (const uint8_t *)batch;
	if (table->origin_offset != SIZE_MAX)
		origin = seam_u32_at(row + table->origin_offset);
	return (const uint8_t *)(origin < batch->origins.n ?
				 &batch->origins.items[origin] : &none);
}

static uint64_t number_at(const struct seam_batch *batch,
			  const struct seam_batch_column *column,
			  const uint8_t *record)
{
	const uint8_t *at = record + column->offset;
	uint16_t u16;

	if (column->place == SEAM_COLUMN_DAY)
		return seam_batch_day(batch->from_ns);
	if (column->place == SEAM_COLUMN_COUNT)
		return seam_batch_n_rows(batch, (enum seam_batch_table_id)
					 column->offset);
	switch (seam_native_size(column->type)) {
	case 1: return *at;
	case 2: return memcpy(&u16, at, sizeof(u16)), u16;
	case 4: return seam_u32_at(at);
	default: return seam_u64_at(at);
	}
}

static void encode_element(const struct seam_batch *batch,
			   enum seam_column_list list, size_t i,
			   struct seam_native_buffer *to)
{
	switch (list) {
	case SEAM_COLUMN_FRAME_IDS:
		seam_native_put(to, SEAM_NATIVE_U64, batch->frame_ids.items[i]);
		break;
	case SEAM_COLUMN_BUCKETS:
		seam_native_put(to, SEAM_NATIVE_U16,
				batch->buckets.items[i].bucket);
		break;
	case SEAM_COLUMN_BUCKET_COUNTS:
		seam_native_put(to, SEAM_NATIVE_U64,
				batch->buckets.items[i].count);
		break;
	default:
		seam_native_put_text(to, seam_strings_get(&batch->strings,
						batch->labels.items[i]));
	}
}

static void encode_column(const struct seam_batch *batch,
			  const struct seam_batch_table *table,
			  const struct seam_batch_column *column,
			  struct rows rows, struct seam_native_buffer *to)
{
	uint64_t end = 0;

	seam_native_column(to, column->name, column->type);
	for (size_t i = 0; i < rows.n; i++) {
		const uint8_t *record = record_of(batch, table, column, rows,
						  i);

		if (column->list)
			seam_native_put(to, SEAM_NATIVE_U64,
					end += seam_u32_at(record +
							   column->offset + 4));
		else if (column->type == SEAM_NATIVE_STRING)
			seam_native_put_text(to, seam_strings_get(
				&batch->strings,
				seam_u32_at(record + column->offset)));
		else
			seam_native_put(to, column->type,
					number_at(batch, column, record));
	}
	for (size_t i = 0; column->list && i < rows.n; i++) {
		const uint8_t *record = record_of(batch, table, column, rows,
						  i);
		uint32_t first = seam_u32_at(record + column->offset);
		uint32_t n = seam_u32_at(record + column->offset + 4);

		for (uint32_t k = 0; k < n; k++)
			encode_element(batch, column->list, first + k, to);
	}
}

void seam_batch_encode(const struct seam_batch *batch,
		       enum seam_batch_table_id id,
		       struct seam_native_buffer *to)
{
	const struct seam_batch_table *table = &seam_batch_tables[id];
	struct rows rows = rows_of(batch, id);

	seam_native_begin(to, table->n_columns, rows.n);
	for (size_t i = 0; i < table->n_columns; i++)
		encode_column(batch, table, &table->columns[i], rows, to);
}

/* -- decode ------------------------------------------------------------- */

struct block_decoding {
	struct seam_batch *batch;
	const struct seam_batch_table *table;
	struct rows rows;		/* of this block */
	struct seam_batch_origin *origins;	/* one a row; NULL: none */
	struct seam_bytes last;		/* text, and its id: often the same */
	uint32_t last_id;
};

/* Zeroed rows at the end of the table; false: no memory. */
static bool add_rows(struct seam_batch *batch, enum seam_batch_table_id table,
		     size_t n)
{
	switch (table) {
	case SEAM_TABLE_FRAMES:
		return SEAM_ARRAY_GROW(&batch->frames, batch->frames.n + n);
	case SEAM_TABLE_STACKS:
		return SEAM_ARRAY_GROW(&batch->stacks, batch->stacks.n + n);
	case SEAM_TABLE_SAMPLES:
		return SEAM_ARRAY_GROW(&batch->samples, batch->samples.n + n);
	case SEAM_TABLE_CALLS:
		return SEAM_ARRAY_GROW(&batch->calls, batch->calls.n + n);
	case SEAM_TABLE_LOSSES:
		return SEAM_ARRAY_GROW(&batch->losses, batch->losses.n + n);
	default:
		return true;
	}
}

/* The id of a text, cut where it is too long; SEAM_NONE: no memory. */
static uint32_t decode_text(struct block_decoding *d,
			    struct seam_native_column *column)
{
	struct seam_bytes text = seam_native_text(column);

	if (text.size > SEAM_BATCH_MAX_TEXT)
		text.size = SEAM_BATCH_MAX_TEXT;
	if (text.size != d->last.size ||
	    (text.size && memcmp(text.data, d->last.data, text.size) != 0)) {
		d->last_id = seam_strings_add(&d->batch->strings,
					      (const char *)text.data,
					      text.size);
		d->last = text;
	}
	return d->last_id;
}

/* Element @k of a row's array, whose first is @first.  0 or -errno. */
static int decode_element(struct block_decoding *d, enum seam_column_list list,
			  struct seam_native_column *column, size_t at)
{
	struct seam_batch *b = d->batch;
	uint32_t id;
	bool ok;

	switch (list) {
	case SEAM_COLUMN_FRAME_IDS:
		ok = SEAM_ARRAY_ADD(&b->frame_ids, seam_native_number(column));
		break;
	case SEAM_COLUMN_BUCKETS:
		ok = SEAM_ARRAY_ADD(&b->buckets, (struct seam_batch_bucket) {
			.bucket = (uint16_t)seam_native_number(column) });
		break;
	case SEAM_COLUMN_BUCKET_COUNTS:
		b->buckets.items[at].count = seam_native_number(column);
		ok = true;
		break;
	default:
		id = decode_text(d, column);
		ok = id != SEAM_NONE && SEAM_ARRAY_ADD(&b->labels, id);
	}
	return ok ? 0 : -ENOMEM;
}

/* How many elements of @list there are. */
static size_t n_elements(const struct seam_batch *b, enum seam_column_list list)
{
	return list == SEAM_COLUMN_FRAME_IDS ? b->frame_ids.n :
	       list == SEAM_COLUMN_LABELS ? b->labels.n : b->buckets.n;
}

/* Labels of a row that are those of the row before are not kept twice. */
static void share_labels(struct seam_batch *b, const uint32_t before[2],
			 uint32_t range[2])
{
	if (range[1] != before[1] || memcmp(&b->labels.items[range[0]],
		&b->labels.items[before[0]], range[1] * sizeof(uint32_t)) != 0)
		return;
	b->labels.n -= range[1];
	range[0] = before[0];
}

static int decode_array(struct block_decoding *d,
			const struct seam_batch_column *to, uint8_t *record,
			const uint8_t *before, struct seam_native_column *from)
{
	static const size_t most[] = {
		[SEAM_COLUMN_FRAME_IDS] = SEAM_BATCH_MAX_DEPTH,
		[SEAM_COLUMN_LABELS] = SEAM_BATCH_MAX_LABELS,
		[SEAM_COLUMN_BUCKETS] = UINT16_MAX,
		[SEAM_COLUMN_BUCKET_COUNTS] = UINT16_MAX,
	};
	size_t n = seam_native_length(from);
	size_t first = n_elements(d->batch, to->list);
	uint32_t range[2] = { (uint32_t)first, (uint32_t)n }, old[2] = { 0 };
	int r = 0;

	if (to->list == SEAM_COLUMN_BUCKET_COUNTS) {
		memcpy(range, record + to->offset, sizeof(range));
		first = range[0];
	}
	if (n != range[1] || n > most[to->list] || first + n > UINT32_MAX)
		return -EBADMSG;
	for (size_t i = 0; !r && i < n; i++)
		r = decode_element(d, to->list, from, first + i);
	if (r)
		return r;
	if (before && to->list == SEAM_COLUMN_LABELS && n) {
		memcpy(old, before + to->offset, sizeof(old));
		share_labels(d->batch, old, range);
	}
	memcpy(record + to->offset, range, sizeof(range));
	return 0;
}

static int decode_value(struct block_decoding *d,
			const struct seam_batch_column *to, uint8_t *record,
			struct seam_native_column *from)
{
	size_t size = seam_native_size(to->type);
	uint64_t value;
	uint32_t id;
	bool flag;

	if (to->type == SEAM_NATIVE_STRING) {
		id = decode_text(d, from);
		memcpy(record + to->offset, &id, sizeof(id));
		return id == SEAM_NONE ? -ENOMEM : 0;
	}
	value = seam_native_number(from);
	flag = value;
	if (to->is_bool)
		memcpy(record + to->offset, &flag, sizeof(flag));
	else
		/* the low bytes come first: as in fields of this machine */
		memcpy(record + to->offset, &value, size);
	return 0;
}

static int decode_column(struct block_decoding *d,
			 const struct seam_batch_column *to,
			 struct seam_native_column *from)
{
	bool is_origin = to->place == SEAM_COLUMN_ORIGIN;
	uint8_t *record = is_origin ? (uint8_t *)d->origins : d->rows.items;
	size_t size = is_origin ? sizeof(*d->origins) : d->rows.size;
	int r = 0;

	for (size_t i = 0; !r && i < d->rows.n; i++, record += size)
		r = to->list ? decode_array(d, to, record,
					    i ? record - size : NULL, from) :
		    decode_value(d, to, record, from);
	return r;
}

/* The column of the table with this name, if its values are read; or NULL. */
static const struct seam_batch_column *find(const struct block_decoding *d,
					    struct seam_bytes name)
{
	for (size_t i = 0; i < d->table->n_columns; i++) {
		const struct seam_batch_column *c = &d->table->columns[i];

		if (strlen(c->name) == name.size &&
		    memcmp(c->name, name.data, name.size) == 0)
			return c->place == SEAM_COLUMN_ROW ||
			       (c->place == SEAM_COLUMN_ORIGIN && d->origins) ?
			       c : NULL;
	}
	return NULL;
}

static int decode_columns(struct block_decoding *d,
			  struct seam_native_block *block,
			  struct seam_err *err)
{
	struct seam_native_column from;
	int r;

	while ((r = seam_native_next_column(block, &from, err)) > 0) {
		const struct seam_batch_column *to = find(d, from.name);

		if (!to)
			continue;
		if (from.type != to->type)
			return seam_err_set(err, -EBADMSG, "column '%s' of "
				"table '%s' has type %s, not %s", to->name,
				d->table->name, seam_native_types[from.type],
				seam_native_types[to->type]);
		d->last = (struct seam_bytes) { 0 };
		d->last_id = 0;
		r = decode_column(d, to, &from);
		if (r == -ENOMEM)
			return seam_err_no_memory(err);
		if (r)
			return seam_err_set(err, r, "column '%s' of table '%s' "
					    "has a list of a wrong length",
					    to->name, d->table->name);
	}
	return r;
}

/* What fields have that no column sets. */
static void set_defaults(struct block_decoding *d)
{
	for (size_t k = 0; k < d->table->n_columns; k++) {
		const struct seam_batch_column *c = &d->table->columns[k];

		for (size_t i = 0; c->is_signed && i < d->rows.n; i++)
			memset(d->rows.items + i * d->rows.size + c->offset,
			       0xff, sizeof(int32_t));
	}
}

/* Give each row the id of its origin. */
static int tie_origins(struct block_decoding *d)
{
	uint32_t id = 0;

	for (size_t i = 0; d->origins && i < d->rows.n; i++) {
		if (!i || memcmp(&d->origins[i], &d->origins[i - 1],
				 sizeof(*d->origins)) != 0)
			id = seam_batch_origin(d->batch, &d->origins[i]);
		if (id == SEAM_NONE)
			return -ENOMEM;
		memcpy(d->rows.items + i * d->rows.size +
		       d->table->origin_offset, &id, sizeof(id));
	}
	return 0;
}

int seam_batch_decode(struct seam_batch *batch, enum seam_batch_table_id id,
		      struct seam_cursor *from, struct seam_err *err)
{
	struct block_decoding d = {
		.batch = batch, .table = &seam_batch_tables[id],
	};
	struct seam_native_block block;
	int r = seam_native_next_block(&block, from, SEAM_BATCH_MAX_ROWS, err);

	if (r <= 0)
		return r;
	if (id != SEAM_TABLE_BATCHES) {
		if (!add_rows(batch, id, block.n_rows))
			return seam_err_no_memory(err);
		d.rows = rows_of(batch, id);
		if (block.n_rows)
			d.rows.items += (d.rows.n - block.n_rows) *
					d.rows.size;
	}
	d.rows.n = block.n_rows;
	if (d.table->origin_offset != SIZE_MAX) {
		d.origins = calloc(block.n_rows + 1, sizeof(*d.origins));
		if (!d.origins)
			return seam_err_no_memory(err);
	}
	set_defaults(&d);
	r = decode_columns(&d, &block, err);
	if (!r && tie_origins(&d))
		r = seam_err_no_memory(err);
	free(d.origins);
	return r ? r : 1;
}
