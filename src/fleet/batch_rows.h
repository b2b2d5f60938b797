/* SPDX-License-Identifier: MIT */
/* batch_rows.h - what the files that make rows of a batch share */
#pragma once

#include "base/arena.h"
#include "fleet/batch_build.h"

struct seam_fleet_build {
	struct seam_fleet_source source;
	const char **labels;		/* of source */
	struct seam_arena arena;	/* its texts */
	seam_fleet_sink *sink;
	void *context;
	struct seam_batch_id id;	/* of the first batch */
	struct seam_batch_id next;	/* of the one that is open */
	bool is_open;			/* it has an origin, and rows */
	struct seam_batch batch;
	struct seam_index frames, stacks, samples;	/* of batch */
};

/* UTC of @time_ns; between 1970 and the time in which it has 62 bits. */
uint64_t seam_fleet_build_utc(uint64_t time_ns, int64_t utc_ns);

/* Have a batch in which a row of the window from @ts_ns on has room. */
int seam_fleet_build_window(struct seam_fleet_build *build, uint64_t ts_ns,
			    uint64_t window_ns, struct seam_err *err);

/* Have a frame in the batch: its id; 0: no memory. */
uint64_t seam_fleet_build_frame(struct seam_fleet_build *build,
				struct seam_batch_frame *frame);

/*
 * The id of @text (NULL: the empty one) in the batch, cut to
 * SEAM_BATCH_MAX_TEXT; SEAM_NONE: no memory.
 */
uint32_t seam_fleet_text(struct seam_fleet_build *build, const char *text);
