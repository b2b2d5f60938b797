/* SPDX-License-Identifier: MIT */
/*
 * trace.h - the XRay logs of a program as one stream of events for a thread
 *
 * Logs hold blocks in the order in which buffers were reused.  Here they are
 * put into the order in which they were written: by thread, then by wall
 * time and first TSC.  A stream is one thread in one log; streams can be read
 * in any order and from several threads at once.  All logs given together
 * stand on one time line, CLOCK_MONOTONIC as far as the log tells it.
 *
 * A child that was forked while recording writes its parent's buffers again,
 * with the parent's ids.  Where parent and child are both given, what they
 * share is known by its time stamps and counts once (shadow events).
 */
#ifndef SEAM_TRACE_H
#define SEAM_TRACE_H

#include "base/file.h"
#include "model/profile/time_range.h"
#include "model/xray/ticks.h"
#include "wire/xray/xray_index.h"

struct seam_trace_log {
	char *path;			/* "" for one in memory */
	struct seam_file file;
	struct seam_xray_index index;
};

struct seam_trace_block {
	uint32_t log;
	uint32_t stream;
	const struct seam_xray_block *block;
	uint64_t n_shadow;		/* events that another log has too */
};

struct seam_trace_stream {
	uint32_t log, section;
	int32_t pid, tid;		/* pid 0: the log does not say */
	uint32_t clock;
	size_t first_block, n_blocks;
	uint64_t n_bytes;
	bool is_fork;			/* has shadow events */
};

struct seam_trace_clock {
	struct seam_ticks ticks;
	bool is_tied;			/* its ns are CLOCK_MONOTONIC */
};

/* Zeroed is valid and empty. */
struct seam_trace {
	struct seam_trace_log *logs;
	size_t n_logs, cap_logs;
	SEAM_ARRAY(struct seam_trace_block) blocks;	/* by stream, in time */
	SEAM_ARRAY(struct seam_trace_stream) streams;
	SEAM_ARRAY(struct seam_trace_clock) clocks;	/* one a frequency */
	bool in_ticks;			/* a log does not say its frequency */
	/*
	 * What is asked for.  A call belongs to it that begins in it.  Those
	 * who read calls look at it themselves, because a call in it may be
	 * made by one that is not; raw readers give only what lies in it.
	 */
	struct seam_time_range range;
};

/*
 * Open and index the logs at @paths.  0, also where parts could not be read
 * (seam_trace_problems()); or a negative errno with the path in @err, and the
 * trace is empty.
 */
int seam_trace_open(struct seam_trace *trace, const char *const *paths,
		    size_t n_paths, struct seam_err *err);

/* The same for one log in memory, which must outlive the trace. */
int seam_trace_from_bytes(struct seam_trace *trace, struct seam_bytes bytes,
			  struct seam_err *err);

/*
 * The same step by step: from an empty trace, with all time in its range, add
 * each log, then arrange all of them.  A log that cannot be added leaves the
 * trace as it was.
 */
void seam_trace_init(struct seam_trace *trace);
int seam_trace_add(struct seam_trace *trace, const char *path,
		   struct seam_err *err);

/* Takes over @file, which was opened at @path, also where it fails. */
int seam_trace_add_file(struct seam_trace *trace, const char *path,
			struct seam_file *file, struct seam_err *err);
int seam_trace_arrange(struct seam_trace *trace, struct seam_err *err);

/*
 * Give the logs another time: the first of their records is at @start_ns
 * then, and the time between any two of them stays.  @untied: only those
 * whose clock is not tied.
 */
void seam_trace_move(struct seam_trace *trace, bool untied, uint64_t start_ns);

/* Whether all clocks are tied to CLOCK_MONOTONIC. */
bool seam_trace_is_tied(const struct seam_trace *trace);

void seam_trace_close(struct seam_trace *trace);

/* What indexing could not read, all logs together. */
void seam_trace_problems(const struct seam_trace *trace,
			 struct seam_xray_problems *problems);

/* Blocks whose extents were wrong and were corrected. */
uint64_t seam_trace_n_extents(const struct seam_trace *trace);

/* Reads one stream; zeroed is not valid. */
struct seam_trace_reader {
	const struct seam_trace *trace;
	const struct seam_trace_stream *stream;
	const struct seam_ticks *clock;
	size_t next_block, end_block;	/* of the stream */
	bool in_block;
	bool takes_runs;		/* seam_trace_run() has been asked */
	bool raw;			/* leave TSCs as they are, cut */
	bool keeps;			/* the last call or event was kept */
	uint64_t n_shadow;		/* of this block, still to come */
	uint64_t last_ns;
	uint64_t first_ns;		/* of the first event; UINT64_MAX */
	uint64_t shift_ns;		/* added since the clock stepped back */
	uint64_t n_steps;		/* how often it did */
	struct seam_xray_block_reader block;
	struct seam_xray_problems problems;
};

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
 * Read blocks [@first, @first + @n) of the stream, when the time of its event
 * before them was @last_ns.
 */
void seam_trace_read_part(struct seam_trace_reader *reader,
			  const struct seam_trace *trace, size_t stream,
			  size_t first, size_t n, uint64_t last_ns);

/*
 * The next events of the stream, their tsc turned into nanoseconds that
 * never fall.  The first *@n_shadow of them belong to the process that this
 * one was forked from.  False at the end.  Problems cost the rest of their
 * block and are collected in reader->problems.
 */
bool seam_trace_next(struct seam_trace_reader *reader,
		     struct seam_xray_batch *batch, size_t *n_shadow);

/*
 * Function records as they lie in the file, whose times are so well-behaved
 * that each is
 *
 *	origin_ns + seam_ticks_scale(clock, ticks + deltas so far)
 *
 * which is what seam_trace_next() would give: no division, no step back.
 */
struct seam_trace_run {
	struct seam_xray_run wire;	/* at most SEAM_TRACE_RUN records */
	const struct seam_ticks *clock;
	uint64_t ticks;			/* of what came before */
	uint64_t origin_ns;
};

enum { SEAM_TRACE_RUN = 256 };

/* The run that the stream goes on with; false: seam_trace_next() must. */
bool seam_trace_run(struct seam_trace_reader *reader,
		    struct seam_trace_run *run);

/*
 * Go on behind the first @n > 0 records of @run, which were all Entry or Exit;
 * run->ticks is now the last one's.
 */
void seam_trace_run_take(struct seam_trace_reader *reader,
			 const struct seam_trace_run *run, size_t n);

#endif /* SEAM_TRACE_H */
