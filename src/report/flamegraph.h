/* SPDX-License-Identifier: MIT */
/*
 * flamegraph.h - a call tree as one interactive SVG
 *
 * The file needs no network and no other file.  It is complete as an image; in
 * a browser, its script adds zoom, search and keyboard navigation
 * (flamegraph.js), and its style has a light and a dark scheme
 * (flamegraph.css).
 *
 * Groups (by default thread names) are the first frames above the root.
 * Callees are drawn largest first.  The width of a frame is its weight.
 */
#pragma once

#include "model/profile/tally.h"

/* What a picture shows in place of layers, and of the samples' tree. */
struct seam_flamegraph_change {
	int sign;		/* 1: more, -1: less, 0: as before */
	unsigned int level;	/* of the colour, 0 to 2 */
	char mark[16];		/* before the name; "" for none */
};

struct seam_flamegraph_changes {
	const struct seam_tree *tree;	/* keys are functions << 1 */
	enum seam_unit unit;		/* of its weights */
	struct seam_flamegraph_change (*change)(const void *context,
						uint32_t node);
	/* Lines of the tool tip, each after a newline; text is escaped as XML. */
	void (*put_details)(const void *context, uint32_t node, FILE *out);
	const char *subtitle;
	const char *const *foot;	/* lines below the frames */
	size_t n_foot;
	const void *context;
};

struct seam_flamegraph {
	const struct seam_selected *selected;
	const struct seam_flamegraph_changes *changes;	/* NULL: layers */
	enum seam_group group;	/* of the first frames; NONE: no such frames, */
				/* all stacks are merged */
	const char *title;
	bool inverted;		/* root at the top: an icicle graph */
	/*
	 * Narrower frames are not drawn.  The subtitle has their number, and
	 * one dashed frame replaces those of each caller.  For searches their
	 * names and weights are in the file, some 8 bytes each, unless it would
	 * exceed SEAM_FLAMEGRAPH_MAX_BYTES.
	 * Negative: 0.01, and only the SEAM_FLAMEGRAPH_FRAMES widest.
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
 * than SEAM_FLAMEGRAPH_MAX_BYTES: a larger min_percent makes it smaller.  The
 * caller checks the stream for errors.
 * Cost: the page is generated twice, first to measure its size.
 */
int seam_flamegraph_write(const struct seam_flamegraph *graph, FILE *out);
