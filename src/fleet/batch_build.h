/* SPDX-License-Identifier: MIT */
/*
 * batch_build.h - profiles and calls into batches
 *
 *	seam_fleet_build_begin(&build, &source, (struct seam_batch_id) {
 *			       random, 0 }, sink, context, err);
 *	for each step of a recording that goes on (model/live/live.h)
 *		seam_fleet_build_add(build, profile, utc_ns, err);
 *		each 10 seconds: seam_fleet_build_flush(build, err);
 *	seam_fleet_build_free(build);
 *
 * Samples are added up by window, stack, thread and event; windows are aligned
 * in UTC.  Nothing of a profile is kept: its ids may differ in the next step.
 *
 * A batch is of one day of UTC.  It goes to the sink when the next sample is of
 * another day, or when it has SEAM_FLEET_MAX_ROWS rows of a table; each has all
 * frames and stacks that it needs.  Ids of batches are consecutive.
 *
 * Left out of frames, as they are of one run alone: addresses of JIT code and
 * of memory without a file; those of the kernel are offsets from its _text.
 *
 * Threads: one.  Memory: one batch.
 */
#pragma once

#include "base/clock.h"
#include "model/profile/profile.h"
#include "model/xray/trace.h"
#include "symbol/xray/xray_map.h"
#include "wire/fleet/batch.h"

#define SEAM_FLEET_WINDOW_NS (10 * SEAM_NS_PER_S)

enum {
	SEAM_FLEET_MAX_ROWS = 1 << 17,
	SEAM_FLEET_MAX_NAME = 256,	/* of a service, a host, a label */
};

/* Where all rows are from; copied. */
struct seam_fleet_source {
	const char *service, *host;
	const char *recording;		/* of a bundle, or NULL */
	const char *const *labels;	/* "key=value", in any order */
	size_t n_labels;		/* SEAM_BATCH_MAX_LABELS at most */
};

/* Takes a whole batch, valid until it returns.  0, or -errno: building ends. */
typedef int seam_fleet_sink(void *context, const struct seam_batch *batch,
			    struct seam_err *err);

struct seam_fleet_build;

/*
 * 0 with *@build, which seam_fleet_build_free() frees, or -errno: -EINVAL of a
 * name that is empty, too long or cannot be shown as it is, and of a label
 * without a key.
 */
int seam_fleet_build_begin(struct seam_fleet_build **build,
			   const struct seam_fleet_source *source,
			   struct seam_batch_id first, seam_fleet_sink *sink,
			   void *context, struct seam_err *err);

/*
 * Add the samples of @profile, whose times plus @utc_ns are UTC.  Losses are
 * not added: those of a live profile are of all steps.  0 or -errno.
 */
int seam_fleet_build_add(struct seam_fleet_build *build,
			 const struct seam_profile *profile, int64_t utc_ns,
			 struct seam_err *err);

/* Add what is missing since @ts_ns (UTC): a row for each call. */
int seam_fleet_build_lost(struct seam_fleet_build *build, uint64_t ts_ns,
			  const char *cause, const char *source,
			  uint64_t records, uint64_t bytes,
			  struct seam_err *err);

/*
 * Add all calls of @trace, whose functions have @names, a histogram for each
 * window, process and function.  @profile has the names of processes.  Cost:
 * about 20 ns a call.
 */
int seam_fleet_build_calls(struct seam_fleet_build *build,
			   const struct seam_trace *trace,
			   const struct seam_xray_map *names,
			   const struct seam_profile *profile, int64_t utc_ns,
			   struct seam_err *err);

/* The rows so far go to the sink, if there are any. */
int seam_fleet_build_flush(struct seam_fleet_build *build,
			   struct seam_err *err);

/* How many batches went to the sink: the next seq is as many more. */
uint64_t seam_fleet_build_n_batches(const struct seam_fleet_build *build);

/* Rows that were not flushed are lost.  NULL: nothing. */
void seam_fleet_build_free(struct seam_fleet_build *build);
