/* SPDX-License-Identifier: MIT */
/*
 * call_tree.c - which nodes a call tree shows, in which order, as text and JSON
 *
 * Nodes that are not shown are first unlinked from their parents' lists, so
 * that next_sibling and first_child give the last or only node that is drawn.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/tree_json.h"
#include "report/tree_rails.h"
#include "report/view.h"

struct call_tree {
	const struct seam_profile *profile;
	struct seam_tree tree;
	enum seam_group group;	/* of the roots; NONE: functions */
	bool by_weight;		/* false: all weights are 0 */
	uint64_t whole;		/* 100 %, in weight or samples */
	size_t n_hidden;	/* nodes cut by --min-percent and --filter */
};

/* Name of a node: of its function, or of the group of a root. */
static const char *name_of(const struct call_tree *tree,
			   const struct seam_node *node)
{
	const struct seam_profile *profile = tree->profile;

	return node->is_group ?
	       seam_group_text(profile, tree->group, node->key) :
	       seam_profile_text(profile, profile->functions.items[
					 node->key >> 1].name);
}

static uint64_t measure(const struct call_tree *tree,
			const struct seam_node *node)
{
	return tree->by_weight ? node->weight : node->samples;
}

static int by_size(const struct seam_node *a, const struct seam_node *b,
		   void *context)
{
	const struct call_tree *tree = context;

	return SEAM_COMPARE(measure(tree, b), measure(tree, a)) ?:
	       strcmp(name_of(tree, a),
		      name_of(tree, b)) ?:
	       SEAM_COMPARE(a->key, b->key);
}

static int hide_small(struct call_tree *tree,
		      const struct seam_report *report)
{
	double least = report->min_percent / 100 * (double)tree->whole;
	const struct seam_node *nodes = tree->tree.items;
	bool *shown = calloc(tree->tree.n, sizeof(*shown));

	if (!shown)
		return -ENOMEM;
	/* nodes that match, their descendants and their ancestors */
	for (size_t i = 1; i < tree->tree.n; i++)
		shown[i] = !report->filter || shown[nodes[i].parent] ||
			   strcasestr(name_of(tree, &nodes[i]),
				      report->filter);
	for (size_t i = tree->tree.n; i-- > 1;)
		if (shown[i])
			shown[nodes[i].parent] = true;
	for (size_t i = 1; i < tree->tree.n; i++) {
		if ((double)measure(tree, &nodes[i]) < least)
			shown[i] = false;
		tree->n_hidden += !shown[i];
	}
	seam_tree_keep(&tree->tree, shown);
	free(shown);
	return 0;
}

static void fini_tree(struct call_tree *tree)
{
	free(tree->tree.items);
	*tree = (struct call_tree) { 0 };
}

/* 0 or -ENOMEM; an event without samples gives a tree without nodes. */
static int make_tree(struct call_tree *tree,
		     const struct seam_report *report, uint32_t event)
{
	struct seam_tallies tallies;
	int rc;

	*tree = (struct call_tree) {
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
		fini_tree(tree);
	return rc;
}

/* -- as text ------------------------------------------------------------ */

enum {
	FIGURES = 20,		/* columns of total, self and gaps */
	LEAST = 26,		/* of a name and its suffix */
	NUMBER = 12,		/* " (4194304)" */
	INLINED = 10,		/* " (inlined)" */
};

struct drawing {
	const struct seam_report *report;
	const struct seam_view *view;
	const struct call_tree *tree;
	struct seam_tree_rails rails;
	const char **shown;	/* names by node, on a terminal; or NULL */
	struct seam_arena arena;
};

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
				name_of(d->tree, &nodes[c]));

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
	enum seam_group group = node->is_group ? d->tree->group :
				SEAM_GROUP_NONE;
	int32_t number = seam_group_number(profile, group, node->key);

	seam_view_style(view, node->is_group ? SEAM_STYLE_BOLD :
			SEAM_STYLE_LAYER +
			profile->functions.items[node->key >> 1].layer);
	if (d->shown)
		fputs(d->shown[node - d->tree->tree.items], view->out);
	else
		seam_view_text(view, SEAM_STYLE_PLAIN,
			       name_of(d->tree, node));
	/* " (4711)" of a thread or process, or a number */
	if ((group == SEAM_GROUP_CPU || group == SEAM_GROUP_RUNNING) &&
	    number < 0)
		fputs(" unknown", view->out);
	else if (group == SEAM_GROUP_CPU || group == SEAM_GROUP_RUNNING)
		fprintf(view->out, " %d", number);
	else if (group == SEAM_GROUP_THREAD || group == SEAM_GROUP_PROCESS)
		fprintf(view->out, " (%d)", number);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	if (is_inlined(node))
		seam_view_print(view, SEAM_STYLE_DIM, " (inlined)");
	fputc('\n', view->out);
}

static int put_node(struct drawing *d, const struct seam_node *node)
{
	bool by_weight = d->tree->by_weight;
	char total[SEAM_NUMBER], self[SEAM_NUMBER];
	const struct seam_node *parent;
	size_t used, left;

	fprintf(d->view->out, "%8s  %8s  ",
		seam_format_percent(total, by_weight ? node->weight :
				    node->samples, d->tree->whole),
		seam_format_percent(self, by_weight ? node->self_weight :
				    node->self_samples, d->tree->whole));
	used = seam_tree_rails_put(&d->rails, d->view, &d->tree->tree,
				   (uint32_t)(node - d->tree->tree.items));
	if (!used)
		return -ENOMEM;
	used += FIGURES - 1;
	left = d->view->width > used + LEAST ? d->view->width - used : LEAST;
	parent = &d->tree->tree.items[node->parent];
	if (d->shown && &d->tree->tree.items[parent->first_child] == node &&
	    fit_children(d, parent, left))
		return -ENOMEM;
	put_name(d, node);
	return 0;
}

static int put_tree(struct drawing *d)
{
	const struct seam_tree *tree = &d->tree->tree;
	const struct seam_node *root = &tree->items[0];
	bool is_inverted = d->report->selected->callers_of != SEAM_NONE;
	char text[SEAM_NUMBER];
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
	/* below a thread, samples without a stack are its self */
	if (root->self_samples) {
		seam_format_percent(text, d->tree->by_weight ?
				    root->self_weight : root->self_samples,
				    d->tree->whole);
		fprintf(d->view->out, "%8s  %8s  [no stack]\n", text, text);
	}
foot:
	if (d->tree->n_hidden)
		seam_view_print(d->view, SEAM_STYLE_DIM, "%s not shown; "
				"--min-percent 0 shows all sizes\n",
				seam_format_amount(text, d->tree->n_hidden,
						"smaller or filtered node"));
	seam_tree_rails_fini(&d->rails);
	return rc;
}

/* 1 when the event has samples and was drawn. */
static int put_event(const struct seam_report *report,
		     const struct seam_view *view, uint32_t event)
{
	struct call_tree tree;
	struct drawing d = { .report = report, .view = view, .tree = &tree };
	int rc = make_tree(&tree, report, event);

	if (rc || tree.tree.n == 0)
		return rc;
	if (view->width) {
		d.shown = calloc(tree.tree.n, sizeof(*d.shown));
		rc = d.shown ? 0 : -ENOMEM;
	}
	if (!rc) {
		seam_summary_event(report, view, event,
				   tree.tree.items[0].samples,
				   tree.tree.items[0].weight);
		rc = put_tree(&d);
	}
	free(d.shown);
	seam_arena_fini(&d.arena);
	fini_tree(&tree);
	return rc ? rc : 1;
}

int seam_report_tree_text(const struct seam_report *report,
			  const struct seam_view *view)
{
	return seam_summary_frame(report, view, put_event);
}

/* -- as JSON ------------------------------------------------------------ */

static void put_members(const void *context, uint32_t id, struct seam_json *j)
{
	const struct call_tree *tree = context;
	const struct seam_node *node = &tree->tree.items[id];
	const struct seam_profile *profile = tree->profile;

	if (node->is_group) {
		seam_summary_task_json(profile, j, tree->group, node->key,
				       false);
	} else {
		const struct seam_function *f =
			&profile->functions.items[node->key >> 1];

		seam_json_string(j, "layer",
				 seam_layer_names[f->layer]);
		seam_json_string(j, "symbol",
				 seam_profile_text(profile, f->name));
		seam_json_string(j, "module",
				 seam_profile_path(profile, f->module));
		if (is_inlined(node))
			seam_json_bool(j, "inlined", true);
	}
	seam_json_u64(j, "self", node->self_samples);
	seam_json_u64(j, "total", node->samples);
	seam_json_u64(j, "self_weight", node->self_weight);
	seam_json_u64(j, "total_weight", node->weight);
}

static int put_event_json(const struct seam_report *report, struct seam_json *j,
			  uint32_t event)
{
	struct call_tree tree;
	int rc = make_tree(&tree, report, event);

	if (rc || tree.tree.n == 0)
		return rc;
	seam_json_open(j, NULL, '{');
	seam_summary_event_json(report, j, event, tree.tree.items[0].samples,
				tree.tree.items[0].weight);
	seam_json_u64(j, "hidden", tree.n_hidden);
	seam_json_u64(j, "stackless", tree.tree.items[0].self_samples);
	seam_json_open(j, "tree", '[');
	seam_tree_json(&tree.tree, j, put_members, &tree);
	seam_json_close(j);
	seam_json_close(j);
	fini_tree(&tree);
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
		rc = put_event_json(report, &j, e);
	seam_json_close(&j);
	seam_json_close(&j);
	return rc;
}
