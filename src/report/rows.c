/* SPDX-License-Identifier: MIT */
/*
 * rows.c - rows from tallies; the contract is in rows.h
 *
 * Totals come from one walk of the call tree that counts, for each row, how
 * many of its functions are open above: a node adds to the total of its row
 * only where it is the outermost.
 */
#include "report/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "model/tree.h"

const char *seam_by_name(enum seam_by by)
{
	static const char *const names[] = {
		[SEAM_BY_SYMBOL] = "symbol", [SEAM_BY_MODULE] = "module",
		[SEAM_BY_THREAD] = "thread", [SEAM_BY_PROCESS] = "process",
	};

	return names[by];
}

static struct seam_row *add_row(struct seam_rows *table, uint32_t id)
{
	struct seam_row *row = SEAM_ARRAY_PUSH(table);

	if (row)
		*row = (struct seam_row) { .id = id };
	return row;
}

/* State of the walk: which row an id has, and the path to the current node. */
struct walk {
	struct seam_rows *table;
	const struct seam_tree *tree;
	uint32_t *row_of;	/* by function or string */
	uint32_t *open;		/* by row: nodes of it on the path */
	SEAM_ARRAY(uint32_t) path;	/* rows, by depth - 1 */
};

static uint32_t row_id(const struct walk *w, const struct seam_node *node)
{
	uint32_t function = node->key >> 1;

	return w->table->by == SEAM_BY_SYMBOL ? function :
	       w->table->profile->functions.items[function].module;
}

static uint32_t row_of(struct walk *w, const struct seam_node *node)
{
	uint32_t id = row_id(w, node);

	if (w->row_of[id] == SEAM_NONE && add_row(w->table, id))
		w->row_of[id] = (uint32_t)(w->table->n - 1);
	return w->row_of[id];
}

static int visit(struct walk *w, const struct seam_node *node)
{
	uint32_t r = row_of(w, node);
	uint32_t *slot;

	while (w->path.n >= node->depth)
		w->open[w->path.items[--w->path.n]]--;
	slot = r == SEAM_NONE ? NULL : SEAM_ARRAY_PUSH(&w->path);
	if (!slot)
		return -ENOMEM;
	*slot = r;
	w->table->items[r].self_samples += node->self_samples;
	w->table->items[r].self_weight += node->self_weight;
	if (w->open[r]++ == 0) {
		w->table->items[r].samples += node->samples;
		w->table->items[r].weight += node->weight;
	}
	return 0;
}

static int walk_tree(struct walk *w, size_t n_ids)
{
	int rc = 0;

	w->row_of = malloc(n_ids * sizeof(*w->row_of));
	w->open = calloc(n_ids, sizeof(*w->open));
	if (!w->row_of || !w->open)
		return -ENOMEM;
	memset(w->row_of, 0xff, n_ids * sizeof(*w->row_of));
	for (uint32_t i = seam_tree_next(w->tree, 0, true);
	     i != SEAM_NONE && !rc; i = seam_tree_next(w->tree, i, true))
		rc = visit(w, &w->tree->items[i]);
	return rc;
}

/* Samples without any stack have a row of their own: nothing is dropped. */
static int add_stackless(struct seam_rows *table, const struct seam_node *root)
{
	struct seam_row *row;

	if (!root->self_samples)
		return 0;
	row = add_row(table, SEAM_NONE);
	if (!row)
		return -ENOMEM;
	row->self_samples = row->samples = root->self_samples;
	row->self_weight = row->weight = root->self_weight;
	return 0;
}

static int from_tree(struct seam_rows *table,
		     const struct seam_selected *selected,
		     const struct seam_tallies *tallies)
{
	const struct seam_profile *profile = selected->profile;
	struct seam_tree tree = { 0 };
	struct walk w = { .table = table, .tree = &tree };
	size_t n_ids = table->by == SEAM_BY_SYMBOL ? profile->functions.n :
		       profile->strings.texts.n;
	int rc = seam_tree_make(&tree, selected, tallies, NULL, false);

	if (!rc)
		rc = walk_tree(&w, n_ids + 1);
	if (!rc)
		rc = add_stackless(table, &tree.items[0]);
	free(w.row_of);
	free(w.open);
	free(w.path.items);
	free(tree.items);
	return rc;
}

/* Tallies are sorted by group, so a row is a run of them. */
static int from_groups(struct seam_rows *table,
		       const struct seam_tallies *tallies)
{
	struct seam_row *row = NULL;

	for (size_t i = 0; i < tallies->n; i++) {
		const struct seam_tally *tally = &tallies->items[i];

		if (!row || row->id != tally->group)
			row = add_row(table, tally->group);
		if (!row)
			return -ENOMEM;
		row->self_samples = row->samples += tally->samples;
		row->self_weight = row->weight += tally->weight;
	}
	return 0;
}

int seam_rows_make(struct seam_rows *table,
		    const struct seam_selected *selected, uint32_t event,
		    enum seam_by by)
{
	enum seam_group group = by == SEAM_BY_THREAD ? SEAM_GROUP_THREAD :
				by == SEAM_BY_PROCESS ? SEAM_GROUP_PROCESS :
				SEAM_GROUP_NONE;
	struct seam_tallies tallies;
	int rc = seam_tallies_make(&tallies, selected, event, group);

	*table = (struct seam_rows) {
		.profile = selected->profile, .by = by,
	};
	if (rc)
		return rc;
	table->samples = tallies.samples;
	table->weight = tallies.weight;
	rc = group == SEAM_GROUP_NONE ?
	     from_tree(table, selected, &tallies) :
	     from_groups(table, &tallies);
	free(tallies.items);
	if (rc) {
		free(table->items);
		table->items = NULL;
		table->n = table->cap = 0;
	}
	return rc;
}

const char *seam_row_name(const struct seam_rows *table,
			  const struct seam_row *row)
{
	const struct seam_profile *profile = table->profile;
	uint32_t string = row->id;

	if (row->id == SEAM_NONE)
		return "[no stack]";
	if (table->by == SEAM_BY_SYMBOL)
		string = profile->functions.items[row->id].name;
	else if (table->by == SEAM_BY_THREAD)
		string = profile->threads.items[row->id].name;
	else if (table->by == SEAM_BY_PROCESS)
		string = profile->processes.items[row->id].name;
	else if (!*seam_profile_text(profile, string))
		return "[unknown]";
	return seam_profile_text(profile, string);
}

const char *seam_row_module(const struct seam_rows *table,
			    const struct seam_row *row)
{
	const struct seam_profile *profile = table->profile;

	if (table->by != SEAM_BY_SYMBOL || row->id == SEAM_NONE)
		return "";
	return seam_profile_text(profile,
				 profile->functions.items[row->id].module);
}

enum seam_layer seam_row_layer(const struct seam_rows *table,
			       const struct seam_row *row)
{
	if (table->by != SEAM_BY_SYMBOL || row->id == SEAM_NONE)
		return SEAM_N_LAYERS;
	return (enum seam_layer)table->profile->functions.items[row->id].layer;
}

struct order {
	const struct seam_rows *table;
	enum seam_sort sort;
	bool by_weight;
};

static int descending(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int compare_rows(const void *x, const void *y, void *context)
{
	const struct order *order = context;
	const struct seam_row *a = x, *b = y;
	int self = order->by_weight ?
		   descending(a->self_weight, b->self_weight) :
		   descending(a->self_samples, b->self_samples);
	int total = order->by_weight ? descending(a->weight, b->weight) :
		    descending(a->samples, b->samples);
	int rc = order->sort == SEAM_SORT_SELF ? self : total;

	if (!rc)
		rc = order->sort == SEAM_SORT_SELF ? total : self;
	if (!rc)
		rc = strcmp(seam_row_name(order->table, a),
			    seam_row_name(order->table, b));
	if (!rc)
		rc = strcmp(seam_row_module(order->table, a),
			    seam_row_module(order->table, b));
	return rc ? rc : (a->id > b->id) - (a->id < b->id);
}

void seam_rows_sort(struct seam_rows *table, enum seam_sort sort,
		     bool by_weight)
{
	struct order order = { table, sort, by_weight };

	if (table->n)
		qsort_r(table->items, table->n, sizeof(*table->items),
			compare_rows, &order);
}

void seam_rows_filter(struct seam_rows *table, const char *text)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->n; i++) {
		const struct seam_row *row = &table->items[i];

		if (strcasestr(seam_row_name(table, row), text) ||
		    strcasestr(seam_row_module(table, row), text))
			table->items[kept++] = *row;
	}
	table->n = kept;
}
