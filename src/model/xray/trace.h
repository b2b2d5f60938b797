/* SPDX-License-Identifier: MIT */
/*
 * trace.h - the XRay logs of a program as one stream of events for a thread
 *
 * Logs hold blocks in the order in which buffers were reused.  Here they are
 * put into the order in which they were written: by thread, then by wall
 * time and first TSC.  A stream is one thread in one log; streams can be read
 * in any order and from several threads at once.  All logs given together
 * have one time, CLOCK_MONOTONIC where their records tie them to it.
 *
 * A child that was forked while recording writes its parent's buffers again,
 * with the parent's ids.  Where the logs of both are given, the events in both
 * are found by their time stamps and count once: the child's are shadow events.
 */
#pragma once

#include "base/file.h"
#include "model/profile/time_range.h"
#include "base/tsc.h"
#include "model/xray/ticks.h"
#include "wire/xray/event_names.h"
#include "wire/xray/xray_index.h"

/*
 * The functions of one log in the numbering of all logs.  Programs number their
 * functions from 1 on, each its own; logs of one program have the same numbers.
 * Zeroed: the numbers of the log (call_names.h sets others).
 */
struct seam_trace_ids {
	uint32_t n;			/* ids below it become first + id */
	uint32_t first;
	uint32_t others;		/* all other ids become others + id */
};

static inline uint32_t seam_trace_function(const struct seam_trace_ids *ids,
					   uint32_t id)
{
	return id + (id < ids->n ? ids->first : ids->others);
}

/*
 * A kind of event beside those of enum seam_xray_kind: the entry of a function
 * of which only entries are recorded.  Nobody knows how long such a call took;
 * it is a call of no length, which makes no calls.
 */
enum { SEAM_TRACE_ENTRY_ONLY = 0x40 };

/*
 * CLOCK_MONOTONIC is corrected by NTP while it runs, by up to 500 ppm, so one
 * frequency puts calls of a long recording beside the samples of another time:
 * in the middle of an hour in which the correction changed by 100 ppm, 90 ms
 * from their own.  The manifest of a bundle has ties, read all along.  Between
 * those that are enough for all others, time is linear.
 */
struct seam_trace_clock {
	/* the frequency of the logs, and one tie for all times */
	struct seam_ticks ticks;
	/* by the recording's ties, ascending; empty: it has none */
	SEAM_ARRAY(struct seam_ticks) pieces;
	bool is_tied;			/* its ns are CLOCK_MONOTONIC */
};

struct seam_trace_log {
	char *path;
	struct seam_file file;
	struct seam_xray_index index;
	struct seam_trace_ids ids;
	struct seam_event_names event_names;
};

struct seam_trace_block {
	uint32_t log;
	uint32_t stream;
	const struct seam_xray_block *block;
	uint64_t n_shadow;		/* first events that another log has */
};

struct seam_trace_stream {
	uint32_t log, section;
	int32_t pid, tid;		/* pid 0: not in the log */
	uint32_t clock;
	size_t first_block, n_blocks;
	uint64_t n_bytes;
	bool is_fork;			/* has shadow events */
};

/* Zeroed is valid and empty. */
struct seam_trace {
	SEAM_ARRAY(struct seam_trace_log) logs;
	SEAM_ARRAY(struct seam_trace_block) blocks;	/* by stream, in time */
	SEAM_ARRAY(struct seam_trace_stream) streams;
	SEAM_ARRAY(struct seam_trace_clock) clocks;	/* one a frequency */
	/* of the bundle that has the first logs, and of how many logs */
	SEAM_ARRAY(struct seam_tsc_tie) ties;
	size_t n_tied_logs;
	bool in_ticks;			/* a log has no frequency */
	struct seam_xray_problems problems;	/* of indexing, of all logs */
	uint64_t n_extents;		/* blocks whose extents were wrong */
	/* a bit for each function of which only entries are recorded, by the
	 * numbers of all logs (call_names.h); NULL: there is none */
	uint64_t *entries_only;
	uint32_t n_entries_only;	/* bits */
	/*
	 * The selected time, which has the calls that begin in it.  Readers
	 * of calls apply it themselves, because the caller of such a call may
	 * not be in it; raw readers give only the events in it.
	 */
	struct seam_time_range range;
};

/*
 * Open and index the logs at @paths, files and bundles.  0, also where parts
 * could not be read (trace->problems); or a negative errno with the path
 * in @err, and the trace is empty.
 */
int seam_trace_open(struct seam_trace *trace, const char *const *paths,
		    size_t n_paths, struct seam_err *err);

/*
 * The same in steps: initialize an empty trace, add each log, then arrange all
 * of them.  A log that cannot be added leaves the trace as it was.
 */
void seam_trace_init(struct seam_trace *trace);
int seam_trace_add(struct seam_trace *trace, const char *path,
		   struct seam_err *err);

/*
 * Add the logs of a bundle, xray/PID.xray, if it has any.  @unread is called
 * for each that cannot be read, and the others are added; NULL: such a log is
 * an error.
 */
int seam_trace_add_bundle(struct seam_trace *trace, const char *bundle,
			  void (*unread)(void *context, const char *name,
					 const struct seam_err *err),
			  void *context, struct seam_err *err);

/* Takes over @file, which was opened at @path, also where it fails. */
int seam_trace_add_file(struct seam_trace *trace, const char *path,
			struct seam_file *file, struct seam_err *err);
int seam_trace_arrange(struct seam_trace *trace, struct seam_err *err);

/*
 * Shift the time of the logs so that their first record is at @start_ns; of
 * logs whose clock is not tied only, with @untied.
 */
void seam_trace_move(struct seam_trace *trace, bool untied, uint64_t start_ns);

/* Whether all clocks are tied to CLOCK_MONOTONIC. */
bool seam_trace_is_tied(const struct seam_trace *trace);

/*
 * How far the times of records are from CLOCK_MONOTONIC at most: the largest
 * distance of a tie of the bundle from the line through its neighbours, and how
 * exactly a tie is read.  0: not known, as some times do not go by ties.
 */
uint64_t seam_trace_skew_ns(const struct seam_trace *trace);

void seam_trace_close(struct seam_trace *trace);

/* Reads one stream; zeroed is not valid. */
struct seam_trace_reader {
	const struct seam_trace *trace;
	const struct seam_trace_stream *stream;
	const struct seam_trace_ids *ids;
	const struct seam_trace_clock *times;
	const struct seam_ticks *clock;	/* of times, and how long it holds */
	uint64_t clock_ticks;
	size_t next_block;		/* of the stream */
	bool in_block;
	bool takes_runs;		/* seam_trace_run() has been called */
	bool raw;			/* TSCs, of events in the range only */
	bool in_range;			/* the last call or event is */
	uint64_t n_shadow;		/* of this block, still to come */
	uint64_t last_ns;
	uint64_t shift_ns;		/* added since the clock stepped back */
	uint64_t n_steps;		/* how often it did */
	struct seam_xray_block_reader block;
	struct seam_xray_problems problems;
};

/* The time at @tsc of a raw reader's event. */
uint64_t seam_trace_time(struct seam_trace_reader *reader, uint64_t tsc);

/* The time of a stream's first record. */
uint64_t seam_trace_start_ns(const struct seam_trace *trace, size_t stream);

/*
 * The times of the first and the last record of all streams; 0 where there
 * is none.  Cost: the last block of each stream.  0 or -ENOMEM.
 */
int seam_trace_span(const struct seam_trace *trace, uint64_t *start_ns,
		    uint64_t *end_ns);

/*
 * Set the range to the part @text of the trace's time, which
 * seam_time_range_parse() parses: 0, -EINVAL or -ENOMEM.
 */
int seam_trace_select(struct seam_trace *trace, const char *text,
		      struct seam_err *err);

void seam_trace_read(struct seam_trace_reader *reader,
		     const struct seam_trace *trace, size_t stream);

/*
 * The next events of the stream, their tsc converted to nanoseconds that never
 * fall, their functions to the numbering of all logs; a raw reader leaves both
 * as they are.  The first *@n_shadow are shadow events.  False at the end.  A
 * problem ends its block and is added to reader->problems.
 */
bool seam_trace_next(struct seam_trace_reader *reader,
		     struct seam_xray_batch *batch, size_t *n_shadow);

/*
 * Function records as they are in the file, whose times need no division and do
 * not step back: each is, as from seam_trace_next(),
 *
 *	origin_ns + seam_ticks_scale(clock, ticks + deltas so far)
 *
 * and its function is seam_trace_function(ids, id).
 */
struct seam_trace_run {
	struct seam_xray_run wire;	/* at most SEAM_TRACE_RUN records */
	const struct seam_trace_ids *ids;
	const struct seam_ticks *clock;
	uint64_t ticks;			/* of the record before */
	uint64_t origin_ns;
};

enum { SEAM_TRACE_RUN = 256 };

/* The run at the stream's position; false: use seam_trace_next(). */
bool seam_trace_run(struct seam_trace_reader *reader,
		    struct seam_trace_run *run);

/*
 * Go on after the first @n > 0 records of @run, which were all Entry or Exit;
 * run->ticks is that of the last one.
 */
void seam_trace_run_take(struct seam_trace_reader *reader,
			 const struct seam_trace_run *run, size_t n);
