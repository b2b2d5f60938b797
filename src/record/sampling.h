/* SPDX-License-Identifier: MIT */
/*
 * sampling.h - how often events are sampled, and what their samples hold
 *
 * Frequency, call chains and rings depend on each other: copies of stacks need
 * a ring that lasts until the recorder runs (stack_plan.h), and how large a
 * ring may be is known once it is mapped.  So the events are described for the
 * largest rings, opened, and described again for what was granted.
 */
#ifndef SEAM_SAMPLING_H
#define SEAM_SAMPLING_H

#include "record/session.h"

/*
 * Set rate and contents of the samples of all events, which are as they were
 * parsed.  -EINVAL: the call chains that the options request do not fit.
 */
int seam_sampling_set(struct seam_session *s, struct seam_err *err);

/* The size of rings to map for these events. */
size_t seam_sampling_ring_bytes(const struct seam_session *s);

/*
 * The sources are open.  -EAGAIN: their rings are too small for what the
 * events say; close them, parse the events, and set them again.
 */
int seam_sampling_check(struct seam_session *s, struct seam_err *err);

/* Whether copies of stacks stay in the file (SEAM_CALL_GRAPH_DWARF). */
bool seam_sampling_keeps_copies(const struct seam_session *s);

/* Report to the user rates, rings and stacks that are not as requested. */
void seam_sampling_report(const struct seam_session *s);

#endif /* SEAM_SAMPLING_H */
