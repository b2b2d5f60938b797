/* SPDX-License-Identifier: MIT */
/*
 * pmu.h - events in the terms of their PMU, as sysfs describes it
 *
 *	/sys/bus/event_source/devices/PMU/type		attr.type
 *	.../format/TERM		"config:0-7,32-35": the bits that TERM sets
 *	.../events/NAME		terms that stand for "PMU/NAME/"
 *	.../sinks/NAME		what "@NAME" sets config2 to: where a trace
 *				unit of CoreSight puts its bytes
 */
#ifndef SEAM_PMU_H
#define SEAM_PMU_H

#include "record/events/event_list.h"
#include "record/proc/procfs.h"

/*
 * Append "pmu/term=value,term,name/modifiers".  -ENOENT: no such PMU;
 * -EINVAL: it has no such term or event.  Of one that writes an AUX area
 * aux_kind is set, and the terms begin with its defaults; see aux_pmu.h.
 */
int seam_pmu_event_add(struct seam_event_list *list, const char *text,
		       struct seam_err *err);

/*
 * Set the bits of @attr that @format ("config1:1,6-10") names to @value, its
 * lowest bit first.  -EINVAL when it is none; -EOVERFLOW when @value has
 * more bits than there are.
 */
int seam_pmu_set_bits(struct perf_event_attr *attr, const char *format,
		      uint64_t value);

/* The number in attr.type of PMU @name; -ENOENT. */
int seam_pmu_type(const char *name);

/* The text of file @path in the folder of @pmu; "" when there is none. */
const char *seam_pmu_text(const char *pmu, const char *path, char *buf,
			  size_t cap);

/* Whether there is such a file. */
bool seam_pmu_has(const char *pmu, const char *path);

/* The number in it, in that @base, or @otherwise. */
uint64_t seam_pmu_number(const char *pmu, const char *path, int base,
			 uint64_t otherwise);

#endif /* SEAM_PMU_H */
