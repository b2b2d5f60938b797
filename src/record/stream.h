/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a recorder in a process of its own, that sends its records
 *
 * For a command that shows a recording while it is made.  Whatever the command
 * waits for, a slow terminal or the names of a large file, the recorder drains
 * its rings: it never waits for its reader.  Up to SEAM_STREAM_MAX_BYTES are
 * kept for it; samples beyond are dropped and counted, records of the side-band
 * are kept.
 *
 * Messages come on a pipe, in the byte order and layout of this machine: both
 * ends are one program.
 *
 *	EVENT...  ID...  RECORDS...  TICK  RECORDS...  TICK ... END
 */
#pragma once

#include "record/record.h"

enum { SEAM_STREAM_MAX_BYTES = 32 << 20 };

enum seam_stream_kind {
	SEAM_STREAM_EVENT = 1,	/* struct seam_stream_event, by number */
	SEAM_STREAM_ID,		/* struct seam_stream_id */
	SEAM_STREAM_RECORDS,	/* whole records */
	SEAM_STREAM_TICK,	/* struct seam_stream_tick */
	SEAM_STREAM_NOTE,	/* text for the user, without a NUL */
	SEAM_STREAM_END,	/* struct seam_stream_end */
};

/* Before each message. */
struct seam_stream_header {
	uint32_t kind;
	uint32_t size;		/* of what follows */
};

struct seam_stream_event {
	char name[SEAM_EVENT_NAME];
	struct perf_event_attr attr;	/* of its samples in the stream */
	bool is_sideband;
};

struct seam_stream_id {
	uint64_t id;
	uint32_t event;
};

/* After the records of an interval; all values are since the begin. */
struct seam_stream_tick {
	uint64_t ns;		/* CLOCK_MONOTONIC */
	uint64_t n_lost;	/* samples, by the kernel's count */
	uint64_t n_dropped;	/* samples that the reader was too slow for */
	uint64_t cpu_ns;	/* of the recorder */
};

struct seam_stream_end {
	int r;			/* of seam_record() */
	struct seam_err err;
	struct seam_command_end command;
	bool is_lossy;
};

struct seam_record_stream {
	pid_t pid;		/* of the recorder; 0: it has been waited for */
	int fd;			/* of the messages */
	int control;		/* frequencies for the recorder */
	SEAM_ARRAY(uint8_t) bytes;	/* read, and not yet taken */
	size_t taken;
};

/* When ticks come. */
struct seam_stream_ticks {
	uint64_t interval_ns;
	/* of CLOCK_MONOTONIC: at multiples of the interval after this time; 0:
	 * after the recording began */
	uint64_t phase_ns;
};

/*
 * Start the recorder: a recording by @options, with ticks.
 * With @hides_output, what the command prints on a terminal is discarded, and
 * it reads nothing from it.  0 or -errno.
 */
int seam_stream_start(struct seam_record_stream *stream,
		      const struct seam_record_options *options,
		      const struct seam_stream_ticks *ticks, bool hides_output,
		      struct seam_err *err);

/*
 * Read what there is, without waiting longer than for one byte; then take the
 * messages with seam_stream_next().  False: the recorder has ended.
 */
bool seam_stream_read(struct seam_record_stream *stream);

/* The next whole message, borrowed until seam_stream_read(); false: none. */
bool seam_stream_next(struct seam_record_stream *stream,
		      struct seam_stream_header *header,
		      struct seam_bytes *body);

/* The recorder samples @hz times a second from now on; 0: not until then. */
void seam_stream_set_frequency(struct seam_record_stream *stream, uint64_t hz);

/* Wait for the end of the recorder.  Valid on a zeroed stream. */
void seam_stream_close(struct seam_record_stream *stream);
