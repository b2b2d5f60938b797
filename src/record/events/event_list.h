/* SPDX-License-Identifier: MIT */
/*
 * event_list.h - the argument of -e: events of all kinds, commas, groups
 *
 *	cycles:u,page-faults		names of perf; see event.h
 *	sched:sched_switch		a tracepoint; the name may hold * and ?
 *	{cycles,instructions}		a group, counted together
 *	{cycles,instructions}:S		only the first samples; a sample
 *					has the counts of all
 *	cycles/period=1000,name=x/u	terms of one event; event_term.h
 *	uprobe:/usr/bin/x:main		a function of a file, by symbol ...
 *	uprobe:/usr/bin/x:0x1130%return	... or offset in the file; its return
 *	kprobe:do_sys_openat2		a function of the kernel, or +offset
 *	kretprobe:do_sys_openat2	its return
 *	mem:0x601020/4:rw:u		an address that is read or written
 *	intel_pt/tsc=1,cyc=0/u		any PMU of the kernel; see pmu.h
 *
 * Tracepoints are found in tracefs, PMUs in /sys/bus/event_source/devices.
 *
 * Source: perf-list(1) and perf-record(1) of Linux 6.1 for the grammar of
 * all but probes, which perf defines with a command (perf probe).
 */
#ifndef SEAM_EVENT_LIST_H
#define SEAM_EVENT_LIST_H

#include "record/events/event.h"

/*
 * Append the events of @text.  -EINVAL, or the error of looking one up; the
 * list may have some of them then.
 */
int seam_event_list_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

#endif /* SEAM_EVENT_LIST_H */
