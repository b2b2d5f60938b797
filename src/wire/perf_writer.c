/* SPDX-License-Identifier: MIT */
/* perf_writer.c - the file mode of perf.data; see perf_writer.h */
#include "wire/perf_writer.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* "PERFILE2" as a number of the writing machine's byte order. */
#define MAGIC UINT64_C(0x32454c4946524550)

struct section {
	uint64_t offset;	/* from the file's start */
	uint64_t size;		/* bytes */
};

/* These three are all u64, so C lays them out as the file does. */
struct header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size;	/* stride of the attrs section */
	struct section attrs;
	struct section data;
	struct section event_types;	/* unused since Linux 3.11 */
	uint64_t features[SEAM_PERF_N_FEATURES / 64];
};

struct attr_entry {
	uint8_t attr[SEAM_PERF_WRITER_ATTR_BYTES];
	struct section ids;
};

_Static_assert(sizeof(struct header) == SEAM_PERF_WRITER_HEADER_BYTES,
	       "the header has 104 bytes");
_Static_assert(sizeof(struct perf_event_attr) >= SEAM_PERF_WRITER_ATTR_BYTES,
	       "linux/perf_event.h is older than Linux 5.13");

/* Bytes that the ids of an event take in the file. */
static size_t id_room(const struct seam_perf_event *event)
{
	size_t n = event->n_ids > event->most_ids ? event->n_ids :
		   event->most_ids;

	return n * sizeof(uint64_t);
}

/* Where the ids of event @e begin; of the one behind the last: their end. */
static uint64_t ids_offset(const struct seam_perf_writer *w, size_t e)
{
	uint64_t offset = SEAM_PERF_WRITER_HEADER_BYTES;

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

	memcpy(entry.attr, w->events[e].attr, sizeof(entry.attr));
	return seam_file_write_at(w->fd, &entry, sizeof(entry),
				  ids_offset(w, w->n_events) +
				  e * sizeof(entry), w->name, err);
}

int seam_perf_writer_begin(struct seam_perf_writer *w, int fd,
			   const char *name, struct seam_perf_event *events,
			   size_t n_events, struct seam_err *err)
{
	struct header header = {
		.magic = MAGIC,
		.size = sizeof(header),
		.attr_size = sizeof(struct attr_entry),
		.attrs.size = n_events * sizeof(struct attr_entry),
	};
	int r;

	*w = (struct seam_perf_writer) {
		.fd = fd, .name = name, .events = events, .n_events = n_events,
	};
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

	if (event->n_ids >= event->most_ids)
		return seam_err_set(err, -ENOSPC, "no room for more than %zu "
				    "ids in '%s'", event->most_ids, w->name);
	/* The id first: what the attr tells of is there. */
	r = seam_file_write_at(w->fd, &id, sizeof(id), ids_offset(w, e) +
			       event->n_ids * sizeof(id), w->name, err);
	if (r < 0)
		return r;
	event->ids[event->n_ids++] = id;
	return write_attr(w, e, err);
}

/* Forget the first @n bytes of the pieces. */
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

/* After failure @r: give the space of half a batch back.  Returns @r. */
static int cut_behind_data(struct seam_perf_writer *w, int r,
			   struct seam_err *err)
{
	if (ftruncate(w->fd, (off_t)(w->data_offset + w->data_bytes)) < 0)
		return seam_err_add(err, r, "cannot cut '%s' after that: %s",
				    w->name, strerror(errno));
	return r;
}

int seam_perf_writer_append(struct seam_perf_writer *w, struct iovec *pieces,
			    size_t n, struct seam_err *err)
{
	uint64_t offset = w->data_offset + w->data_bytes;
	uint64_t data_bytes;
	int r = write_pieces(w, pieces, n, &offset, err);

	if (r < 0)
		return cut_behind_data(w, r, err);
	data_bytes = offset - w->data_offset;
	r = seam_file_write_at(w->fd, &data_bytes, sizeof(data_bytes),
			       offsetof(struct header, data.size), w->name,
			       err);
	if (r < 0)
		return cut_behind_data(w, r, err);
	w->data_bytes = data_bytes;
	return 0;
}

static size_t count_bits(const struct seam_perf_features *f)
{
	size_t n = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(f->bits); i++)
		n += (size_t)__builtin_popcountll(f->bits[i]);
	return n;
}

/* A section for each set bit, ascending; returns how many. */
static size_t list_sections(const struct seam_perf_features *f,
			    uint64_t payloads, struct section *sections)
{
	size_t n = 0;

	for (size_t bit = 0; bit < SEAM_PERF_N_FEATURES; bit++) {
		if (!(f->bits[bit / 64] >> bit % 64 & 1))
			continue;
		sections[n].offset = payloads + f->start[bit];
		if (n > 0)
			sections[n - 1].size = sections[n].offset -
					       sections[n - 1].offset;
		n++;
	}
	if (n > 0)
		sections[n - 1].size = payloads + f->bytes.n -
				       sections[n - 1].offset;
	return n;
}

int seam_perf_writer_finish(struct seam_perf_writer *w,
			    const struct seam_perf_features *f,
			    struct seam_err *err)
{
	struct section sections[SEAM_PERF_N_FEATURES];
	uint64_t end = w->data_offset + w->data_bytes;
	uint64_t payloads = end + count_bits(f) * sizeof(sections[0]);
	size_t n = list_sections(f, payloads, sections);
	int r = f->no_memory ? seam_err_set(err, -ENOMEM, "out of memory") : 0;

	if (r == 0)
		r = seam_file_write_at(w->fd, sections,
				       n * sizeof(sections[0]), end, w->name,
				       err);
	if (r == 0)
		r = seam_file_write_at(w->fd, f->bytes.items, f->bytes.n,
				       payloads, w->name, err);
	if (r == 0)
		r = seam_file_write_at(w->fd, f->bits, sizeof(f->bits),
				       offsetof(struct header, features),
				       w->name, err);
	return r < 0 ? cut_behind_data(w, r, err) : 0;
}
