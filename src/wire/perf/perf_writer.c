/* SPDX-License-Identifier: MIT */
/* perf_writer.c - the file mode of perf.data; see perf_writer.h */
#include "wire/perf/perf_writer.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DATA_AT = offsetof(struct seam_perf_file_header, data),
	DATA_SIZE_AT = offsetof(struct seam_perf_file_header, data.size),
	FEATURES_AT = offsetof(struct seam_perf_file_header, features),
};

struct attr_entry {
	uint8_t attr[SEAM_PERF_WRITER_ATTR_BYTES];
	struct seam_perf_file_section ids;
};

/* Bytes that the ids of an event take in the file. */
static size_t id_room(const struct seam_perf_event *event)
{
	size_t n = event->n_ids > event->max_ids ? event->n_ids :
		   event->max_ids;

	return n * sizeof(uint64_t);
}

/* Where the ids of event @e begin; of @n_events: where all ids end. */
static uint64_t ids_offset(const struct seam_perf_writer *w, size_t e)
{
	uint64_t offset = SEAM_PERF_FILE_HEADER_BYTES;

	for (size_t i = 0; i < e; i++)
		offset += id_room(&w->events[i]);
	return offset;
}

static int write_ids(struct seam_perf_writer *w, struct seam_err *err)
{
	int r = 0;

	for (size_t i = 0; i < w->n_events && r == 0; i++)
		r = seam_file_write_at(w->fd, w->events[i].ids,
				       w->events[i].n_ids * sizeof(uint64_t),
				       ids_offset(w, i), w->name, err);
	return r;
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
	int r;

	*w = (struct seam_perf_writer) {
		.fd = fd, .name = name, .events = events, .n_events = n_events,
	};
	memcpy(&header.magic, SEAM_PERF_FILE_MAGIC, sizeof(header.magic));
	header.attrs.offset = ids_offset(w, n_events);
	w->data_offset = header.attrs.offset + header.attrs.size;
	header.data.offset = w->data_offset;
	r = write_ids(w, err);
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
