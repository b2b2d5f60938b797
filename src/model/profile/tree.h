/* SPDX-License-Identifier: MIT */
/*
 * tree.h - a call tree: equal callers and callees merged, counts added up
 *
 * The caller gives a key for each frame of the profile's stacks; frames with
 * equal keys under one parent are one node: for each function, or for each name
 * that is shown.  Parents have smaller ids than their children, so a loop over
 * ids goes down, and no walk needs recursion.
 */
#pragma once

#include "model/profile/tally.h"

struct seam_node {
	uint32_t parent;	/* SEAM_NONE for the root, node 0 */
	uint32_t key;		/* of its frames; of its group where is_group */
	uint32_t depth;		/* 0 for the root */
	uint32_t first_child;	/* SEAM_NONE: none */
	uint32_t next_sibling;	/* SEAM_NONE: the last */
	bool is_group;		/* a thread, process or name above its stacks */
	uint64_t self_samples;	/* that ended here */
	uint64_t self_weight;
	uint64_t samples;	/* self and all below */
	uint64_t weight;
};

/* Zeroed is valid; free(items) ends it. */
struct seam_tree {
	struct seam_node *items;
	size_t n, cap;
};

/* The key that seam_tree_make() uses without @keys. */
static inline uint32_t seam_tree_key(const struct seam_frame *frame)
{
	return frame->function << 1 | frame->is_inlined;
}

/*
 * The call tree of @tallies.  @keys has a key for each frame of the profile;
 * NULL is seam_tree_key(): the function, and whether it is inlined.  Where
 * @grouped, each group is a node below the root.  0 or -ENOMEM.
 */
int seam_tree_make(struct seam_tree *tree,
		   const struct seam_selected *selected,
		   const struct seam_tallies *tallies, const uint32_t *keys,
		   bool grouped);

/*
 * Add a node, the first child of @parent; SEAM_NONE makes a root.  The id, or
 * SEAM_NONE when memory ran out.
 */
uint32_t seam_tree_add(struct seam_tree *tree, uint32_t parent, uint32_t key,
		       bool is_group);

/*
 * The child of @parent with @key, added if there is none; @index has all
 * children that were added so.  Groups and frames never share a parent.  The
 * id, or SEAM_NONE when memory ran out.
 */
uint32_t seam_tree_child(struct seam_tree *tree, struct seam_index *index,
			 uint32_t parent, uint32_t key, bool is_group);

/* Order of two siblings, as qsort_r() has it. */
typedef int seam_tree_compare(const struct seam_node *a,
			      const struct seam_node *b, void *context);

/* Put the children of each node in order.  0 or -ENOMEM. */
int seam_tree_sort(struct seam_tree *tree, seam_tree_compare *compare,
		   void *context);

/* Unlink the nodes that are not @shown, by node, from their parents' lists. */
void seam_tree_keep(struct seam_tree *tree, const bool *shown);

/*
 * The node that follows @node in depth-first order, children first; without
 * @into, the children of @node are skipped.  SEAM_NONE at the end.
 */
static inline uint32_t seam_tree_next(const struct seam_tree *tree,
				      uint32_t node, bool into)
{
	if (into && tree->items[node].first_child != SEAM_NONE)
		return tree->items[node].first_child;
	while (node != SEAM_NONE &&
	       tree->items[node].next_sibling == SEAM_NONE)
		node = tree->items[node].parent;
	return node == SEAM_NONE ? node : tree->items[node].next_sibling;
}
