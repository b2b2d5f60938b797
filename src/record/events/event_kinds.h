/* SPDX-License-Identifier: MIT */
/*
 * event_kinds.h - the argument of -e: events of all kinds, commas, groups
 *
 *	cycles:u,page-faults		names of perf; see event.h
 *	sched:sched_switch		a tracepoint; the name may hold * and ?
 *	{cycles,instructions}		a group, counted together
 *	{cycles,instructions}:S		only the first samples; a sample
 *					has the counts of all
 *	cycles/period=1000,name=x/u	terms of one event; event.h
 *	uprobe:/usr/bin/x:main		a function of a file, by symbol ...
 *	uprobe:/usr/bin/x:0x1130%return	... or offset in the file; its return
 *	kprobe:do_sys_openat2		a function of the kernel, or +offset
 *	kretprobe:do_sys_openat2	its return
 *	mem:0x601020/4:rw:u		an address that is read or written
 *	intel_pt/tsc=1,cyc=0/u		any PMU of the kernel; see pmu.c
 *
 * Tracepoints are found in tracefs, PMUs in /sys/bus/event_source/devices.
 *
 * Source: perf-list(1) and perf-record(1) of Linux 6.1 for the grammar of
 * all but probes, which perf defines with a command (perf probe).
 *
 * Each parser of a kind fills @event, or appends to @list, from @text.
 */
#pragma once

#include "record/events/event.h"
#include "record/proc/procfs.h"

/*
 * Append the events of @text.  -EINVAL, or the error of looking one up; the
 * list may have some of them then.
 */
int seam_event_list_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

/* ---- events of PMUs: pmu.c ---- */

/*
 * An event of any PMU of the kernel, "pmu/term=value,term,name/modifiers".
 * -ENOENT: no such PMU; -EINVAL: it has no such term or event.  If the PMU
 * writes an AUX buffer, aux_kind is set, and the terms begin with its defaults.
 */
int seam_pmu_event_parse(struct seam_event *event, const char *text,
			 struct seam_err *err);

/*
 * Set the bits of @attr that @format ("config1:1,6-10") names to @value, its
 * lowest bit first.  -EINVAL: an invalid @format; -EOVERFLOW: @value has more
 * bits than that.
 */
int seam_pmu_set_bits(struct perf_event_attr *attr, const char *format,
		      uint64_t value);

/* The decoder for PMU @name; SEAM_AUX_NONE: not in the table. */
enum seam_aux_kind seam_aux_pmu_kind(const char *name);

/* The text of file @path in the folder of @pmu; "" when there is none. */
const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap);

/* The number in that file, to @base; @otherwise if there is none. */
uint64_t seam_pmu_number(const char *pmu, const char *path, int base,
			 uint64_t otherwise);

/* ---- probes: probe.c ---- */

/*
 * A probe at a function of an ELF file,
 * "uprobe:/path:symbol|0xoffset[%return]"; "uretprobe:" is the same as %return.
 * A symbol is looked up in the file's tables, an offset is one in the file.
 * All functions of that name are probed.
 * -ENOENT: no such symbol, or it lies outside of the file.
 */
int seam_uprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err);

/*
 * A probe at a function of the kernel or of a module,
 * "kprobe:[module:]function[+offset]", or at its return,
 * "kretprobe:[module:]function".  Only the kernel knows which functions it can
 * probe: seam_probe_define() fails for others.
 */
int seam_kprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err);

/* Where a probe is, and what defines it in the kernel. */
struct seam_probe {
	char function[SEAM_EVENT_NAME];	/* of the kernel, with its offset; */
	int fd;			/* or "": a file's descriptor, owned, and */
	SEAM_ARRAY(uint64_t) places;	/* offsets in it, no two equal */
	bool is_return;
	char name[40];		/* of its event in tracefs; "": none */
};

/*
 * Define the probe of @event in tracefs, which needs root, and set attr to that
 * tracepoint.  -ENOTSUP: the kernel has no probes of this kind.
 *
 * Not an event of PMU "uprobe": the kernel reads attr.uprobe_path again when
 * such an event is inherited, from the memory of the process that forks, and
 * the fork fails.  Source: perf_uprobe_init() of Linux 6.18.
 */
int seam_probe_define(struct seam_event *event, struct seam_err *err);

/* The events are closed: remove the probe from tracefs, and free it. */
void seam_probe_free(struct seam_probe *probe);

/* ---- tracefs.c ---- */

/*
 * Open the root of tracefs, a descriptor (O_PATH) that the caller closes; files
 * are opened relative to it.  Where tracefs is not mounted, root reads it
 * through a mount without a place in the tree, which ends with its descriptor.
 * -ENOENT: not mounted, and this user may not mount it; -EACCES, -EPERM: this
 * user may not read it.  The message has the remedy.
 */
int seam_tracefs_open(struct seam_err *err);

/* The command that lets a group of users read it, after error @code. */
const char *seam_tracefs_remedy(int code);

/*
 * The id of event @name of @system, for perf_event_open().  -ENOENT: there is
 * no such event; -EACCES: this user may not read it.
 */
int seam_tracefs_id(int root, const char *system, const char *name,
		    struct seam_err *err);

/* ---- tracepoints: tracepoint.c ---- */

/*
 * Append each tracepoint that matches "system:name[:modifiers]", in the order
 * of their names: a pattern stands for several events, so this takes the
 * list.  -ENOENT: none matches, or tracefs is not mounted; -EACCES: tracefs
 * cannot be read.  The message says how to change that.
 */
int seam_tracepoint_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

/*
 * Make the feature HEADER_TRACING_DATA of perf.data, for the tracepoints among
 * @events.  The caller frees *@data, after a failure too; *@size is 0 when
 * there is no tracepoint.  -errno: a format cannot be read.
 * Source: trace-event-info.c in tools/perf/util of Linux 6.1, version 0.6 of
 * trace-cmd's format.
 */
int seam_tracepoint_data(const struct seam_event *events, size_t n,
			 uint8_t **data, size_t *size, struct seam_err *err);
