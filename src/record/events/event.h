/* SPDX-License-Identifier: MIT */
/*
 * event.h - one event that can be asked for with -e, by perf's names
 *
 * A name is one of the table in event.c or "rNNN", a raw event of the CPU in
 * hexadecimal; event_list.h has the kinds that need the machine's help.
 * Modifiers follow a colon:
 *
 *	u k h	count only in user space, in the kernel, in the hypervisor
 *	G H	count in guests of KVM, in the host
 *	I D	not while idle; pinned to the CPU
 *	p pp ppp P	as precise as that; P: as precise as can be
 *
 * Source: perf-list(1) of Linux 6.1, "EVENT MODIFIERS".
 */
#ifndef SEAM_EVENT_H
#define SEAM_EVENT_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEAM_EVENT_NAME = 256,
	SEAM_EVENT_ALONE = -1,	/* leader: of no group */
};

/* Of no count: what tells of mappings and threads.  Nobody asked for it. */
#define SEAM_EVENT_SIDEBAND "dummy:HG"

/* Whether an event has call chains of its own mind. */
enum seam_event_callchains {
	SEAM_EVENT_AS_ALL,		/* as the recording has them */
	SEAM_EVENT_CALLCHAINS,
	SEAM_EVENT_NO_CALLCHAINS,
};

struct seam_event {
	char name[SEAM_EVENT_NAME];	/* as it was asked for */
	/* type, config, exclude_*, precise_ip; the rest is the recorder's */
	struct perf_event_attr attr;
	bool any_precision;	/* lower precise_ip until it opens */
	bool each_time;		/* a sample for each occurrence by default */
	bool names_kvm;		/* G or H was given */
	bool is_pmu;		/* written pmu/terms/ */
	bool is_uprobe;
	bool no_inherit;	/* not into the children of its threads */
	uint64_t period;	/* of its own; 0: the recording's */
	uint64_t frequency_hz;	/* likewise */
	enum seam_event_callchains callchains;
	int aux_kind;		/* enum seam_aux_kind: whose AUX area; 0: none */
	int leader;		/* index of its group's, or SEAM_EVENT_ALONE */
	bool read_by_leader;	/* {a,b}:S: counts; the leader samples */
};

/* No event yet: of no group, not counting in guests of KVM, as perf's. */
void seam_event_init(struct seam_event *event);

/*
 * Read one event from the first @size bytes of @text.  -EINVAL when there
 * is no such name.
 */
int seam_event_parse(struct seam_event *event, const char *text, size_t size,
		     struct seam_err *err);

/*
 * Apply modifiers such as "upp".  -EINVAL when one is none.
 */
int seam_event_modify(struct seam_event *event, const char *modifiers,
		      struct seam_err *err);

/* Whether the @size bytes at @name are a name of the table or a raw event. */
bool seam_event_is_named(const char *name, size_t size);

/* The name of event @i of the table, for lists; NULL behind the last. */
const char *seam_event_name(size_t i);

/* "hardware", "software" or "cache": what kind event @i is. */
const char *seam_event_kind(size_t i);

#endif /* SEAM_EVENT_H */
