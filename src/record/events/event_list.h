/* SPDX-License-Identifier: MIT */
/*
 * event_list.h - what -e takes: events of all kinds, with commas, in groups
 *
 *	cycles:u,page-faults		names of perf's; see event.h
 *	sched:sched_switch		a tracepoint; the name may hold * and ?
 *	{cycles,instructions}		a group, counted together
 *	{cycles,instructions}:S		the first samples, all are read then
 *	cycles/period=1000,name=x/u	terms of its own; see event_term.h
 *	uprobe:/usr/bin/x:main		a function of a file, by symbol ...
 *	uprobe:/usr/bin/x:0x1130%return	... or offset in the file; its return
 *	mem:0x601020/4:rw:u		an address that is read or written
 *	intel_pt/tsc=1,cyc=0/u		any PMU of the kernel, by its own terms
 *
 * Tracepoints are found in tracefs, PMUs in /sys/bus/event_source/devices.
 *
 * Source: perf-list(1) and perf-record(1) of Linux 6.1 for the grammar of
 * all but uprobe:, which in perf is a job of its own (perf probe).
 */
#ifndef SEAM_EVENT_LIST_H
#define SEAM_EVENT_LIST_H

#include "base/array.h"
#include "record/events/event.h"

/* Zeroed is empty. */
struct seam_event_list {
	struct seam_event *items;
	size_t n, cap;
	/* What attrs of uprobes point to; lives as long as the list. */
	SEAM_ARRAY(char *) paths;
};

/* Append what @text names.  -EINVAL, or what finding it gave. */
int seam_event_list_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

/* One more event, to be filled in; NULL for want of memory. */
struct seam_event *seam_event_list_push(struct seam_event_list *list);

void seam_event_list_fini(struct seam_event_list *list);

#endif /* SEAM_EVENT_LIST_H */
