/* SPDX-License-Identifier: MIT */
/* annotate_objects.c - a table above the code; see annotate_objects.h */
#include "report/annotate_objects.h"

#include <inttypes.h>

#include "base/text.h"

/* Only JSON includes places without samples. */
static size_t count_places(const struct seam_annotated *body)
{
	size_t n = 0;

	for (size_t i = 0; i < body->places.n; i++)
		n += body->places.items[i].samples > 0;
	return n;
}

static size_t count_lines(const struct seam_annotation *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->bodies.n; i++) {
		size_t places = count_places(&all->bodies.items[i]);

		n += places ? places : 1;
	}
	return n;
}

static uint64_t weight_of_all(const struct seam_annotation *all)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < all->bodies.n; i++)
		weight += all->bodies.items[i].weight;
	return weight;
}

/* The columns that an object and one of its places have in common. */
struct object_line {
	size_t object;
	uint64_t addr, size, samples, weight, of_weight;
};

static void put_line(const struct seam_view *view,
		     const struct object_line *line)
{
	char part[SEAM_NUMBER], samples[SEAM_NUMBER];

	fprintf(view->out, "%8s %8s %7zu  %16" PRIx64 " %8" PRIu64,
		seam_format_percent(part, line->weight, line->of_weight),
		seam_format_count(samples, line->samples), line->object,
		line->addr, line->size);
}

static void put_since(const struct seam_annotate_view *a,
		      const struct seam_view *view, uint64_t since_ns)
{
	uint64_t start_ns = a->report->profile->start_ns;

	if (since_ns)
		fprintf(view->out, " %10.6f s",
			((double)since_ns - (double)start_ns) / 1e9);
	else
		fprintf(view->out, " %12s", "-");
}

static void put_places(const struct seam_annotate_view *a,
		       const struct seam_view *view,
		       const struct seam_annotated *body,
		       struct object_line line)
{
	for (size_t i = 0; i < body->places.n; i++) {
		const struct seam_annotated_place *p = &body->places.items[i];

		if (!p->samples)
			continue;
		line.addr = p->addr;
		line.samples = p->samples;
		line.weight = p->weight;
		put_line(view, &line);
		put_since(a, view, p->since_ns);
		fprintf(view->out, "  process %" PRId32 "%s\n", p->pid,
			p->addr != body->addr ? ", moved" : "");
	}
}

static void put_object(const struct seam_annotate_view *a,
		       const struct seam_view *view, size_t i,
		       uint64_t of_weight)
{
	const struct seam_annotated *body = &a->annotation->bodies.items[i];
	struct object_line line = {
		.object = i + 1, .addr = body->addr, .size = body->size,
		.samples = body->samples, .weight = body->weight,
		.of_weight = of_weight,
	};

	if (count_places(body)) {
		put_places(a, view, body, line);
		return;
	}
	put_line(view, &line);
	put_since(a, view, body->loaded_ns);
	fputs("  ", view->out);
	seam_text_put(view->out, body->module, SEAM_TEXT_TERMINAL);
	fputc('\n', view->out);
}

void seam_annotate_objects(const struct seam_annotate_view *a,
			   const struct seam_view *view)
{
	const struct seam_annotation *all = a->annotation;
	uint64_t of_weight = weight_of_all(all);

	if (count_lines(all) < 2)
		return;
	fprintf(view->out, "\n%8s %8s %7s  %16s %8s %12s  %s\n", "percent",
		"samples", "object", "address", "size", "since", "of");
	for (size_t i = 0; i < all->bodies.n; i++)
		put_object(a, view, i, of_weight);
}

void seam_annotate_places_json(struct seam_json *j,
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
