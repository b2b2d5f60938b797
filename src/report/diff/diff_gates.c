/* SPDX-License-Identifier: MIT */
/* diff_gates.c - parse a gate, measure what it names, decide */
#include "report/diff/diff_gates.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/diff/diff_names.h"
#include "report/view.h"

const char *const seam_diff_outcomes[] = {
	[SEAM_DIFF_HOLDS] = "holds", [SEAM_DIFF_FAILS] = "fails",
	[SEAM_DIFF_UNDECIDED] = "undecided",
};

/* "+5%", "5%", "-2.5%", "2ms" */
static bool parse_limit(struct seam_diff_gate *gate, const char *text)
{
	char *end;
	uint64_t ns;
	double value = strtod(text, &end);

	gate->is_relative = end > text && strcmp(end, "%") == 0;
	gate->limit = value / 100;
	if (gate->is_relative)
		return isfinite(value) && value > -100;
	if (!seam_text_ns(text, &ns))
		return false;
	gate->limit = (double)ns;
	return true;
}

/* Cut spaces, and ":self" or ":total", from the end of the name. */
static void cut_measure(struct seam_diff_gate *gate)
{
	size_t n = strlen(gate->name);

	while (n && isspace((unsigned char)gate->name[n - 1]))
		n--;
	gate->is_total = n >= 6 && memcmp(gate->name + n - 6, ":total", 6) == 0;
	if (gate->is_total)
		n -= 6;
	else if (n >= 5 && memcmp(gate->name + n - 5, ":self", 5) == 0)
		n -= 5;
	gate->name[n] = '\0';
}

int seam_diff_gate_parse(struct seam_diff_gate *gate, const char *text,
			 struct seam_err *err)
{
	char plain[SEAM_DIFF_NAME];
	const char *less = strrchr(text, '<');	/* names have others */
	const char *limit = less ? less + 1 : "";
	bool is_part;

	*gate = (struct seam_diff_gate) { .text = text };
	text += strspn(text, " ");
	limit += strspn(limit, " ");
	if (!less || less <= text ||
	    (size_t)(less - text) >= sizeof(gate->name) ||
	    !parse_limit(gate, limit))
		return seam_err_set(err, -EINVAL, "a gate is SYMBOL:self < "
			"+5%%, SYMBOL:total < 2ms, all:total < +3%% or new < "
			"1%%, not '%.100s'", gate->text);
	memcpy(gate->name, text, (size_t)(less - text));
	cut_measure(gate);
	gate->is_all = strcmp(gate->name, "all") == 0;
	gate->is_new = strcmp(gate->name, "new") == 0;
	if (!gate->name[0])
		return seam_err_set(err, -EINVAL, "the gate '%.100s' names no "
				    "function", gate->text);
	/* as the diff's functions are named */
	snprintf(gate->name, sizeof(gate->name), "%s",
		 seam_diff_function_name(plain, gate->name, SEAM_LAYER_NATIVE,
					 &is_part));
	return 0;
}

/* By function: whether it is one of the gate's. */
static bool *find_functions(const struct seam_diff_gate *gate,
			    const struct seam_diff *diff, size_t *n)
{
	bool *found = calloc(diff->profile.functions.n + 1, sizeof(*found));

	*n = 0;
	for (size_t i = 0; found && i < diff->rows.n; i++) {
		const struct seam_diff_row *row = &diff->rows.items[i];
		const char *name = seam_profile_text(&diff->profile,
			diff->profile.functions.items[row->function].name);

		found[row->function] = gate->is_new ?
			row->total.samples[SEAM_DIFF_A] <= 0 :
			gate->is_all || strcmp(gate->name, name) == 0 ||
			fnmatch(gate->name, name, 0) == 0;
		*n += found[row->function];
	}
	return found;
}

/* For each run the self of all functions found, or their outermost totals. */
static int add_found(const struct seam_diff_gate *gate,
		     const struct seam_diff *diff, const bool *found,
		     struct seam_diff_amount *sums)
{
	const struct seam_node *nodes = diff->tree.items;
	bool *inside = calloc(diff->tree.n, sizeof(*inside));

	if (!inside)
		return -ENOMEM;
	for (size_t i = 1; i < diff->tree.n; i++) {
		bool is_found = found[nodes[i].key >> 1];
		bool is_inside = gate->is_total && inside[nodes[i].parent];

		inside[i] = is_inside || is_found;
		if (!is_found || is_inside)
			continue;
		for (size_t r = 0; r < diff->runs.n; r++) {
			const struct seam_diff_run *run = &diff->runs.items[r];
			const struct seam_diff_amount *amount = gate->is_total ?
				&run->node_total.items[i] :
				&run->node_self.items[i];

			sums[r].weight += amount->weight;
			sums[r].samples += amount->samples;
		}
	}
	free(inside);
	return 0;
}

/* What the limit is for: the change, or B's own value; with its interval. */
static void find_value(const struct seam_diff_gate *gate,
		       const struct seam_diff *diff,
		       struct seam_diff_decision *d)
{
	const struct seam_diff_test *test = &d->change.test;
	double factor, freedom = (double)diff->n_runs[SEAM_DIFF_B] - 1;

	if (!gate->is_new && gate->is_relative) {
		d->value = test->ratio - 1;
		d->low = test->low - 1;
		d->high = test->high - 1;
		return;
	}
	d->value = d->change.mean[SEAM_DIFF_B];
	if (gate->is_relative && diff->all.mean[SEAM_DIFF_B] > 0)
		d->value /= diff->all.mean[SEAM_DIFF_B];
	factor = freedom < 1 ? INFINITY : exp(d->change.own_error *
			seam_diff_student_t(SEAM_DIFF_LEVEL, freedom));
	d->low = d->value / factor;
	d->high = d->value > 0 ? d->value * factor : 0;
}

static void decide(const struct seam_diff_gate *gate,
		   const struct seam_diff *diff, struct seam_diff_decision *d)
{
	/* an increase that is sure is enough; of a decrease, all of it */
	double floor = !gate->is_new && gate->is_relative && gate->limit > 0 ?
		       0 : gate->limit;

	d->outcome = SEAM_DIFF_UNDECIDED;
	if (!d->n_functions && !gate->is_new)
		snprintf(d->why, sizeof(d->why),
			 "neither side has a sample of it");
	else if (!seam_diff_has_estimate(diff))
		snprintf(d->why, sizeof(d->why), "no noise estimate: each "
			 "side needs %d recordings", SEAM_DIFF_LEAST_RUNS);
	else if (seam_diff_lost(diff, SEAM_DIFF_A) > SEAM_DIFF_MOST_LOST ||
		 seam_diff_lost(diff, SEAM_DIFF_B) > SEAM_DIFF_MOST_LOST)
		snprintf(d->why, sizeof(d->why), "%s lost more than 1%% of "
			 "its records", seam_diff_lost(diff, SEAM_DIFF_A) >
			 SEAM_DIFF_MOST_LOST ? "A" : "B");
	else if (d->value > gate->limit && d->low > floor)
		d->outcome = SEAM_DIFF_FAILS;
	else if (d->high < gate->limit)
		d->outcome = SEAM_DIFF_HOLDS;
	else
		snprintf(d->why, sizeof(d->why), "the noise is as large as the "
			 "limit: record more runs");
}

int seam_diff_gate_decide(const struct seam_diff_gate *gate,
			  const struct seam_diff *diff,
			  struct seam_diff_decision *d)
{
	struct seam_diff_amount *sums = calloc(diff->runs.n + 1,
					       sizeof(*sums));
	bool *found;
	int rc;

	*d = (struct seam_diff_decision) { 0 };
	found = find_functions(gate, diff, &d->n_functions);
	rc = sums && found ? add_found(gate, diff, found, sums) : -ENOMEM;
	for (size_t r = 0; r < diff->runs.n && !rc && gate->is_all; r++)
		sums[r] = diff->runs.items[r].all;
	if (!rc) {
		d->change = seam_diff_measure(diff, sums);
		seam_diff_find_interval(&d->change.test);
		find_value(gate, diff, d);
		decide(gate, diff, d);
	}
	free(sums);
	free(found);
	return rc;
}
