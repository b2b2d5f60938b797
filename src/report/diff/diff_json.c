/* SPDX-License-Identifier: MIT */
/* diff_json.c - "seam.diff/1"; doc/formats/diff-json.md has the members */
#include <math.h>

#include "base/json.h"
#include "report/diff/diff_report.h"
#include "report/tree_json.h"

/* Members of an open object. */
static void put_change(struct seam_json *j, const struct seam_diff_change *c)
{
	bool has_test = c->test.freedom > 0;

	seam_json_double(j, "a", c->mean[SEAM_DIFF_A]);
	seam_json_double(j, "b", c->mean[SEAM_DIFF_B]);
	seam_json_double(j, "samples_a", c->samples[SEAM_DIFF_A]);
	seam_json_double(j, "samples_b", c->samples[SEAM_DIFF_B]);
	/* null, as infinity: it is new */
	seam_json_double(j, "change", c->samples[SEAM_DIFF_A] <= 0 ? INFINITY :
			 c->samples[SEAM_DIFF_B] <= 0 ? -1 :
			 c->test.ratio - 1);
	seam_json_double(j, "low", has_test ? c->test.low - 1 : INFINITY);
	seam_json_double(j, "high", has_test ? c->test.high - 1 : INFINITY);
	seam_json_double(j, "p", has_test ? c->test.p : INFINITY);
	seam_json_double(j, "q", has_test && c->verdict != SEAM_DIFF_FEW ?
			 c->q : INFINITY);
	seam_json_string(j, "verdict", seam_diff_verdicts[c->verdict]);
}

static void put_side(struct seam_json *j, const struct seam_diff *diff,
		     enum seam_diff_side side)
{
	seam_json_open(j, side == SEAM_DIFF_A ? "a" : "b", '{');
	seam_json_string(j, "command", seam_profile_text(&diff->profile,
						diff->command[side]));
	seam_json_double(j, "lost", seam_diff_lost(diff, side));
	seam_json_open(j, "runs", '[');
	for (size_t r = 0; r < diff->runs.n; r++) {
		const struct seam_diff_run *run = &diff->runs.items[r];

		if (run->side != side)
			continue;
		seam_json_open(j, NULL, '{');
		seam_json_string(j, "file", run->path);
		seam_json_double(j, "weight", run->all.weight);
		seam_json_double(j, "samples", run->all.samples);
		seam_json_double(j, "units", run->n_units);
		seam_json_double(j, "duration_ns", run->duration_ns);
		seam_json_double(j, "lost", run->lost);
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_close(j);
}

static void put_function(struct seam_json *j, const struct seam_diff *diff,
			 uint32_t id)
{
	const struct seam_function *f = &diff->profile.functions.items[id];

	seam_json_string(j, "layer", seam_layer_names[f->layer]);
	seam_json_string(j, "symbol", seam_profile_text(&diff->profile,
							f->name));
	seam_json_string(j, "module", seam_profile_path(&diff->profile,
							f->module));
}

static void put_rows(struct seam_json *j, const struct seam_diff *diff)
{
	seam_json_open(j, "rows", '[');
	for (size_t i = 0; i < diff->rows.n; i++) {
		const struct seam_diff_row *row = &diff->rows.items[i];

		seam_json_open(j, NULL, '{');
		put_function(j, diff, row->function);
		seam_json_open(j, "self", '{');
		put_change(j, &row->self);
		seam_json_close(j);
		seam_json_open(j, "total", '{');
		put_change(j, &row->total);
		seam_json_close(j);
		seam_json_close(j);
	}
	seam_json_close(j);
}

struct diff_json_tree {
	const struct seam_diff *diff;
	struct seam_diff_cut cut;
};

static void put_node(const void *context, uint32_t id, struct seam_json *j)
{
	const struct diff_json_tree *tree = context;

	put_function(j, tree->diff, tree->cut.tree.items[id].key >> 1);
	put_change(j, &tree->cut.changes[id]);
}

static int put_tree(struct seam_json *j, const struct seam_diff_report *report)
{
	struct diff_json_tree tree = { .diff = report->diff };
	int rc = seam_diff_cut_init(&tree.cut, report);

	seam_json_open(j, "tree", '[');
	if (!rc)
		seam_tree_json(&tree.cut.tree, j, put_node, &tree);
	seam_json_close(j);
	seam_json_u64(j, "hidden", tree.cut.n_hidden);
	seam_diff_cut_fini(&tree.cut);
	return rc;
}

static void put_gates(struct seam_json *j,
		      const struct seam_diff_report *report)
{
	seam_json_open(j, "gates", '[');
	for (size_t i = 0; i < report->n_gates; i++) {
		const struct seam_diff_decision *d = &report->decisions[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "gate", report->gates[i].text);
		seam_json_string(j, "outcome", seam_diff_outcomes[d->outcome]);
		seam_json_string(j, "why", d->why);
		seam_json_u64(j, "functions", d->n_functions);
		seam_json_double(j, "value", d->value);
		seam_json_double(j, "low", d->low);
		seam_json_double(j, "high", d->high);
		seam_json_close(j);
	}
	seam_json_close(j);
}

int seam_diff_json(const struct seam_diff_report *report, FILE *out)
{
	const struct seam_diff *diff = report->diff;
	struct seam_json j = seam_json_make(out, false);
	int rc = 0;

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.diff/1");
	put_side(&j, diff, SEAM_DIFF_A);
	put_side(&j, diff, SEAM_DIFF_B);
	seam_json_string(&j, "event", report->event);
	seam_json_string(&j, "unit", diff->unit == SEAM_UNIT_NS ? "ns" :
			 "count");
	seam_json_string(&j, "per", report->unit);
	seam_json_string(&j, "tested", diff->sort == SEAM_SORT_TOTAL ?
			 "total" : "self");
	seam_json_bool(&j, "estimate", seam_diff_has_estimate(diff));
	seam_json_open(&j, "all", '{');
	put_change(&j, &diff->all);
	seam_json_close(&j);
	put_rows(&j, diff);
	if (report->tree)
		rc = put_tree(&j, report);
	put_gates(&j, report);
	seam_json_open(&j, "warnings", '[');
	for (size_t i = 0; i < diff->profile.notes.n; i++)
		seam_json_string(&j, NULL, seam_profile_text(&diff->profile,
					diff->profile.notes.items[i]));
	seam_json_close(&j);
	seam_json_i64(&j, "status", report->status);
	seam_json_close(&j);
	return rc;
}
