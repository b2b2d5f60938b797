/* SPDX-License-Identifier: MIT */
/*
 * tracing.h - the calls of instrumented programs (--trace)
 *
 * What fdr_service.h takes from programs becomes xray/ of the recording, and
 * of each snapshot of a flight recorder (flight.h).  tracing.c and flight.c
 * give the service its part in the recording (service.h).
 */
#ifndef SEAM_TRACING_H
#define SEAM_TRACING_H

#include "record/services/fdr_service.h"
#include "record/trace/ended_threads.h"
#include "record/trace/trigger_hits.h"
#include "wire/manifest.h"

struct seam_preload;
struct seam_session;

struct seam_tracing {
	struct seam_session *s;
	struct seam_fdr_service fdr;
	struct seam_trace_logs logs;	/* of the recording */
	char *options;			/* value of SEAM_TRACE; owned */
	char *old_options;		/* of the environment; owned */

	/* Of a flight recorder. */
	struct seam_ended_threads ended;
	struct seam_trace_logs *snapshot;	/* being made; NULL: none */
	struct seam_trigger_hits triggers;
	struct seam_manifest_trigger described[SEAM_TRIGGER_MAX_HITS];
};

/*
 * Before the command is forked, and before any thread: add the services, and
 * libseam-fdr to @preload.  0, with NULL in *@made without --trace; -errno
 * where programs cannot be traced.
 */
int seam_tracing_new(struct seam_tracing **made, struct seam_session *s,
		     struct seam_preload *preload, struct seam_err *err);

/* Change the environment, which the command inherits; and change it back. */
void seam_tracing_set(struct seam_tracing *tracing);
void seam_tracing_restore(struct seam_tracing *tracing);

/*
 * Complete @logs, of the recording or of a snapshot, in whose bundle the maps
 * are written too.  The first failure is reported to the user.  How many
 * functions they have.
 */
uint64_t seam_tracing_complete(struct seam_tracing *tracing,
			       struct seam_trace_logs *logs);

/* May be NULL. */
void seam_tracing_free(struct seam_tracing *tracing);

#endif /* SEAM_TRACING_H */
