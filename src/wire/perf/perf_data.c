/* SPDX-License-Identifier: MIT */
/* perf_data.c - header, attrs, ids and features; see perf_data.h */
#include "wire/perf/perf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/text.h"
#include "wire/perf/perf_stream.h"
#include "wire/perf/simpleperf.h"
#include "wire/perf/tracepoints.h"

#define MAGIC2 SEAM_PERF_FILE_MAGIC
#define MAGIC2_BIG "2ELIFREP"
#define MAGIC1 "PERFFILE"
#define MAGIC_BYTES 8
#define PIPE_HEADER_BYTES 16	/* magic and size: nothing else */

bool seam_perf_data_is(struct seam_bytes bytes)
{
	return bytes.size >= MAGIC_BYTES &&
	       (memcmp(bytes.data, MAGIC2, MAGIC_BYTES) == 0 ||
		memcmp(bytes.data, MAGIC2_BIG, MAGIC_BYTES) == 0 ||
		memcmp(bytes.data, MAGIC1, MAGIC_BYTES) == 0);
}

/* A part of the file as far as it is there. */
static struct seam_bytes part(const struct seam_perf_data *data,
			      struct seam_perf_file_section s)
{
	uint64_t size = data->bytes.size;

	if (s.offset > size)
		return (struct seam_bytes) { 0 };
	return (struct seam_bytes) {
		data->bytes.data + s.offset,
		(size_t)(s.size < size - s.offset ? s.size : size - s.offset),
	};
}

/* -- ids ---------------------------------------------------------------- */

static struct seam_perf_id *find_id(const struct seam_perf_data *data,
				    uint64_t id)
{
	uint32_t at = SEAM_INDEX_FIND(&data->id_index, seam_hash_u64(id), i,
				      data->ids.items[i].id == id);

	return at == SEAM_NONE ? NULL : &data->ids.items[at];
}

/* An id is of the first event that lists it, as in perf. */
static int add_ids(struct seam_perf_data *data, struct seam_bytes ids,
		   uint32_t event, struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(ids, data->endian);

	while (seam_cursor_left(&c) >= 8) {
		struct seam_perf_id entry = { seam_cursor_u64(&c), event };

		if (!find_id(data, entry.id) &&
		    SEAM_INDEX_APPEND(&data->id_index, seam_hash_u64(entry.id),
				      &data->ids, entry) == SEAM_NONE)
			return seam_err_no_memory(err);
	}
	return 0;
}

uint32_t seam_perf_data_event(const struct seam_perf_data *data, uint64_t id)
{
	const struct seam_perf_id *found;

	if (data->events.n <= 1 || id == 0)
		return data->events.n ? 0 : SEAM_NONE;
	found = find_id(data, id);
	return found ? found->event : SEAM_NONE;
}

uint64_t seam_perf_data_first_id(const struct seam_perf_data *data)
{
	for (size_t i = 0; i < data->ids.n; i++)
		if (data->ids.items[i].event == 0)
			return data->ids.items[i].id;
	return 0;
}

const struct seam_perf_attr *
seam_perf_data_attr_of(const struct seam_perf_data *data,
		       struct seam_bytes payload)
{
	const struct seam_perf_attr *attr = &data->events.items[0].attr;
	struct seam_cursor c;
	uint32_t event;

	if (data->events.n == 1 || payload.size < 8 ||
	    !(attr->sample_type & PERF_SAMPLE_IDENTIFIER))
		return attr;
	c = seam_cursor_make(payload.data + payload.size - 8, 8, data->endian);
	event = seam_perf_data_event(data, seam_cursor_u64(&c));
	return event == SEAM_NONE ? attr : &data->events.items[event].attr;
}

/* -- events ------------------------------------------------------------- */

static int add_event(struct seam_perf_data *data,
		     const struct seam_perf_attr *attr, struct seam_err *err)
{
	struct seam_perf_event *event = SEAM_ARRAY_PUSH(&data->events);
	const char *name;
	char buf[64];

	if (!event)
		return seam_err_no_memory(err);
	name = seam_perf_attr_name(attr, buf, sizeof(buf));
	*event = (struct seam_perf_event) {
		.attr = *attr,
		.layout = seam_perf_layout_make(attr, data->endian),
		.name = seam_arena_text(&data->arena, name, strlen(name)),
	};
	return event->name ? 0 : seam_err_no_memory(err);
}

/* A section beyond the end of the file is cut there, as in part(). */
static void note_described(struct seam_perf_data *data,
			   struct seam_perf_file_section s)
{
	struct seam_bytes bytes = part(data, s);

	if (!bytes.size)
		return;
	if (!data->described_end || s.offset < data->described_begin)
		data->described_begin = s.offset;
	if (s.offset + bytes.size > data->described_end)
		data->described_end = s.offset + bytes.size;
}

/*
 * An attr, and where its ids lie, in the last 16 bytes of the stride.  *@left
 * is how much of the file no event's ids have taken: without that, each event
 * could have all of it read once more.
 */
static int read_attr(struct seam_perf_data *data, struct seam_cursor *c,
		     uint64_t *left, struct seam_err *err)
{
	struct seam_perf_attr attr;
	struct seam_perf_file_section s;
	struct seam_bytes ids;
	int r = seam_perf_attr_read(c, data->endian, &attr, err);

	c->pos = c->size - sizeof(struct seam_perf_file_section);
	s.offset = seam_cursor_u64(c);
	s.size = seam_cursor_u64(c);
	note_described(data, s);
	if (r == 0)
		r = add_event(data, &attr, err);
	if (r < 0)
		return r;
	ids = part(data, s);
	if (ids.size > *left)
		return seam_err_set(err, -EBADMSG,
				    "ids of the events overlap");
	*left -= ids.size;
	return add_ids(data, ids, (uint32_t)(data->events.n - 1), err);
}

/* attr_size of the header is the stride; each attr has its own size. */
static int read_attrs(struct seam_perf_data *data,
		      const struct seam_perf_file_header *h,
		      struct seam_err *err)
{
	struct seam_bytes attrs = part(data, h->attrs);
	struct seam_cursor c = seam_cursor_over(attrs, data->endian);
	uint64_t left = data->bytes.size;

	note_described(data, h->attrs);
	if (h->attr_size < SEAM_PERF_ATTR_VER0 +
	    sizeof(struct seam_perf_file_section) ||
	    h->attr_size > UINT32_MAX)
		return seam_err_set(err, -EBADMSG,
			"header: attr_size=%" PRIu64 " is not possible",
			h->attr_size);
	while (seam_cursor_left(&c) >= h->attr_size) {
		struct seam_cursor one = seam_cursor_split(&c,
						(size_t)h->attr_size);
		int r = read_attr(data, &one, &left, err);

		if (r < 0)
			return seam_err_add(err, r, "event %zu of the header",
					    data->events.n);
	}
	return 0;
}

/* -- features ----------------------------------------------------------- */

/* A table of sections follows the data, one for each set bit. */
static void read_features(struct seam_perf_data *data,
			  const struct seam_perf_file_header *h)
{
	struct seam_bytes rest = part(data, (struct seam_perf_file_section) {
		data->data_end, UINT64_MAX });
	struct seam_cursor c = seam_cursor_over(rest, data->endian);

	for (size_t bit = 0; bit < SEAM_PERF_N_FEATURES; bit++) {
		struct seam_perf_file_section s;

		if (!(h->features[bit / 64] >> bit % 64 & 1))
			continue;
		s.offset = seam_cursor_u64(&c);
		s.size = seam_cursor_u64(&c);
		if (c.error)
			return;
		data->features[bit] = part(data, s);
	}
}

/* u32 length, then that many bytes with a NUL among them. */
static const char *take_string(struct seam_cursor *c)
{
	struct seam_cursor text = seam_cursor_split(c, seam_cursor_u32(c));

	return seam_cursor_cstr(&text);
}

const char *seam_perf_data_string(const struct seam_perf_data *data,
				  enum seam_perf_feature feature)
{
	struct seam_bytes bytes = data->features[feature];
	struct seam_cursor c = seam_cursor_over(bytes, data->endian);

	return take_string(&c);
}

const char *seam_perf_data_command(const struct seam_perf_data *data,
				   char *buf, size_t cap)
{
	struct seam_bytes bytes = data->features[SEAM_PERF_FEATURE_CMDLINE];
	struct seam_cursor c = seam_cursor_over(bytes, data->endian);
	uint32_t n = seam_cursor_u32(&c);
	size_t pos = 0;

	buf[0] = '\0';
	while (n-- > 0 && pos < cap - 1) {
		const char *word = take_string(&c);
		size_t size;

		if (!word)
			break;
		if (pos)
			buf[pos++] = ' ';
		size = seam_text_quote(buf + pos, cap - pos, word);
		pos += size < cap - pos ? size : cap - pos - 1;
	}
	return buf;
}

int seam_perf_build_id_read(const struct seam_perf_record *record,
			    enum seam_endian endian,
			    struct seam_perf_build_id *out)
{
	struct seam_cursor c = seam_cursor_over(record->payload, endian);
	uint8_t size;

	out->misc = record->misc;
	out->pid = (int32_t)seam_cursor_u32(&c);
	out->build_id = seam_cursor_bytes(&c, 20);
	size = seam_cursor_u8(&c);
	seam_cursor_skip(&c, 3);
	out->filename = seam_cursor_cstr(&c);
	/* misc bit 15: the size byte is valid; before, always 20. */
	out->build_id_size = record->misc & 0x8000 && size < 20 ? size : 20;
	return c.error ? -EBADMSG : 0;
}

void seam_perf_data_build_ids(const struct seam_perf_data *data,
			      bool (*take)(void *context,
					   const struct seam_perf_build_id *),
			      void *context)
{
	struct seam_bytes bytes = data->features[SEAM_PERF_FEATURE_BUILD_ID];
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_perf_build_id entry;

	seam_perf_stream_init(&stream, bytes, data->endian, 0, bytes.size,
			      true);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0 &&
	       seam_perf_build_id_read(&record, data->endian, &entry) == 0 &&
	       take(context, &entry))
		;
	seam_perf_stream_fini(&stream);
}

/* Whether its only name so far is its number. */
static bool is_numbered_tracepoint(const struct seam_perf_event *event)
{
	char number[64];

	return event->attr.type == PERF_TYPE_TRACEPOINT &&
	       strcmp(event->name, seam_perf_attr_name(&event->attr, number,
						       sizeof(number))) == 0;
}

/*
 * A recorder that was killed has written no EVENT_DESC, but the formats of its
 * tracepoints, which have names by id.  Without memory the numbers remain.
 */
static void name_tracepoints(struct seam_perf_data *data)
{
	struct seam_tracepoints *known = NULL;
	char buf[256];

	for (size_t i = 0; i < data->events.n; i++) {
		struct seam_perf_event *event = &data->events.items[i];
		const char *name, *copy;

		if (!is_numbered_tracepoint(event))
			continue;
		if (!known)
			known = seam_tracepoints_new(
				data->features[SEAM_PERF_FEATURE_TRACING_DATA]);
		if (!known)
			return;
		name = seam_tracepoints_name(known, event->attr.config, buf,
					     sizeof(buf));
		if (name && seam_arena_copy(&data->arena, &copy, name))
			event->name = copy;
	}
	seam_tracepoints_free(known);
}

/* The same for simpleperf, which writes neither. */
static void name_by_simpleperf(struct seam_perf_data *data)
{
	const char *lines = seam_simpleperf_event_lines(
		data->features[SEAM_SIMPLEPERF_META_INFO]);

	for (size_t i = 0; lines && i < data->events.n; i++) {
		struct seam_perf_event *event = &data->events.items[i];
		struct seam_bytes name = seam_simpleperf_event_name(&lines,
				event->attr.type, event->attr.config);
		const char *copy = name.size && is_numbered_tracepoint(event) ?
			seam_arena_text(&data->arena, (const char *)name.data,
					name.size) : NULL;

		if (copy)
			event->name = copy;
	}
}

/* EVENT_DESC has names in file mode; the others follow. */
static int name_events(struct seam_perf_data *data, struct seam_err *err)
{
	struct seam_bytes bytes = data->features[SEAM_PERF_FEATURE_EVENT_DESC];
	struct seam_cursor c = seam_cursor_over(bytes, data->endian);
	uint32_t n = seam_cursor_u32(&c);
	uint32_t attr_size = seam_cursor_u32(&c);

	for (uint32_t i = 0; i < n && !c.error; i++) {
		struct seam_cursor ids;
		const char *name;
		uint32_t n_ids;

		seam_cursor_skip(&c, attr_size);
		n_ids = seam_cursor_u32(&c);
		name = take_string(&c);
		ids = seam_cursor_split(&c,
				8 * seam_cursor_count(&c, n_ids, 8));
		if (c.error || i >= data->events.n)
			break;
		if (add_ids(data, (struct seam_bytes) { ids.base, ids.size },
			    i, err))
			return -ENOMEM;
		if (!name || !*name)
			continue;
		if (!seam_arena_copy(&data->arena,
				     &data->events.items[i].name, name))
			return seam_err_no_memory(err);
	}
	name_tracepoints(data);
	name_by_simpleperf(data);
	return 0;
}

/* -- file mode ---------------------------------------------------------- */

/*
 * In a file of the other byte order the feature bits may have been written
 * as u32s.  Every file with features has HOSTNAME, which shows the order.
 * Source: tools/perf/util/header.c, perf_file_header__read().
 */
static void order_flags(struct seam_perf_file_header *h, bool swap)
{
	uint64_t hostname = UINT64_C(1) << SEAM_PERF_FEATURE_HOSTNAME;

	if (!swap || h->features[0] & hostname)
		return;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(h->features); i++)
		h->features[i] = h->features[i] << 32 | h->features[i] >> 32;
	if (h->features[0] & hostname)
		return;
	memset(h->features, 0, sizeof(h->features));
	h->features[0] = UINT64_C(1) << SEAM_PERF_FEATURE_BUILD_ID;
}

static int open_file(struct seam_perf_data *data, struct seam_cursor *c,
		     struct seam_err *err)
{
	struct seam_perf_file_header h = { 0 };
	uint64_t *words = (uint64_t *)&h, size = data->bytes.size;
	size_t n = sizeof(h) / sizeof(*words);
	int r;

	/* a run of u64; the oldest header ends before the feature bits */
	for (size_t i = 0; i < n; i++) {
		words[i] = seam_cursor_u64(c);
		if (i == 1 && words[i] <= SEAM_PERF_FILE_HEADER_MIN_BYTES)
			n = SEAM_PERF_FILE_HEADER_MIN_BYTES / sizeof(*words);
	}
	if (c->error)
		return seam_err_set(err, c->error, "header: cut at byte %zu",
				    c->error_pos);
	order_flags(&h, c->swap);
	r = read_attrs(data, &h, err);
	if (r < 0)
		return r;
	/*
	 * perf notes the size of the data when it exits.  Without that, or with
	 * more than there is, everything up to the end of the file is data.
	 */
	data->data_begin = h.data.offset < size ? h.data.offset : size;
	size -= data->data_begin;
	data->is_cut = h.data.size == 0 || h.data.size > size;
	data->n_missing_bytes = h.data.size > size ? h.data.size - size : 0;
	data->data_end = data->data_begin +
			 (data->is_cut ? size : h.data.size);
	if (!data->is_cut)
		read_features(data, &h);
	return name_events(data, err);
}

/* -- pipe mode ---------------------------------------------------------- */

static int take_attr(struct seam_perf_data *data, struct seam_bytes payload,
		     struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(payload, data->endian);
	struct seam_perf_attr attr;
	int r = seam_perf_attr_read(&c, data->endian, &attr, err);

	if (r == 0)
		r = add_event(data, &attr, err);
	if (r < 0)
		return r;
	return add_ids(data, (struct seam_bytes) { c.base + c.pos,
						   seam_cursor_left(&c) },
		       (uint32_t)(data->events.n - 1), err);
}

#define UPDATE_NAME 2	/* EVENT_UPDATE type; Source: event.h */

static int take_update(struct seam_perf_data *data, struct seam_bytes payload,
		       struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(payload, data->endian);
	uint64_t type = seam_cursor_u64(&c);
	uint32_t event = seam_perf_data_event(data, seam_cursor_u64(&c));
	const char *name = seam_cursor_cstr(&c);

	if (type != UPDATE_NAME || event == SEAM_NONE || !name)
		return 0;
	return seam_arena_copy(&data->arena, &data->events.items[event].name,
			       name) ? 0 : seam_err_no_memory(err);
}

/* All that a header would hold comes as records. */
static int open_pipe(struct seam_perf_data *data, struct seam_err *err)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_cursor c;
	uint64_t feature;
	int r = 0;

	data->is_pipe = true;
	data->data_begin = PIPE_HEADER_BYTES;
	data->data_end = data->bytes.size;
	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, true);
	while (r == 0 && seam_perf_stream_next(&stream, &record, NULL) > 0) {
		switch (record.type) {
		case SEAM_PERF_HEADER_ATTR:
			r = take_attr(data, record.payload, err);
			break;
		case SEAM_PERF_EVENT_UPDATE:
			r = take_update(data, record.payload, err);
			break;
		case SEAM_PERF_HEADER_FEATURE:
			c = seam_cursor_over(record.payload, data->endian);
			feature = seam_cursor_u64(&c);
			if (!c.error && feature < SEAM_PERF_N_FEATURES)
				data->features[feature] = (struct seam_bytes) {
					c.base + c.pos, seam_cursor_left(&c) };
			break;
		case SEAM_PERF_HEADER_TRACING_DATA:
			data->features[SEAM_PERF_FEATURE_TRACING_DATA] =
				stream.trailing;
			break;
		}
	}
	seam_perf_stream_fini(&stream);
	return r < 0 ? r : name_events(data, err);
}

/* -- both --------------------------------------------------------------- */

/*
 * PERFFILE, the first magic, is the same in either byte order: a sensible
 * attr_size shows which it is.
 */
static enum seam_endian find_endian(struct seam_bytes bytes)
{
	struct seam_cursor c = seam_cursor_over(bytes, SEAM_LITTLE);

	if (memcmp(bytes.data, MAGIC2, MAGIC_BYTES) == 0)
		return SEAM_LITTLE;
	if (memcmp(bytes.data, MAGIC1, MAGIC_BYTES) != 0)
		return SEAM_BIG;
	seam_cursor_skip(&c, 2 * sizeof(uint64_t));
	return seam_cursor_u64(&c) < UINT32_MAX ? SEAM_LITTLE : SEAM_BIG;
}

int seam_perf_data_open(struct seam_perf_data *data, struct seam_bytes bytes,
			struct seam_err *err)
{
	struct seam_cursor c;
	int r;

	*data = (struct seam_perf_data) { .bytes = bytes };
	if (!seam_perf_data_is(bytes))
		return seam_err_set(err, -EBADMSG, "not a perf.data file");
	data->endian = find_endian(bytes);
	c = seam_cursor_over(bytes, data->endian);
	seam_cursor_skip(&c, MAGIC_BYTES);
	if (seam_cursor_u64(&c) == PIPE_HEADER_BYTES) {
		r = open_pipe(data, err);
	} else {
		c.pos = 0;
		r = open_file(data, &c, err);
	}
	if (r == 0 && data->events.n == 0)
		r = seam_err_set(err, -EBADMSG, "no event is described");
	return r;
}

void seam_perf_data_name_events(struct seam_perf_data *data,
				const char *const *names, size_t n_names)
{
	if (data->features[SEAM_PERF_FEATURE_EVENT_DESC].size ||
	    data->is_pipe || n_names != data->events.n)
		return;
	for (size_t i = 0; i < n_names; i++) {
		const char *copy;

		if (names[i][0] &&
		    seam_arena_copy(&data->arena, &copy, names[i]))
			data->events.items[i].name = copy;
	}
}

void seam_perf_data_close(struct seam_perf_data *data)
{
	free(data->events.items);
	free(data->ids.items);
	seam_index_fini(&data->id_index);
	seam_arena_fini(&data->arena);
	*data = (struct seam_perf_data) { 0 };
}
