/* SPDX-License-Identifier: MIT */
/*
 * calls_stacks.c - the call trees of the slowest calls; see calls_table.h
 *
 * A line for each node of a call's tree, with the arguments after the name;
 * then custom and typed events of the node, then its callees.
 */
#include "report/calls_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "base/text.h"
#include "model/profile/tree.h"

enum {
	MARGIN = 30,			/* columns before a function's name */
	MAX_INDENT = 40,		/* levels; deeper: same column */
	SHOWN_EVENTS = 16,		/* of a node */
	SHOWN_CALLS = 4,		/* of a node, with their arguments */
	SHOWN_BYTES = 32,		/* of an event */
	SHOWN_JSON = 400,		/* the same, of JSON */
};

static int indent(int depth)
{
	return 2 * (depth < MAX_INDENT ? depth : MAX_INDENT);
}

static void put_name(FILE *out, const struct seam_calls_report *report,
		     uint32_t function)
{
	char buf[SEAM_CALL_NAME];

	seam_text_put(out, seam_call_name(report->names, function, buf),
		      SEAM_TEXT_TERMINAL);
}

/* The paths of a call as a tree of equal ids. */
static bool make_tree(struct seam_tree *tree,
		      const struct seam_call_paths *paths)
{
	for (size_t i = 0; i < paths->nodes.n; i++) {
		const struct seam_call_path *path = &paths->nodes.items[i];
		uint32_t id = seam_tree_add(tree, path->parent, 0, false);

		if (id == SEAM_NONE)
			return false;
		tree->items[id].weight = path->total_ns;
	}
	return true;
}

static int longest_first(const struct seam_node *a, const struct seam_node *b,
			 void *context)
{
	(void)context;
	return SEAM_COMPARE(b->weight, a->weight) ?: SEAM_COMPARE(a, b);
}

/* The events of one node: [*from, result) of @call's. */
static size_t events_of(const struct seam_slow_call *call, uint32_t node,
			size_t *from)
{
	const struct seam_slow_event *events = call->events.items;

	*from = SEAM_ARRAY_SEARCH(i, call->events.n, events[i].node < node);
	return SEAM_ARRAY_SEARCH(i, call->events.n, events[i].node <= node);
}

/* A register: a number, or what is an address to all appearance. */
static void put_value(FILE *out, uint64_t value)
{
	int64_t number = (int64_t)value;

	if (number >= INT32_MIN && number <= UINT32_MAX)
		fprintf(out, "%" PRId64, number);
	else
		fprintf(out, "%#" PRIx64, value);
}

/* "(1, 2)" for a call; "(1), (5), (1), (7), ..." for several. */
static void put_arguments(FILE *out, const struct seam_slow_call *call,
			  size_t from, size_t to)
{
	const struct seam_slow_event *before = NULL;
	unsigned int n_calls = 0;

	for (size_t i = from; i < to; i++) {
		const struct seam_slow_event *e = &call->events.items[i];
		bool is_next = !before || before->nth_call != e->nth_call;

		if (e->kind != SEAM_XRAY_ARGUMENT)
			continue;
		if (is_next && n_calls++ == SHOWN_CALLS) {
			fputs("), ...", out);
			return;
		}
		fputs(!before ? "(" : is_next ? "), (" : ", ", out);
		put_value(out, e->value);
		before = e;
	}
	if (before)
		fputc(')', out);
}

/* JSON as it is, if it is short and of printable characters. */
static bool put_json(FILE *out, struct seam_bytes data)
{
	if (data.size > SHOWN_JSON || !seam_json_check(data))
		return false;
	for (size_t i = 0; i < data.size; i++)
		if (!seam_text_is_printable(data.data[i]))
			return false;
	fprintf(out, " %.*s", (int)data.size, (const char *)data.data);
	return true;
}

/* The first bytes, as text if printable, else in hexadecimal. */
static void put_data(FILE *out, struct seam_bytes data)
{
	size_t n = data.size < SHOWN_BYTES ? data.size : SHOWN_BYTES;
	bool text = n > 0;

	if (put_json(out, data))
		return;
	for (size_t i = 0; i < n; i++)
		text = text && seam_text_is_printable(data.data[i]);
	if (text)
		fputs(" \"", out);
	for (size_t i = 0; i < n; i++) {
		if (text)
			fprintf(out, strchr("\"\\", data.data[i]) ? "\\%c" :
				"%c", data.data[i]);
		else
			fprintf(out, " %02x", data.data[i]);
	}
	if (text)
		fputc('"', out);
	if (data.size > n)
		fprintf(out, " ... %zu bytes", data.size);
}

static void put_event_name(FILE *out, const struct seam_slow_call *call,
			   const struct seam_slow_event *event)
{
	const char *name = event->kind == SEAM_XRAY_TYPED ?
		seam_event_name_find(call->event_names, event->type) : NULL;

	if (name)
		seam_text_put(out, name, SEAM_TEXT_TERMINAL);
	else if (event->kind == SEAM_XRAY_TYPED)
		fprintf(out, "typed event %u", event->type);
	else
		fputs("custom event", out);
	fputc(':', out);
}

static void put_events(FILE *out, const struct seam_calls_report *report,
		       const struct seam_slow_call *call, size_t from,
		       size_t to, int depth)
{
	size_t n = 0, n_hidden = 0;
	char offset[SEAM_NUMBER];

	for (size_t i = from; i < to; i++) {
		const struct seam_slow_event *e = &call->events.items[i];

		if (e->kind == SEAM_XRAY_ARGUMENT)
			continue;
		if (n++ >= SHOWN_EVENTS) {
			n_hidden++;
			continue;
		}
		fprintf(out, "%*s+%s ", MARGIN + indent(depth + 1), "",
			seam_format_weight(offset, e->offset_ns,
					   seam_calls_unit(report)));
		put_event_name(out, call, e);
		put_data(out, e->data);
		fputc('\n', out);
	}
	if (n_hidden)
		fprintf(out, "%*s... %zu more\n", MARGIN + indent(depth + 1),
			"", n_hidden);
}

static void put_node(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call, uint32_t id, int depth)
{
	const struct seam_call_path *node = &call->tree.nodes.items[id];
	uint32_t tail_of = id < call->tail_of.n ? call->tail_of.items[id] :
			   SEAM_NONE;
	char total[SEAM_NUMBER], self[SEAM_NUMBER];
	bool has_times = !seam_xray_has_entries_only(seam_xray_map_find(
				report->names, node->function));
	enum seam_unit unit = seam_calls_unit(report);
	size_t from, to = events_of(call, id, &from);

	fprintf(out, "%9s %9s %8" PRIu64 "  %*s",
		!has_times ? "-" :
		seam_format_weight(total, node->total_ns, unit),
		!has_times ? "-" :
		seam_format_weight(self, node->self_ns, unit), node->count,
		indent(depth), "");
	put_name(out, report, node->function);
	put_arguments(out, call, from, to);
	if (tail_of != SEAM_NONE) {
		fputs("  tail call of ", out);
		put_name(out, report, tail_of);
	}
	fputc('\n', out);
	put_events(out, report, call, from, to, depth);
}

/*
 * Mark the nodes that are large enough, or have an event in them.  Parents come
 * first in the tree's array.  Returns how many are not marked.
 */
static size_t mark_shown(bool *shown, const struct seam_calls_report *report,
			 const struct seam_slow_call *call)
{
	const struct seam_call_path *nodes = call->tree.nodes.items;
	size_t n = call->tree.nodes.n, n_hidden = 0;
	double least = n > 1 ? report->min_percent / 100 *
			       (double)nodes[1].total_ns : 0;

	for (size_t i = 0; i < call->events.n; i++)
		if (call->events.items[i].kind != SEAM_XRAY_ARGUMENT)
			shown[call->events.items[i].node] = true;
	for (size_t i = n; i-- > 1;) {
		shown[i] = shown[i] || (double)nodes[i].total_ns >= least;
		if (shown[i])
			shown[nodes[i].parent] = true;
		n_hidden += !shown[i];
	}
	return n_hidden;
}

static void put_nodes(FILE *out, const struct seam_calls_report *report,
		      const struct seam_slow_call *call,
		      const struct seam_tree *tree, bool *shown)
{
	size_t n_hidden = mark_shown(shown, report, call);
	char n[SEAM_NUMBER];

	for (uint32_t i = seam_tree_next(tree, 0, true); i != SEAM_NONE;
	     i = seam_tree_next(tree, i, shown[i]))
		if (shown[i])
			put_node(out, report, call, i,
				 (int)tree->items[i].depth - 1);
	if (n_hidden)
		fprintf(out, "%s not shown; --min-percent 0 shows all\n",
			seam_format_amount(n, n_hidden, "smaller node"));
}

static void put_tree(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call)
{
	struct seam_tree tree = { 0 };
	bool *shown = calloc(call->tree.nodes.n + 1, sizeof(*shown));

	if (shown && make_tree(&tree, &call->tree) && tree.n &&
	    !seam_tree_sort(&tree, longest_first, NULL))
		put_nodes(out, report, call, &tree, shown);
	free(tree.items);
	free(shown);
}

/* A final tail call, and what is beyond the limits. */
static void put_rest(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call)
{
	if (call->tail_callee != SEAM_NONE) {
		fputs("it ended in a tail call of ", out);
		put_name(out, report, call->tail_callee);
		fputc('\n', out);
	}
	if (call->tree.n_left_out)
		fprintf(out, "%" PRIu64 " more calls, of too many different "
			"stacks\n", call->tree.n_left_out);
	if (call->n_events > call->events.n)
		fprintf(out, "%" PRIu64 " more arguments and events\n",
			call->n_events - call->events.n);
}

/* The options that select the call in reports and flame graphs. */
static void put_selection(FILE *out, const struct seam_slow_call *call,
			  int32_t tid)
{
	uint64_t from = call->call.begin_ns, to = call->call.end_ns;

	fprintf(out, "--event=xray --thread=%" PRId32 " --time=@%" PRIu64
		".%09" PRIu64 ",@%" PRIu64 ".%09" PRIu64 "\n", tid,
		from / 1000000000, from % 1000000000, to / 1000000000,
		to % 1000000000);
}

/* "1.5 ms at 7.000000000 s in thread 8 of process 7" */
static void put_head(FILE *out, const struct seam_calls_report *report,
		     const struct seam_slow_call *call,
		     const struct seam_trace_stream *stream)
{
	uint64_t from = call->call.begin_ns;
	char length[SEAM_NUMBER];

	fprintf(out, "%s%s at %" PRIu64 ".%09" PRIu64 " s in thread %" PRId32
		" of process %" PRId32,
		seam_format_weight(length, call->call.end_ns - from,
				   seam_calls_unit(report)),
		call->no_begin || call->no_end ? " or more" : "",
		from / 1000000000, from % 1000000000, stream->tid,
		stream->pid);
	if (call->no_begin || call->no_end)
		fprintf(out, ": %s not in the log",
			!call->no_end ? "its beginning is" :
			!call->no_begin ? "its end is" :
			"its beginning and end are");
	fputc('\n', out);
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

		seam_view_style(view, SEAM_STYLE_BOLD);
		fputs(i ? "\n" : "", view->out);
		put_head(view->out, report, call, stream);
		seam_view_style(view, SEAM_STYLE_PLAIN);
		put_selection(view->out, call, stream->tid);
		fprintf(view->out, "%9s %9s %8s  function\n", "total", "self",
			"calls");
		put_tree(view->out, report, call);
		put_rest(view->out, report, call);
	}
}
