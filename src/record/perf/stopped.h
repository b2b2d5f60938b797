/* SPDX-License-Identifier: MIT */
/*
 * stopped.h - programs whose events the kernel has stopped
 *
 * A task whose exec() gives it another user's rights (setuid, setgid), or
 * whose file its user may not read, loses its events, whoever opened them.
 * No record says so.  The side-band shows it by its order: the name that
 * exec() gives is followed by the end of the task and not by a mapping of the
 * new program, which every program that runs has.  Events of CPUs go on.
 *
 * The rings are read one after the other, so a record may be seen before an
 * older one of another ring: an end is judged a round later, by the times.
 *
 * Source: begin_new_exec() of fs/exec.c, Linux 6.1: perf_event_exit_task()
 * where the new program is not dumpable, after perf_event_comm().
 */
#ifndef SEAM_STOPPED_H
#define SEAM_STOPPED_H

#include "base/array.h"
#include "ring/consumer.h"

struct seam_stopped_task;

/* Zeroed is valid. */
struct seam_stopped {
	struct seam_stopped_task *tasks;	/* by pid, the newest */
	/* Ends of processes: of this round, and of the one before. */
	SEAM_ARRAY(struct seam_stopped_end { uint32_t pid; uint64_t ns; }) ends;
	size_t n_old;			/* of them, seen a round ago */
	uint64_t n_programs;		/* found to have been stopped */
	char first[16];			/* name of the first of them */
};

/* Look at a side-band record, whole and in one piece. */
void seam_stopped_see(struct seam_stopped *stopped,
		      const struct seam_ring_header *record);

/* After each round; @is_last: no more records come. */
void seam_stopped_round(struct seam_stopped *stopped, bool is_last);

void seam_stopped_fini(struct seam_stopped *stopped);

#endif /* SEAM_STOPPED_H */
