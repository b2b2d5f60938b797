/* SPDX-License-Identifier: MIT */
/* pmu_event.h - an event of any PMU of the kernel: pmu/terms/modifiers */
#ifndef SEAM_PMU_EVENT_H
#define SEAM_PMU_EVENT_H

#include "record/events/event.h"

/*
 * Read "pmu/term=value,term,name/modifiers".  -ENOENT: no such PMU; -EINVAL:
 * it has no such term or event.  If the PMU writes an AUX buffer, aux_kind is
 * set, and the terms begin with its defaults; see aux_pmu.h.
 */
int seam_pmu_event_parse(struct seam_event *event, const char *text,
			 struct seam_err *err);

#endif /* SEAM_PMU_EVENT_H */
