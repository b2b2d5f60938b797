/* SPDX-License-Identifier: MIT */
/* call_tree.h - the tree of one event, sorted and cut, for text and JSON */
#ifndef SEAM_CALL_TREE_H
#define SEAM_CALL_TREE_H

#include "report/report.h"

struct seam_call_tree {
	const struct seam_profile *profile;
	struct seam_tree tree;
	enum seam_group group;	/* of the roots; NONE: functions */
	bool by_weight;		/* false: all weights are 0 */
	uint64_t whole;		/* 100 %, in weight or samples */
	size_t n_hidden;	/* nodes cut by --min-percent and --filter */
};

/* 0 or -ENOMEM; an event without samples gives a tree without nodes. */
int seam_call_tree_make(struct seam_call_tree *tree,
			const struct seam_report *report, uint32_t event);
void seam_call_tree_fini(struct seam_call_tree *tree);

/* Name of a node: of its function, or of the group of a root. */
const char *seam_call_tree_name(const struct seam_call_tree *tree,
				const struct seam_node *node);

#endif /* SEAM_CALL_TREE_H */
