/* SPDX-License-Identifier: MIT */
/*
 * pmu.h - the description of a PMU in sysfs
 *
 *	/sys/bus/event_source/devices/PMU/type		attr.type
 *	.../format/TERM		"config:0-7,32-35": the bits that TERM sets
 *	.../events/NAME		terms that stand for "PMU/NAME/"
 *	.../sinks/NAME		the value of config2 for the term "@NAME",
 *				the sink of a CoreSight trace
 *
 * Source: prefixes and defaults of PMUs with AUX buffers: intel-pt.c, cs-etm.c
 * and arm-spe.c in tools/perf/arch of Linux 6.1.
 */
#ifndef SEAM_PMU_H
#define SEAM_PMU_H

#include "record/events/event_kinds.h"
#include "record/proc/procfs.h"

#define SEAM_PMU_DEVICES "/sys/bus/event_source/devices"

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

#endif /* SEAM_PMU_H */
