/* SPDX-License-Identifier: MIT */
/*
 * flamegraph.h - a call tree as one SVG that explains itself
 *
 * The file needs nothing but itself: no network, no other file.  As an image
 * it is complete; opened in a browser, its script lets one zoom, search and
 * walk it by mouse or keyboard (flamegraph.js), and it follows the reader's
 * light or dark scheme (flamegraph.css).
 *
 * Groups (thread names, as a rule) are the first frames above the root.
 * Callees stand largest first.  A frame is as wide as its weight.
 */
#ifndef SEAM_FLAMEGRAPH_H
#define SEAM_FLAMEGRAPH_H

#include "model/profile/tally.h"

struct seam_flamegraph {
	const struct seam_selected *selected;
	enum seam_group group;	/* what the first frames stand for; NONE: no */
				/* such frames, all stacks are merged */
	const char *title;
	bool inverted;		/* root at the top: an icicle graph */
	/*
	 * Narrower frames are not in the file; the subtitle says how many
	 * they are, and one dashed frame stands in the place of those that
	 * one frame has called.  Negative: 0.01, or what keeps the file to the
	 * SEAM_FLAMEGRAPH_FRAMES widest.
	 */
	double min_percent;
};

enum {
	SEAM_FLAMEGRAPH_FRAMES = 20000,
	/* browsers take long for more, or fail */
	SEAM_FLAMEGRAPH_MAX_BYTES = 50 * 1000 * 1000,
};

/*
 * 0, -ENOMEM, or -EFBIG, with nothing written, where the page would be larger
 * than SEAM_FLAMEGRAPH_MAX_BYTES: a larger min_percent makes it smaller.
 * Cost: the page is made twice, first to know its size.
 * Errors of the stream are the caller's to check.
 */
int seam_flamegraph_write(const struct seam_flamegraph *graph, FILE *out);

#endif /* SEAM_FLAMEGRAPH_H */
