/* SPDX-License-Identifier: MIT */
/*
 * counts.h - the counts of a recording: one table of what it has and lost
 *
 * A row for each count: its member of the manifest, what its loss means to a
 * reader, and its sentence.  The recorder adds to an array; the manifest, the
 * summary of "seam record", the views and the exit status read the table.  A
 * new count is a constant here and a row in counts.c.
 */
#pragma once

#include "base/base.h"

/* Sections of the manifest, in the order of the lines. */
enum seam_count {
	/* JIT code that programs streamed: pieces of code and moves. */
	SEAM_COUNT_JIT_STREAMS,
	SEAM_COUNT_JIT_RECORDS,		/* received */
	SEAM_COUNT_JIT_LOST,		/* and not received */
	SEAM_COUNT_JIT_BAD,		/* records that break the format */
	SEAM_COUNT_JIT_UNOWNED,		/* streams of an unknown process */

	/* Calls of traced programs, by their counts where they are lost. */
	SEAM_COUNT_CALLS_RECORDS,	/* a call has two */
	SEAM_COUNT_CALLS_PROCESSES,
	SEAM_COUNT_CALLS_THREADS,
	SEAM_COUNT_CALLS_FUNCTIONS,	/* seen */
	SEAM_COUNT_CALLS_FROZEN,	/* records left out after a trigger */
	SEAM_COUNT_CALLS_FULL,		/* records: the buffer was full */
	SEAM_COUNT_CALLS_WITHOUT_RING,	/* records of threads without one */
	SEAM_COUNT_CALLS_UNWRITTEN,	/* records received, not in a log */
	SEAM_COUNT_CALLS_BAD_BYTES,	/* bytes that are no records */
	SEAM_COUNT_CALLS_BAD,		/* announcements, triggers, positions */
	SEAM_COUNT_CALLS_UNOWNED,	/* buffers of an unknown thread */
	SEAM_COUNT_CALLS_REFUSED,	/* programs that could not connect */

	SEAM_COUNT_THREADS_REFUSED,	/* their events could not be opened */
	SEAM_COUNT_PROGRAMS_STOPPED,	/* the kernel stopped their events */
	SEAM_COUNT_CPUS_BACK,		/* CPUs that went offline, came back */
	SEAM_COUNT_CPU_NS,		/* the longest time from then on */
	SEAM_COUNT_CPUS_NEW,		/* CPUs that came online later */

	/* Threads that ran before their events were opened. */
	SEAM_COUNT_THREADS_UNSEEN,	/* that ended before that */
	SEAM_COUNT_THREADS_LATE,
	SEAM_COUNT_LATE_NS,		/* for how long, all of them */
	SEAM_COUNT_LONGEST_LATE_NS,

	SEAM_COUNT_AUX_BYTES,
	SEAM_COUNT_AUX_TRUNCATED,	/* AUX records with this flag */
	SEAM_COUNT_AUX_PARTIAL,
	SEAM_COUNT_AUX_COLLISION,

	SEAM_COUNT_THROTTLED,		/* times, by the kernel */

	/* Records of rings. */
	SEAM_COUNT_RING_FULL,		/* no space in a ring */
	SEAM_COUNT_UNWRITTEN,		/* drained, but not in the file */
	SEAM_COUNT_OVER_SHARE,		/* mappings beyond a user's share */
	SEAM_COUNT_PAUSED,		/* the ring was paused for a snapshot */
	SEAM_COUNT_BAD_BYTES,		/* bytes in a ring: no records */

	/*
	 * Samples of samplers.  A tick is a period of a thread's CPU time; the
	 * weights of the samples are in ticks.  A tick without a sample of its
	 * own is counted by cause.
	 */
	SEAM_COUNT_GUEST_PROCESSES,	/* without forked ones */
	SEAM_COUNT_GUEST_SAMPLES,
	SEAM_COUNT_GUEST_WITH_GUEST,	/* of these, with frames of the guest */
	SEAM_COUNT_GUEST_INCOMPLETE,	/* of these, with frames missing */
	SEAM_COUNT_GUEST_SYMBOLS,
	SEAM_COUNT_GUEST_LOST,		/* records that found no room */
	SEAM_COUNT_GUEST_BAD,		/* invalid records, dropped */
	SEAM_COUNT_GUEST_THROTTLED,	/* samples took too much CPU time */
	SEAM_COUNT_GUEST_NO_STACK,	/* no room on the signal stack */
	SEAM_COUNT_GUEST_WITHOUT_RING,	/* ticks of threads without a ring */
	SEAM_COUNT_GUEST_TICKS,		/* weights of the samples */
	SEAM_COUNT_GUEST_DUE,		/* ticks */
	SEAM_COUNT_GUEST_MERGED,	/* the signal came late */
	SEAM_COUNT_GUEST_ENDED,		/* left over at the end of a thread */
	SEAM_COUNT_GUEST_SUPERSEDED,	/* samples of the recorder, dropped */
	/* --overwrite: from then on no sample of a sampler was dropped; 0: ever */
	SEAM_COUNT_GUEST_FROM_NS,

	/* Waits (--off-cpu). */
	SEAM_COUNT_OFF_CPU_MIN_NS,	/* shorter ones are added up */
	/*
	 * CLOCK_MONOTONIC: what threads that ran before do is known from then
	 * on; 0: there are none, or of the whole machine.
	 */
	SEAM_COUNT_OFF_CPU_FROM_NS,
	SEAM_COUNT_OFF_CPU_SPENT,	/* times that stacks were switched off */
	SEAM_COUNT_OFF_CPU_READ,	/* stacks read while threads waited */
	SEAM_COUNT_OFF_CPU_RAN,		/* not read: the thread ran meanwhile */
	SEAM_COUNT_OFF_CPU_OVER_RATE,	/* not read: too many at once */
	SEAM_COUNT_OFF_CPU_REFUSED,	/* threads that may not be read */

	/* Files that were copied, and those that were not, by cause. */
	SEAM_COUNT_KEPT_FILES,		/* mapped ones, in elf/ */
	SEAM_COUNT_KEPT_FILE_BYTES,
	SEAM_COUNT_KEPT_DUMPS,		/* dumps and maps of JITs, in jit/ */
	SEAM_COUNT_KEPT_DUMP_BYTES,
	SEAM_COUNT_KEPT_GONE,		/* before they could be opened */
	SEAM_COUNT_KEPT_REFUSED,	/* not readable, or not trusted */
	SEAM_COUNT_KEPT_LEASED,		/* under another process's lease */
	SEAM_COUNT_KEPT_TIMED_OUT,	/* not read in time */
	SEAM_COUNT_KEPT_TOO_LARGE,
	SEAM_COUNT_KEPT_TOO_MANY,
	SEAM_COUNT_KEPT_NOT_WRITTEN,
	SEAM_COUNT_KEPT_INTERRUPTED,	/* by a signal */
	SEAM_N_COUNTS,
};

struct seam_counts {
	uint64_t n[SEAM_N_COUNTS];

	/* Examples for people; not in the manifest. */
	char refusal[256];	/* why events of the first thread failed */
	char stopped[16];	/* name of the first program */
	int first_cpu;		/* a CPU that came back or is new; 0: none */
};

struct seam_count_row {
	const char *section;	/* of the manifest; NULL: its top */
	const char *key;
	bool is_always_written;
	/*
	 * For tables of losses, and the exit status 3: data is missing.  NULL:
	 * none is.
	 */
	const char *cause;
	/* What is counted is lost itself, and so much of it. */
	enum { SEAM_COUNT_IS_NO_AMOUNT, SEAM_COUNT_IS_RECORDS,
	       SEAM_COUNT_IS_BYTES } amount;
	bool is_in_data;	/* readers of perf.data find it there */
	/*
	 * The words after the count: a line of its own, in which * is the s of
	 * a plural, or a part of the line of its section.
	 */
	const char *line, *part;
};

/* In the order of their lines. */
extern const struct seam_count_row seam_count_rows[SEAM_N_COUNTS];

/* No cause, no file and no sentence is longer. */
enum { SEAM_COUNT_LINE = 480 };

/* Whether @row is of the manifest's object @section. */
bool seam_count_is_of(const struct seam_count_row *row, const char *section);

/* Add the numbers of @from.  The largest of some time is added too. */
void seam_counts_add(struct seam_counts *counts,
		     const struct seam_counts *from);

/* Whether data is missing: exit status 3. */
bool seam_counts_any_lost(const struct seam_counts *counts);

/*
 * The line of count @i, in @text of SEAM_COUNT_LINE bytes; names in it are not
 * escaped.  False: it is 0, or has no line of its own.
 */
bool seam_counts_describe(const struct seam_counts *counts, size_t i,
			  char *text);

/*
 * The counts of @section that are parts of one line: "3 because rings were
 * full, 1 because of failed writes"; "" if all are 0.
 */
void seam_counts_list(const struct seam_counts *counts, const char *section,
		      char *text, size_t cap);
