/* SPDX-License-Identifier: MIT */
/* data_file.c - begin, copy, append, compress, count; see data_file.h */
#include "record/perf/data_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/events/event_kinds.h"
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

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
		event->ids = calloc(sources->list.n + later + 1,
				    sizeof(*event->ids));
		if (!event->ids)
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

int seam_data_file_begin(struct seam_data_file *file, int fd,
			 const struct seam_sources *sources,
			 struct seam_err *err)
{
	struct seam_compress *c = &file->compress;
	uint8_t *formats = NULL;
	size_t size = 0;
	int r;

	file->fd = fd;
	r = describe_events(file, sources, err);
	if (file->sink)
		return r;
	if (r == 0 && c->level) {
		c->stream = ZSTD_createCCtx();
		if (!c->stream ||
		    ZSTD_isError(ZSTD_CCtx_setParameter(c->stream,
				 ZSTD_c_compressionLevel, c->level)))
			r = seam_err_set(err, -ENOMEM, "cannot compress at "
					 "level %d", c->level);
	}
	/* header, events, and the formats of tracepoints for readers */
	if (r == 0)
		r = seam_perf_writer_begin(&file->writer, fd, "data",
					   file->events, file->n_events, err);
	if (r == 0)
		r = seam_tracepoint_data(sources->events, sources->n_events,
					 &formats, &size, err);
	if (r == 0)
		r = seam_perf_writer_formats(&file->writer,
			(struct seam_bytes) { formats, size }, err);
	free(formats);
	return r;
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

int seam_data_file_copy(struct seam_data_file *file, int fd,
			const struct seam_data_file *from,
			struct seam_err *err)
{
	int r;

	file->fd = fd;
	r = alloc_events(file, from->n_events, err);
	for (size_t e = 0; r == 0 && e < file->n_events; e++) {
		const struct seam_perf_event *event = &from->events[e];
		uint64_t *ids = calloc(event->n_ids + 1, sizeof(*ids));

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
		r = seam_err_no_memory(err);
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

/* A record at the end of a ring may be in two pieces: join them. */
static int give_to_sink(struct seam_data_file *file,
			const struct iovec *pieces, size_t n,
			struct seam_err *err)
{
	struct seam_bytes all = { 0 };

	file->joined.n = 0;
	for (size_t i = 0; n > 1 && i < n; i++)
		if (!SEAM_ARRAY_EXTEND(&file->joined,
				       (const uint8_t *)pieces[i].iov_base,
				       pieces[i].iov_len))
			return seam_err_no_memory(err);
	if (n == 1)
		all = (struct seam_bytes) { pieces->iov_base, pieces->iov_len };
	else if (n > 1)
		all = (struct seam_bytes) { file->joined.items,
					    file->joined.n };
	if (all.size)
		file->sink->take(file->sink, all);
	file->writer.data_bytes += all.size;
	return 0;
}

/* To the sink or to the file, as they are. */
static int append(struct seam_data_file *file, struct iovec *pieces, size_t n,
		  struct seam_err *err)
{
	return file->sink ? give_to_sink(file, pieces, n, err) :
	       seam_perf_writer_append(&file->writer, pieces, n, err);
}

int seam_data_file_append(struct seam_data_file *file,
			  struct seam_synth *synth, struct seam_err *err)
{
	struct iovec piece = {
		.iov_base = synth->bytes.items, .iov_len = synth->bytes.n,
	};
	int r = synth->no_memory ? seam_err_no_memory(err) :
		append(file, &piece, 1, err);

	seam_synth_fini(synth);
	return r;
}

/* ---- batches of records ---- */

/*
 * One zstd stream runs through all COMPRESSED records of the file.  Each is
 * flushed, so that a file of a killed recorder ends with its last batch.  A
 * record may begin in one COMPRESSED record and end in the next.
 *
 * Source: tools/perf/util/zstd.c and session.c of Linux 6.1.
 */

/* A chunk that does not shrink still has to fit into a record. */
_Static_assert(ZSTD_COMPRESSBOUND(SEAM_COMPRESS_CHUNK_BYTES) + 1024 +
	       sizeof(struct perf_event_header) <= UINT16_MAX,
	       "the size of a record has 16 bits");

/* Append one COMPRESSED record of @size bytes of @data to out. */
static int put_chunk(struct seam_compress *c, const uint8_t *data,
		     size_t size, struct seam_err *err)
{
	struct perf_event_header header = { .type = SEAM_PERF_COMPRESSED };
	ZSTD_inBuffer in = { .src = data, .size = size };
	ZSTD_outBuffer out = { .size = UINT16_MAX - sizeof(header) };
	size_t left;

	if (!SEAM_ARRAY_RESERVE(&c->out, UINT16_MAX))
		return seam_err_no_memory(err);
	out.dst = c->out.items + c->out.n + sizeof(header);
	left = ZSTD_compressStream2(c->stream, &out, &in, ZSTD_e_flush);
	if (left != 0 || in.pos != size)
		return seam_err_set(err, -EIO, "zstd: %s", ZSTD_isError(left) ?
				    ZSTD_getErrorName(left) :
				    "a chunk does not fit");
	header.size = (uint16_t)(sizeof(header) + out.pos);
	memcpy(c->out.items + c->out.n, &header, sizeof(header));
	c->out.n += header.size;
	c->n_in += size;
	c->n_out += header.size;
	return 0;
}

int seam_data_file_add_batch(struct seam_data_file *file, struct iovec *pieces,
			     size_t n, bool ends_round, struct seam_err *err)
{
	static const struct perf_event_header end = {
		.type = SEAM_PERF_FINISHED_ROUND, .size = sizeof(end),
	};
	struct seam_compress *c = &file->compress;

	c->out.n = 0;
	for (size_t i = 0; c->stream && i < n; i++)
		for (size_t at = 0; at < pieces[i].iov_len; ) {
			const uint8_t *data = pieces[i].iov_base;
			size_t size = pieces[i].iov_len - at;
			int r;

			if (size > SEAM_COMPRESS_CHUNK_BYTES)
				size = SEAM_COMPRESS_CHUNK_BYTES;
			r = put_chunk(c, data + at, size, err);
			if (r < 0)
				return r;
			at += size;
		}
	if (c->stream) {
		pieces[0] = (struct iovec) { c->out.items, c->out.n };
		n = 1;
	}
	if (ends_round && !file->sink)
		pieces[n++] = (struct iovec) {
			(void *)(uintptr_t)&end, sizeof(end),
		};
	return append(file, pieces, n, err);
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

int seam_data_file_add_ids(struct seam_data_file *file,
			   const struct seam_sources *sources, size_t first,
			   struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; !file->sink && r == 0 && i < sources->list.n;
	     i++)
		r = seam_perf_writer_add_id(&file->writer,
					    sources->list.items[i].event,
					    sources->list.items[i].id, err);
	return r;
}

/*
 * Where records of switches are missing at the end of a ring, no LOST record
 * follows, and threads would seem to do for ever what they did last: it is
 * written here.  @lost: of each ring, by the kernel's counts.
 */
static void put_end_of_switches(struct seam_synth *synth,
				const struct seam_sources *s,
				const uint64_t *lost, uint64_t now_ns)
{
	for (size_t i = 0; i < s->list.n; i++) {
		const struct seam_source *source = &s->list.items[i];
		const struct seam_source_ring *ring =
			&s->rings.items[source->ring];

		if (ring->use == SEAM_RING_OF_SWITCHES &&
		    ring->fd == source->fd &&
		    lost[source->ring] > ring->n_lost)
			seam_synth_lost(synth, source->id, (uint32_t)ring->cpu,
					now_ns, lost[source->ring] -
					ring->n_lost);
	}
}

/*
 * The kernel writes a LOST record before the next record that fits; losses
 * without such a record are only in its counts, which are exact.
 */
int seam_data_file_write_losses(struct seam_data_file *file,
				const struct seam_sources *sources,
				bool is_closed, struct seam_err *err)
{
	uint64_t *by_ring = calloc(sources->rings.n + 1, sizeof(*by_ring));
	struct seam_synth synth = { .no_memory = !by_ring };
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
		file->losses.n[ring->is_backward ? SEAM_COUNT_PAUSED :
			       SEAM_COUNT_RING_FULL] += lost;
		file->by_event[source->event].n_lost += lost;
		if (by_ring)
			by_ring[source->ring] += lost;
		seam_synth_lost_samples(&synth, source->id,
					(uint32_t)ring->cpu, now_ns, lost);
	}
	if (by_ring)
		put_end_of_switches(&synth, sources, by_ring, now_ns);
	free(by_ring);
	/* LOST records are all there is where the kernel keeps no counts */
	for (size_t i = 0; sources->left_out & SEAM_LEFT_OUT_LOST_COUNTS &&
	     i < sources->rings.n; i++)
		file->losses.n[SEAM_COUNT_RING_FULL] +=
			sources->rings.items[i].n_lost;
	if (!is_closed && synth.bytes.n)
		return seam_data_file_append(file, &synth, err);
	seam_synth_fini(&synth);
	return 0;
}

/* ---- CPUs that went offline or came online ---- */

/*
 * The events of a CPU end when it goes offline and do not begin again when it
 * is back; there is no notification.  The kernel does count how long each
 * event was enabled: where that is shorter than on the other CPUs, the CPU was
 * offline.  Events of threads continue when it is back.  A CPU that came online
 * later has no events at all.
 *
 * Source: perf_event_exit_cpu_context() of kernel/events/core.c, Linux 6.1.
 */

/*
 * Going offline and online again takes longer than this; errors of the clocks,
 * apart from the error that all CPUs share, are smaller.
 */
#define MIN_MISSING_NS INT64_C(5000000)

/*
 * How much longer source @i was enabled by our clock than by the kernel's;
 * INT64_MAX where that is not known.  The two run at different rates, so the
 * same error, of either sign, is in the value of each CPU.
 */
static int64_t missing_ns(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	uint64_t enabled_ns;

	return !source->enabled_at_ns || !source->disabled_at_ns ||
	       !seam_sources_enabled_ns(s, i, &enabled_ns) ? INT64_MAX :
	       (int64_t)(source->disabled_at_ns - source->enabled_at_ns) -
	       (int64_t)enabled_ns;
}

/* CPUs whose events ended, though they are online. */
static void count_back(const struct seam_sources *s,
		       const struct seam_number_list *online,
		       struct seam_counts *counts)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < s->list.n; i++)
		if (missing_ns(s, i) < least)
			least = missing_ns(s, i);
	for (size_t i = 0; i < s->list.n; i++) {
		int64_t missing = missing_ns(s, i);
		int cpu = s->rings.items[s->list.items[i].ring].cpu;

		if (missing == INT64_MAX || missing - least < MIN_MISSING_NS ||
		    !seam_number_list_has(online, cpu))
			continue;
		counts->n[SEAM_COUNT_CPUS_BACK]++;
		if (!counts->first_cpu)
			counts->first_cpu = cpu;
		missing -= least;
		if ((uint64_t)missing > counts->n[SEAM_COUNT_CPU_NS])
			counts->n[SEAM_COUNT_CPU_NS] = (uint64_t)missing;
	}
}

void seam_data_file_count_cpus(struct seam_data_file *file,
			       const struct seam_sources *s)
{
	struct seam_counts *counts = &file->losses;
	struct seam_number_list online = { 0 };

	if (seam_procfs_cpus(&online, NULL) == 0)
		count_back(s, &online, counts);
	else
		online.n = 0;
	/* with a list of CPUs from the user, a new one is not missing */
	for (size_t i = 0; !s->sampled.n && i < online.n; i++)
		if (!seam_number_list_has(&s->cpus, online.items[i])) {
			counts->n[SEAM_COUNT_CPUS_NEW]++;
			if (!counts->first_cpu)
				counts->first_cpu = online.items[i];
		}
	free(online.items);
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
	ZSTD_freeCCtx(file->compress.stream);
	free(file->compress.out.items);
	free(file->joined.items);
	seam_file_close_fd(file->fd);
	*file = (struct seam_data_file) { .fd = -1 };
}
