/* SPDX-License-Identifier: MIT */
/*
 * off_cpu.h - waits of threads as samples of a profile
 *
 * Two events are added where switches were recorded: "off-cpu", while a thread
 * was blocked, and "preempted", while it could run and had no CPU.  A sample of
 * these is a wait (struct seam_profile_event, is_wait):
 *
 *	stack	the one that was recorded when the thread lost its CPU; else
 *		one that was read while it waited, with a leaf "[read while it
 *		waited]"; else "[stack not recorded]"
 *	wait	the reason: the first named function of the kernel outside the
 *		scheduler, from the leaf on; of a stack that was read, which has
 *		no part of the kernel, the system call, "poll()"
 *	waker	the thread that woke it last before it had a CPU, or
 *		"[interrupt]": a timer, a disk, a network; where recorded
 *
 * Waits shorter than a minimum are added up: of each thread those that begin in
 * one 10 ms are one sample, "[waits shorter than 1ms]".  Samples of the events
 * with these stacks (wire/perf/wait_events.h) are taken out of the profile.
 *
 * Samples of all other events are told how many threads ran at their time.
 */
#pragma once

#include "model/perf/perf_scan.h"

struct seam_off_cpu {
	struct seam_perf_scan *scans;	/* whose switches are taken */
	size_t n_scans;
	const struct seam_perf_data *data;
	const struct seam_tasks *tasks;
	uint64_t min_ns;	/* 0: SEAM_WAIT_MIN_NS */
	uint64_t begin_ns;	/* of threads that ran before; 0: not known */
	uint64_t end_ns;	/* of the recording; 0: of its last record */
};

/*
 * Add the waits.  Samples of @profile have their threads and stacks.  Nothing
 * is done where no switches were recorded.  0 or -ENOMEM.
 */
int seam_off_cpu_add(struct seam_profile *profile,
		     const struct seam_off_cpu *from);

/*
 * The waits alone, sorted, without a change to @profile's samples and events.
 */
int seam_off_cpu_read(struct seam_profile *profile,
		      const struct seam_off_cpu *from,
		      struct seam_waits *waits);
