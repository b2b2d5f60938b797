/* SPDX-License-Identifier: MIT */
/* fdr_service.c - rings, calls to logs, announcements; see fdr_service.h */
#include "record/services/fdr_service.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/perf/perf_record.h"

enum {
	MAX_THREADS = SEAM_RING_MAX_SLOTS,	/* of a program and its forks */
	FREE_AREAS = 16,	/* for threads that begin at once */
	FIRST_AREAS = 8,	/* of these, before the program runs */
	MAX_FREE_AREAS = 64,	/* of small ones */
	/* 100 ms of a thread that makes 5 million records a second */
	AREA_BYTES = 4 << 20,
	TRIGGER_BYTES = 4096,
	MAX_PROCESSES = 128,
	FREE_RINGS = 8,		/* for forks that announce at once */
	FIRST_RINGS = 2,
	FUNCTIONS_BYTES = 2 << 20,	/* 250,000 addresses at once */
	MEMORY_SHARE = 4,
	THREAD_NS = 2000,	/* no thread begins and ends in less */
};

#define MAX_BYTES (UINT64_C(1) << 30)
/* Addresses that a program's areas take. */
#define MAX_MAPPED (UINT64_C(4) << 30)

static uint64_t max_bytes(void)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;

	return memory < MAX_BYTES ? memory : MAX_BYTES;
}

/* ---- calls ---- */

static int begin_calls(struct seam_service_stream *stream)
{
	struct seam_fdr_service *fdr = stream->service->context;
	struct seam_trace_program program = seam_fdr_service_program(stream);

	fdr->counts.n[SEAM_COUNT_CALLS_THREADS]++;
	/* without a log its calls are counted as not written */
	if (fdr->logs)
		stream->state = seam_trace_logs_enter(fdr->logs, &program);
	return 0;
}

/* 0; -ENOENT: the record counts what the ring lost; -EBADMSG: it is neither. */
static int read_announcement(const uint8_t *record, size_t size,
			     struct seam_xray_announcement *a)
{
	const size_t at = sizeof(struct seam_ring_header);
	struct seam_ring_header header;

	memcpy(&header, record, sizeof(header));
	if (header.type == PERF_RECORD_LOST)
		return -ENOENT;
	if (header.type != PERF_RECORD_SAMPLE)
		return -EBADMSG;
	return seam_xray_read_announcement((struct seam_bytes) {
			record + at, size - at }, a);
}

/* What is in the data of a thread's ring. */
static bool take_trigger(struct seam_service_stream *stream, uint8_t *record,
			 size_t size)
{
	struct seam_fdr_service *fdr = stream->service->context;
	struct seam_xray_announcement a;
	int r = read_announcement(record, size, &a);

	if (r == -ENOENT)
		return false;
	if (r < 0 || a.kind != SEAM_XRAY_ANNOUNCED_TRIGGER)
		fdr->counts.n[SEAM_COUNT_CALLS_BAD]++;
	else if (fdr->on_trigger)
		fdr->on_trigger(fdr->context, stream, &a);
	return false;
}

static void take_calls(struct seam_service_stream *stream,
		       const uint8_t *bytes, size_t size)
{
	struct seam_fdr_service *fdr = stream->service->context;

	if (stream->state)
		seam_trace_logs_add(stream->state, stream->tid, bytes, size);
	else if (fdr->logs)
		seam_trace_logs_drop(fdr->logs, bytes, size);
}

/* The program's count, as far as threads can begin and end in its time. */
static uint64_t other_threads(const struct seam_service_stream *stream,
			      const struct seam_owner_counts *counts)
{
	uint64_t max = (seam_clock_ns() - stream->since_ns) / THREAD_NS;
	uint64_t n = counts->n_offered ? counts->n_offered - 1 : 0;

	return n < max ? n : max;
}

static void end_calls(struct seam_service_stream *stream,
		      const struct seam_owner_counts *counts)
{
	struct seam_fdr_service *fdr = stream->service->context;
	uint64_t *n = fdr->counts.n;

	/* of the threads that had the ring, one is counted */
	n[SEAM_COUNT_CALLS_THREADS] += other_threads(stream, counts);
	n[SEAM_COUNT_CALLS_FULL] += counts->n_skipped[SEAM_TRACE_SKIPPED_FULL];
	n[SEAM_COUNT_CALLS_FROZEN] +=
		counts->n_skipped[SEAM_TRACE_SKIPPED_FROZEN];
	if (stream->state)
		seam_trace_logs_leave(stream->state);
}

static void finish_round(struct seam_service *service, struct seam_synth *round)
{
	struct seam_fdr_service *fdr = service->context;
	uint64_t now_ns = seam_clock_ns();

	(void)round;
	seam_tsc_clock_step(&fdr->clock);
	if (!fdr->logs || now_ns - fdr->headers_ns < SEAM_NS_PER_S)
		return;
	fdr->headers_ns = now_ns;
	seam_trace_logs_set_headers(fdr->logs);
}

/* ---- functions ---- */

static int begin_functions(struct seam_service_stream *stream)
{
	struct seam_fdr_service *fdr = stream->service->context;

	fdr->counts.n[SEAM_COUNT_CALLS_PROCESSES]++;
	return 0;
}

static bool take_functions(struct seam_service_stream *stream,
			   uint8_t *record, size_t size)
{
	struct seam_fdr_service *fdr = stream->service->context;
	struct seam_trace_program program = seam_fdr_service_program(stream);
	struct seam_xray_announcement a;
	int r = read_announcement(record, size, &a);

	if (r == -ENOENT)
		return false;
	if (r < 0)
		fdr->counts.n[SEAM_COUNT_CALLS_BAD]++;
	else if (a.kind < SEAM_XRAY_ANNOUNCED_TRIGGER ||
		 a.kind == SEAM_XRAY_ANNOUNCED_NAME)
		seam_trace_functions_add(&fdr->known, &program, &a);
	else if (fdr->on_trigger)
		fdr->on_trigger(fdr->context, stream, &a);
	return false;
}

/* A child has its parent's functions. */
static void sideband(struct seam_service *service,
		     const struct seam_perf_sideband *record)
{
	struct seam_fdr_service *fdr = service->context;

	if (record->type == PERF_RECORD_FORK &&
	    record->task.pid == record->task.tid)
		seam_trace_functions_fork(&fdr->known,
					  (uint32_t)record->task.pid,
					  (uint32_t)record->task.ppid);
}

/* ---- the services ---- */

static uint64_t clamp(uint64_t n, uint64_t min, uint64_t max)
{
	return n < min ? min : n < max ? n : max;
}

static struct seam_service calls_service(uint64_t flight_bytes)
{
	uint64_t bytes = flight_bytes ? flight_bytes : AREA_BYTES;
	/* of large areas fewer are kept free, and of small ones more */
	uint64_t n_free = clamp(FREE_AREAS * (uint64_t)AREA_BYTES / bytes, 2,
				MAX_FREE_AREAS);

	return (struct seam_service) {
		.link = {
			.name = SEAM_TRACE_CALLS, .n_free = (uint32_t)n_free,
			.n_first = (uint32_t)clamp(n_free / 2, 1, FIRST_AREAS),
			.geometry = {
				.n_slots = (uint32_t)clamp(MAX_MAPPED / bytes,
							   16, MAX_THREADS),
				.data_bytes = TRIGGER_BYTES,
				.aux_bytes = bytes,
				.aux_free_running = flight_bytes != 0,
			},
		},
		.aux_unit = SEAM_XRAY_CHUNK_BYTES, .max_bytes = max_bytes(),
		.begin = begin_calls, .take = take_trigger,
		.take_aux = take_calls, .end = end_calls,
		.finish_round = finish_round,
	};
}

void seam_fdr_service_init(struct seam_fdr_service *fdr, uint64_t flight_bytes)
{
	memset(fdr, 0, sizeof(*fdr));
	fdr->functions = (struct seam_service) {
		.link = {
			.name = SEAM_TRACE_FUNCTIONS, .n_free = FREE_RINGS,
			.n_first = FIRST_RINGS,
			.geometry = {
				.n_slots = MAX_PROCESSES,
				.data_bytes = FUNCTIONS_BYTES,
				.watermark = FUNCTIONS_BYTES / 4,
			},
		},
		.begin = begin_functions, .take = take_functions,
		.sideband = sideband,
	};
	fdr->calls = calls_service(flight_bytes);
	fdr->functions.context = fdr->calls.context = fdr;
	seam_tsc_clock_begin(&fdr->clock);
}

void seam_fdr_service_count(struct seam_fdr_service *fdr,
			    const struct seam_trace_logs *logs,
			    const struct seam_services *services,
			    uint64_t n_functions)
{
	uint64_t *n = fdr->counts.n;

	n[SEAM_COUNT_CALLS_RECORDS] = logs->counts.n_records;
	n[SEAM_COUNT_CALLS_FUNCTIONS] = n_functions;
	n[SEAM_COUNT_CALLS_REFUSED] = services->n_failed;
	n[SEAM_COUNT_CALLS_WITHOUT_RING] = fdr->calls.n_without_ring;
	n[SEAM_COUNT_CALLS_UNWRITTEN] = logs->counts.n_unwritten;
	n[SEAM_COUNT_CALLS_BAD_BYTES] = logs->counts.n_bad_bytes;
	n[SEAM_COUNT_CALLS_UNOWNED] = fdr->calls.n_unowned;
	n[SEAM_COUNT_CALLS_BAD] += fdr->calls.n_bad + fdr->functions.n_bad +
				   fdr->known.n_left_out;
}

void seam_fdr_service_fini(struct seam_fdr_service *fdr)
{
	seam_trace_functions_fini(&fdr->known);
}
