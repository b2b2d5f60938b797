/* SPDX-License-Identifier: MIT */
/* tree_rails.h - the lines to the left of a call tree's nodes, as text */
#pragma once

#include "model/profile/tree.h"
#include "report/view.h"

/* Zeroed is valid; one line for each branch above the node. */
struct seam_tree_rails {
	SEAM_ARRAY(bool) lines;		/* true: siblings follow below */
	SEAM_ARRAY(uint32_t) steps;	/* number of lines, by depth - 1 */
};

/*
 * Draw the lines before node @id; nodes come depth-first.  Returns the columns
 * used and one more; 0 without memory.
 */
size_t seam_tree_rails_put(struct seam_tree_rails *rails,
			   const struct seam_view *view,
			   const struct seam_tree *tree, uint32_t id);
void seam_tree_rails_fini(struct seam_tree_rails *rails);
