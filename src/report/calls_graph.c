/* SPDX-License-Identifier: MIT */
/* calls_graph.c - slowest calls as trees, all calls as a graph; see calls.h */
#include "report/calls.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

static enum seam_unit unit_of(const struct seam_calls_report *report)
{
	return report->account->in_ticks ? SEAM_UNIT_COUNT : SEAM_UNIT_NS;
}

/* Inside a DOT string, and inside a record label's braces. */
static void put_dot(FILE *out, const char *name)
{
	for (const char *p = name; *p; p++) {
		if (strchr("\"\\{}<>|", *p))
			fputc('\\', out);
		if ((unsigned char)*p >= 0x20)
			fputc(*p, out);
	}
}

static void put_vertex(FILE *out, const struct seam_calls_report *report,
		       const struct seam_account_row *row)
{
	char name[SEAM_CALL_NAME], self[SEAM_NUMBER], sum[SEAM_NUMBER];
	enum seam_unit unit = unit_of(report);

	fprintf(out, "F%" PRIu32 " [label=\"{", row->function);
	put_dot(out, seam_call_name(report->names, row->function, name));
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
	/* no function has the id 0; llvm-xray's graph calls the thread so too */
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

/*
 * Children of each node, the longest first: next[node] is its next sibling,
 * first[node] its first child.
 */
struct family {
	uint32_t *first, *next;
};

static int by_total(const void *a, const void *b, void *nodes)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct seam_call_path *node = nodes;

	if (node[x].total_ns != node[y].total_ns)
		return node[x].total_ns < node[y].total_ns ? -1 : 1;
	return x < y ? 1 : -1;
}

static void free_family(struct family *family)
{
	free(family->first);
	free(family->next);
}

static bool make_family(struct family *family,
			const struct seam_call_paths *tree)
{
	size_t n = tree->nodes.n;
	uint32_t *order = malloc(n * sizeof(*order));

	family->first = malloc(n * sizeof(*family->first));
	family->next = malloc(n * sizeof(*family->next));
	if (!order || !family->first || !family->next) {
		free(order);
		free_family(family);
		return false;
	}
	memset(family->first, 0xff, n * sizeof(*family->first));
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_total, tree->nodes.items);
	for (size_t i = 0; i < n; i++) {
		uint32_t parent = tree->nodes.items[order[i]].parent;

		if (parent == SEAM_NONE)
			continue;
		family->next[order[i]] = family->first[parent];
		family->first[parent] = order[i];
	}
	free(order);
	return true;
}

static void put_node(FILE *out, const struct seam_calls_report *report,
		     const struct seam_call_path *node, int depth)
{
	char total[SEAM_NUMBER], self[SEAM_NUMBER], name[SEAM_CALL_NAME];
	enum seam_unit unit = unit_of(report);

	fprintf(out, "%9s %9s %8" PRIu64 "  %*s",
		seam_format_weight(total, node->total_ns, unit),
		seam_format_weight(self, node->self_ns, unit), node->count,
		2 * (depth < 40 ? depth : 40), "");
	seam_text_put(out, seam_call_name(report->names, node->function, name),
		      SEAM_TEXT_TERMINAL);
	fputc('\n', out);
}

/* Depth first without recursion: a program's may be deeper than ours. */
static void put_tree(FILE *out, const struct seam_calls_report *report,
		     const struct seam_call_paths *tree)
{
	const struct seam_call_path *nodes = tree->nodes.items;
	struct family family;
	uint32_t at;
	int depth = 0;

	if (tree->nodes.n < 2 || !make_family(&family, tree))
		return;
	at = family.first[0];
	while (at != SEAM_NONE) {
		put_node(out, report, &nodes[at], depth);
		if (family.first[at] != SEAM_NONE) {
			at = family.first[at];
			depth++;
			continue;
		}
		while (at != SEAM_NONE && at != 0 &&
		       family.next[at] == SEAM_NONE) {
			at = nodes[at].parent;
			depth--;
		}
		at = at == SEAM_NONE || at == 0 ? SEAM_NONE : family.next[at];
	}
	free_family(&family);
}

void seam_calls_stacks(const struct seam_calls_report *report,
		       const struct seam_slow_calls *slow,
		       const struct seam_trace *trace,
		       const struct seam_view *view)
{
	for (size_t i = 0; i < slow->n; i++) {
		const struct seam_slow_call *call = &slow->items[i];
		const struct seam_trace_stream *stream =
			&trace->streams.items[call->call.stream];
		char buf[SEAM_NUMBER];

		seam_view_style(view, SEAM_STYLE_BOLD);
		fprintf(view->out, "%s%s at %" PRIu64 ".%09" PRIu64
			" s in thread %" PRId32 " of process %" PRId32 "\n",
			i ? "\n" : "",
			seam_format_weight(buf, call->call.end_ns -
					   call->call.begin_ns,
					   unit_of(report)),
			call->call.begin_ns / 1000000000,
			call->call.begin_ns % 1000000000, stream->tid,
			stream->pid);
		seam_view_style(view, SEAM_STYLE_PLAIN);
		fprintf(view->out, "%9s %9s %8s  function\n", "total", "self",
			"calls");
		put_tree(view->out, report, &call->tree);
	}
}
