/* SPDX-License-Identifier: MIT */
/*
 * call_paths.h - all calls of a thread as one tree of stacks, exactly
 *
 * A node is a function as called along one path.  Its time is the sum of
 * the calls that took this path, so that a flame graph's widths are measured
 * and not sampled.  Size: the program's distinct stacks, not its calls.
 *
 * A hostile log can have a new stack for each call, at 8 bytes a call, so the
 * number of nodes has a limit.  A call whose stack would exceed it is not in
 * the tree: its time counts as its caller's.
 */
#ifndef SEAM_CALL_PATHS_H
#define SEAM_CALL_PATHS_H

#include "base/index.h"
#include "model/xray/stream_calls.h"

struct seam_call_path {
	uint32_t parent;	/* node; SEAM_NONE for node 0 */
	uint32_t function;	/* XRay id; SEAM_NONE for node 0 */
	uint64_t first_ns;	/* when the first of the calls began */
	uint64_t count;		/* calls that began in the trace's range */
	uint64_t total_ns;	/* with callees, as far as in the range */
	uint64_t self_ns;	/* without callees */
};

enum { SEAM_CALL_PATHS_MAX = 1 << 21 };	/* of a whole log */

/* Zeroed is valid; node 0 is above all roots; parents come first. */
struct seam_call_paths {
	SEAM_ARRAY(struct seam_call_path) nodes;
	struct seam_index index;
	size_t max;		/* nodes, node 0 apart; 0: no limit */
	uint64_t n_left_out;	/* calls whose stack exceeded max */
};

/*
 * Add the calls of stream @stream of @trace.  @calls is scratch space that
 * collects the repairs.  0 or -ENOMEM.  Cost: about 20 ns a call.
 */
int seam_call_paths_add(struct seam_call_paths *tree,
			const struct seam_trace *trace, size_t stream,
			struct seam_calls *calls,
			struct seam_xray_problems *problems);

/*
 * The node of @function called from node @parent, new if need be; makes node
 * 0 in an empty tree.  SEAM_NONE if that would exceed max, or @parent is that;
 * 0 when memory ran out.
 */
uint32_t seam_call_paths_child(struct seam_call_paths *tree, uint32_t parent,
			       uint32_t function);

void seam_call_paths_fini(struct seam_call_paths *tree);

#endif /* SEAM_CALL_PATHS_H */
