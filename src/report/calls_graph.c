/* SPDX-License-Identifier: MIT */
/* calls_graph.c - all calls as a graph; see calls_table.h */
#include "report/calls_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

static enum seam_unit unit_of(const struct seam_calls_report *report)
{
	return report->account->in_ticks ? SEAM_UNIT_COUNT : SEAM_UNIT_NS;
}

static void put_vertex(FILE *out, const struct seam_calls_report *report,
		       const struct seam_account_row *row)
{
	char name[SEAM_CALL_NAME], self[SEAM_NUMBER], sum[SEAM_NUMBER];
	enum seam_unit unit = unit_of(report);

	fprintf(out, "F%" PRIu32 " [label=\"{", row->function);
	seam_text_put(out, seam_call_name(report->names, row->function, name),
		      SEAM_TEXT_DOT);
	fprintf(out, "|%" PRIu64 " calls|sum %s|self %s}\"];\n", row->count,
		seam_format_weight(sum, row->sum_ns, unit),
		seam_format_weight(self, row->self_ns, unit));
}

void seam_calls_graph(const struct seam_calls_report *report, FILE *out)
{
	const struct seam_account *account = report->account;
	char sum[SEAM_NUMBER];

	fputs("digraph calls {\nnode [shape=record];\n", out);
	for (size_t i = 0; i < account->rows.n; i++)
		if (account->rows.items[i].count &&
		    seam_calls_selects(report, account->rows.items[i].function))
			put_vertex(out, report, &account->rows.items[i]);
	/* no function has the id 0; the name is that of llvm-xray's graph */
	fputs("F0 [label=\"thread\", shape=oval];\n", out);
	for (size_t i = 0; i < account->edges.n; i++) {
		const struct seam_account_edge *edge = &account->edges.items[i];
		bool is_root = edge->caller == SEAM_NONE;

		if (!seam_calls_selects(report, edge->callee) ||
		    (!is_root && !seam_calls_selects(report, edge->caller)))
			continue;
		fprintf(out, "F%" PRIu32 " -> F%" PRIu32 " [label=\"%" PRIu64
			" x, %s\"];\n", is_root ? 0 : edge->caller,
			edge->callee, edge->count,
			seam_format_weight(sum, edge->sum_ns, unit_of(report)));
	}
	fputs("}\n", out);
}
