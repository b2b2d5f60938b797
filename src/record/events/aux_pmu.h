/* SPDX-License-Identifier: MIT */
/*
 * aux_pmu.h - PMUs that write an AUX area, and what their decoders must know
 *
 * What such a PMU writes means nothing by itself: how its clock runs, which
 * packets were asked for, which registers a trace unit has.  perf's decoders
 * find that in one record at the head of the file, AUXTRACE_INFO, whose words
 * differ from PMU to PMU.
 *
 * Source: tools/perf/util/intel-pt.h, intel-bts.h, cs-etm.h, arm-spe.h,
 * hisi-ptt.h and auxtrace.h of Linux 6.1; the kernel's side of it in
 * /sys/bus/event_source/devices.
 */
#ifndef SEAM_AUX_PMU_H
#define SEAM_AUX_PMU_H

#include "base/array.h"
#include "base/err.h"
#include "record/events/event.h"
#include "record/proc/procfs.h"

/* Whose decoder the bytes are for; the numbers are those of the file. */
enum seam_aux_kind {
	SEAM_AUX_NONE = 0,	/* writes no area */
	SEAM_AUX_INTEL_PT = 1,
	SEAM_AUX_INTEL_BTS = 2,
	SEAM_AUX_CS_ETM = 3,	/* Arm CoreSight */
	SEAM_AUX_ARM_SPE = 4,
	SEAM_AUX_HISI_PTT = 6,
	SEAM_AUX_UNKNOWN = 255,	/* an area without a decoder in perf */
};

/* The kind of PMU @name; SEAM_AUX_NONE for those we know nothing of. */
enum seam_aux_kind seam_aux_pmu_kind(const char *name);

/*
 * The terms that @event of PMU @pmu is asked for with before those of the
 * user, into @terms: what its decoder cannot do without, as far as this
 * machine has it.  Sets the period too.
 */
void seam_aux_pmu_defaults(struct seam_event *event, const char *pmu,
			   char *terms, size_t cap);

/* How the counter of the CPU becomes the clock of the recording. */
struct seam_aux_clock {
	bool is_known;
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;		/* ns */
};

/* From the control page of a ring whose event has no clock of its own. */
struct seam_aux_clock seam_aux_clock_read(const void *control_page);

/* What the words of AUXTRACE_INFO depend on.  Everything is borrowed. */
struct seam_aux_facts {
	const struct seam_event *event;
	const struct seam_number_list *cpus;	/* that are traced */
	struct seam_aux_clock clock;
	bool free_running;	/* snapshots are taken */
	bool by_cpu;		/* areas are of CPUs and not of threads */
	bool system_wide;
};

struct seam_aux_words {
	SEAM_ARRAY(uint64_t) list;
	bool no_memory;
};

/*
 * Append the words behind AUXTRACE_INFO's type to @words; none for a kind
 * that has no decoder.
 */
void seam_aux_pmu_info(const struct seam_aux_facts *facts,
		       struct seam_aux_words *words);

#endif /* SEAM_AUX_PMU_H */
