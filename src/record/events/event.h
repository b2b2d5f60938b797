/* SPDX-License-Identifier: MIT */
/*
 * event.h - an event to record, and the list of them
 *
 * Each kind of event (event_kinds.h, which has the syntax of all) fills a
 * struct seam_event from text.  A name is one of the table in event.c or
 * "rNNN", a raw event of the CPU in hexadecimal.  Modifiers follow a colon:
 *
 *	u k h	count only in user space, in the kernel, in the hypervisor
 *	G H	count in guests of KVM, on the host
 *	I D	not while idle; pinned to the CPU
 *	p pp ppp P	precise_ip 1 to 3; P: the highest that opens
 *
 * Source: perf-list(1) of Linux 6.1, "EVENT MODIFIERS".
 */
#pragma once

#include "base/array.h"
#include "base/err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEAM_EVENT_NAME = 256,
	SEAM_EVENT_ALONE = -1,	/* leader: of no group */
};

/* The event whose ring carries the side-band: mappings, names, threads. */
#define SEAM_EVENT_SIDEBAND "dummy:HG"

/* Bit 63 of an id: the kernel's ids, which count up from 1, never have it. */
#define SEAM_EVENT_PROGRAM_ID (UINT64_C(1) << 63)

/* Where the records of an event come from. */
enum seam_event_origin {
	/* a name, a tracepoint, a breakpoint or a probe */
	SEAM_EVENT_OF_KERNEL,
	SEAM_EVENT_OF_PMU,	/* written pmu/terms/ */
	/*
	 * A program's own ring: the event has an attr and an id in perf.data,
	 * but is not opened in the kernel.
	 */
	SEAM_EVENT_OF_PROGRAM,
};

/* The decoder of an AUX buffer.  Source: enum auxtrace_type of perf 6.1. */
enum seam_aux_kind {
	SEAM_AUX_NONE = 0,	/* the event writes no AUX buffer */
	SEAM_AUX_INTEL_PT = 1,
	SEAM_AUX_INTEL_BTS = 2,
	SEAM_AUX_CS_ETM = 3,	/* Arm CoreSight */
	SEAM_AUX_ARM_SPE = 4,
	SEAM_AUX_HISI_PTT = 6,
};

/* How the call chains of samples are recorded. */
enum seam_call_graph {
	SEAM_CALL_GRAPH_DEFAULT,	/* of an event: as for all events */
	SEAM_CALL_GRAPH_NONE,
	SEAM_CALL_GRAPH_FP,		/* by the kernel, by frame pointers */
	SEAM_CALL_GRAPH_AUTO,		/* by the recorder, from copies */
	SEAM_CALL_GRAPH_DWARF,		/* by readers, from copied stacks */
};

struct seam_event {
	char name[SEAM_EVENT_NAME];	/* as the user wrote it, or of name= */
	/* "system:name" of a tracepoint, or the PMU; "" for other events */
	char kernel_name[SEAM_EVENT_NAME];
	/* type, config, exclude_*, precise_ip; the recorder sets the rest */
	struct perf_event_attr attr;
	enum seam_event_origin origin;
	uint64_t program_id;	/* SEAM_EVENT_OF_PROGRAM: its id; else 0 */
	bool has_names;		/* its samples are names for others */
	struct seam_probe *probe;	/* event_kinds.h; owned, or NULL */
	bool any_precision;	/* lower precise_ip until it opens */
	bool each_time;		/* the default period is 1 */
	bool has_kvm_modifier;	/* G or H was given */
	bool no_inherit;	/* not into the children of its threads */
	/* Of --off-cpu (wire/perf/wait_events.h): not named by the user. */
	bool is_switches, is_switch_stack, is_waking;
	bool has_rings;		/* of its own, on all CPUs */
	uint64_t period;	/* of its own; 0: the recording's */
	uint64_t frequency_hz;	/* likewise */
	enum seam_call_graph call_graph;	/* as requested */
	/*
	 * The recorder replaces registers and copied stacks of its samples by
	 * call chains: the file has the attr of seam_event_file_attr().
	 */
	bool is_unwound;
	enum seam_aux_kind aux_kind;
	int leader;		/* index of its group's leader, or ALONE */
	bool read_by_leader;	/* {a,b}:S: counts; the leader samples */
};

/* Zeroed is empty.  The list owns its events and what they own. */
struct seam_event_list {
	struct seam_event *items;
	size_t n, cap;
};

/* Append an event as seam_event_init() leaves it; NULL: out of memory. */
struct seam_event *seam_event_list_push(struct seam_event_list *list);

void seam_event_list_fini(struct seam_event_list *list);

/* No event yet: of no group, not counting in guests of KVM, as perf's. */
void seam_event_init(struct seam_event *event);

/*
 * Make it event number @number of programs: each record of it is a sample
 * with raw bytes (PERF_SAMPLE_RAW) that carries @event->program_id.  @name
 * is copied.
 */
void seam_event_init_program(struct seam_event *event, const char *name,
			     uint32_t number);

/*
 * Whether it only occurs in the kernel: without the right to samples of the
 * kernel, or with the modifier u, it opens and counts nothing.
 */
bool seam_event_is_of_kernel(const struct seam_event *event);

/* Whether its samples are of time on a CPU, as the default event's are. */
bool seam_event_is_cpu_time(const struct seam_event *event);

/* The attr that describes the samples in the file. */
struct perf_event_attr seam_event_file_attr(const struct seam_event *event);

/* Read "name[:modifiers]" or "rNNN[:modifiers]".  -EINVAL: no such name. */
int seam_event_parse(struct seam_event *event, const char *text,
		     struct seam_err *err);

/* Apply modifiers such as "upp".  -EINVAL: one of them is unknown. */
int seam_event_modify(struct seam_event *event, const char *modifiers,
		      struct seam_err *err);

/* The name of event @i of the table, for lists; NULL after the last. */
const char *seam_event_name(size_t i);

/* "hardware", "software" or "cache": the type of event @i of the table. */
const char *seam_event_kind(size_t i);

/*
 * ---- terms of any event, between slashes: event/period=1000/ ----
 *
 *	period=N	a sample every N occurrences
 *	freq=HZ		samples per second
 *	name=TEXT	the event's name in reports
 *	call-graph=HOW	auto, fp or dwarf; "no": no call chains
 *	max-stack=N	maximum number of frames in a call chain
 *	no-inherit	only the threads that are named, not their children
 *
 * A term overrides, for its event, the option that is for all events.
 * Source: perf-record(1) of Linux 6.1, "-e".
 *
 * Apply @term; @value NULL: the term has no value.  -ENOENT: no such term;
 * -EINVAL: an invalid value, or a contradiction to another term.
 */
int seam_event_term_set(struct seam_event *event, const char *term,
			const char *value, struct seam_err *err);
