/* SPDX-License-Identifier: MIT */
/* call_tree.h - the tree of one event, sorted and cut, for both its forms */
#ifndef SEAM_CALL_TREE_H
#define SEAM_CALL_TREE_H

#include "report/report.h"

struct seam_call_tree {
	struct seam_tree tree;
	enum seam_group group;	/* what the roots are, if not functions */
	bool by_weight;		/* else the weights are all 0 */
	uint64_t whole;		/* by weight or samples: what 100 % is */
	size_t n_hidden;	/* nodes cut by --min-percent and --filter */
};

/* 0 or -ENOMEM; an event without samples gives a tree without nodes. */
int seam_call_tree_make(struct seam_call_tree *tree,
			const struct seam_report *report, uint32_t event);
void seam_call_tree_fini(struct seam_call_tree *tree);

/* Name of a node: function, or thread or process for a root that is one. */
const char *seam_call_tree_name(const struct seam_call_tree *tree,
				const struct seam_profile *profile,
				const struct seam_node *node);

#endif /* SEAM_CALL_TREE_H */
