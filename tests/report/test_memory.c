/* SPDX-License-Identifier: MIT */
/*
 * test_memory.c - every view survives that memory runs out, wherever it does
 *
 * The linker sends this program's allocations here; the n-th one fails, for
 * n = 1, 2, ... until a view gets through.  What leaks is the sanitizer's to
 * find.
 */
#include "report/flamegraph.h"

#include "../model/built.h"
#include "../no_memory.h"
#include "../unit.h"
#include "export/exporter.h"
#include "report/diff/diff_report.h"
#include "report/report.h"

typedef int viewer(const struct seam_selected *selected, FILE *out);

static int as_folded(const struct seam_selected *selected, FILE *out)
{
	return seam_write_folded(&(struct seam_export) {
		.out = out, .selected = selected, .group = SEAM_GROUP_COMM,
	}, NULL);
}

static int as_picture(const struct seam_selected *selected, FILE *out)
{
	struct seam_flamegraph graph = {
		.selected = selected, .title = "t", .min_percent = -1,
		.group = SEAM_GROUP_COMM,
	};

	return seam_flamegraph_write(&graph, out);
}

static struct seam_report report_of(const struct seam_selected *selected)
{
	return (struct seam_report) {
		.profile = selected->profile, .selected = selected,
		.path = "p", .filter = "f",
	};
}

static int as_text(const struct seam_selected *selected, FILE *out)
{
	struct seam_report report = report_of(selected);

	return seam_report_text(&report, &(struct seam_view) { .out = out });
}

static int as_json(const struct seam_selected *selected, FILE *out)
{
	struct seam_report report = report_of(selected);

	report.by = SEAM_BY_PROCESS;
	return seam_report_json(&report, out);
}

static int as_tree(const struct seam_selected *selected, FILE *out)
{
	struct seam_report report = report_of(selected);

	return seam_report_tree_text(&report,
				     &(struct seam_view) { .out = out });
}

static int as_tree_json(const struct seam_selected *selected, FILE *out)
{
	struct seam_report report = report_of(selected);

	report.by = SEAM_BY_THREAD;
	return seam_report_tree_json(&report, out);
}

static int diff_views(const struct seam_diff *diff, FILE *out)
{
	struct seam_diff_gate gate;
	struct seam_diff_decision decision;
	struct seam_diff_report report = {
		.diff = diff, .unit = "run", .event = "cpu-clock", .all = true,
		.gates = &gate, .decisions = &decision, .n_gates = 1,
	};
	struct seam_view view = { .out = out };
	int rc = seam_diff_gate_parse(&gate, "f*:total < 1%", NULL) ?:
		 seam_diff_gate_decide(&gate, diff, &decision) ?:
		 seam_diff_text(&report, &view);

	report.tree = true;
	return rc ?: seam_diff_text(&report, &view) ?:
	       seam_diff_picture(&report, "t", -1, false, out);
}

/* Twice the same, with names that are matched again at the end. */
static int as_diff(const struct seam_selected *selected, FILE *out)
{
	struct seam_diff diff;
	int rc = seam_diff_init(&diff);

	for (int i = 0; i < 2 && !rc; i++) {
		const struct seam_diff_run run = {
			.side = i ? SEAM_DIFF_B : SEAM_DIFF_A, .path = "p",
			.n_units = 1,
		};

		rc = seam_diff_add(&diff, &run, selected, 0, NULL);
	}
	rc = rc ?: seam_diff_finish(&diff) ?: diff_views(&diff, out);
	seam_diff_fini(&diff);
	return rc;
}

static int view(const struct seam_profile *p, viewer *as, FILE *out)
{
	struct seam_selection selection;
	struct seam_selected selected;
	int rc;

	seam_selection_init(&selection);
	selection.no_inline = true;
	selection.thread = "app";
	rc = seam_selected_init(&selected, p, &selection, NULL);
	if (!rc) {
		rc = as(&selected, out);
		seam_selected_fini(&selected);
	}
	return rc;
}

UNIT_TEST(each_failed_allocation_is_reported)
{
	static viewer *const viewers[] = {
		as_folded, as_picture, as_text, as_json, as_tree, as_tree_json,
		as_diff,
	};
	struct seam_profile p = built();
	FILE *out = fopen("/dev/null", "w");

	for (uint64_t i = 0; i < 40; i++) {
		char stack[64];

		snprintf(stack, sizeof(stack), "main;f%d;g%d_[i];h%d_[k]",
			 (int)i, (int)i / 2, (int)i / 3);
		built_add(&p, i, i % 7 ? "app" : "other", stack);
	}
	built_put(&p, (struct built_sample) { 0, "app", "main;f",
					      .event = "faults" });
	p.functions.items[1].is_named = false;
	for (size_t v = 0; v < SEAM_ARRAY_SIZE(viewers); v++) {
		long n = 0;
		int rc;

		do {
			until_failure = n + 1;
			rc = view(&p, viewers[v], out);
			assert_true(rc == 0 || rc == -ENOMEM);
		} while (rc && ++n < 1000);
		until_failure = 0;
		assert_in_range(n, 4, 999);
	}
	fclose(out);
	seam_profile_fini(&p);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
