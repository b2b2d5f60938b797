/* SPDX-License-Identifier: MIT */
/* annotate.c - instructions with their samples; see annotate.h */
#include "report/annotate.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "report/summary.h"

enum {
	HOT_PERCENT = 10,	/* of the function: in the colour of warnings */
	WARM_PERCENT = 1,	/* bold */
	BYTES_SHOWN = 8,	/* of an instruction */
};

/* -- the objects of one name, and their places ------------------------- */

/*
 * A name has several objects when its function was compiled again, or loaded
 * by several processes, or when several files have such a function.  An object
 * of a JIT has several places when it was moved.  There is a line for each
 * object and place; none if that is only one line.
 */

/* @time_ns since the start of the recording. */
static double seconds(const struct seam_annotate_view *a, uint64_t time_ns)
{
	return ((double)time_ns - (double)a->report->profile->start_ns) / 1e9;
}

/* Only JSON includes places without samples. */
static size_t count_places(const struct seam_annotated *body)
{
	size_t n = 0;

	for (size_t i = 0; i < body->places.n; i++)
		n += body->places.items[i].samples > 0;
	return n;
}

/* The line of object @i or, where @place is not NULL, of that place of it. */
static void put_object(const struct seam_annotate_view *a,
		       const struct seam_view *view, size_t i,
		       const struct seam_annotated_place *place,
		       uint64_t of_weight)
{
	const struct seam_annotated *body = &a->annotation->bodies.items[i];
	uint64_t addr = place ? place->addr : body->addr;
	uint64_t since_ns = place ? place->since_ns : body->loaded_ns;
	char part[SEAM_NUMBER], samples[SEAM_NUMBER];

	fprintf(view->out, "%8s %8s %7zu  %16" PRIx64 " %8" PRIu64,
		seam_format_percent(part, place ? place->weight : body->weight,
				    of_weight),
		seam_format_count(samples, place ? place->samples :
				  body->samples), i + 1, addr, body->size);
	if (since_ns)
		fprintf(view->out, " %10.6f s", seconds(a, since_ns));
	else
		fprintf(view->out, " %12s", "-");
	if (place) {
		fprintf(view->out, "  process %" PRId32 "%s\n", place->pid,
			addr != body->addr ? ", moved" : "");
		return;
	}
	fputs("  ", view->out);
	seam_text_put(view->out, body->module, SEAM_TEXT_TERMINAL);
	fputc('\n', view->out);
}

static void put_objects(const struct seam_annotate_view *a,
			const struct seam_view *view)
{
	const struct seam_annotation *all = a->annotation;
	uint64_t of_weight = 0;
	size_t n_lines = 0;

	for (size_t i = 0; i < all->bodies.n; i++) {
		size_t n = count_places(&all->bodies.items[i]);

		n_lines += n ? n : 1;
		of_weight += all->bodies.items[i].weight;
	}
	if (n_lines < 2)
		return;
	fprintf(view->out, "\n%8s %8s %7s  %16s %8s %12s  %s\n", "percent",
		"samples", "object", "address", "size", "since", "of");
	for (size_t i = 0; i < all->bodies.n; i++) {
		const struct seam_annotated *body = &all->bodies.items[i];

		if (!count_places(body))
			put_object(a, view, i, NULL, of_weight);
		for (size_t k = 0; k < body->places.n; k++)
			if (body->places.items[k].samples)
				put_object(a, view, i, &body->places.items[k],
					   of_weight);
	}
}

/* -- text --------------------------------------------------------------- */

static void put_head(const struct seam_annotate_view *a,
		     const struct seam_view *view,
		     const struct seam_annotated *body)
{
	const struct seam_annotation *all = a->annotation;
	const struct seam_profile_event *event =
		&a->report->profile->events.items[all->event];
	char samples[SEAM_NUMBER], weight[SEAM_NUMBER], part[SEAM_NUMBER];

	fputc('\n', view->out);
	seam_view_style(view, SEAM_STYLE_LAYER + body->layer);
	if (a->symbol[0] != '[' && strcmp(a->symbol, body->symbol) != 0) {
		seam_text_put(view->out, a->symbol, SEAM_TEXT_TERMINAL);
		fputs(", inlined in ", view->out);
	}
	seam_text_put(view->out, body->symbol, SEAM_TEXT_TERMINAL);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	fputs("  ", view->out);
	seam_text_put(view->out, seam_file_name(body->module),
		      SEAM_TEXT_TERMINAL);
	if (all->bodies.n > 1)
		fprintf(view->out, "  object %zu of %zu",
			(size_t)(body - all->bodies.items) + 1,
			all->bodies.n);
	fprintf(view->out, "  %s",
		seam_format_amount(samples, body->samples,
				   seam_event_noun(event)));
	/* of gcc's functions with entries alone no time is known */
	if (body->weight || !event->is_measured)
		fprintf(view->out, ", %s, %s of all",
			seam_format_weight(weight, body->weight,
					   (enum seam_unit)event->unit),
			seam_format_percent(part, body->weight, all->weight));
	if (body->loaded_ns)
		fprintf(view->out, ", loaded at %.6f s",
			seconds(a, body->loaded_ns));
	fputc('\n', view->out);
	if (body->problem) {
		fputs(body->layer == SEAM_LAYER_GUEST ? "  no source: " :
		      "  no machine code: ", view->out);
		seam_text_put(view->out, body->problem, SEAM_TEXT_TERMINAL);
		fputc('\n', view->out);
	}
	if (body->n_outside && !body->problem)
		fprintf(view->out, "  %s sample%s in no %s\n",
			seam_format_count(samples, body->n_outside),
			body->n_outside == 1 ? " is" : "s are",
			body->is_source ? "line that is known" :
					  "instruction");
}

/* "triangle.bf:3", and the line itself where the file can be read. */
static void put_source(const struct seam_annotate_view *a,
		       const struct seam_view *view,
		       const struct seam_annotated_instruction *at)
{
	const char *text = a->source(a->context, at->file, at->line);

	seam_view_style(view, SEAM_STYLE_DIM);
	fprintf(view->out, "%17s  ", "");
	seam_text_put(view->out, at->file, SEAM_TEXT_TERMINAL);
	fprintf(view->out, ":%" PRIu32, at->line);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	if (text) {
		fputs("  ", view->out);
		seam_text_put(view->out, text, SEAM_TEXT_TERMINAL);
	}
	fputc('\n', view->out);
}

/* The address and the bytes of an instruction. */
static void put_machine_code(const struct seam_view *view,
			     const struct seam_annotated *body,
			     const struct seam_annotated_instruction *at)
{
	fprintf(view->out, "%8" PRIx64 ":  ", body->addr + at->offset);
	for (uint32_t i = 0; i < BYTES_SHOWN; i++) {
		if (i < at->size)
			fprintf(view->out, "%02x ",
				body->code[at->offset + i]);
		else
			fputs("   ", view->out);
	}
}

static void put_instruction(const struct seam_annotate_view *a,
			    const struct seam_view *view,
			    const struct seam_annotated *body,
			    const struct seam_annotated_instruction *at)
{
	const char *line = body->is_source && !a->no_source ?
			   a->source(a->context, at->file, at->line) : NULL;
	char part[SEAM_NUMBER], samples[SEAM_NUMBER];
	uint64_t percent = body->weight ? (uint64_t)((double)at->weight *
				100 / (double)body->weight) : 0;
	unsigned int style = at->samples == 0 ? SEAM_STYLE_PLAIN :
			     percent >= HOT_PERCENT ? SEAM_STYLE_WARN :
			     percent >= WARM_PERCENT ? SEAM_STYLE_BOLD :
			     SEAM_STYLE_PLAIN;

	if (style != SEAM_STYLE_PLAIN)
		seam_view_style(view, style);
	if (at->samples)
		fprintf(view->out, "%8s %8s  ",
			seam_format_percent(part, at->weight, body->weight),
			seam_format_count(samples, at->samples));
	else
		fprintf(view->out, "%17s  ", "");
	if (body->is_source)
		fprintf(view->out, "%8" PRIu32 ":  ", at->line);
	else
		put_machine_code(view, body, at);
	seam_text_put(view->out, !body->is_source ? at->text : line ? line : "",
		      SEAM_TEXT_TERMINAL);
	if (style != SEAM_STYLE_PLAIN)
		seam_view_style(view, SEAM_STYLE_PLAIN);
	fputc('\n', view->out);
}

static void put_body(const struct seam_annotate_view *a,
		     const struct seam_view *view,
		     const struct seam_annotated *body)
{
	const struct seam_annotated_instruction *before = NULL;

	put_head(a, view, body);
	if (body->instructions.n)
		fprintf(view->out, "%8s %8s  %8s\n", "percent", "samples",
			body->is_source ? "line" : "address");
	for (size_t i = 0; i < body->instructions.n; i++) {
		const struct seam_annotated_instruction *at =
			&body->instructions.items[i];

		if (a->only_hot && !at->samples)
			continue;
		if (!body->is_source && !a->no_source && at->file &&
		    (!before || before->line != at->line || !before->file ||
		     strcmp(before->file, at->file)))
			put_source(a, view, at);
		put_instruction(a, view, body, at);
		before = at;
	}
}

void seam_annotate_text(const struct seam_annotate_view *annotate,
			const struct seam_view *view)
{
	const struct seam_annotation *all = annotate->annotation;

	seam_summary_head(annotate->report, view);
	if (annotate->report->profile->events.n)
		seam_summary_event(annotate->report, view, all->event,
				   all->samples, all->weight);
	put_objects(annotate, view);
	for (size_t i = 0; i < all->bodies.n; i++)
		put_body(annotate, view, &all->bodies.items[i]);
	seam_summary_tail(annotate->report, view);
}

/* -- JSON --------------------------------------------------------------- */

static void put_json_instruction(struct seam_json *j,
				 const struct seam_annotated *body,
				 const struct seam_annotated_instruction *at)
{
	seam_json_open(j, NULL, '{');
	if (!body->is_source) {
		seam_json_u64(j, "offset", at->offset);
		seam_json_u64(j, "addr", body->addr + at->offset);
		seam_json_hex(j, "bytes", (struct seam_bytes) {
			body->code + at->offset, at->size });
		seam_json_string(j, "text", at->text);
	}
	seam_json_u64(j, "samples", at->samples);
	seam_json_u64(j, "weight", at->weight);
	if (at->file) {
		seam_json_string(j, "file", at->file);
		seam_json_u64(j, "line", at->line);
	}
	seam_json_close(j);
}

static void put_json_places(struct seam_json *j,
			    const struct seam_annotated *body)
{
	if (!body->places.n)
		return;
	seam_json_open(j, "places", '[');
	for (size_t i = 0; i < body->places.n; i++) {
		const struct seam_annotated_place *p = &body->places.items[i];

		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "addr", p->addr);
		seam_json_i64(j, "pid", p->pid);
		if (p->since_ns)
			seam_json_u64(j, "since_ns", p->since_ns);
		seam_json_u64(j, "samples", p->samples);
		seam_json_u64(j, "weight", p->weight);
		seam_json_close(j);
	}
	seam_json_close(j);
}

static void put_json_body(const struct seam_annotate_view *a,
			  struct seam_json *j,
			  const struct seam_annotated *body)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "symbol", body->symbol);
	seam_json_string(j, "layer",
			 seam_layer_names[body->layer]);
	seam_json_string(j, "module", body->module);
	seam_json_u64(j, "addr", body->addr);
	seam_json_u64(j, "size", body->size);
	if (body->loaded_ns)
		seam_json_u64(j, "loaded_ns", body->loaded_ns);
	seam_json_u64(j, "samples", body->samples);
	seam_json_u64(j, "weight", body->weight);
	if (body->n_outside)
		seam_json_u64(j, "samples_outside", body->n_outside);
	put_json_places(j, body);
	if (body->problem)
		seam_json_string(j, "problem", body->problem);
	seam_json_open(j, body->is_source ? "lines" : "instructions", '[');
	for (size_t i = 0; i < body->instructions.n; i++)
		if (!a->only_hot || body->instructions.items[i].samples)
			put_json_instruction(j, body,
					     &body->instructions.items[i]);
	seam_json_close(j);
	seam_json_close(j);
}

void seam_annotate_json(const struct seam_annotate_view *annotate, FILE *out)
{
	const struct seam_annotation *all = annotate->annotation;
	struct seam_json j = seam_json_make(out, false);

	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.annotate/1");
	seam_summary_json(annotate->report, &j, all->samples);
	seam_json_string(&j, "symbol", annotate->symbol);
	if (annotate->report->profile->events.n) {
		seam_json_open(&j, "event", '{');
		seam_summary_event_json(annotate->report, &j, all->event,
					all->samples, all->weight);
		seam_json_close(&j);
	}
	seam_json_open(&j, "functions", '[');
	for (size_t i = 0; i < all->bodies.n; i++)
		put_json_body(annotate, &j, &all->bodies.items[i]);
	seam_json_close(&j);
	seam_json_close(&j);
}
