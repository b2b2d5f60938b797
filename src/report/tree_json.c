/* SPDX-License-Identifier: MIT */
/* tree_json.c - call trees as seam.tree/1; the contract is in report.h */
#include <stdlib.h>

#include "report/call_tree.h"
#include "report/summary.h"

static void put_function(const struct seam_profile *profile, uint32_t key,
			 struct seam_json *j)
{
	const struct seam_function *f = &profile->functions.items[key >> 1];

	seam_json_string(j, "layer",
			 seam_layer_name((enum seam_layer)f->layer));
	seam_json_string(j, "symbol", seam_profile_text(profile, f->name));
	seam_json_string(j, "module", seam_profile_path(profile, f->module));
	if (key & 1)
		seam_json_bool(j, "inlined", true);
}

/* Opens the node's object; the caller closes it after its children. */
static void open_node(const struct seam_call_tree *tree,
		      const struct seam_node *node, struct seam_json *j)
{
	seam_json_open(j, NULL, '{');
	if (node->is_group)
		seam_summary_task_json(tree->profile, j, tree->group,
				       node->key, false);
	else
		put_function(tree->profile, node->key, j);
	seam_json_u64(j, "self", node->self_samples);
	seam_json_u64(j, "total", node->samples);
	seam_json_u64(j, "self_weight", node->self_weight);
	seam_json_u64(j, "total_weight", node->weight);
	if (node->depth >= SEAM_REPORT_DEPTH && node->first_child != SEAM_NONE)
		seam_json_bool(j, "cut", true);
}

/*
 * Depth-first without recursion: a node with children opens its array, and
 * the step to a node of lesser depth closes the arrays between.
 */
static void put_nodes(const struct seam_call_tree *tree, struct seam_json *j)
{
	const struct seam_node *nodes = tree->tree.items;
	uint32_t depth = 1, i = seam_tree_next(&tree->tree, 0, true);

	while (i != SEAM_NONE) {
		bool into = nodes[i].depth < SEAM_REPORT_DEPTH &&
			    nodes[i].first_child != SEAM_NONE;
		uint32_t next = seam_tree_next(&tree->tree, i, into);

		open_node(tree, &nodes[i], j);
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

static int put_event(const struct seam_report *report, struct seam_json *j,
		     uint32_t event)
{
	struct seam_call_tree tree;
	int rc = seam_call_tree_make(&tree, report, event);

	if (rc || tree.tree.n == 0)
		return rc;
	seam_json_open(j, NULL, '{');
	seam_summary_event_json(report, j, event, tree.tree.items[0].samples,
				tree.tree.items[0].weight);
	seam_json_u64(j, "hidden", tree.n_hidden);
	seam_json_u64(j, "stackless", tree.tree.items[0].self_samples);
	seam_json_open(j, "tree", '[');
	put_nodes(&tree, j);
	seam_json_close(j);
	seam_json_close(j);
	seam_call_tree_fini(&tree);
	return 0;
}

int seam_report_tree_json(const struct seam_report *report, FILE *out)
{
	const struct seam_selected *s = report->selected;
	char names[SEAM_BY_NAMES];
	struct seam_json j = seam_json_make(out, false);
	struct seam_tallies all;
	int rc = seam_tallies_make(&all, report->selected, SEAM_NONE,
				   SEAM_GROUP_NONE);

	if (rc)
		return rc;
	free(all.items);
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.tree/1");
	seam_summary_json(report, &j, all.samples);
	seam_json_string(&j, "by", seam_by_names(report->by ? report->by :
						  SEAM_BY_SYMBOL, names));
	if (s->callers_of != SEAM_NONE)
		seam_json_string(&j, "callers_of",
				 seam_profile_text(s->profile, s->callers_of));
	if (s->callees_of != SEAM_NONE)
		seam_json_string(&j, "callees_of",
				 seam_profile_text(s->profile, s->callees_of));
	seam_json_open(&j, "events", '[');
	for (uint32_t e = 0; e < report->profile->events.n && !rc; e++)
		rc = put_event(report, &j, e);
	seam_json_close(&j);
	seam_json_close(&j);
	return rc;
}
