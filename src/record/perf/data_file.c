/* SPDX-License-Identifier: MIT */
/* data_file.c - begin, copy, append, count; see data_file.h */
#include "record/perf/data_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/events/event_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int alloc_events(struct seam_data_file *file, size_t n,
			struct seam_err *err)
{
	file->n_events = n;
	file->events = calloc(n, sizeof(*file->events));
	file->by_event = calloc(n, sizeof(*file->by_event));
	file->by_event_before = calloc(n, sizeof(*file->by_event_before));
	return file->events && file->by_event && file->by_event_before ?
	       0 : seam_err_no_memory(err);
}

/* Room for @n ids of event @e. */
static uint64_t *alloc_ids(struct seam_data_file *file, size_t e, size_t n)
{
	return file->events[e].ids = calloc(n ? n : 1, sizeof(uint64_t));
}

/* Each event, with the ids that its records carry. */
static int describe_events(struct seam_data_file *file,
			   const struct seam_sources *sources,
			   struct seam_err *err)
{
	size_t later = sources->per_thread ? SEAM_SOURCES_MAX_THREADS :
		       sources->may_be_sparse ? 3 * sources->list.n : 0;
	int r = alloc_events(file, sources->n_events, err);

	for (size_t e = 0; r == 0 && e < file->n_events; e++) {
		struct seam_perf_event *event = &file->events[e];
		struct perf_event_attr attr =
			seam_event_file_attr(&sources->events[e]);

		event->attr = seam_perf_attr_of(&attr);
		event->name = sources->events[e].name;
		event->max_ids = later;
		if (!alloc_ids(file, e, sources->list.n + later + 1))
			return seam_err_no_memory(err);
		if (sources->events[e].program_id)
			event->ids[event->n_ids++] =
				sources->events[e].program_id;
		for (size_t i = 0; i < sources->list.n; i++)
			if (sources->list.items[i].event == e)
				event->ids[event->n_ids++] =
					sources->list.items[i].id;
	}
	return r;
}

/* Header, events, and the formats of tracepoints, which readers need. */
static int write_head(struct seam_data_file *file,
		      const struct seam_sources *sources, struct seam_err *err)
{
	uint8_t *formats;
	size_t size;
	int r = seam_perf_writer_begin(&file->writer, file->fd, "data",
				       file->events, file->n_events, err);

	if (r < 0)
		return r;
	r = seam_tracepoint_data(sources->events, sources->n_events, &formats,
				 &size, err);
	if (r == 0)
		r = seam_perf_writer_formats(&file->writer,
			(struct seam_bytes) { formats, size }, err);
	free(formats);
	return r;
}

int seam_data_file_begin(struct seam_data_file *file, int fd,
			 const struct seam_sources *sources,
			 struct seam_err *err)
{
	int r;

	file->fd = fd;
	r = describe_events(file, sources, err);
	return r == 0 ? write_head(file, sources, err) : r;
}

static int copy_bytes(int to, int from, uint64_t bytes, struct seam_err *err)
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

static int copy_tables(struct seam_data_file *file,
		       const struct seam_data_file *from,
		       struct seam_err *err)
{
	int r = alloc_events(file, from->n_events, err);

	for (size_t e = 0; r == 0 && e < file->n_events; e++) {
		const struct seam_perf_event *event = &from->events[e];
		uint64_t *ids = alloc_ids(file, e, event->n_ids);

		if (!ids)
			return seam_err_no_memory(err);
		memcpy(ids, event->ids, event->n_ids * sizeof(*ids));
		file->events[e] = *event;
		file->events[e].ids = ids;
		file->by_event[e] = from->by_event[e];
	}
	if (r == 0 && !SEAM_ARRAY_EXTEND(&file->auxtraces,
					 from->auxtraces.items,
					 from->auxtraces.n))
		return seam_err_no_memory(err);
	return r;
}

int seam_data_file_copy(struct seam_data_file *file, int fd,
			const struct seam_data_file *from,
			struct seam_err *err)
{
	int r;

	file->fd = fd;
	r = copy_tables(file, from, err);
	file->writer = from->writer;
	file->writer.fd = fd;
	file->writer.events = file->events;
	/* for the feature; this file gets no further rounds */
	file->compress = (struct seam_compress) {
		.level = from->compress.level,
		.n_in = from->compress.n_in, .n_out = from->compress.n_out,
	};
	file->losses = from->losses;
	file->stacks = from->stacks;
	file->n_records = from->n_records;
	file->counts = from->counts;
	return r == 0 ? copy_bytes(fd, from->fd,
				   seam_perf_writer_end(&from->writer), err) :
	       r;
}

int seam_data_file_append(struct seam_data_file *file,
			  struct seam_synth *synth, struct seam_err *err)
{
	struct iovec piece = {
		.iov_base = synth->bytes.items, .iov_len = synth->bytes.n,
	};
	int r = synth->no_memory ? seam_err_no_memory(err) :
		seam_perf_writer_append(&file->writer, &piece, 1, err);

	seam_synth_fini(synth);
	return r;
}

void seam_data_file_mark(struct seam_data_file *file)
{
	file->n_records_before = file->n_records;
	file->before = file->counts;
	memcpy(file->by_event_before, file->by_event,
	       file->n_events * sizeof(*file->by_event));
}

void seam_data_file_revert(struct seam_data_file *file)
{
	file->losses.n[SEAM_COUNT_UNWRITTEN] += file->n_records -
						file->n_records_before;
	file->counts = file->before;
	memcpy(file->by_event, file->by_event_before,
	       file->n_events * sizeof(*file->by_event));
}

/* LOST records are all there is where the kernel keeps no counts. */
static void count_lost_records(struct seam_counts *losses,
			       const struct seam_sources *sources)
{
	for (size_t i = 0; i < sources->rings.n; i++)
		losses->n[SEAM_COUNT_RING_FULL] +=
			sources->rings.items[i].n_lost;
}

/*
 * The kernel writes a LOST record before the next record that fits; losses
 * without such a record are only in its counts, which are exact.
 */
int seam_data_file_write_losses(struct seam_data_file *file,
				const struct seam_sources *sources,
				bool is_closed, struct seam_err *err)
{
	struct seam_synth synth = { 0 };
	/* only records have the time of the kernel's own clock */
	uint64_t now_ns = seam_sources_has_aux(sources) ?
			  file->counts.last_ns : seam_clock_ns();

	for (size_t i = 0; i < sources->list.n; i++) {
		const struct seam_source *source = &sources->list.items[i];
		const struct seam_source_ring *ring =
			&sources->rings.items[source->ring];
		uint64_t lost = seam_sources_lost(sources, i);

		if (!lost)
			continue;
		/* a ring that overwrites is never full */
		if (ring->is_backward)
			file->losses.n[SEAM_COUNT_PAUSED] += lost;
		else
			file->losses.n[SEAM_COUNT_RING_FULL] += lost;
		file->by_event[source->event].n_lost += lost;
		seam_synth_lost(&synth, source->id, (uint32_t)ring->cpu,
				now_ns, lost);
	}
	if (sources->left_out & SEAM_LEFT_OUT_LOST_COUNTS)
		count_lost_records(&file->losses, sources);
	if (!is_closed && synth.bytes.n)
		return seam_data_file_append(file, &synth, err);
	seam_synth_fini(&synth);
	return 0;
}

void seam_data_file_lost(struct seam_data_file *file)
{
	file->losses.n[SEAM_COUNT_UNWRITTEN] = file->n_records;
	for (size_t e = 0; e < file->n_events; e++)
		file->by_event[e].n_samples = 0;
	file->counts = (struct seam_data_file_counts) {
		.n_aux_bytes = file->counts.n_aux_bytes,
	};
}

void seam_data_file_fini(struct seam_data_file *file)
{
	for (size_t e = 0; file->events && e < file->n_events; e++)
		free(file->events[e].ids);
	free(file->events);
	free(file->by_event);
	free(file->by_event_before);
	free(file->auxtraces.items);
	seam_compress_fini(&file->compress);
	seam_file_close_fd(file->fd);
	*file = (struct seam_data_file) { .fd = -1 };
}
