/* SPDX-License-Identifier: MIT */
/*
 * stopped.h - programs whose events the kernel has stopped
 *
 * When exec() runs a setuid or setgid file, or one that its user may not read,
 * the kernel removes the events of the task, whoever opened them, without a
 * record.  The order of the side-band shows it: after the COMM record of the
 * exec() comes the EXIT of the task, without the MMAP2 record that every
 * running program has.  Events of CPUs go on.
 *
 * Rings are read one after the other, so a record may be read before an older
 * one of another ring.  An EXIT is therefore checked one round later, by the
 * times of the records.
 *
 * Source: begin_new_exec() of fs/exec.c, Linux 6.1: perf_event_exit_task()
 * where the new program is not dumpable, after perf_event_comm().
 */
#pragma once

#include "base/array.h"
#include "wire/counts.h"
#include "wire/perf/perf_record.h"

struct seam_stopped_task;

/* Zeroed is valid. */
struct seam_stopped {
	struct seam_stopped_task *tasks;	/* slots, by pid */
	/* Exits of processes, in this round and in the one before. */
	SEAM_ARRAY(struct seam_stopped_exit { uint32_t pid; uint64_t ns; })
		exits;
	size_t n_old;			/* exits of the round before */
};

/* Take a record of the side-band. */
void seam_stopped_read(struct seam_stopped *stopped,
		       const struct seam_perf_sideband *record);

/*
 * After each round: count into @losses.  @is_last: no more records follow.
 */
void seam_stopped_round(struct seam_stopped *stopped, bool is_last,
			struct seam_counts *losses);

void seam_stopped_fini(struct seam_stopped *stopped);
