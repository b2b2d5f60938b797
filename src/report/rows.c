/* SPDX-License-Identifier: MIT */
/*
 * rows.c - rows from tallies; the contract is in rows.h
 *
 * Each frame of the profile gets the number of its code: frames of one
 * function, or of one module, have the same.  Totals come from one walk of
 * the call tree that counts, for each row, its nodes on the current path: a
 * node adds to the total of its row only where it is the outermost.
 */
#include "report/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "model/profile/tree.h"

static struct seam_row *add_row(struct seam_rows *table, uint32_t code,
				uint32_t group)
{
	return SEAM_ARRAY_ADD(table, (struct seam_row) {
			.code = code, .group = group }) ?
	       &table->items[table->n - 1] : NULL;
}

static struct seam_row_code code_of_frame(const struct seam_rows *table,
					  const struct seam_frame *frame)
{
	uint32_t by = table->by;
	bool lines = seam_by_has(by, SEAM_BY_LINE);
	bool has_line = lines && frame->file && frame->line;
	bool addresses = seam_by_has(by, SEAM_BY_ADDRESS);
	bool symbols = seam_by_has(by, SEAM_BY_SYMBOL) || addresses ||
		       (lines && !has_line);

	return (struct seam_row_code) {
		.function = symbols ? frame->function : SEAM_NONE,
		.module = seam_by_has(by, SEAM_BY_MODULE) ?
			  table->profile->functions.items[frame->function]
			  .module : SEAM_NONE,
		.file = has_line ? frame->file : 0,
		.line = has_line ? frame->line : 0,
		.addr = addresses ? frame->addr : 0,
	};
}

/* The code of each frame of the profile; NULL when memory ran out. */
static uint32_t *number_frames(struct seam_rows *table)
{
	const struct seam_profile *profile = table->profile;
	uint32_t *keys = malloc((profile->frames.n + 1) * sizeof(*keys));
	struct seam_index index = { 0 };
	bool failed = !keys;

	for (size_t i = 0; i < profile->frames.n && !failed; i++) {
		struct seam_row_code code =
			code_of_frame(table, &profile->frames.items[i]);

		keys[i] = SEAM_INDEX_INTERN(&index,
			seam_hash_bytes(&code, sizeof(code), 0), &table->codes,
			k, memcmp(&table->codes.items[k], &code,
				  sizeof(code)) == 0, code);
		failed = keys[i] == SEAM_NONE;
	}
	seam_index_fini(&index);
	if (!failed)
		return keys;
	free(keys);
	return NULL;
}

/* State of the walk: the row of each code, and the path to the node. */
struct row_walk {
	struct seam_rows *table;
	const struct seam_tree *tree;
	uint32_t group;		/* of the node's root */
	struct {
		uint32_t row, group;
	} *row_of;		/* by code; valid if group is the current one */
	SEAM_ARRAY(uint32_t) open;	/* by row: nodes of it on the path */
	SEAM_ARRAY(uint32_t) path;	/* rows, by depth */
};

static uint32_t row_of(struct row_walk *w, uint32_t code)
{
	if (w->row_of[code].row != SEAM_NONE &&
	    w->row_of[code].group == w->group)
		return w->row_of[code].row;
	if (!SEAM_ARRAY_ADD(&w->open, 0) ||
	    !add_row(w->table, code, w->group))
		return SEAM_NONE;
	w->row_of[code].row = (uint32_t)(w->table->n - 1);
	w->row_of[code].group = w->group;
	return w->row_of[code].row;
}

/* Samples without a stack have a row of their own. */
static int add_stackless(struct row_walk *w, const struct seam_node *node)
{
	struct seam_row *row;

	if (!node->self_samples && !node->self_weight)
		return 0;
	row = SEAM_ARRAY_ADD(&w->open, 0) ?
	      add_row(w->table, SEAM_NONE, w->group) : NULL;
	if (!row)
		return -ENOMEM;
	row->self_samples = row->samples = node->self_samples;
	row->self_weight = row->weight = node->self_weight;
	return 0;
}

static void leave(struct row_walk *w, size_t depth)
{
	while (w->path.n > depth)
		w->open.items[w->path.items[--w->path.n]]--;
}

static int visit(struct row_walk *w, const struct seam_node *node)
{
	size_t above = w->table->groups.n_kinds ? 2 : 1;
	uint32_t r;

	if (node->is_group) {
		leave(w, 0);
		w->group = node->key;
		return add_stackless(w, node);
	}
	leave(w, node->depth - above);
	r = row_of(w, node->key);
	if (r == SEAM_NONE || !SEAM_ARRAY_ADD(&w->path, r))
		return -ENOMEM;
	w->table->items[r].self_samples += node->self_samples;
	w->table->items[r].self_weight += node->self_weight;
	if (w->open.items[r]++ == 0) {
		w->table->items[r].samples += node->samples;
		w->table->items[r].weight += node->weight;
	}
	return 0;
}

static int walk_tree(struct row_walk *w)
{
	size_t n_codes = w->table->codes.n + 1;
	int rc = 0;

	w->row_of = malloc(n_codes * sizeof(*w->row_of));
	if (!w->row_of)
		return -ENOMEM;
	memset(w->row_of, 0xff, n_codes * sizeof(*w->row_of));
	if (!w->table->groups.n_kinds)
		rc = add_stackless(w, &w->tree->items[0]);
	for (uint32_t i = seam_tree_next(w->tree, 0, true);
	     i != SEAM_NONE && !rc; i = seam_tree_next(w->tree, i, true))
		rc = visit(w, &w->tree->items[i]);
	return rc;
}

static int from_tree(struct seam_rows *table,
		     const struct seam_selected *selected,
		     const struct seam_tallies *tallies)
{
	uint32_t *keys = number_frames(table);
	struct seam_tree tree = { 0 };
	struct row_walk w = { .table = table, .tree = &tree };
	int rc = keys ? seam_tree_make(&tree, selected, tallies, keys,
				       table->groups.n_kinds) : -ENOMEM;

	free(keys);
	if (!rc)
		rc = walk_tree(&w);
	free(w.row_of);
	free(w.open.items);
	free(w.path.items);
	free(tree.items);
	return rc;
}

/* Tallies are sorted by group: a row is a run of them. */
static int from_groups(struct seam_rows *table,
		       const struct seam_tallies *tallies)
{
	struct seam_row *row = NULL;

	for (size_t i = 0; i < tallies->n; i++) {
		const struct seam_tally *tally = &tallies->items[i];

		if (!row || row->group != tally->group)
			row = add_row(table, SEAM_NONE, tally->group);
		if (!row)
			return -ENOMEM;
		row->self_samples = row->samples += tally->samples;
		row->self_weight = row->weight += tally->weight;
	}
	return 0;
}

int seam_rows_make(struct seam_rows *table,
		   const struct seam_selected *selected, uint32_t event,
		   uint32_t by)
{
	struct seam_tallies tallies;
	int rc;

	*table = (struct seam_rows) {
		.profile = selected->profile, .by = by ? by : SEAM_BY_SYMBOL,
	};
	for (size_t i = 0; seam_by_key(table->by, i); i++) {
		enum seam_group kind = seam_by_group(seam_by_key(table->by, i));

		if (kind != SEAM_GROUP_NONE)
			table->groups.kinds[table->groups.n_kinds++] = kind;
	}
	rc = table->groups.n_kinds ?
	     seam_tallies_make_by(&tallies, &table->groups, selected, event) :
	     seam_tallies_make(&tallies, selected, event, SEAM_GROUP_NONE);
	if (!rc) {
		table->samples = tallies.samples;
		table->weight = tallies.weight;
		rc = seam_by_is_code(table->by) ?
		     from_tree(table, selected, &tallies) :
		     from_groups(table, &tallies);
		free(tallies.items);
	}
	if (rc)
		seam_rows_fini(table);
	return rc;
}

void seam_rows_fini(struct seam_rows *table)
{
	free(table->items);
	free(table->codes.items);
	seam_groups_fini(&table->groups);
	*table = (struct seam_rows) { 0 };
}

struct row_order {
	const struct seam_rows *table;
	enum seam_sort sort;
	bool by_weight;
};

static int compare_keys(const struct seam_rows *table,
			const struct seam_row *a, const struct seam_row *b)
{
	char x[SEAM_ROW_TEXT], y[SEAM_ROW_TEXT];
	int rc = 0;

	for (size_t i = 0; seam_by_key(table->by, i) && !rc; i++) {
		enum seam_by key = seam_by_key(table->by, i);

		if (key == SEAM_BY_CPU || key == SEAM_BY_PARALLELISM)
			rc = SEAM_COMPARE(seam_row_id(table, a, key),
					  seam_row_id(table, b, key));
		else
			rc = strcmp(seam_row_text(table, a, key, x),
				    seam_row_text(table, b, key, y));
	}
	if (!rc)
		rc = strcmp(seam_row_module(table, a),
			    seam_row_module(table, b));
	return rc;
}

static int compare_rows(const void *x, const void *y, void *context)
{
	const struct row_order *order = context;
	const struct seam_row *a = x, *b = y;
	int self = order->by_weight ?
		   SEAM_COMPARE(b->self_weight, a->self_weight) :
		   SEAM_COMPARE(b->self_samples, a->self_samples);
	int total = order->by_weight ? SEAM_COMPARE(b->weight, a->weight) :
		    SEAM_COMPARE(b->samples, a->samples);
	int rc = order->sort == SEAM_SORT_SELF ? self ?: total : total ?: self;

	return rc ?: compare_keys(order->table, a, b) ?:
	       SEAM_COMPARE(a->code, b->code) ?:
	       SEAM_COMPARE(a->group, b->group);
}

void seam_rows_sort(struct seam_rows *table, enum seam_sort sort,
		    bool by_weight)
{
	struct row_order order = { table, sort, by_weight };

	if (table->n)
		qsort_r(table->items, table->n, sizeof(*table->items),
			compare_rows, &order);
}

void seam_rows_filter(struct seam_rows *table, const char *text)
{
	char buf[SEAM_ROW_TEXT];
	size_t kept = 0;

	for (size_t i = 0; i < table->n; i++) {
		const struct seam_row *row = &table->items[i];
		bool matches = strcasestr(seam_row_module(table, row), text);

		for (size_t k = 0; seam_by_key(table->by, k) && !matches; k++)
			matches = strcasestr(seam_row_text(table, row,
					seam_by_key(table->by, k), buf), text);
		if (matches)
			table->items[kept++] = *row;
	}
	table->n = kept;
}

/* -- two tables --------------------------------------------------------- */

const struct seam_row *seam_rows_same(const struct seam_rows *table,
				      const struct seam_rows *of,
				      const struct seam_row *row)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct seam_row *other = &table->items[i];
		bool has_code = other->code != SEAM_NONE;

		if (has_code == (row->code != SEAM_NONE) &&
		    (!has_code || memcmp(&table->codes.items[other->code],
					 &of->codes.items[row->code],
					 sizeof(*of->codes.items)) == 0) &&
		    (!of->groups.n ||
		     memcmp(&table->groups.items[other->group],
			    &of->groups.items[row->group],
			    sizeof(*of->groups.items)) == 0))
			return other;
	}
	return NULL;
}

bool seam_rows_make_off(struct seam_rows *table,
			const struct seam_selected *selected, uint32_t event,
			uint32_t by)
{
	const struct seam_profile *p = selected->profile;

	*table = (struct seam_rows) { 0 };
	for (uint32_t i = 0; i < p->events.n; i++)
		if (!p->events.items[event].is_wait &&
		    p->events.items[i].is_wait &&
		    !p->events.items[i].is_preempted)
			return seam_rows_make(table, selected, i, by) == 0;
	return false;
}

/* -- keys --------------------------------------------------------------- */

static const char *const names[] = {
	[SEAM_BY_SYMBOL] = "symbol", [SEAM_BY_MODULE] = "module",
	[SEAM_BY_ADDRESS] = "address",
	[SEAM_BY_LINE] = "line", [SEAM_BY_COMM] = "comm",
	[SEAM_BY_THREAD] = "thread", [SEAM_BY_PROCESS] = "process",
	[SEAM_BY_CPU] = "cpu", [SEAM_BY_VMSTATE] = "vmstate",
	[SEAM_BY_WAIT] = "wait", [SEAM_BY_PARALLELISM] = "parallelism",
	[SEAM_BY_WAKER] = "waker", [SEAM_BY_CGROUP] = "cgroup",
	[SEAM_BY_HOST] = "host", [SEAM_BY_SERVICE] = "service",
};

enum seam_group seam_by_group(enum seam_by by)
{
	static const enum seam_group groups[] = {
		[SEAM_BY_COMM] = SEAM_GROUP_COMM,
		[SEAM_BY_THREAD] = SEAM_GROUP_THREAD,
		[SEAM_BY_PROCESS] = SEAM_GROUP_PROCESS,
		[SEAM_BY_CPU] = SEAM_GROUP_CPU,
		[SEAM_BY_VMSTATE] = SEAM_GROUP_VMSTATE,
		[SEAM_BY_WAIT] = SEAM_GROUP_WAIT,
		[SEAM_BY_PARALLELISM] = SEAM_GROUP_RUNNING,
		[SEAM_BY_WAKER] = SEAM_GROUP_WAKER,
		[SEAM_BY_CGROUP] = SEAM_GROUP_CGROUP,
		[SEAM_BY_HOST] = SEAM_GROUP_HOST,
		[SEAM_BY_SERVICE] = SEAM_GROUP_SERVICE,
	};

	return by < SEAM_ARRAY_SIZE(groups) ? groups[by] : SEAM_GROUP_NONE;
}

int seam_by_parse(const char *text, uint32_t *by)
{
	*by = 0;
	for (size_t i = 0; i < SEAM_MAX_KEYS; i++) {
		size_t n = strcspn(text, ",");
		uint32_t key = SEAM_BY_SYMBOL;

		while (key < SEAM_ARRAY_SIZE(names) &&
		       (strlen(names[key]) != n ||
			memcmp(names[key], text, n) != 0))
			key++;
		if (key == SEAM_ARRAY_SIZE(names) ||
		    seam_by_has(*by, (enum seam_by)key))
			return -EINVAL;
		*by |= key << 4 * i;
		if (!text[n])
			return 0;
		text += n + 1;
	}
	return -EINVAL;
}

const char *seam_by_names(uint32_t by, char buf[SEAM_BY_NAMES])
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; seam_by_key(by, i); i++)
		used += (size_t)snprintf(buf + used, SEAM_BY_NAMES - used,
					 "%s%s", i ? "," : "",
					 names[seam_by_key(by, i)]);
	return buf;
}

uint32_t seam_row_id(const struct seam_rows *table, const struct seam_row *row,
		     enum seam_by key)
{
	size_t at = 0;

	/* ids are in the order of the keys that are not of code */
	for (size_t i = 0; seam_by_key(table->by, i) != key; i++)
		at += seam_by_key(table->by, i) > SEAM_BY_LINE;
	return table->groups.items[row->group].items[at];
}

static const struct seam_row_code *code_of(const struct seam_rows *table,
					   const struct seam_row *row)
{
	return row->code == SEAM_NONE ? NULL : &table->codes.items[row->code];
}

static const struct seam_function *function_of(const struct seam_rows *table,
					       const struct seam_row *row)
{
	const struct seam_row_code *code = code_of(table, row);

	return code && code->function != SEAM_NONE ?
	       &table->profile->functions.items[code->function] : NULL;
}

static const char *code_text(const struct seam_rows *table,
			     const struct seam_row *row, enum seam_by key,
			     char *buf)
{
	const struct seam_profile *profile = table->profile;
	const struct seam_row_code *code = code_of(table, row);
	const struct seam_function *function = function_of(table, row);
	const char *name = function ? seam_profile_text(profile,
							function->name) : "";
	bool has_symbol = seam_by_has(table->by, SEAM_BY_SYMBOL);

	if (!code)
		return "[no stack]";
	if (key == SEAM_BY_MODULE) {
		name = seam_profile_path(profile, code->module);
		return *name ? name : "[unknown]";
	}
	if (key == SEAM_BY_LINE && !code->file)
		return has_symbol ? "-" : name;
	if (key == SEAM_BY_LINE)
		snprintf(buf, SEAM_ROW_TEXT, "%.*s:%" PRIu32,
			 SEAM_ROW_TEXT - 16,
			 seam_profile_text(profile, code->file), code->line);
	else if (key == SEAM_BY_ADDRESS)
		snprintf(buf, SEAM_ROW_TEXT, "0x%" PRIx64 "%s%.*s", code->addr,
			 has_symbol ? "" : " ", SEAM_ROW_TEXT - 32,
			 has_symbol ? "" : name);
	else
		return name;
	return buf;
}

const char *seam_row_text(const struct seam_rows *table,
			  const struct seam_row *row, enum seam_by key,
			  char buf[SEAM_ROW_TEXT])
{
	uint32_t id;

	if (key <= SEAM_BY_LINE)
		return code_text(table, row, key, buf);
	id = seam_row_id(table, row, key);
	if (key != SEAM_BY_CPU && key != SEAM_BY_PARALLELISM)
		return seam_group_text(table->profile, seam_by_group(key), id);
	snprintf(buf, SEAM_ROW_TEXT, seam_group_number(table->profile,
				seam_by_group(key), id) < 0 ? "unknown" :
		 "%" PRIu32, id);
	return buf;
}

const char *seam_row_module(const struct seam_rows *table,
			    const struct seam_row *row)
{
	const struct seam_function *function = function_of(table, row);

	return function ? seam_profile_path(table->profile,
					    function->module) : "";
}

enum seam_layer seam_row_layer(const struct seam_rows *table,
			       const struct seam_row *row)
{
	const struct seam_function *function = function_of(table, row);

	return function ? (enum seam_layer)function->layer : SEAM_N_LAYERS;
}
