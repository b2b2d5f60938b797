/* SPDX-License-Identifier: MIT */
/*
 * tree_text.c - a call tree drawn with lines
 *
 * Only siblings are indented: an only callee is in the column of its caller.
 * A stack of thirty frames with three branches is three steps wide.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/call_tree.h"
#include "report/elide.h"
#include "report/summary.h"

enum {
	FIGURES = 20,		/* columns of total, self and gaps */
	LEAST = 26,		/* of a name and its suffix */
	NUMBER = 12,		/* " (4194304)" */
	INLINED = 10,		/* " (inlined)" */
};

/* The lines to the left of a node: one for each branch above it. */
struct drawing {
	const struct seam_report *report;
	const struct seam_view *view;
	const struct seam_call_tree *tree;
	SEAM_ARRAY(bool) rails;		/* true: siblings follow below */
	SEAM_ARRAY(uint32_t) steps;	/* number of rails, by depth - 1 */
	const char **shown;	/* names by node, on a terminal; or NULL */
	struct seam_arena arena;
};

static const char *rail(const struct drawing *d, bool open)
{
	if (!open)
		return "   ";
	return d->view->unicode ? "│  " : "|  ";
}

static const char *branch(const struct drawing *d, bool open)
{
	if (d->view->unicode)
		return open ? "├─ " : "└─ ";
	return open ? "|- " : "`- ";
}

/* Draw the lines before @node; returns the columns used, 0 without memory. */
static size_t put_rails(struct drawing *d, const struct seam_node *node)
{
	const struct seam_node *nodes = d->tree->tree.items;
	bool open = node->next_sibling != SEAM_NONE;
	bool has_siblings = open ||
			    &nodes[nodes[node->parent].first_child] != node;

	d->steps.n = node->depth - 1;
	d->rails.n = d->steps.n ? d->steps.items[d->steps.n - 1] : 0;
	for (size_t i = 0; i < d->rails.n; i++)
		fputs(rail(d, d->rails.items[i]), d->view->out);
	if (has_siblings) {
		fputs(branch(d, open), d->view->out);
		if (!SEAM_ARRAY_ADD(&d->rails, open))
			return 0;
	}
	return SEAM_ARRAY_ADD(&d->steps, (uint32_t)d->rails.n) ?
	       3 * d->rails.n + 1 : 0;
}

/* " (4711)" of a thread or process, or the number of a CPU. */
static void put_number(const struct drawing *d, const struct seam_node *node)
{
	enum seam_group group = d->tree->group;
	int32_t number = seam_group_number(d->report->profile, group,
					   node->key);

	if (group == SEAM_GROUP_CPU && number < 0)
		fputs(" unknown", d->view->out);
	else if (group != SEAM_GROUP_COMM && group != SEAM_GROUP_VMSTATE)
		fprintf(d->view->out, group == SEAM_GROUP_CPU ? " %d" : " (%d)",
			number);
}

static bool is_inlined(const struct seam_node *node)
{
	return !node->is_group && node->key & 1;
}

/*
 * The names of the children of @parent, cut to at most @left columns so that
 * they stay distinct.
 */
static int fit_children(struct drawing *d, const struct seam_node *parent,
			size_t left)
{
	const struct seam_node *nodes = d->tree->tree.items;
	SEAM_ARRAY(const char *) texts = { 0 };
	size_t suffix = nodes[parent->first_child].is_group ? NUMBER : 0;
	int rc = 0;

	for (uint32_t c = parent->first_child; c != SEAM_NONE && !rc;
	     c = nodes[c].next_sibling) {
		const char *text = seam_elide_escape(&d->arena,
				seam_call_tree_name(d->tree, &nodes[c]));

		if (is_inlined(&nodes[c]) && !suffix)
			suffix = INLINED;
		if (!text || !SEAM_ARRAY_ADD(&texts, text))
			rc = -ENOMEM;
	}
	if (!rc)
		rc = seam_elide_all(&d->arena, texts.items, texts.n,
				    left - suffix, d->view->unicode);
	texts.n = 0;
	for (uint32_t c = parent->first_child; c != SEAM_NONE && !rc;
	     c = nodes[c].next_sibling)
		d->shown[c] = texts.items[texts.n++];
	free(texts.items);
	return rc;
}

static void put_name(const struct drawing *d, const struct seam_node *node)
{
	const struct seam_profile *profile = d->report->profile;
	const struct seam_view *view = d->view;

	if (node->is_group)
		seam_view_style(view, SEAM_STYLE_BOLD);
	else
		seam_view_style(view, SEAM_STYLE_LAYER +
				profile->functions.items[node->key >> 1].layer);
	if (d->shown)
		fputs(d->shown[node - d->tree->tree.items], view->out);
	else
		seam_view_text(view, SEAM_STYLE_PLAIN,
			       seam_call_tree_name(d->tree, node));
	if (node->is_group)
		put_number(d, node);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	if (is_inlined(node))
		seam_view_print(view, SEAM_STYLE_DIM, " (inlined)");
	fputc('\n', view->out);
}

/* Columns for a name, where the rails take @used. */
static size_t room_for_name(const struct seam_view *view, size_t used)
{
	return view->width > FIGURES + used + LEAST ?
	       view->width - FIGURES - used : LEAST;
}

static int put_node(struct drawing *d, const struct seam_node *node)
{
	bool by_weight = d->tree->by_weight;
	char total[SEAM_NUMBER], self[SEAM_NUMBER];
	const struct seam_node *parent;
	size_t used;

	fprintf(d->view->out, "%8s  %8s  ",
		seam_format_percent(total, by_weight ? node->weight :
				    node->samples, d->tree->whole),
		seam_format_percent(self, by_weight ? node->self_weight :
				    node->self_samples, d->tree->whole));
	used = put_rails(d, node);
	if (!used)
		return -ENOMEM;
	parent = &d->tree->tree.items[node->parent];
	if (d->shown && &d->tree->tree.items[parent->first_child] == node) {
		int rc = fit_children(d, parent,
				      room_for_name(d->view, used - 1));

		if (rc)
			return rc;
	}
	put_name(d, node);
	return 0;
}

/* Samples without a stack have no root; below a thread they are its self. */
static void put_stackless(const struct drawing *d)
{
	const struct seam_node *root = &d->tree->tree.items[0];
	char share[SEAM_NUMBER];

	if (root->self_samples == 0)
		return;
	seam_format_percent(share, d->tree->by_weight ? root->self_weight :
			    root->self_samples, d->tree->whole);
	fprintf(d->view->out, "%8s  %8s  [no stack]\n", share, share);
}

static void put_foot(const struct drawing *d)
{
	char n[SEAM_NUMBER];

	if (!d->tree->n_hidden)
		return;
	seam_view_print(d->view, SEAM_STYLE_DIM, "%s not shown; "
			"--min-percent 0 shows all sizes\n",
			seam_format_amount(n, d->tree->n_hidden,
					   "smaller or filtered node"));
}

static int put_tree(struct drawing *d)
{
	const struct seam_tree *tree = &d->tree->tree;
	bool is_inverted = d->report->selected->callers_of != SEAM_NONE;
	int rc = 0;

	if (d->report->filter && d->tree->n_hidden + 1 == tree->n) {
		seam_summary_unmatched(d->report, d->view);
		goto foot;
	}
	/* in an inverted stack, the leaf is where the thread began */
	seam_view_print(d->view, SEAM_STYLE_DIM, "%8s  %8s  %s\n", "TOTAL",
			is_inverted ? "BEGINS" : "SELF",
			is_inverted ? "CALLERS" : "CALLS");
	for (uint32_t i = seam_tree_next(tree, 0, true);
	     i != SEAM_NONE && !rc; i = seam_tree_next(tree, i, true))
		rc = put_node(d, &tree->items[i]);
	put_stackless(d);
foot:
	put_foot(d);
	free(d->rails.items);
	free(d->steps.items);
	return rc;
}

/* 1 when the event has samples and was drawn. */
static int put_event(const struct seam_report *report,
		     const struct seam_view *view, uint32_t event)
{
	struct seam_call_tree tree;
	struct drawing d = { .report = report, .view = view, .tree = &tree };
	int rc = seam_call_tree_make(&tree, report, event);

	if (rc || tree.tree.n == 0)
		return rc;
	if (view->width) {
		d.shown = calloc(tree.tree.n, sizeof(*d.shown));
		if (!d.shown) {
			seam_call_tree_fini(&tree);
			return -ENOMEM;
		}
	}
	seam_summary_event(report, view, event, tree.tree.items[0].samples,
			   tree.tree.items[0].weight);
	rc = put_tree(&d);
	free(d.shown);
	seam_arena_fini(&d.arena);
	seam_call_tree_fini(&tree);
	return rc ? rc : 1;
}

int seam_report_tree_text(const struct seam_report *report,
			  const struct seam_view *view)
{
	return seam_summary_frame(report, view, put_event);
}
