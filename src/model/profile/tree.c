/* SPDX-License-Identifier: MIT */
/*
 * tree.c - tallies into a call tree; the contract is in tree.h
 *
 * For each tally, a walk goes up to the first stack that has a node already and
 * down again, with one look-up a level.  A stack has a node for each group:
 * entries have the number of their group, so that none needs to be cleared.
 */
#include "model/profile/tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/* The node of a stack in group number epoch. */
struct node_place {
	uint32_t epoch;
	uint32_t node;
};

struct tree_builder {
	struct seam_tree *tree;
	const struct seam_selected *selected;
	const uint32_t *keys;
	struct seam_index index;	/* by (parent, key) */
	struct node_place *places;	/* by stack */
	SEAM_ARRAY(uint32_t) path;	/* stacks without a node, leaf first */
};

uint32_t seam_tree_add(struct seam_tree *tree, uint32_t parent, uint32_t key,
		       bool is_group)
{
	struct seam_node *nodes;
	uint32_t id = (uint32_t)tree->n;

	if (id == SEAM_NONE || !SEAM_ARRAY_ADD(tree, (struct seam_node) {
		.parent = parent, .key = key, .is_group = is_group,
		.first_child = SEAM_NONE, .next_sibling = SEAM_NONE }))
		return SEAM_NONE;
	if (parent == SEAM_NONE)
		return id;
	nodes = tree->items;
	nodes[id].depth = nodes[parent].depth + 1;
	nodes[id].next_sibling = nodes[parent].first_child;
	nodes[parent].first_child = id;
	return id;
}

uint32_t seam_tree_child(struct seam_tree *tree, struct seam_index *index,
			 uint32_t parent, uint32_t key, bool is_group)
{
	uint64_t hash = seam_hash_u64((uint64_t)parent << 32 | key);
	uint32_t id = SEAM_INDEX_FIND(index, hash, i,
				      tree->items[i].parent == parent &&
				      tree->items[i].key == key);

	if (id != SEAM_NONE)
		return id;
	id = seam_tree_add(tree, parent, key, is_group);
	return id == SEAM_NONE || seam_index_add(index, hash, id) ? SEAM_NONE :
	       id;
}

static uint32_t child(struct tree_builder *b, uint32_t parent, uint32_t key,
		      bool is_group)
{
	return seam_tree_child(b->tree, &b->index, parent, key, is_group);
}

/* The node of @stack below @top, made if need be. */
static uint32_t node_of(struct tree_builder *b, uint32_t stack, uint32_t top,
			uint32_t epoch)
{
	const struct seam_stack *stacks = b->selected->stacks;
	uint32_t node, frame;

	b->path.n = 0;
	for (; stack && b->places[stack].epoch != epoch;
	     stack = stacks[stack].parent)
		if (!SEAM_ARRAY_ADD(&b->path, stack))
			return SEAM_NONE;
	node = stack ? b->places[stack].node : top;
	while (b->path.n && node != SEAM_NONE) {
		stack = b->path.items[--b->path.n];
		frame = stacks[stack].frame;
		node = child(b, node, b->keys ? b->keys[frame] : seam_tree_key(
			&b->selected->profile->frames.items[frame]), false);
		b->places[stack] = (struct node_place) { epoch, node };
	}
	return node;
}

static int add_tallies(struct tree_builder *b,
		       const struct seam_tallies *tallies, bool grouped)
{
	uint32_t epoch = 0, top = seam_tree_add(b->tree, SEAM_NONE, 0, true);

	if (top == SEAM_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < tallies->n; i++) {
		const struct seam_tally *tally = &tallies->items[i];
		uint32_t node;

		if (i == 0 || (grouped && tally->group != tally[-1].group)) {
			epoch++;
			top = grouped ? child(b, 0, tally->group, true) : 0;
		}
		node = top == SEAM_NONE ? top :
		       node_of(b, tally->stack, top, epoch);
		if (node == SEAM_NONE)
			return -ENOMEM;
		b->tree->items[node].self_samples += tally->samples;
		b->tree->items[node].self_weight += tally->weight;
	}
	return 0;
}

int seam_tree_make(struct seam_tree *tree,
		   const struct seam_selected *selected,
		   const struct seam_tallies *tallies, const uint32_t *keys,
		   bool grouped)
{
	struct tree_builder b = {
		.tree = tree, .selected = selected, .keys = keys,
	};
	int rc = -ENOMEM;

	*tree = (struct seam_tree) { 0 };
	b.places = calloc(selected->n_stacks, sizeof(*b.places));
	if (b.places)
		rc = add_tallies(&b, tallies, grouped);
	free(b.places);
	free(b.path.items);
	seam_index_fini(&b.index);
	if (rc) {
		free(tree->items);
		*tree = (struct seam_tree) { 0 };
		return rc;
	}
	/* the root, node 0, has no parent to add to */
	for (size_t i = tree->n; i-- > 0;) {
		struct seam_node *node = &tree->items[i];

		node->samples += node->self_samples;
		node->weight += node->self_weight;
		if (i) {
			tree->items[node->parent].samples += node->samples;
			tree->items[node->parent].weight += node->weight;
		}
	}
	return 0;
}

struct child_order {
	const struct seam_tree *tree;
	seam_tree_compare *compare;
	void *context;
};

static int compare_ids(const void *a, const void *b, void *context)
{
	const struct child_order *order = context;

	return order->compare(&order->tree->items[*(const uint32_t *)a],
			      &order->tree->items[*(const uint32_t *)b],
			      order->context);
}

int seam_tree_sort(struct seam_tree *tree, seam_tree_compare *compare,
		   void *context)
{
	struct child_order order = { tree, compare, context };
	SEAM_ARRAY(uint32_t) ids = { 0 };
	int rc = 0;

	for (size_t i = 0; i < tree->n && !rc; i++) {
		uint32_t *link = &tree->items[i].first_child;

		ids.n = 0;
		for (uint32_t c = *link; c != SEAM_NONE;
		     c = tree->items[c].next_sibling)
			if (!SEAM_ARRAY_ADD(&ids, c))
				rc = -ENOMEM;
		if (rc || ids.n < 2)
			continue;
		qsort_r(ids.items, ids.n, sizeof(*ids.items), compare_ids,
			&order);
		for (size_t c = 0; c < ids.n; c++) {
			*link = ids.items[c];
			link = &tree->items[ids.items[c]].next_sibling;
		}
		*link = SEAM_NONE;
	}
	free(ids.items);
	return rc;
}

void seam_tree_keep(struct seam_tree *tree, const bool *shown)
{
	struct seam_node *nodes = tree->items;

	for (size_t i = 0; i < tree->n; i++) {
		uint32_t *link = &nodes[i].first_child;

		for (uint32_t c = *link; c != SEAM_NONE;
		     c = nodes[c].next_sibling) {
			if (!shown[c])
				continue;
			*link = c;
			link = &nodes[c].next_sibling;
		}
		*link = SEAM_NONE;
	}
}
