/* SPDX-License-Identifier: MIT */
/* tree_json.h - a call tree as nested objects of JSON */
#pragma once

#include "base/json.h"
#include "model/profile/tree.h"

/* Put the members of node @id into its object. */
typedef void seam_tree_members_fn(const void *context, uint32_t id,
				  struct seam_json *j);

/*
 * Into an open array: the nodes below the root, each an object whose callees
 * are its "children".  At SEAM_REPORT_DEPTH, a limit of JSON readers, a node
 * with callees has "cut": true in place of them.
 */
void seam_tree_json(const struct seam_tree *tree, struct seam_json *j,
		    seam_tree_members_fn *put, const void *context);
