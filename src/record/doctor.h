/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what this machine and this user can record, tried out
 *
 * Each check does the thing itself, with an event or a ring of its own, and
 * does not guess from settings; settings are named only where changing them
 * would change the answer.
 */
#ifndef SEAM_DOCTOR_H
#define SEAM_DOCTOR_H

#include "base/base.h"

enum seam_verdict {
	SEAM_VERDICT_YES,
	SEAM_VERDICT_LIMITED,	/* works, less well than it could */
	SEAM_VERDICT_NO,
};

struct seam_doctor {
	const char *key;	/* for scripts: "kernel-samples" */
	const char *title;	/* for people */
	enum seam_verdict verdict;
	char found[200];	/* what was found; may be "" */
	char remedy[240];	/* what would change it; "" where nothing can */
};

/* "yes", "limited", "no" */
const char *seam_verdict_name(enum seam_verdict verdict);

/* How many checks there are. */
size_t seam_doctor_count(void);

/* Run check @i.  Check 0 is whether anything can be recorded at all. */
void seam_doctor_run(size_t i, struct seam_doctor *probe);

/* Whether event @i of seam_event_name() can be opened here, in user code. */
bool seam_doctor_event(size_t i);

#endif /* SEAM_DOCTOR_H */
