/* SPDX-License-Identifier: MIT */
/* batch_file.c - a head and blocks in two zstd frames; see batch_file.h */
#include "wire/fleet/batch_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/json.h"
#include "base/text.h"

#define MAGIC "seam-batch "
#define VERSION "1"

enum { LEVEL = 3 };

/* -- write -------------------------------------------------------------- */

/* Append @size bytes as one frame with a checksum. */
static int pack(struct seam_native_buffer *to, const void *data, size_t size,
		struct seam_err *err)
{
	size_t cap = ZSTD_compressBound(size), n;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	if (!zstd || !SEAM_ARRAY_RESERVE(&to->bytes, cap)) {
		ZSTD_freeCCtx(zstd);
		return seam_err_no_memory(err);
	}
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(zstd, to->bytes.items + to->bytes.n, cap, data,
			   size);
	ZSTD_freeCCtx(zstd);
	if (ZSTD_isError(n))
		return seam_err_set(err, -ENOMEM, "zstd: %s",
				    ZSTD_getErrorName(n));
	to->bytes.n += n;
	return 0;
}

static void write_origin(struct seam_json *j, const struct seam_batch *batch)
{
	const struct seam_strings *strings = &batch->strings;
	static const struct seam_batch_origin none;
	const struct seam_batch_origin *o = batch->origins.n ?
		&batch->origins.items[0] : &none;

	if (batch->origins.n > 1)
		return;
	seam_json_string(j, "service", seam_strings_get(strings, o->service));
	seam_json_string(j, "host", seam_strings_get(strings, o->host));
	seam_json_string(j, "recording",
			 seam_strings_get(strings, o->recording));
	seam_json_open(j, "labels", '[');
	for (uint32_t i = 0; i < o->n_labels; i++)
		seam_json_string(j, NULL, seam_strings_get(strings,
					batch->labels.items[o->labels + i]));
	seam_json_close(j);
}

static void write_head(FILE *out, const struct seam_batch *batch)
{
	struct seam_json j = seam_json_make(out, false);
	char agent[17];

	fprintf(out, MAGIC VERSION "\n");
	snprintf(agent, sizeof(agent), "%016" PRIx64, batch->id.agent);
	seam_json_open(&j, NULL, '{');
	/* a number of JSON has 53 bits in many readers */
	seam_json_string(&j, "agent", agent);
	seam_json_u64(&j, "seq", batch->id.seq);
	seam_json_u64(&j, "from_ns", batch->from_ns);
	seam_json_u64(&j, "to_ns", batch->to_ns);
	write_origin(&j, batch);
	seam_json_open(&j, "rows", '{');
	for (unsigned int i = 0; i < SEAM_N_BATCH_TABLES; i++)
		seam_json_u64(&j, seam_batch_tables[i].name,
			      seam_batch_n_rows(batch, i));
	seam_json_close(&j);
	seam_json_close(&j);
	fputc('\n', out);
}

static int pack_head(struct seam_native_buffer *to,
		     const struct seam_batch *batch, struct seam_err *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool is_bad;
	int r;

	if (!out)
		return seam_err_no_memory(err);
	write_head(out, batch);
	is_bad = ferror(out);
	is_bad |= fclose(out) != 0;
	r = is_bad ? seam_err_no_memory(err) :
	    size > SEAM_BATCH_HEAD_MAX / 2 ?
	    seam_err_set(err, -E2BIG, "the head of the batch has %zu bytes",
			 size) : pack(to, text, size, err);
	free(text);
	return r;
}

static void encode_body(const struct seam_batch *batch,
			struct seam_native_buffer *body)
{
	struct seam_native_buffer block = { 0 };

	for (unsigned int i = 0; i < SEAM_N_BATCH_TABLES; i++) {
		char line[64];
		int n;

		block.bytes.n = 0;
		seam_batch_encode(batch, i, &block);
		n = snprintf(line, sizeof(line), "%s %zu\n",
			     seam_batch_tables[i].name, block.bytes.n);
		body->is_bad |= block.is_bad ||
			!SEAM_ARRAY_EXTEND(&body->bytes, line, (size_t)n) ||
			!SEAM_ARRAY_EXTEND(&body->bytes, block.bytes.items,
					   block.bytes.n);
	}
	free(block.bytes.items);
}

int seam_batch_file_write(const struct seam_batch *batch,
			  struct seam_native_buffer *to, struct seam_err *err)
{
	struct seam_native_buffer body = { 0 };
	int r = pack_head(to, batch, err);

	if (r)
		return r;
	encode_body(batch, &body);
	r = body.is_bad ? seam_err_no_memory(err) :
	    body.bytes.n > SEAM_BATCH_FILE_MAX ?
	    seam_err_set(err, -E2BIG, "the batch has %zu bytes, more than %zu",
			 body.bytes.n, SEAM_BATCH_FILE_MAX) :
	    pack(to, body.bytes.items, body.bytes.n, err);
	free(body.bytes.items);
	return r;
}

/* -- read --------------------------------------------------------------- */

/*
 * Unpack the frame at the start of @bytes, which then are what is after it.  0
 * with @to on the heap, a NUL after its end; or -errno.
 */
static int unpack(struct seam_bytes *bytes, size_t max, uint8_t **to,
		  size_t *size, struct seam_err *err)
{
	size_t packed = ZSTD_findFrameCompressedSize(bytes->data, bytes->size);
	unsigned long long n = ZSTD_getFrameContentSize(bytes->data,
							bytes->size);
	size_t got;

	*to = NULL;
	if (ZSTD_isError(packed))
		return seam_err_set(err, -ENODATA, "zstd: %s",
				    ZSTD_getErrorName(packed));
	/* the largest values say that it is not known, or not valid */
	if (n > max)
		return seam_err_set(err, -EBADMSG, "a zstd frame of an "
				    "unknown size, or more than %zu bytes",
				    max);
	*to = malloc((size_t)n + 1);
	if (!*to)
		return seam_err_no_memory(err);
	got = ZSTD_decompress(*to, (size_t)n, bytes->data, packed);
	if (ZSTD_isError(got) || got != n)
		return seam_err_set(err, -EBADMSG, "zstd: %s",
				    ZSTD_isError(got) ?
				    ZSTD_getErrorName(got) : "a wrong size");
	(*to)[n] = 0;
	*size = (size_t)n;
	*bytes = (struct seam_bytes) { bytes->data + packed,
				       bytes->size - packed };
	return 0;
}

/* A number below 2^63; false where there is none. */
static bool get_u64(const json_t *object, const char *key, uint64_t *to)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*to = (uint64_t)json_integer_value(value);
	return true;
}

/* 0, -EBADMSG or -ENOMEM; and so are the next ones. */
static int get_text(struct seam_batch_head *head, const json_t *value,
		    const char **to)
{
	if (!json_is_string(value))
		return -EBADMSG;
	return seam_arena_copy(&head->arena, to, json_string_value(value)) ? 0 :
	       -ENOMEM;
}

static int get_labels(struct seam_batch_head *head, const json_t *labels)
{
	size_t n = json_array_size(labels);
	int r = 0;

	if (!json_is_array(labels) || n > SEAM_BATCH_MAX_LABELS)
		return -EBADMSG;
	head->labels = seam_arena_alloc(&head->arena,
					(n + 1) * sizeof(*head->labels));
	if (!head->labels)
		return -ENOMEM;
	for (; !r && head->n_labels < n; head->n_labels++)
		r = get_text(head, json_array_get(labels, head->n_labels),
			     &head->labels[head->n_labels]);
	return r;
}

static int get_origin(struct seam_batch_head *head, const json_t *root)
{
	const json_t *service = json_object_get(root, "service");

	if (!service)
		return 0;
	return get_text(head, service, &head->service) ?:
	       get_text(head, json_object_get(root, "host"), &head->host) ?:
	       get_text(head, json_object_get(root, "recording"),
			&head->recording) ?:
	       get_labels(head, json_object_get(root, "labels"));
}

static int get_head(struct seam_batch_head *head, const json_t *root)
{
	const char *agent = json_string_value(json_object_get(root, "agent"));
	const json_t *rows = json_object_get(root, "rows");
	const char *end = agent ? seam_text_number(agent, agent +
				strlen(agent), 16, &head->id.agent) : NULL;

	if (!end || *end || !get_u64(root, "seq", &head->id.seq) ||
	    !get_u64(root, "from_ns", &head->from_ns) ||
	    !get_u64(root, "to_ns", &head->to_ns))
		return -EBADMSG;
	for (size_t i = 0; i < SEAM_N_BATCH_TABLES; i++)
		if (!get_u64(rows, seam_batch_tables[i].name, &head->rows[i]) ||
		    head->rows[i] > SEAM_BATCH_MAX_ROWS)
			return -EBADMSG;
	return get_origin(head, root);
}

static int parse_head(struct seam_batch_head *head, const char *text,
		      size_t size, struct seam_err *err)
{
	size_t n = strlen(MAGIC VERSION "\n");
	json_error_t why;
	json_t *root;
	int r;

	if (size < n || memcmp(text, MAGIC, strlen(MAGIC)) != 0)
		return seam_err_set(err, -EBADMSG, "not a batch");
	if (memcmp(text, MAGIC VERSION "\n", n) != 0)
		return seam_err_set(err, -ENOTSUP, "a batch of another version "
				    "than " VERSION);
	root = json_loadb(text + n, size - n, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return seam_err_set(err, -EBADMSG, "the head: %s", why.text);
	r = get_head(head, root);
	json_decref(root);
	return r == -ENOMEM ? seam_err_no_memory(err) :
	       r ? seam_err_set(err, r, "the head has a wrong value, or lacks "
				"one") : 0;
}

/* Read the head, and move @bytes past it. */
static int take_head(struct seam_batch_head *head, struct seam_bytes *bytes,
		     struct seam_err *err)
{
	uint8_t *text;
	size_t size = 0;
	int r = unpack(bytes, SEAM_BATCH_HEAD_MAX, &text, &size, err);

	*head = (struct seam_batch_head) { 0 };
	if (!r)
		r = parse_head(head, (const char *)text, size, err);
	free(text);
	return r;
}

bool seam_batch_file_is(struct seam_bytes bytes)
{
	uint8_t *text = NULL;
	size_t size;
	bool is = bytes.size >= 4 && seam_u32_at(bytes.data) ==
		  ZSTD_MAGICNUMBER &&
		  unpack(&bytes, SEAM_BATCH_HEAD_MAX, &text, &size, NULL) ==
		  0 && size >= strlen(MAGIC) &&
		  memcmp(text, MAGIC, strlen(MAGIC)) == 0;

	free(text);
	return is;
}

int seam_batch_head_read(struct seam_batch_head *head, struct seam_bytes bytes,
			 struct seam_err *err)
{
	return take_head(head, &bytes, err);
}

void seam_batch_head_fini(struct seam_batch_head *head)
{
	seam_arena_fini(&head->arena);
	*head = (struct seam_batch_head) { 0 };
}

/* The bytes of a table's section, the next of @c. */
static struct seam_bytes take_section(struct seam_cursor *c, const char *table)
{
	const char *line = (const char *)c->base + c->pos;
	const char *all = (const char *)c->base + c->size;
	size_t n = strlen(table);
	const char *at = NULL;
	uint64_t size = 0;

	if (seam_cursor_left(c) > n && memcmp(line, table, n) == 0 &&
	    line[n] == ' ')
		at = seam_text_number(line + n + 1, all, 10, &size);
	if (!at || at == all || *at != '\n' ||
	    size > (uint64_t)(all - at - 1)) {
		seam_cursor_fail(c, -EBADMSG, c->pos);
		return (struct seam_bytes) { 0 };
	}
	seam_cursor_skip(c, (size_t)(at + 1 - line));
	return (struct seam_bytes) { seam_cursor_bytes(c, (size_t)size),
				     (size_t)size };
}

int seam_batch_file_open(struct seam_batch_file *file, struct seam_bytes bytes,
			 struct seam_err *err)
{
	struct seam_cursor c;
	size_t size = 0;
	int r;

	*file = (struct seam_batch_file) { 0 };
	r = take_head(&file->head, &bytes, err);
	if (!r)
		r = unpack(&bytes, SEAM_BATCH_FILE_MAX, &file->body, &size,
			   err);
	if (r)
		return r;
	c = seam_cursor_make(file->body, size, SEAM_LITTLE);
	for (size_t i = 0; i < SEAM_N_BATCH_TABLES; i++)
		file->blocks[i] = take_section(&c, seam_batch_tables[i].name);
	if (c.error || seam_cursor_left(&c) || bytes.size)
		return seam_err_set(err, -EBADMSG, "its sections are damaged "
				    "at byte %zu", c.error ? c.error_pos :
				    c.pos);
	return 0;
}

void seam_batch_file_close(struct seam_batch_file *file)
{
	seam_batch_head_fini(&file->head);
	free(file->body);
	*file = (struct seam_batch_file) { 0 };
}

/* The only block of a section. */
static int decode_section(struct seam_batch *batch,
			  const struct seam_batch_file *file,
			  enum seam_batch_table_id table, struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(file->blocks[table],
						SEAM_LITTLE);
	int r = seam_batch_decode(batch, table, &c, err);

	if (r < 0)
		return seam_err_add(err, r, "table '%s'",
				    seam_batch_tables[table].name);
	if (seam_cursor_left(&c) || !r ||
	    seam_batch_n_rows(batch, table) != file->head.rows[table])
		return seam_err_set(err, -EBADMSG, "table '%s' has other rows "
				    "than the head says",
				    seam_batch_tables[table].name);
	return 0;
}

/* Where a batch without rows is from. */
static int add_origin(struct seam_batch *batch,
		      const struct seam_batch_head *head)
{
	struct seam_strings *strings = &batch->strings;
	struct seam_batch_origin origin = {
		.service = seam_strings_put(strings, head->service),
		.host = seam_strings_put(strings, head->host),
		.recording = seam_strings_put(strings, head->recording),
		.labels = (uint32_t)batch->labels.n,
		.n_labels = (uint32_t)head->n_labels,
	};

	for (size_t i = 0; i < head->n_labels; i++) {
		uint32_t label = seam_strings_put(strings, head->labels[i]);

		if (label == SEAM_NONE ||
		    !SEAM_ARRAY_ADD(&batch->labels, label))
			return -ENOMEM;
	}
	return origin.service == SEAM_NONE || origin.host == SEAM_NONE ||
	       origin.recording == SEAM_NONE ||
	       seam_batch_origin(batch, &origin) == SEAM_NONE ? -ENOMEM : 0;
}

int seam_batch_file_read(struct seam_batch *batch, struct seam_bytes bytes,
			 struct seam_err *err)
{
	struct seam_batch_file file;
	int r = seam_batch_file_open(&file, bytes, err);

	*batch = (struct seam_batch) {
		.id = file.head.id,
		.from_ns = file.head.from_ns, .to_ns = file.head.to_ns,
	};
	for (unsigned int i = 0; !r && i < SEAM_N_BATCH_TABLES; i++)
		r = decode_section(batch, &file, i, err);
	if (!r && file.head.service && !batch->origins.n &&
	    add_origin(batch, &file.head))
		r = seam_err_no_memory(err);
	seam_batch_file_close(&file);
	return r;
}
