/* SPDX-License-Identifier: MIT */
/*
 * losses.h - what is missing from a recording, by cause
 *
 * One struct from where a loss is counted to where it is reported: the
 * recorder counts into it, the manifest stores it, "seam record" and
 * "seam report" describe it.
 */
#ifndef SEAM_LOSSES_H
#define SEAM_LOSSES_H

#include "base/base.h"

struct seam_losses {
	/* Records. */
	uint64_t n_ring_full;	/* no space in a ring */
	uint64_t n_paused;	/* a ring was paused for a snapshot */
	uint64_t n_unwritten;	/* drained from a ring, but not in the file */
	uint64_t n_over_share;	/* mappings beyond the share of their user */
	uint64_t n_bad_bytes;	/* bytes in a ring that are not records */
	uint64_t n_throttled;	/* times that the kernel throttled sampling */
	/* AUX records with one of these flags. */
	uint64_t n_truncated, n_partial, n_collision;

	/* Threads that ran before their events were opened, and how long. */
	uint64_t n_late, late_ns, longest_late_ns;
	uint64_t n_unseen;	/* threads that ended before that */
	uint64_t n_refused;	/* threads whose events could not be opened */
	uint64_t n_stopped;	/* programs whose events the kernel stopped */
	/* CPUs that went offline and came back; for how long, at most. */
	uint64_t n_cpus_back, cpu_ns;
	uint64_t n_cpus_new;	/* CPUs that came online after the start */

	/* JIT code that programs streamed into the recording. */
	uint64_t n_jit;		/* pieces of code and moves, received */
	uint64_t n_jit_lost;	/* and not received */
	uint64_t n_jit_bad;	/* records that break the format */
	uint64_t n_jit_unowned;	/* streams whose process is not known */

	/* Calls of traced programs, by their counts where they are lost. */
	uint64_t n_calls_full;	/* records: the thread's area was full */
	uint64_t n_calls_without_ring;	/* records of threads without one */
	uint64_t n_calls_unwritten;	/* records received, not in a log */
	uint64_t n_calls_bad_bytes;	/* bytes that are no records */
	uint64_t n_calls_bad;	/* announcements, triggers, positions */
	uint64_t n_calls_unowned;	/* areas whose thread is not known */
	uint64_t n_calls_refused;	/* programs that could not connect */

	/* Examples for people; not in the manifest. */
	char refusal[256];	/* why events of the first thread failed */
	char stopped[16];	/* name of the first program */
	int first_cpu;		/* a CPU that came back or is new; 0: none */
};

/*
 * The kinds of losses that have a line of words, in the order of the lines.
 * First those that readers of perf.data cannot count themselves.  Records lost
 * have no line: views show them as numbers.
 */
enum {
	SEAM_LOSSES_N_BESIDE_DATA = 15,
	SEAM_LOSSES_N_KINDS = 20,
};

/* Losses of one kind, in words. */
struct seam_losses_line {
	const char *cause;	/* for tables; NULL: no data is missing */
	char text[480];		/* one line; names in it are not escaped */
};

/* Whether data is missing: exit status 3. */
bool seam_losses_any(const struct seam_losses *losses);

/* Describe kind @kind.  False: there are no such losses. */
bool seam_losses_describe(const struct seam_losses *losses, size_t kind,
			  struct seam_losses_line *line);

#endif /* SEAM_LOSSES_H */
