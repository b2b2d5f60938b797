/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - check what this user can record on this machine
 *
 * Each check opens an event or maps a ring of its own; it does not infer the
 * result from settings.  Settings are named where changing them would change
 * the result.
 */
#ifndef SEAM_DOCTOR_H
#define SEAM_DOCTOR_H

#include "base/base.h"

enum seam_verdict {
	SEAM_VERDICT_YES,
	SEAM_VERDICT_LIMITED,	/* works with restrictions */
	SEAM_VERDICT_NO,
};

/* A check and its result. */
struct seam_doctor {
	const char *key;	/* for scripts: "kernel-samples" */
	const char *title;	/* for people */
	enum seam_verdict verdict;
	char found[200];	/* details of the verdict; may be "" */
	char remedy[240];	/* how to change it; "" where impossible */
};

/* "yes", "limited", "no" */
const char *seam_verdict_name(enum seam_verdict verdict);

/* How many checks there are. */
size_t seam_doctor_count(void);

/* Run check @i.  Check 0 is whether anything can be recorded at all. */
void seam_doctor_run(size_t i, struct seam_doctor *check);

/* Whether event @i of seam_event_name() can be opened here, in user code. */
bool seam_doctor_event(size_t i);

#endif /* SEAM_DOCTOR_H */
