/* SPDX-License-Identifier: MIT */
/* snapshot.c - pause, copy, resume, write in order; see snapshot.h */
#include "record/snapshot.h"

#include "base/clock.h"
#include "record/perf/aux_buffers.h"
#include "ring/backward.h"
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What the rings held at one moment. */
struct snapshot_part {
	struct seam_ring_snapshot *shots;	/* one for each ring */
	struct iovec *pieces;			/* in order, in heap memory */
	size_t n;
};

static bool is_kept(const struct seam_source_ring *ring)
{
	return ring->is_backward && ring->fd >= 0;
}

static void pause_all(const struct seam_sources *sources, unsigned int pause)
{
	for (size_t i = 0; i < sources->rings.n; i++)
		if (is_kept(&sources->rings.items[i]))
			ioctl(sources->rings.items[i].fd,
			      PERF_EVENT_IOC_PAUSE_OUTPUT, pause);
}

static void moment_fini(struct snapshot_part *m)
{
	for (size_t i = 0; i < m->n; i++) {
		if (m->shots)
			seam_ring_snapshot_fini(&m->shots[i]);
		if (m->pieces)
			free(m->pieces[i].iov_base);
	}
	free(m->shots);
	free(m->pieces);
}

/* All memory first: nothing is paused for longer than the copies take. */
static int moment_init(struct snapshot_part *m, const struct seam_sources *sources,
		       struct seam_err *err)
{
	int r = 0;

	m->n = sources->rings.n;
	m->shots = calloc(m->n, sizeof(*m->shots));
	m->pieces = calloc(m->n, sizeof(*m->pieces));
	if (!m->shots || !m->pieces)
		return seam_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		const struct seam_source_ring *ring = &sources->rings.items[i];

		if (!is_kept(ring))
			continue;
		r = seam_ring_snapshot_init(&m->shots[i], ring->size_bytes,
					    err);
		m->pieces[i].iov_base = malloc(ring->size_bytes);
		if (!m->pieces[i].iov_base)
			r = seam_err_set(err, -ENOMEM, "out of memory");
	}
	return r;
}

static void take(struct snapshot_part *m, struct seam_sources *sources)
{
	pause_all(sources, 1);
	for (size_t i = 0; i < m->n; i++)
		if (is_kept(&sources->rings.items[i]))
			seam_ring_snapshot(&sources->rings.items[i].ring,
					   &m->shots[i]);
	pause_all(sources, 0);
}

/* Newest first becomes oldest first: filled from the end of @piece. */
static void put_in_order(struct seam_drain *drain,
			 struct seam_source_ring *ring,
			 const struct seam_ring_span *span,
			 struct iovec *piece)
{
	size_t bytes = seam_ring_span_bytes(span), pos = 0, at = bytes;
	struct seam_ring_header header;

	/* it stands for what it holds, and not for what it once held */
	ring->n_records = ring->n_bytes = 0;
	while (seam_ring_record(span, pos, &header) && header.size <= at) {
		uint8_t *to = (uint8_t *)piece->iov_base + (at - header.size);
		const void *from = seam_ring_bytes(span, pos, header.size, to);

		if (from != to)
			memcpy(to, from, header.size);
		seam_drain_count(drain, ring, span, pos, &header);
		ring->n_bytes += header.size;
		at -= header.size;
		pos += header.size;
	}
	memmove(piece->iov_base, (uint8_t *)piece->iov_base + at, bytes - at);
	piece->iov_len = bytes - at;
}

int seam_snapshot_append(struct seam_session *s, struct seam_err *err)
{
	struct snapshot_part m = { 0 };
	int r = moment_init(&m, &s->sources, err);

	if (r == 0)
		take(&m, &s->sources);
	for (size_t i = 0; r == 0 && i < m.n; i++)
		if (is_kept(&s->sources.rings.items[i]))
			put_in_order(&s->drain, &s->sources.rings.items[i],
				     &m.shots[i].span, &m.pieces[i]);
	if (r == 0) {
		struct iovec *pieces = malloc(m.n * sizeof(*pieces));

		/* the writer uses the list up; the memory is still ours */
		if (pieces) {
			memcpy(pieces, m.pieces, m.n * sizeof(*pieces));
			r = seam_perf_writer_append(&s->writer, pieces, m.n,
						    err);
		} else {
			r = seam_err_set(err, -ENOMEM, "out of memory");
		}
		free(pieces);
	}
	moment_fini(&m);
	return r;
}

void seam_snapshot_name(char *buf, size_t cap, const char *name, unsigned int n)
{
	static const char suffix[] = ".seam";
	size_t length = strlen(name), end = sizeof(suffix) - 1;

	while (length > 1 && name[length - 1] == '/')
		length--;
	if (length > end && memcmp(name + length - end, suffix, end) == 0)
		length -= end;
	snprintf(buf, cap, "%.*s.%u%s", (int)length, name, n, suffix);
}

/* All of the recording's own file that is valid now. */
static int copy_file(int to, int from, uint64_t bytes, struct seam_err *err)
{
	off_t in = 0, out = 0;

	while ((uint64_t)in < bytes) {
		ssize_t n = copy_file_range(from, &in, to, &out,
					    (size_t)(bytes - (uint64_t)in), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return seam_err_set(err, n < 0 ? -errno : -EIO,
				"copy_file_range of 'data': %s",
				strerror(n < 0 ? errno : EIO));
	}
	return 0;
}

/* Of the areas of threads that have ended, which the copied file holds. */
static bool copy_index(struct seam_auxtrace *to,
		       const struct seam_auxtrace *from)
{
	for (size_t i = 0; i < from->index.n; i++) {
		struct seam_auxtrace_entry *slot = SEAM_ARRAY_PUSH(&to->index);

		if (!slot)
			return false;
		*slot = from->index.items[i];
	}
	return true;
}

/* The bundle's files, of which "data" gets its name when it is whole. */
static int fill(struct seam_session *shot, const struct seam_session *s,
		struct seam_err *err)
{
	int r;

	shot->data = seam_bundle_file(&shot->bundle, "data", err);
	if (shot->data < 0)
		return shot->data;
	shot->writer.fd = shot->data;
	r = copy_file(shot->data, s->data, seam_perf_writer_end(&s->writer),
		      err);
	if (r == 0)
		r = seam_snapshot_append(shot, err);
	if (r == 0 && shot->sources.free_running) {
		r = seam_aux_buffers_append(shot, err);
		seam_sources_hold_areas(&shot->sources, false);
	}
	shot->result->n_jit = s->link.dumps.n_written;
	if (r == 0)
		r = seam_recording_list_results(shot, err);
	if (r == 0)
		r = seam_session_write_losses(shot, err);
	if (r == 0)
		r = seam_session_write_features(shot, err);
	if (r == 0)
		r = seam_bundle_publish(&shot->bundle, "data", err);
	if (r == 0)
		r = seam_record_link_copy(&shot->link, &shot->bundle, err);
	if (r == 0)
		seam_session_finish_bundle(shot);
	if (r == 0)
		r = seam_session_reserve_manifest(shot, err);
	if (r == 0)
		r = seam_session_write_manifest(shot, true, err);
	return r == 0 ? seam_bundle_place(&shot->bundle, err) : r;
}

int seam_snapshot_snapshot(struct seam_session *s, struct seam_err *err)
{
	/* as the recording, but for what is the bundle's own */
	struct seam_session shot = *s;
	struct seam_record_result result = { 0 };
	char name[sizeof(s->bundle.path)];
	int r;

	seam_snapshot_name(name, sizeof(name), s->options->output,
			 s->n_snapshots + 1);
	shot.is_snapshot = true;
	shot.bundle.dir = shot.data = shot.meta = -1;
	shot.result = &result;
	shot.aux = (struct seam_auxtrace) {
		.writer = &shot.writer, .most_bytes = s->aux.most_bytes,
		.n_bytes = s->aux.n_bytes,
	};
	shot.drain.aux = &shot.aux;
	result.duration_ns = seam_clock_ns() - s->start_ns;
	shot.drain.n_by_event = calloc(s->events.n,
				       sizeof(*shot.drain.n_by_event));
	/* what was drained by now is in the file that is copied */
	if (shot.drain.n_by_event)
		memcpy(shot.drain.n_by_event, s->drain.n_by_event,
		       s->events.n * sizeof(*shot.drain.n_by_event));
	r = shot.drain.n_by_event && copy_index(&shot.aux, &s->aux) ?
	    seam_bundle_create(&shot.bundle, name, err) :
	    seam_err_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = fill(&shot, s, err);
	free(result.events);
	free(shot.drain.n_by_event);
	seam_auxtrace_fini(&shot.aux);
	if (shot.data >= 0)
		close(shot.data);
	if (shot.meta >= 0)
		close(shot.meta);
	if (r < 0) {
		if (shot.bundle.dir >= 0)
			seam_bundle_remove(&shot.bundle);
		return seam_err_add(err, r, "no snapshot in '%s'", name);
	}
	seam_bundle_settle(&shot.bundle);
	seam_bundle_close(&shot.bundle);
	s->n_snapshots++;
	seam_session_note(s, false, "snapshot in '%s'", name);
	return 0;
}
