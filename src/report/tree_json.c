/* SPDX-License-Identifier: MIT */
/* tree_json.c - depth-first, without recursion; see tree_json.h */
#include "report/tree_json.h"

#include "report/report.h"

/*
 * A node with children opens its array, and the step to a node of lesser depth
 * closes the arrays between.
 */
void seam_tree_json(const struct seam_tree *tree, struct seam_json *j,
		    seam_tree_members_fn *put, const void *context)
{
	const struct seam_node *nodes = tree->items;
	uint32_t depth = 1, i = seam_tree_next(tree, 0, true);

	while (i != SEAM_NONE) {
		bool has = nodes[i].first_child != SEAM_NONE;
		bool into = has && nodes[i].depth < SEAM_REPORT_DEPTH;
		uint32_t next = seam_tree_next(tree, i, into);

		seam_json_open(j, NULL, '{');
		put(context, i, j);
		if (has && !into)
			seam_json_bool(j, "cut", true);
		depth = nodes[i].depth;
		if (into)
			seam_json_open(j, "children", '[');
		else
			seam_json_close(j);
		for (; depth > (next == SEAM_NONE ? 1 : nodes[next].depth);
		     depth--) {
			seam_json_close(j);
			seam_json_close(j);
		}
		i = next;
	}
}
