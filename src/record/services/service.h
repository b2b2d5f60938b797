/* SPDX-License-Identifier: MIT */
/*
 * service.h - one kind of data that traced programs send to the recorder
 *
 * The program's side names the service in HELLO, claims rings
 * (ring/producer/claim.h) and writes SAMPLE records into them.  The recorder's
 * side is a struct seam_service: begin, take and end for the records of a
 * ring's owner, and what the service does in a recording (start to describe).
 * services.c does all else.  tests/services/counter_service.c is a whole
 * service to copy from.
 *
 * A service with an @event has samples in "data".  Each record must be a
 * sample as perf_event_open(2) has it, with the fields of @sample_type.  Before
 * take() the recorder overwrites its event id, pid and tid, and bounds its time
 * to that of the round; take() checks the rest.  Other records of the program
 * are dropped, and its losses are written as LOST_SAMPLES.  Where "data" has
 * the kernel's own clock (a recording with AUX data) all of them are dropped.
 * A service without an event gets each record as the program wrote it.
 *
 * Threads: one, the recorder's.  No function may block.
 */
#pragma once

#include "record/perf/synth.h"
#include "ring/link/link_server.h"

struct seam_bundle;
struct seam_manifest;
struct seam_perf_sideband;
struct seam_service;

/* One ring, from the first record of its owner to the last. */
struct seam_service_stream {
	struct seam_service *service;
	uint32_t pid, tid;	/* the owner */
	uint64_t since_ns;	/* no record is older: the program connected */
	uint64_t until_ns;	/* nor younger: the owner's exec; 0: none yet */
	void *state;		/* the service's own */
};

struct seam_service {
	/* Set by the service: */
	struct seam_link_service link;	/* its name, and its rings' geometry */
	const char *event;		/* name of its event; NULL: none */
	uint64_t sample_type;		/* of the event */
	bool has_names;			/* its samples are names for others */
	void *context;			/* the service's own */
	/*
	 * With AUX buffers: take_aux() and snapshot_aux() get bytes from a
	 * position that is a multiple of this.  take_aux() of a buffer that is
	 * drained gets one unit at a time, the last of an owner as far as it
	 * goes; an owner leaves the rest of the unit that it finds begun.
	 */
	uint32_t aux_unit;
	uint64_t max_bytes;		/* of all rings, at least; 0: any */

	/*
	 * 0, or -errno: called again next round; the records are kept.  NULL:
	 * there is nothing to prepare.
	 */
	int (*begin)(struct seam_service_stream *stream);

	/*
	 * @record is a private copy of @size bytes, header included.  True: it
	 * is valid, write it into "data" (only of a service with an event).
	 */
	bool (*take)(struct seam_service_stream *stream, uint8_t *record,
		     size_t size);

	/*
	 * Before the kernel's rings are read, and once before take(): a
	 * record that was just copied, for what samples of this round need of
	 * it.  It may come before begin(), which must not fail if it sets the
	 * state of @stream.  May be NULL.
	 */
	void (*preview)(struct seam_service *service,
			struct seam_service_stream *stream,
			const uint8_t *record, size_t size);

	/*
	 * Bytes of the AUX buffer, a private copy: those since the last call,
	 * or of a free-running buffer the newest, once, before the end.  NULL
	 * where the rings have none.
	 */
	void (*take_aux)(struct seam_service_stream *stream,
			 const uint8_t *bytes, size_t size);

	/*
	 * Of a free-running buffer, while a snapshot is made: the newest bytes,
	 * a private copy.  The thread goes on.  May be NULL.
	 */
	void (*snapshot_aux)(struct seam_service_stream *stream,
			     const uint8_t *bytes, size_t size);

	/*
	 * Of a stream that has begun.  @counts are the program's own: bounded,
	 * not trusted.  May be NULL.
	 */
	void (*end)(struct seam_service_stream *stream,
		    const struct seam_owner_counts *counts);

	/*
	 * After the records of each round: append records of the recorder's
	 * own to @round.  May be NULL.
	 */
	void (*finish_round)(struct seam_service *service,
			     struct seam_synth *round);

	/* ---- the recording; each may be NULL ---- */

	/* There is a bundle, and @sideband_id for records of the recorder. */
	void (*start)(struct seam_service *service,
		      const struct seam_bundle *bundle, uint64_t sideband_id);

	/* A record of the side-band, between the two halves of a round. */
	void (*sideband)(struct seam_service *service,
			 const struct seam_perf_sideband *record);

	/*
	 * Whether the recorder's own sample of CPU time, of thread @tid at
	 * @time_ns, is one too many: a program has sent one.  For one service
	 * of a recording; it sets first_pid.
	 */
	bool (*supersedes)(struct seam_service *service, uint32_t tid,
			   uint64_t time_ns);
	uint32_t first_pid;		/* that sent samples; 0: none so far */

	/*
	 * After each round, when all was written, and @at_end of the recording:
	 * here a service may make a snapshot.  Called again at due_ns(), a
	 * CLOCK_MONOTONIC time (UINT64_MAX: not).
	 */
	void (*after_round)(struct seam_service *service, bool at_end);
	uint64_t (*due_ns)(const struct seam_service *service);

	/* The size of its files in the bundle so far. */
	uint64_t (*n_bytes)(const struct seam_service *service);

	/* A snapshot's bundle: copy the files, as they are now. */
	int (*copy)(struct seam_service *service,
		    const struct seam_bundle *bundle, struct seam_err *err);

	/* The rings are closed: complete the files, report to the user. */
	void (*finish)(struct seam_service *service);

	/*
	 * Add counts and more to the manifest of the recording or of a
	 * snapshot.  Its pointers are valid until the next call.
	 */
	void (*describe)(struct seam_service *service, struct seam_manifest *m,
			 bool is_snapshot);

	/* Set by the recorder: */
	uint64_t event_id;
	uint64_t from_ns;		/* older samples are not wanted */

	/* Counted by the recorder: */
	uint64_t n_samples;		/* handed on for "data" */
	uint64_t n_bad;			/* invalid records, dropped */
	uint64_t n_lost;		/* records, by the programs' counts */
	uint64_t n_unowned;		/* rings dropped without an owner */
	uint64_t n_unowned_offered;	/* items in those, by their counts */
	uint64_t n_without_ring;	/* items of threads that had none */
};
