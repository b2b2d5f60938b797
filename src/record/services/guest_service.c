/* SPDX-License-Identifier: MIT */
/* guest_service.c - check and count the samplers' samples; guest_service.h */
#include "record/services/guest_service.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "wire/guest/guest_decode.h"
#include "wire/manifest.h"
#include "wire/perf/perf_record.h"

enum {
	MAX_THREADS = 512,	/* of one program at a time, with its forks */
	FREE_RINGS = 4,
	RING_BYTES = 256 << 10,	/* of samples, at 1000 a second */
	MAX_RING_BYTES = 2 << 20,
	SYMTAB_BYTES = 64 << 10,
	/* of a thread that uses the CPU; a round can take some ms */
	SILENT_NS = 20 * 1000 * 1000,
	SILENT_PERIODS = 8,
	SPARE_TICKS = 64,
};

/*
 * The fields of both samples up to the callchain, or the RAW data.  Source:
 * perf_event_open(2), PERF_RECORD_SAMPLE.
 */
struct guest_fields {
	struct seam_ring_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
};

#define FIXED_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |		\
		    PERF_SAMPLE_TID | PERF_SAMPLE_TIME |		\
		    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |		\
		    PERF_SAMPLE_RAW)

/* ---- streams ---- */

/*
 * Forget the older half of those that have ended, when they are the most.  Rings
 * that overwrite may have samples of the others.
 */
static void tidy(struct seam_guest_service *g)
{
	size_t n = 0, n_left_out = 0;

	if (g->n_ended < MAX_THREADS || g->n_ended * 2 < g->streams.n)
		return;
	seam_index_fini(&g->by_tid);
	for (size_t i = 0; i < g->streams.n; i++) {
		struct seam_guest_stream *s = g->streams.items[i];

		if (s->has_ended && n_left_out < g->n_ended / 2) {
			free(s);
			n_left_out++;
			continue;
		}
		/* without memory it supersedes nothing */
		(void)seam_index_add(&g->by_tid, seam_hash_u64(s->tid),
				     (uint32_t)n);
		g->streams.items[n++] = s;
	}
	g->streams.n = n;
	g->n_ended -= n_left_out;
}

static struct seam_guest_stream *add(struct seam_guest_service *g,
				     uint32_t tid, uint64_t first_ns)
{
	struct seam_guest_stream *s = calloc(1, sizeof(*s));

	tidy(g);
	if (!s)
		return NULL;
	*s = (struct seam_guest_stream) {
		.tid = tid, .first_ns = first_ns, .last_ns = first_ns,
		.until_ns = UINT64_MAX,
	};
	if (SEAM_INDEX_APPEND(&g->by_tid, seam_hash_u64(tid), &g->streams,
			      s) != SEAM_NONE)
		return s;
	free(s);
	return NULL;
}

static int begin(struct seam_service_stream *stream)
{
	struct seam_guest_service *g = stream->service->context;

	g->counts.n[SEAM_COUNT_GUEST_PROCESSES] += stream->pid == stream->tid;
	return 0;
}

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	struct seam_guest_service *g = stream->service->context;
	struct seam_guest_stream *s = stream->state;
	uint64_t *n = g->counts.n;

	n[SEAM_COUNT_GUEST_DUE] += counts->n_offered;
	n[SEAM_COUNT_GUEST_MERGED] += counts->n_skipped[SEAM_SAMPLER_MERGED];
	n[SEAM_COUNT_GUEST_THROTTLED] +=
		counts->n_skipped[SEAM_SAMPLER_THROTTLED];
	n[SEAM_COUNT_GUEST_NO_STACK] += counts->n_skipped[SEAM_SAMPLER_NO_STACK];
	n[SEAM_COUNT_GUEST_ENDED] += counts->n_skipped[SEAM_SAMPLER_ENDED];
	if (!s)
		return;
	if (s->until_ns == UINT64_MAX)
		s->until_ns = s->last_ns + g->period_ns;
	s->has_ended = true;
	g->n_ended++;
}

/* The sampler of a process is gone when it executes another program. */
static void sideband(struct seam_service *service,
		     const struct seam_perf_sideband *record)
{
	struct seam_guest_service *g = service->context;
	uint32_t pid = (uint32_t)record->comm.pid;
	uint64_t time_ns = record->sample_id.time;

	if (record->type != PERF_RECORD_COMM ||
	    !(record->misc & PERF_RECORD_MISC_COMM_EXEC))
		return;
	for (size_t i = 0; i < g->streams.n; i++) {
		struct seam_guest_stream *s = g->streams.items[i];

		if (s->tid == pid && s->first_ns < time_ns &&
		    s->until_ns > time_ns)
			s->until_ns = time_ns;
	}
}

/*
 * The sampler's samples begin with its first.  It is silent if there was none
 * for a while, though the thread uses the CPU, as a sample of CPU time shows.
 */
static bool covers(const struct seam_guest_service *g,
		   const struct seam_guest_stream *s, uint64_t time_ns)
{
	return time_ns + g->period_ns >= s->first_ns &&
	       time_ns <= s->until_ns &&
	       time_ns <= s->last_ns + SILENT_NS +
			  SILENT_PERIODS * g->period_ns;
}

static bool supersedes(struct seam_service *service, uint32_t tid,
		       uint64_t time_ns)
{
	struct seam_guest_service *g = service->context;
	uint32_t i = SEAM_INDEX_FIND(&g->by_tid, seam_hash_u64(tid), k,
				     g->streams.items[k]->tid == tid &&
				     covers(g, g->streams.items[k], time_ns));

	return i != SEAM_NONE;
}

/* ---- records ---- */

/* The RAW data at @at, to the end of the record. */
static bool find_raw(const uint8_t *record, size_t size, size_t at,
		     struct seam_bytes *raw)
{
	uint32_t n;

	if (size < at + sizeof(n))
		return false;
	memcpy(&n, record + at, sizeof(n));
	*raw = (struct seam_bytes) { record + at + sizeof(n), n };
	return n == size - at - sizeof(n);
}

/*
 * Whether the callchain is a kernel part, or none, and a user part; sets
 * @end, where the RAW data begin, and @kernel, the innermost address there.
 */
static bool check_chain(const uint8_t *record, size_t size, size_t *end,
			uint64_t *kernel)
{
	size_t at = sizeof(struct guest_fields);
	uint64_t n, ip, context = 0;

	if (size < at + sizeof(n))
		return false;
	memcpy(&n, record + at, sizeof(n));
	at += sizeof(n);
	if (n > (size - at) / sizeof(ip))
		return false;
	*kernel = 0;
	*end = at + n * sizeof(ip);
	for (; at < *end; at += sizeof(ip)) {
		memcpy(&ip, record + at, sizeof(ip));
		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			/* each once, in this order */
			if (ip == context ||
			    (ip == (uint64_t)PERF_CONTEXT_KERNEL && context) ||
			    (ip != (uint64_t)PERF_CONTEXT_KERNEL &&
			     ip != (uint64_t)PERF_CONTEXT_USER))
				return false;
			context = ip;
		} else if (!context) {
			return false;
		} else if (context == (uint64_t)PERF_CONTEXT_KERNEL &&
			   !*kernel) {
			*kernel = ip;
		}
	}
	return context == (uint64_t)PERF_CONTEXT_USER;
}

static void count_sample(struct seam_guest_service *g,
			 struct seam_guest_reader *reader)
{
	struct seam_guest_part part;
	uint64_t *n = g->counts.n;
	bool has_frames = false;

	while (seam_guest_next_part(reader, &part))
		has_frames |= part.segment.n_frames > 0;
	n[SEAM_COUNT_GUEST_SAMPLES]++;
	n[SEAM_COUNT_GUEST_WITH_GUEST] += has_frames;
	n[SEAM_COUNT_GUEST_TICKS] += reader->head.n_ticks;
	n[SEAM_COUNT_GUEST_INCOMPLETE] += !seam_guest_is_whole(&reader->head);
}

/* A record that was checked. */
struct sample {
	struct guest_fields fields;
	struct seam_guest_reader reader;
	uint64_t kernel;	/* the innermost address there; 0: none */
};

static bool read_sample(const uint8_t *record, size_t size,
			struct sample *sample)
{
	struct seam_bytes raw;
	size_t at;

	if (size < sizeof(sample->fields) ||
	    !check_chain(record, size, &at, &sample->kernel) ||
	    !find_raw(record, size, at, &raw) ||
	    seam_guest_read_sample(raw, &sample->reader, NULL))
		return false;
	memcpy(&sample->fields, record, sizeof(sample->fields));
	return sample->fields.header.type == PERF_RECORD_SAMPLE;
}

/*
 * Whether the thread can have used so much CPU time.  Clocks differ a little:
 * a part in 64, and some ticks.
 */
static bool may_weigh(const struct seam_guest_service *g,
		      const struct seam_service_stream *stream,
		      uint64_t time_ns, uint64_t n_ticks)
{
	const struct seam_guest_stream *s = stream->state;
	uint64_t max = time_ns > stream->since_ns ?
		       (time_ns - stream->since_ns) / g->period_ns : 0;

	n_ticks += s ? s->n_ticks : 0;
	return n_ticks <= max + max / 64 + SPARE_TICKS;
}

static bool take_checked(struct seam_service_stream *stream, uint8_t *record,
			 size_t size)
{
	struct seam_guest_service *g = stream->service->context;
	struct seam_guest_stream *s = stream->state;
	struct sample sample;
	struct guest_fields *fields = &sample.fields;

	if (!read_sample(record, size, &sample) ||
	    !may_weigh(g, stream, fields->time_ns, sample.reader.head.n_ticks))
		return false;
	if (s)
		s->n_ticks += sample.reader.head.n_ticks;
	fields->period = sample.reader.head.n_ticks * g->period_ns;
	if (sample.kernel) {
		fields->header.misc = PERF_RECORD_MISC_KERNEL;
		fields->ip = sample.kernel;
	}
	memcpy(record, fields, sizeof(*fields));
	count_sample(g, &sample.reader);
	return true;
}

static bool take_sample(struct seam_service_stream *stream, uint8_t *record,
			size_t size)
{
	struct seam_guest_service *g = stream->service->context;
	bool is_valid = take_checked(stream, record, size);

	g->counts.n[SEAM_COUNT_BAD_BYTES] += is_valid ? 0 : size;
	return is_valid;
}

/*
 * The recorder's samples of this round are superseded already: take() comes
 * after them.  A record that take() will refuse supersedes none, and no time
 * is one at which there was no sampler, or that has not come.
 */
static void preview(struct seam_service *service,
		    struct seam_service_stream *stream, const uint8_t *record,
		    size_t size)
{
	struct seam_guest_service *g = service->context;
	struct seam_guest_stream *s = stream->state;
	uint64_t now_ns = seam_clock_ns();
	struct sample sample;
	uint64_t time_ns;

	if (!read_sample(record, size, &sample))
		return;
	time_ns = sample.fields.time_ns;
	time_ns = time_ns < now_ns ? time_ns : now_ns;
	time_ns = time_ns > stream->since_ns ? time_ns : stream->since_ns;
	if (!may_weigh(g, stream, time_ns, sample.reader.head.n_ticks))
		return;
	if (!s)
		s = stream->state = add(g, stream->tid, time_ns);
	if (!service->first_pid)
		service->first_pid = stream->pid;
	if (s && time_ns > s->last_ns)
		s->last_ns = time_ns;
}

static bool take_symbol(struct seam_service_stream *stream, uint8_t *record,
			size_t size)
{
	struct seam_guest_service *g = stream->service->context;
	struct seam_guest_symbol symbol;
	struct seam_bytes raw;

	if (!find_raw(record, size, sizeof(struct guest_fields), &raw) ||
	    seam_guest_read_symbol(raw, &symbol, NULL)) {
		g->counts.n[SEAM_COUNT_BAD_BYTES] += size;
		return false;
	}
	g->counts.n[SEAM_COUNT_GUEST_SYMBOLS]++;
	return true;
}

/* ---- the service ---- */

static void describe(struct seam_service *service, struct seam_manifest *m,
		     bool is_snapshot)
{
	struct seam_guest_service *g = service->context;
	uint64_t *n = g->counts.n;

	(void)is_snapshot;
	n[SEAM_COUNT_GUEST_BAD] = g->guest.n_bad + g->symtab.n_bad;
	n[SEAM_COUNT_GUEST_LOST] = g->guest.n_lost;
	n[SEAM_COUNT_GUEST_WITHOUT_RING] = g->guest.n_without_ring;
	seam_counts_add(&m->counts, &g->counts);
}

void seam_guest_service_init(struct seam_guest_service *g, uint64_t period_ns)
{
	struct seam_ring_geometry *geometry = &g->guest.link.geometry;

	*g = (struct seam_guest_service) {
		.guest = {
			.link = {
				.name = SEAM_GUEST_SERVICE,
				.n_free = FREE_RINGS,
				.geometry.n_slots = MAX_THREADS,
			},
			.event = SEAM_GUEST_EVENT,
			.sample_type = FIXED_TYPE | PERF_SAMPLE_CALLCHAIN,
			.context = g,
			.preview = preview,
			.begin = begin, .take = take_sample, .end = end,
			.sideband = sideband, .supersedes = supersedes,
			.describe = describe,
		},
		.symtab = {
			.link = {
				.name = SEAM_GUEST_SYMTAB_SERVICE,
				.n_free = FREE_RINGS,
				.geometry = {
					.n_slots = MAX_THREADS,
					.data_bytes = SYMTAB_BYTES,
				},
			},
			.event = SEAM_GUEST_SYMTAB_EVENT,
			.sample_type = FIXED_TYPE, .has_names = true,
			.context = g, .take = take_symbol,
		},
	};
	if (!period_ns)
		period_ns = SEAM_GUEST_DEFAULT_NS;
	if (period_ns < SEAM_GUEST_MIN_NS)
		period_ns = SEAM_GUEST_MIN_NS;
	if (period_ns > UINT32_MAX)
		period_ns = UINT32_MAX;
	g->period_ns = period_ns;
	g->guest.link.parameter = (uint32_t)period_ns;
	geometry->data_bytes = RING_BYTES;
	while (geometry->data_bytes < MAX_RING_BYTES &&
	       geometry->data_bytes * period_ns <
	       (uint64_t)RING_BYTES * SEAM_GUEST_DEFAULT_NS)
		geometry->data_bytes *= 2;
}

void seam_guest_service_fini(struct seam_guest_service *g)
{
	seam_index_fini(&g->by_tid);
	for (size_t i = 0; i < g->streams.n; i++)
		free(g->streams.items[i]);
	free(g->streams.items);
	*g = (struct seam_guest_service) { 0 };
}
