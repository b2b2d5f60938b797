/* SPDX-License-Identifier: MIT */
/*
 * trace_logs.h - the XRay logs of one bundle: xray/PID.xray
 *
 * Each chunk that a traced thread has filled is appended at once, so the logs
 * are valid while they grow and when the recorder is killed.  At the end a log
 * in which a thread has many blocks is written again, as llvm-xray needs it,
 * and the map of its ids is written beside it (trace_functions.h).  A process
 * that executes another program has another log, PID.2.xray.
 *
 * Chunks are not trusted (wire/xray/xray_chunk.h): a false chunk damages only
 * the log of its own program.  Threads: one, the recorder's.
 */
#pragma once

#include "base/index.h"
#include "base/tsc.h"
#include "record/bundle/bundle.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_log_file.h"

/*
 * ---- the clock: what ticks of the time stamp counter mean in a recording ----
 *
 * Records of calls have ticks of the counter.  Ties (base/tsc.h), read during
 * the whole recording, give its frequency, and a reader the time of each tick.
 * A tie is wrong by less than 100 ns, so over 50 ms the frequency is right to
 * 4 ppm; shorter recordings wait for that at their end.
 */
enum { SEAM_TSC_MAX_TIES = 256 };

/* Zeroed is valid: without a tie. */
struct seam_tsc_clock {
	struct seam_tsc_tie ties[SEAM_TSC_MAX_TIES];	/* ascending */
	size_t n;
	uint64_t interval_ns;	/* between two ties */
};

/* The first tie. */
void seam_tsc_clock_begin(struct seam_tsc_clock *clock);

/* Read a tie if the last tie is old enough.  Often called; cheap then. */
void seam_tsc_clock_step(struct seam_tsc_clock *clock);

/* Read the last tie.  Waits until the first tie is 50 ms old. */
void seam_tsc_clock_end(struct seam_tsc_clock *clock);

/* Ticks a second, by the first and the last tie; 0: fewer than 2 ties. */
uint64_t seam_tsc_clock_hz(const struct seam_tsc_clock *clock);

/* CLOCK_MONOTONIC at @tsc, by the nearest two ties; 0: fewer than 2 ties. */
uint64_t seam_tsc_clock_ns(const struct seam_tsc_clock *clock, uint64_t tsc);

/* ---- logs ---- */

enum {
	/* of the bits of functions seen, of all logs: 2^28 ids and more */
	SEAM_TRACE_MAX_SEEN_BYTES = 64 << 20,
	SEAM_TRACE_NAME_BYTES = 32,
};

/* A program in a process, until it ends or executes another one. */
struct seam_trace_program {
	uint32_t pid;
	uint64_t since_ns;	/* when it connected; with pid, what it is */
};

struct seam_program_log {
	struct seam_trace_logs *logs;
	struct seam_trace_program program;
	char name[SEAM_TRACE_NAME_BYTES];	/* "4711" */
	int fd;			/* -1: closed, as it has no thread */
	uint32_t n_threads;	/* that write into it now */
	struct seam_xray_log file;
	struct seam_xray_seen seen;	/* bits: owned */
	uint64_t n_records;
};

/* In calls and events, except n_bad_bytes. */
struct seam_trace_counts {
	uint64_t n_records;	/* written */
	uint64_t n_unwritten;	/* received, and not written */
	uint64_t n_bad_bytes;	/* received bytes that are no records */
};

struct seam_trace_logs {
	const struct seam_bundle *bundle;
	const struct seam_tsc_clock *clock;	/* borrowed */
	int folder;				/* xray/; -1: none so far */
	SEAM_ARRAY(struct seam_program_log *) items;
	struct seam_index by_pid;		/* of items */
	struct seam_trace_counts counts;
	uint64_t seen_bytes;
	struct seam_err why;			/* the first failed write */
	uint8_t body[SEAM_XRAY_CHUNK_BYTES];
};

/* @bundle and @clock must live as long. */
void seam_trace_logs_init(struct seam_trace_logs *logs,
			  const struct seam_bundle *bundle,
			  const struct seam_tsc_clock *clock);

/*
 * The log of @program, which is made for the first thread of the program; NULL:
 * on failure.  Call seam_trace_logs_leave() when the thread has ended.
 */
struct seam_program_log *
seam_trace_logs_enter(struct seam_trace_logs *logs,
		      const struct seam_trace_program *program);
void seam_trace_logs_leave(struct seam_program_log *log);

/*
 * Append the valid records of the first @size bytes of a chunk.  The thread is
 * the one in the chunk's preamble, as threads share a ring one after another;
 * @tid if the preamble has no thread.  Thread ids are those of the process' own
 * pid namespace.  Never fails: records that could not be written are counted.
 */
void seam_trace_logs_add(struct seam_program_log *log, uint32_t tid,
			const uint8_t *chunk, size_t size);

/* Count the calls of a chunk whose thread has no log as not written. */
void seam_trace_logs_drop(struct seam_trace_logs *logs, const uint8_t *chunk,
			  size_t size);

/* Bytes of all logs. */
uint64_t seam_trace_logs_bytes(const struct seam_trace_logs *logs);

/*
 * Write the headers again with the frequency as it is known now.  Chunks may
 * still be added afterwards.
 */
void seam_trace_logs_set_headers(struct seam_trace_logs *logs);

/* Functions of the caller that completes logs; any may be NULL. */
struct seam_trace_logs_caller {
	void (*note)(void *context, const char *text);	/* for the user */
	/* Called every few ms.  False: leave out the rest. */
	bool (*goes_on)(void *context);
	void *context;
};

/*
 * Complete the logs, after the last chunk.  Joining blocks takes as long as a
 * copy of the log; goes_on() can end it.
 */
void seam_trace_logs_finish(struct seam_trace_logs *logs,
			    const struct seam_trace_logs_caller *caller);

/* Valid on a zeroed struct. */
void seam_trace_logs_fini(struct seam_trace_logs *logs);
