/* SPDX-License-Identifier: MIT */
/* snapshot.c - pause, copy, resume, write in order; see snapshot.h */
#include "record/snapshot.h"

#include "base/clock.h"
#include "record/perf/auxtrace.h"
#include "record/session.h"
#include "ring/consumer.h"
#include "wire/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* How long a snapshot may copy files. */
#define COPY_NS (2 * SEAM_NS_PER_S)

/* Records for the file, oldest first. */
struct records {
	uint8_t *items;
	size_t n, cap;
};

static bool is_copied(const struct seam_source_ring *ring)
{
	return ring->is_backward && ring->fd >= 0;
}

static void pause_all(const struct seam_sources *sources, unsigned int pause)
{
	for (size_t i = 0; i < sources->rings.n; i++)
		if (is_copied(&sources->rings.items[i]))
			ioctl(sources->rings.items[i].fd,
			      PERF_EVENT_IOC_PAUSE_OUTPUT, pause);
}

/* Copies of all backward rings, taken at one moment. */
static void copy_rings(struct seam_ring_snapshot *copies,
		       struct seam_sources *sources)
{
	pause_all(sources, 1);
	for (size_t i = 0; i < sources->rings.n; i++)
		if (is_copied(&sources->rings.items[i]))
			seam_ring_snapshot(&sources->rings.items[i].ring,
					   &copies[i]);
	pause_all(sources, 0);
}

/*
 * Append the records of @span, which are newest first, to @out, oldest first.
 * The counts of the ring become those of its current contents.
 */
static int put_in_order(struct seam_drain *drain, struct seam_source_ring *ring,
			const struct seam_ring_span *span, struct records *out,
			struct seam_err *err)
{
	size_t bytes = seam_ring_span_bytes(span), pos = 0, at = bytes;
	struct seam_ring_header header;
	uint8_t *base;

	if (!SEAM_ARRAY_RESERVE(out, bytes + 1))
		return seam_err_no_memory(err);
	base = out->items + out->n;
	ring->n_records = ring->n_bytes = ring->n_lost = 0;
	while (seam_ring_record(span, pos, &header) && header.size <= at) {
		uint8_t *to = base + (at - header.size);
		const void *from = seam_ring_bytes(span, pos, header.size, to);

		if (from != to)
			memcpy(to, from, header.size);
		seam_drain_count(drain, ring, span, pos, &header);
		ring->n_bytes += header.size;
		at -= header.size;
		pos += header.size;
	}
	memmove(base, base + at, bytes - at);
	out->n += bytes - at;
	return 0;
}

/* All memory of copies first: the rings are paused only for them. */
static int append(struct seam_session *s, struct seam_drain *drain,
		  struct seam_ring_snapshot *copies, struct seam_err *err)
{
	struct seam_sources *sources = &s->sources;
	struct records out = { 0 };
	struct iovec piece;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sources->rings.n; i++)
		if (is_copied(&sources->rings.items[i]))
			r = seam_ring_snapshot_init(&copies[i],
				sources->rings.items[i].size_bytes, err);
	if (r == 0)
		copy_rings(copies, sources);
	for (size_t i = 0; r == 0 && i < sources->rings.n; i++)
		if (is_copied(&sources->rings.items[i]))
			r = put_in_order(drain, &sources->rings.items[i],
					 &copies[i].span, &out, err);
	piece = (struct iovec) { out.items, out.n };
	if (r == 0)
		r = seam_perf_writer_append(&drain->file->writer, &piece, 1,
					    err);
	free(out.items);
	return r;
}

int seam_snapshot_append(struct seam_session *s, struct seam_data_file *file,
			 struct seam_err *err)
{
	size_t n = s->sources.rings.n;
	struct seam_ring_snapshot *copies = calloc(n, sizeof(*copies));
	struct seam_drain drain = s->drain;
	int r;

	if (!copies)
		return seam_err_no_memory(err);
	drain.file = file;
	r = append(s, &drain, copies, err);
	for (size_t i = 0; i < n; i++)
		seam_ring_snapshot_fini(&copies[i]);
	free(copies);
	return r;
}

void seam_snapshot_name(char *buf, size_t cap, const char *name,
			unsigned int n)
{
	static const char suffix[] = ".seam";
	size_t length = strlen(name), end = sizeof(suffix) - 1;

	while (length > 1 && name[length - 1] == '/')
		length--;
	if (length > end && memcmp(name + length - end, suffix, end) == 0)
		length -= end;
	snprintf(buf, cap, "%.*s.%u%s", (int)length, name, n, suffix);
}

/* "data": the recording's own file so far, rings, AUX buffers, the end. */
static int write_data(struct seam_recording *recording, struct seam_session *s,
		      struct seam_err *err)
{
	int fd = seam_bundle_file(&recording->bundle, "data", err);
	int r = fd < 0 ? fd : seam_data_file_copy(&recording->data, fd,
						  &s->recording.data, err);

	if (r == 0)
		r = seam_snapshot_append(s, &recording->data, err);
	if (r == 0 && s->sources.aux_snapshots) {
		r = seam_auxtrace_snapshot_all(&s->sources, &recording->data,
					       err);
		seam_sources_hold_aux(&s->sources, false);
	}
	if (r == 0)
		r = seam_data_file_write_losses(&recording->data, &s->sources,
						false, err);
	if (r == 0)
		r = seam_recording_write_features(recording, s, err);
	return r == 0 ? seam_bundle_publish(&recording->bundle, "data", err) :
	       r;
}

static int write_bundle(struct seam_recording *recording,
			struct seam_session *s, const char *name,
			struct seam_err *err)
{
	int r = seam_bundle_create(&recording->bundle, name, err);

	/* first: programs that have met a trigger wait for it */
	if (r == 0)
		r = seam_services_copy_to(&s->services, &recording->bundle,
					  err);
	seam_session_allow(s, COPY_NS);
	if (r == 0)
		r = write_data(recording, s, err);
	if (r == 0) {
		seam_recording_add_files(recording, s);
		r = seam_recording_reserve_manifest(recording, s, err);
	}
	if (r == 0)
		r = seam_recording_write_manifest(recording, s, true, err);
	return r == 0 ? seam_bundle_place(&recording->bundle, err) : r;
}

/* Where it is, and which trigger it is for. */
static void report(const struct seam_session *s, const char *name)
{
	char why[400] = "", others[32] = "";
	struct seam_manifest m = { 0 };
	size_t n;

	seam_services_describe(&s->services, &m, true);
	n = m.n_triggers;
	if (n)
		seam_manifest_trigger_describe(why, sizeof(why), m.triggers,
					       s->start_ns);
	if (n > 1)
		snprintf(others, sizeof(others), "; %zu more", n - 1);
	seam_session_note(s, false, "snapshot in '%s'%s%s%s%s", name,
			  n ? " (" : "", why, others, n ? ")" : "");
}

int seam_snapshot_make(struct seam_session *s, unsigned int n,
		       struct seam_err *err)
{
	struct seam_recording recording;
	char name[sizeof(recording.bundle.path)];
	int r;

	seam_snapshot_name(name, sizeof(name), s->options->output, n);
	seam_recording_init(&recording);
	recording.is_snapshot = true;
	recording.duration_ns = seam_clock_ns() - s->start_ns;
	r = write_bundle(&recording, s, name, err);
	if (r == 0) {
		seam_bundle_settle(&recording.bundle);
		report(s, name);
	} else {
		seam_recording_remove(&recording);
		seam_err_add(err, r, "no snapshot in '%s'", name);
	}
	seam_recording_fini(&recording);
	return r;
}
