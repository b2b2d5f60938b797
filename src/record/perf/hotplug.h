/* SPDX-License-Identifier: MIT */
/*
 * hotplug.h - CPUs that went offline or came online during a recording
 *
 * The events of a CPU end when it goes offline and do not begin again when it
 * is back; there is no notification.  The kernel does count how long each
 * event was enabled: where that is shorter than on the other CPUs, the CPU was
 * offline.  Events of threads continue when it is back.  A CPU that came online
 * later has no events at all.
 *
 * Source: perf_event_exit_cpu_context() of kernel/events/core.c, Linux 6.1.
 */
#ifndef SEAM_HOTPLUG_H
#define SEAM_HOTPLUG_H

#include "record/perf/sources.h"
#include "wire/counts.h"

/* Set the counts of CPUs in @counts, after seam_sources_disable(). */
void seam_hotplug_count(const struct seam_sources *sources,
			struct seam_counts *counts);

#endif /* SEAM_HOTPLUG_H */
