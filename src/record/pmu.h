/* SPDX-License-Identifier: MIT */
/*
 * pmu.h - events in the terms of their PMU, as sysfs describes it
 *
 *	/sys/bus/event_source/devices/PMU/type		attr.type
 *	.../format/TERM		"config:0-7,32-35": the bits that TERM sets
 *	.../events/NAME		terms that stand for "PMU/NAME/"
 */
#ifndef SEAM_PMU_H
#define SEAM_PMU_H

#include "record/event_list.h"
#include "record/machine.h"

/*
 * Append "pmu/term=value,term,name/modifiers".  -ENOENT: no such PMU;
 * -EINVAL: it has no such term or event; -ENOTSUP: it writes an AUX area,
 * whose decoders need more than we can tell them of the CPU.
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

/* Whether it writes an AUX area and no samples. */
bool seam_pmu_writes_aux(const char *name);

#endif /* SEAM_PMU_H */
