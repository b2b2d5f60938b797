/* SPDX-License-Identifier: MIT */
/*
 * live_stream.h - a profile of what a recorder in another process sends
 *
 * What 'seam top' and 'seam agent' have in common: a recorder
 * (record/stream.h), a profile of its records (model/live/live.h), names of JIT
 * code, and Seam's own processes left out.
 */
#pragma once

#include "cli/own_usage.h"
#include "model/live/live.h"
#include "record/stream.h"

/* Zeroed, with stream.fd and stream.control -1, is closed. */
struct seam_live_stream {
	struct seam_record_stream stream;
	struct seam_live *live;
	struct seam_symbols_options symbols;
};

/*
 * Make the profile, which starts a process: no other thread may run.  To be
 * followed by seam_live_stream_start().  0 or -ENOMEM.
 */
int seam_live_stream_open(struct seam_live_stream *s,
			  const struct seam_symbols_options *symbols,
			  struct seam_err *err);

/* As seam_stream_start(); process @root and its descendants are left out. */
int seam_live_stream_start(struct seam_live_stream *s,
			   const struct seam_record_options *options,
			   const struct seam_stream_ticks *ticks,
			   bool hides_output, pid_t root,
			   struct seam_err *err);

/*
 * Take an EVENT, an ID or RECORDS; other messages are the caller's.  0 or
 * -errno.
 */
int seam_live_stream_take(struct seam_live_stream *s,
			  const struct seam_stream_header *header,
			  struct seam_bytes body);

/* After a step: go on with a profile of nothing but what runs.  0, -ENOMEM. */
int seam_live_stream_renew(struct seam_live_stream *s);

void seam_live_stream_close(struct seam_live_stream *s);
