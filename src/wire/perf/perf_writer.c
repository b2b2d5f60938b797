/* SPDX-License-Identifier: MIT */
/* perf_writer.c - the file mode of perf.data; see perf_writer.h */
#include "wire/perf/perf_writer.h"

#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- features ----------------------------------------------------------- */

enum {
	STRING_ALIGN = 64,	/* perf's NAME_ALIGN */
	HOST_KERNEL = -1,	/* the "pid" of the kernel in build ids */
	BUILD_ID_BYTES = 20,	/* room for one; its size follows it */
	CLOCK_DATA_VERSION = 1,
	/* PERF_RECORD_MISC_BUILD_ID_SIZE: the size is there */
	MISC_BUILD_ID_SIZE = 1 << 15,
};

static void put(struct seam_perf_features *f, const void *data, size_t size)
{
	f->no_memory |= !SEAM_ARRAY_EXTEND(&f->bytes, data, size);
}

static void put_u32(struct seam_perf_features *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

static void put_zeros(struct seam_perf_features *f, size_t n)
{
	static const uint8_t zeros[STRING_ALIGN];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		put(f, zeros, sizeof(zeros));
	put(f, zeros, n);
}

/* The text, its NUL and zeros up to a multiple of STRING_ALIGN. */
static size_t padded(size_t length)
{
	return (length / STRING_ALIGN + 1) * STRING_ALIGN;
}

static void put_string(struct seam_perf_features *f, const char *text)
{
	size_t length = strlen(text);

	put_u32(f, (uint32_t)padded(length));
	put(f, text, length);
	put_zeros(f, padded(length) - length);
}

static void begin(struct seam_perf_features *f, enum seam_perf_feature bit)
{
	assert((int)bit > f->last);
	f->last = (int)bit;
	f->start[bit] = f->bytes.n;
	f->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

void seam_perf_features_fini(struct seam_perf_features *f)
{
	free(f->bytes.items);
	*f = (struct seam_perf_features) { 0 };
}

void seam_perf_features_string(struct seam_perf_features *f,
			       enum seam_perf_feature bit, const char *text)
{
	if (!text || !*text)
		return;
	begin(f, bit);
	put_string(f, text);
}

void seam_perf_features_data(struct seam_perf_features *f,
			     enum seam_perf_feature bit, const void *data,
			     size_t size)
{
	begin(f, bit);
	put(f, data, size);
}

void seam_perf_features_build_id(struct seam_perf_features *f,
				 const char *name, struct seam_bytes id)
{
	size_t length = strlen(name);
	size_t id_bytes = id.size < BUILD_ID_BYTES ? id.size : BUILD_ID_BYTES;
	struct perf_event_header header = {
		.misc = PERF_RECORD_MISC_KERNEL | MISC_BUILD_ID_SIZE,
		.size = (uint16_t)(sizeof(header) + sizeof(int32_t) +
				   BUILD_ID_BYTES + 4 + padded(length)),
	};
	int32_t pid = HOST_KERNEL;
	uint8_t size[4] = { (uint8_t)id_bytes };

	if (id.size == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_BUILD_ID);
	put(f, &header, sizeof(header));
	put(f, &pid, sizeof(pid));
	put(f, id.data, id_bytes);
	put_zeros(f, BUILD_ID_BYTES - id_bytes);
	put(f, size, sizeof(size));
	put(f, name, length);
	put_zeros(f, padded(length) - length);
}

void seam_perf_features_cmdline(struct seam_perf_features *f,
				const char *const *words, size_t n)
{
	begin(f, SEAM_PERF_FEATURE_CMDLINE);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		put_string(f, words[i]);
}

void seam_perf_features_events(struct seam_perf_features *f,
			       const struct seam_perf_event *events, size_t n)
{
	uint8_t attr[SEAM_PERF_WRITER_ATTR_BYTES];

	begin(f, SEAM_PERF_FEATURE_EVENT_DESC);
	put_u32(f, (uint32_t)n);
	put_u32(f, SEAM_PERF_WRITER_ATTR_BYTES);
	for (size_t i = 0; i < n; i++) {
		seam_perf_attr_write(&events[i].attr, SEAM_NATIVE, attr,
				     sizeof(attr));
		put(f, attr, sizeof(attr));
		put_u32(f, (uint32_t)events[i].n_ids);
		put_string(f, events[i].name);
		put(f, events[i].ids, events[i].n_ids * sizeof(uint64_t));
	}
}

void seam_perf_features_pmus(struct seam_perf_features *f,
			     const struct seam_perf_pmu *pmus, size_t n)
{
	begin(f, SEAM_PERF_FEATURE_PMU_MAPPINGS);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		put_u32(f, pmus[i].type);
		put_string(f, pmus[i].name);
	}
}

void seam_perf_features_groups(struct seam_perf_features *f,
			       const struct seam_perf_group *groups, size_t n)
{
	if (n == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_GROUP_DESC);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		put_string(f, "{anon}");
		put_u32(f, groups[i].leader);
		put_u32(f, groups[i].n_members);
	}
}

void seam_perf_features_auxtrace(struct seam_perf_features *f,
				 const uint64_t *pairs, size_t n)
{
	uint64_t count = n;

	if (n == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_AUXTRACE);
	put(f, &count, sizeof(count));
	put(f, pairs, n * 2 * sizeof(*pairs));
}

void seam_perf_features_clock(struct seam_perf_features *f, uint32_t clock,
			      uint64_t wall_ns, uint64_t clock_ns)
{
	struct {
		uint32_t version, clock;
		uint64_t wall_ns, clock_ns;
	} data = { CLOCK_DATA_VERSION, clock, wall_ns, clock_ns };

	seam_perf_features_data(f, SEAM_PERF_FEATURE_CLOCK_DATA, &data,
				sizeof(data));
}

/* -- the file ----------------------------------------------------------- */

enum {
	DATA_AT = offsetof(struct seam_perf_file_header, data),
	DATA_SIZE_AT = offsetof(struct seam_perf_file_header, data.size),
	FEATURES_AT = offsetof(struct seam_perf_file_header, features),
};

struct attr_entry {
	uint8_t attr[SEAM_PERF_WRITER_ATTR_BYTES];
	struct seam_perf_file_section ids;
};

/* Where the ids of event @e begin; of @n_events: where all ids end. */
static uint64_t ids_offset(const struct seam_perf_writer *w, size_t e)
{
	uint64_t offset = SEAM_PERF_FILE_HEADER_BYTES;

	for (size_t i = 0; i < e; i++)
		offset += sizeof(uint64_t) *
			  (w->events[i].n_ids > w->events[i].max_ids ?
			   w->events[i].n_ids : w->events[i].max_ids);
	return offset;
}

static int write_attr(struct seam_perf_writer *w, size_t e,
		      struct seam_err *err)
{
	struct attr_entry entry = { .ids = {
		.offset = ids_offset(w, e),
		.size = w->events[e].n_ids * sizeof(uint64_t),
	} };

	seam_perf_attr_write(&w->events[e].attr, SEAM_NATIVE, entry.attr,
			     sizeof(entry.attr));
	return seam_file_write_at(w->fd, &entry, sizeof(entry),
				  ids_offset(w, w->n_events) +
				  e * sizeof(entry), w->name, err);
}

int seam_perf_writer_begin(struct seam_perf_writer *w, int fd,
			   const char *name, struct seam_perf_event *events,
			   size_t n_events, struct seam_err *err)
{
	struct seam_perf_file_header header = {
		.size = sizeof(header),
		.attr_size = sizeof(struct attr_entry),
		.attrs.size = n_events * sizeof(struct attr_entry),
	};
	int r = 0;

	*w = (struct seam_perf_writer) {
		.fd = fd, .name = name, .events = events, .n_events = n_events,
	};
	memcpy(&header.magic, SEAM_PERF_FILE_MAGIC, sizeof(header.magic));
	header.attrs.offset = ids_offset(w, n_events);
	w->data_offset = header.attrs.offset + header.attrs.size;
	header.data.offset = w->data_offset;
	for (size_t e = 0; r == 0 && e < n_events; e++)
		r = seam_file_write_at(fd, events[e].ids,
				       events[e].n_ids * sizeof(uint64_t),
				       ids_offset(w, e), name, err);
	for (size_t e = 0; r == 0 && e < n_events; e++)
		r = write_attr(w, e, err);
	/* The magic comes last: a file without it was never a recording. */
	if (r == 0)
		r = seam_file_write_at(fd, &header, sizeof(header), 0, name,
				       err);
	return r;
}

int seam_perf_writer_add_id(struct seam_perf_writer *w, size_t e, uint64_t id,
			    struct seam_err *err)
{
	struct seam_perf_event *event = &w->events[e];
	int r;

	if (event->n_ids >= event->max_ids)
		return seam_err_set(err, -ENOSPC, "no room for more than %zu "
				    "ids in '%s'", event->max_ids, w->name);
	/* the id first, so that the attr never counts ids that are not there */
	r = seam_file_write_at(w->fd, &id, sizeof(id), ids_offset(w, e) +
			       event->n_ids * sizeof(id), w->name, err);
	if (r < 0)
		return r;
	event->ids[event->n_ids++] = id;
	return write_attr(w, e, err);
}

/* Skip the first @n bytes of the pieces. */
static void consume(struct iovec **pieces, size_t *n_pieces, size_t n)
{
	while (*n_pieces && n >= (*pieces)->iov_len) {
		n -= (*pieces)->iov_len;
		++*pieces;
		--*n_pieces;
	}
	if (*n_pieces) {
		(*pieces)->iov_base = (uint8_t *)(*pieces)->iov_base + n;
		(*pieces)->iov_len -= n;
	}
}

static int write_pieces(struct seam_perf_writer *w, struct iovec *pieces,
			size_t n, uint64_t *offset, struct seam_err *err)
{
	consume(&pieces, &n, 0);
	while (n > 0) {
		ssize_t done = pwritev(w->fd, pieces,
				       (int)(n < IOV_MAX ? n : IOV_MAX),
				       (off_t)*offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			int code = done < 0 ? errno : EIO;

			return seam_err_set(err, -code, "cannot pwritev at "
				"offset %" PRIu64 " of '%s': %s", *offset,
				w->name, strerror(code));
		}
		*offset += (uint64_t)done;
		consume(&pieces, &n, (size_t)done);
	}
	return 0;
}

/* While the data grows, the only feature is the formats. */
static struct seam_perf_file_section
formats_of(const struct seam_perf_writer *w)
{
	return (struct seam_perf_file_section) {
		w->formats_offset, w->formats_bytes,
	};
}

static size_t table_bytes(const struct seam_perf_writer *w)
{
	return w->formats_bytes ? sizeof(struct seam_perf_file_section) : 0;
}

static int write_table(struct seam_perf_writer *w, uint64_t offset,
		       struct seam_err *err)
{
	struct seam_perf_file_section formats = formats_of(w);

	return seam_file_write_at(w->fd, &formats, table_bytes(w), offset,
				  w->name, err);
}

uint64_t seam_perf_writer_end(const struct seam_perf_writer *w)
{
	return w->data_offset + w->data_bytes + table_bytes(w);
}

/* After failure @r: give the space of half a batch back.  Returns @r. */
static int cut_after_data(struct seam_perf_writer *w, int r,
			  struct seam_err *err)
{
	write_table(w, w->data_offset + w->data_bytes, NULL);
	if (ftruncate(w->fd, (off_t)seam_perf_writer_end(w)) < 0)
		return seam_err_add(err, r, "cannot cut '%s' after that: %s",
				    w->name, strerror(errno));
	return r;
}

int seam_perf_writer_formats(struct seam_perf_writer *w,
			     struct seam_bytes formats, struct seam_err *err)
{
	/* the end of the header, from member data on, in one write */
	struct {
		struct seam_perf_file_section data, event_types;
		uint64_t features[SEAM_PERF_N_FEATURES / 64];
	} end = {
		.features[0] = UINT64_C(1) << SEAM_PERF_FEATURE_TRACING_DATA,
	};
	int r;

	if (formats.size == 0)
		return 0;
	w->formats_offset = w->data_offset;
	w->formats_bytes = formats.size;
	w->data_offset = (w->formats_offset + formats.size + 7) & ~UINT64_C(7);
	end.data.offset = w->data_offset;
	r = seam_file_write_at(w->fd, formats.data, formats.size,
			       w->formats_offset, w->name, err);
	if (r == 0)
		r = write_table(w, w->data_offset, err);
	if (r == 0)
		r = seam_file_write_at(w->fd, &end, sizeof(end), DATA_AT,
				       w->name, err);
	return r;
}

/* Move the first @size bytes of the pieces to @head. */
static size_t take_head(struct iovec **pieces, size_t *n, uint8_t *head,
			size_t size)
{
	size_t taken = 0;

	while (*n && taken < size) {
		size_t part = (*pieces)->iov_len < size - taken ?
			      (*pieces)->iov_len : size - taken;

		memcpy(head + taken, (*pieces)->iov_base, part);
		taken += part;
		consume(pieces, n, part);
	}
	return taken;
}

/*
 * A batch at *@offset, and the table after it.  The bytes over the table before
 * it are written last, so that table stays valid until the rest is there.
 */
static int write_batch(struct seam_perf_writer *w, struct iovec *pieces,
		       size_t n, uint64_t *offset, struct seam_err *err)
{
	uint8_t head[sizeof(struct seam_perf_file_section)];
	uint64_t begin = *offset;
	size_t size;
	int r;

	consume(&pieces, &n, 0);
	size = take_head(&pieces, &n, head, table_bytes(w));
	*offset += size;
	r = write_pieces(w, pieces, n, offset, err);
	if (r == 0)
		r = write_table(w, *offset, err);
	return r < 0 ? r : seam_file_write_at(w->fd, head, size, begin,
					      w->name, err);
}

/* A hole in the data would be read as records. */
static int check_size(struct seam_perf_writer *w, struct seam_err *err)
{
	uint64_t end = seam_perf_writer_end(w);
	struct stat st;

	if (fstat(w->fd, &st) < 0 || (uint64_t)st.st_size >= end)
		return 0;
	w->was_cut = true;
	return seam_err_set(err, -EIO, "'%s' was cut from %" PRIu64 " to %"
			    PRIu64 " bytes by another process", w->name, end,
			    (uint64_t)st.st_size);
}

int seam_perf_writer_append(struct seam_perf_writer *w, struct iovec *pieces,
			    size_t n, struct seam_err *err)
{
	uint64_t offset = w->data_offset + w->data_bytes;
	uint64_t data_bytes;
	int r = check_size(w, err);

	if (r < 0)
		return r;
	r = write_batch(w, pieces, n, &offset, err);
	if (r < 0)
		return cut_after_data(w, r, err);
	data_bytes = offset - w->data_offset;
	r = seam_file_write_at(w->fd, &data_bytes, sizeof(data_bytes),
			       DATA_SIZE_AT, w->name, err);
	if (r < 0)
		return cut_after_data(w, r, err);
	w->data_bytes = data_bytes;
	return 0;
}

/*
 * A section for each feature, ascending, the formats before them: how many.
 * @payloads is where the features' bytes will be.
 */
static size_t list_sections(const struct seam_perf_writer *w,
			    const struct seam_perf_features *f,
			    uint64_t payloads,
			    struct seam_perf_file_section *sections)
{
	struct seam_perf_file_section *last = NULL;
	size_t n = 0;

	if (w->formats_bytes)
		sections[n++] = formats_of(w);
	for (size_t bit = 0; bit < SEAM_PERF_N_FEATURES; bit++) {
		if (!(f->bits[bit / 64] >> bit % 64 & 1))
			continue;
		sections[n].offset = payloads + f->start[bit];
		if (last)
			last->size = sections[n].offset - last->offset;
		last = &sections[n++];
	}
	if (last)
		last->size = payloads + f->bytes.n - last->offset;
	return n;
}

int seam_perf_writer_finish(struct seam_perf_writer *w,
			    const struct seam_perf_features *f,
			    struct seam_err *err)
{
	struct seam_perf_file_section sections[SEAM_PERF_N_FEATURES];
	uint64_t end = w->data_offset + w->data_bytes;
	uint64_t bits[SEAM_PERF_N_FEATURES / 64], payloads;
	size_t n = list_sections(w, f, 0, sections);
	int r = f->no_memory ? seam_err_no_memory(err) :
		check_size(w, err);

	if (w->was_cut)
		return r;
	payloads = end + n * sizeof(sections[0]);
	list_sections(w, f, payloads, sections);
	memcpy(bits, f->bits, sizeof(bits));
	if (w->formats_bytes)
		bits[0] |= UINT64_C(1) << SEAM_PERF_FEATURE_TRACING_DATA;
	if (r == 0)
		r = seam_file_write_at(w->fd, f->bytes.items, f->bytes.n,
				       payloads, w->name, err);
	if (r == 0)
		r = seam_file_write_at(w->fd, sections,
				       n * sizeof(sections[0]), end, w->name,
				       err);
	if (r == 0)
		r = seam_file_write_at(w->fd, bits, sizeof(bits),
				       FEATURES_AT, w->name, err);
	return r < 0 ? cut_after_data(w, r, err) : 0;
}
