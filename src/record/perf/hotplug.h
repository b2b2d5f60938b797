/* SPDX-License-Identifier: MIT */
/*
 * hotplug.h - CPUs that went away or came while they were recorded
 *
 * The events of a CPU end when it goes offline and do not begin again when it
 * is back; the kernel tells nobody.  It does count how long each event was
 * enabled: where that is shorter than on the other CPUs, the CPU was offline.
 * Events of threads go on with it.  A CPU that came later has no events at
 * all, of whatever kind.
 *
 * Source: perf_event_exit_cpu_context() of kernel/events/core.c, Linux 6.1.
 */
#ifndef SEAM_HOTPLUG_H
#define SEAM_HOTPLUG_H

#include "record/perf/sources.h"

struct seam_hotplug {
	unsigned int n_back;	/* went offline and came back: not recorded */
	uint64_t longest_ns;	/* from then to the end, of one of these */
	int first;		/* a CPU that is meant; -1: none */
	unsigned int n_away;	/* went offline and are so */
	unsigned int n_new;	/* online now and not when it began */
};

/* After seam_sources_disable(). */
void seam_hotplug_look(struct seam_hotplug *hotplug,
		       const struct seam_sources *sources);

#endif /* SEAM_HOTPLUG_H */
