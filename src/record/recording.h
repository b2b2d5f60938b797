/* SPDX-License-Identifier: MIT */
/*
 * recording.h - all that a recording in progress consists of
 *
 * Shared by record.c, which moves it from one stage to the next, and
 * account.c, which writes down what it says of itself.  Nobody else's.
 */
#ifndef SEAM_RECORDING_H
#define SEAM_RECORDING_H

#include "base/array.h"
#include "record/bundle.h"
#include "record/child.h"
#include "record/drain.h"
#include "record/keep.h"
#include "record/loop.h"
#include "record/record.h"
#include "record/running.h"

struct seam_recording {
	const struct seam_record_options *options;
	struct seam_record_result *result;

	struct seam_loop loop;
	struct seam_child child;
	struct seam_bundle bundle;
	SEAM_ARRAY(struct seam_event) events;	/* the side-band's last */
	struct seam_sources sources;
	struct seam_perf_event *described;	/* events, with their ids */
	uint64_t *ids;				/* of all sources, by event */

	int data;			/* the file; -1: none */
	int meta;			/* the last manifest's; -1: none */
	struct seam_perf_writer writer;
	struct seam_drain drain;
	struct seam_keep keep;		/* mapped files */
	struct seam_running_kernel kernel;
	uint64_t hz;			/* of samples; 0: by period */
	uint64_t start_ns, start_wall_ns;
};

/*
 * Take the space of the next manifest while there is some: a full disk must
 * not keep a recording from telling that it met one.
 */
int seam_recording_reserve_manifest(struct seam_recording *s,
				    struct seam_err *err);

/* Write the manifest as things stand, into the space that was reserved. */
int seam_recording_write_manifest(struct seam_recording *s, bool complete,
				  struct seam_err *err);

/* End the file with the features of perf.data. */
int seam_recording_write_features(struct seam_recording *s,
				  struct seam_err *err);

#endif /* SEAM_RECORDING_H */
