/* SPDX-License-Identifier: MIT */
/*
 * call_tree.c - which nodes a call tree shows, and in which order
 *
 * Nodes that are not shown are first unlinked from their parents' lists, so
 * that next_sibling and first_child give the last or only node that is drawn.
 */
#include "report/call_tree.h"

#include <errno.h>
#include <stdlib.h>

const char *seam_call_tree_name(const struct seam_call_tree *tree,
				const struct seam_node *node)
{
	const struct seam_profile *profile = tree->profile;

	return node->is_group ?
	       seam_group_text(profile, tree->group, node->key) :
	       seam_profile_text(profile, profile->functions.items[
					 node->key >> 1].name);
}

static uint64_t measure(const struct seam_call_tree *tree,
			const struct seam_node *node)
{
	return tree->by_weight ? node->weight : node->samples;
}

static int by_size(const struct seam_node *a, const struct seam_node *b,
		   void *context)
{
	const struct seam_call_tree *tree = context;

	return SEAM_COMPARE(measure(tree, b), measure(tree, a)) ?:
	       strcmp(seam_call_tree_name(tree, a),
		      seam_call_tree_name(tree, b)) ?:
	       SEAM_COMPARE(a->key, b->key);
}

/* Nodes that match, their descendants and their ancestors. */
static void mark_matches(const struct seam_call_tree *tree,
			 const struct seam_report *report, bool *shown)
{
	const struct seam_node *nodes = tree->tree.items;

	for (size_t i = 1; i < tree->tree.n; i++)
		shown[i] = shown[nodes[i].parent] ||
			   strcasestr(seam_call_tree_name(tree, &nodes[i]),
				      report->filter);
	for (size_t i = tree->tree.n; i-- > 1;)
		if (shown[i])
			shown[nodes[i].parent] = true;
}

static void cut(struct seam_call_tree *tree, const bool *shown)
{
	struct seam_node *nodes = tree->tree.items;

	for (size_t i = 0; i < tree->tree.n; i++) {
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

static int hide_small(struct seam_call_tree *tree,
		      const struct seam_report *report)
{
	double least = report->min_percent / 100 * (double)tree->whole;
	bool *shown = calloc(tree->tree.n, sizeof(*shown));

	if (!shown)
		return -ENOMEM;
	if (report->filter)
		mark_matches(tree, report, shown);
	else
		memset(shown, true, tree->tree.n);
	for (size_t i = 1; i < tree->tree.n; i++) {
		const struct seam_node *node = &tree->tree.items[i];

		if ((double)measure(tree, node) < least)
			shown[i] = false;
		tree->n_hidden += !shown[i];
	}
	cut(tree, shown);
	free(shown);
	return 0;
}

int seam_call_tree_make(struct seam_call_tree *tree,
			const struct seam_report *report, uint32_t event)
{
	struct seam_tallies tallies;
	int rc;

	*tree = (struct seam_call_tree) {
		.profile = report->profile,
		.group = seam_by_group(seam_by_key(report->by, 0)),
	};
	rc = seam_tallies_make(&tallies, report->selected, event, tree->group);
	/* not their sum: weights of a hostile file may make it wrap to 0 */
	if (rc || (!tallies.samples && !tallies.weight)) {
		free(tallies.items);
		return rc;
	}
	tree->by_weight = tallies.weight != 0;
	tree->whole = tree->by_weight ? tallies.weight : tallies.samples;
	rc = seam_tree_make(&tree->tree, report->selected, &tallies, NULL,
			    tree->group != SEAM_GROUP_NONE);
	free(tallies.items);
	if (!rc)
		rc = seam_tree_sort(&tree->tree, by_size, tree);
	if (!rc)
		rc = hide_small(tree, report);
	if (rc)
		seam_call_tree_fini(tree);
	return rc;
}

void seam_call_tree_fini(struct seam_call_tree *tree)
{
	free(tree->tree.items);
	*tree = (struct seam_call_tree) { 0 };
}
