/* SPDX-License-Identifier: MIT */
/*
 * pmu.h - the description of a PMU in sysfs, and AUXTRACE_INFO for decoders
 *
 *	/sys/bus/event_source/devices/PMU/type		attr.type
 *	.../format/TERM		"config:0-7,32-35": the bits that TERM sets
 *	.../events/NAME		terms that stand for "PMU/NAME/"
 *	.../sinks/NAME		the value of config2 for the term "@NAME",
 *				the sink of a CoreSight trace
 *
 * The bytes in an AUX buffer cannot be decoded alone: a decoder needs the
 * parameters of the clock, the packets that were enabled and the registers of
 * the trace unit.  perf's decoders read these from one record at the head of
 * the file, AUXTRACE_INFO, whose words differ from PMU to PMU.
 *
 * Source: tools/perf/util/intel-pt.h, intel-bts.h, cs-etm.h, arm-spe.h,
 * hisi-ptt.h and auxtrace.h of Linux 6.1; values from
 * /sys/bus/event_source/devices.
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

/*
 * Conversion of the CPU's counter to ns of the kernel's clock.
 * Source: linux/perf_event.h, cap_user_time_zero.
 */
struct seam_aux_clock {
	bool is_known;
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;		/* ns */
};

/* Read it from the control page of a ring whose event has no clockid. */
struct seam_aux_clock seam_aux_clock_read(const void *control_page);

/* What AUXTRACE_INFO is made from.  Everything is borrowed. */
struct seam_aux_facts {
	const struct seam_event *event;
	const struct seam_number_list *cpus;	/* that are traced */
	struct seam_aux_clock clock;
	bool snapshot_mode;	/* the newest bytes are copied on request */
	bool by_cpu;		/* a buffer for each CPU, not each thread */
	bool system_wide;
};

struct seam_aux_words {
	SEAM_ARRAY(uint64_t) list;
	bool no_memory;
};

/*
 * Append the words that follow the type in AUXTRACE_INFO to @words; none for
 * a kind that has no decoder.
 */
void seam_aux_pmu_info(const struct seam_aux_facts *facts,
		       struct seam_aux_words *words);

#endif /* SEAM_PMU_H */
