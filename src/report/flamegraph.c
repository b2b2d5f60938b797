/* SPDX-License-Identifier: MIT */
/*
 * flamegraph.c - the static picture; the contract is in flamegraph.h
 *
 * Every frame is an SVG group: a title (tool tip and screen reader), a
 * rectangle, and the name cut to fit.  The script reads the same elements.
 * Names from outside are in text nodes only.
 */
#include "report/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/text.h"
#include "model/profile/tree.h"
#include "report/flamegraph_css.h"
#include "report/flamegraph_js.h"
#include "report/summary.h"
#include "report/view.h"

enum {
	WIDTH = 1200,		/* of the picture without its script */
	MARGIN = 12,
	TOP = 84,		/* of the first row */
	ROW = 19,
	NAME_BYTES = 1000,	/* longer names are cut */
	SHADES = 3,
	FOOT_ROW = 17,		/* a line of text below the frames */
};

/* Width of a character of 11.5 px, and of the narrowest frame with a name. */
static const double character_width = 6.95;
static const double least_text_width = 3 * 6.95 + 7;
#define GAP 0.7			/* between neighbours */
#define LEAST_PERCENT 0.01	/* of the whole: narrower is invisible */

/* Colours: a letter for CSS, a word for the legend. */
enum frame_look {
	LOOK_NATIVE,
	LOOK_INLINED,
	LOOK_KERNEL,
	LOOK_JIT,
	LOOK_GUEST,
	LOOK_UNKNOWN,
	LOOK_GROUP,
	LOOK_LESS,		/* this and the next two: of changes */
	LOOK_SAME,
	LOOK_MORE,
	N_LOOKS,
};

static const struct {
	char letter;
	const char *word;
} looks[N_LOOKS] = {
	[LOOK_NATIVE] = { 'n', "native" },
	[LOOK_INLINED] = { 'i', "inlined" },
	[LOOK_KERNEL] = { 'k', "kernel" },
	[LOOK_JIT] = { 'j', "jit" },
	[LOOK_GUEST] = { 'g', "guest" },
	[LOOK_UNKNOWN] = { 'u', "unknown" },
	[LOOK_GROUP] = { 'a', "thread" },
	[LOOK_LESS] = { 'l', "less than A" },
	[LOOK_SAME] = { 'z', "no change, or noise" },
	[LOOK_MORE] = { 'm', "more than A" },
};

/* The callees of a frame that are not drawn, together. */
struct rest {
	uint64_t x;		/* as in struct picture */
	uint64_t samples, weight;
	size_t n;
};

struct picture {
	const struct seam_flamegraph *graph;
	const struct seam_profile *profile;
	FILE *out;
	struct seam_tree tree;
	struct seam_strings groups;	/* names: the keys of group nodes */
	uint64_t *x;		/* by node: its left edge, in weight */
	bool by_weight;
	enum seam_unit unit;
	bool *drawn;		/* by node; implies that of its caller */
	size_t n_small;		/* frames not drawn */
	bool has_no_lists;	/* of these */
	uint32_t *name;		/* by node not drawn: its id in names */
	struct seam_strings names;
	struct rest *rest;	/* by node: its callees not drawn */
	uint32_t rows;
	bool used[N_LOOKS];
};

static uint64_t size_of(const struct picture *p, const struct seam_node *node)
{
	return p->by_weight ? node->weight : node->samples;
}

static const struct seam_function *function_of(const struct picture *p,
					       const struct seam_node *node)
{
	return &p->profile->functions.items[node->key >> 1];
}

static const char *name_of(const struct picture *p,
			   const struct seam_node *node)
{
	if (node->depth == 0)
		return "all";
	return node->is_group ? seam_strings_get(&p->groups, node->key) :
	       seam_profile_text(p->profile, function_of(p, node)->name);
}

static struct seam_flamegraph_change
change_of(const struct picture *p, const struct seam_node *node)
{
	const struct seam_flamegraph_changes *changes = p->graph->changes;

	return changes->change(changes->context,
			       (uint32_t)(node - p->tree.items));
}

static enum frame_look look_of(const struct picture *p,
			       const struct seam_node *node)
{
	if (p->graph->changes)
		return (enum frame_look)(LOOK_SAME + change_of(p, node).sign);
	if (node->is_group)
		return LOOK_GROUP;
	/* nothing was mapped there; else the module would be in the name */
	if (strcmp(name_of(p, node), "[unknown]") == 0)
		return LOOK_UNKNOWN;
	switch ((enum seam_layer)function_of(p, node)->layer) {
	case SEAM_LAYER_KERNEL:
		return LOOK_KERNEL;
	case SEAM_LAYER_JIT:
		return LOOK_JIT;
	case SEAM_LAYER_GUEST:
		return LOOK_GUEST;
	default:
		return node->key & 1 ? LOOK_INLINED : LOOK_NATIVE;
	}
}

static int larger_first(const struct seam_node *a, const struct seam_node *b,
			void *context)
{
	const struct picture *p = context;

	return SEAM_COMPARE(size_of(p, b), size_of(p, a)) ?:
	       strcmp(name_of(p, a), name_of(p, b)) ?:
	       SEAM_COMPARE(a->key, b->key);
}

static int wider_first(const void *a, const void *b, void *context)
{
	const struct picture *p = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	return SEAM_COMPARE(size_of(p, &p->tree.items[k]),
			    size_of(p, &p->tree.items[i])) ?:
	       SEAM_COMPARE(i, k);
}

/*
 * Only the root is drawn even without a width.  No callee is wider than its
 * caller or has a smaller id, so the widest frames are a tree.
 */
static int choose_frames(struct picture *p)
{
	double percent = p->graph->min_percent;
	double least = (percent < 0 ? LEAST_PERCENT : percent) / 100 *
		       (double)size_of(p, &p->tree.items[0]);
	uint32_t *ids;

	p->drawn = calloc(p->tree.n, sizeof(*p->drawn));
	if (!p->drawn)
		return -ENOMEM;
	for (size_t i = 0; i < p->tree.n; i++) {
		uint64_t size = size_of(p, &p->tree.items[i]);

		p->drawn[i] = i == 0 || (size && (double)size >= least);
	}
	if (percent >= 0 || p->tree.n <= SEAM_FLAMEGRAPH_FRAMES)
		return 0;
	ids = calloc(p->tree.n, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->tree.n; i++)
		ids[i] = i;
	qsort_r(ids, p->tree.n, sizeof(*ids), wider_first, p);
	for (size_t i = SEAM_FLAMEGRAPH_FRAMES; i < p->tree.n; i++)
		p->drawn[ids[i]] = false;
	free(ids);
	return 0;
}

/* From the left: drawn callees of node @id, the other callees, self. */
static void place_callees(struct picture *p, uint32_t id)
{
	const struct seam_node *nodes = p->tree.items;
	struct rest *rest = &p->rest[id];
	uint64_t x = p->x[id];

	for (uint32_t c = nodes[id].first_child; c != SEAM_NONE;
	     c = nodes[c].next_sibling) {
		if (p->drawn[c]) {
			p->x[c] = x;
			x += size_of(p, &nodes[c]);
			continue;
		}
		rest->samples += nodes[c].samples;
		rest->weight += nodes[c].weight;
		rest->n++;
	}
	rest->x = x;
}

static uint64_t size_of_rest(const struct picture *p, uint32_t id)
{
	return p->by_weight ? p->rest[id].weight : p->rest[id].samples;
}

/* Positions of frames, the number of rows, and colours for the legend. */
static int lay_out(struct picture *p)
{
	const struct seam_node *nodes = p->tree.items;

	p->x = calloc(p->tree.n, sizeof(*p->x));
	p->rest = calloc(p->tree.n, sizeof(*p->rest));
	p->name = calloc(p->tree.n, sizeof(*p->name));
	if (!p->x || !p->rest || !p->name)
		return -ENOMEM;
	for (uint32_t i = 0; i != SEAM_NONE;
	     i = seam_tree_next(&p->tree, i, true)) {
		uint32_t row = nodes[i].depth;

		if (!p->drawn[i]) {
			p->n_small++;
			p->name[i] = seam_strings_put(&p->names,
						      name_of(p, &nodes[i]));
			if (p->name[i] == SEAM_NONE)
				return -ENOMEM;
			continue;
		}
		place_callees(p, i);
		row += size_of_rest(p, i) != 0;
		if (row >= p->rows)
			p->rows = row + 1;
		p->used[look_of(p, &nodes[i])] = true;
	}
	return 0;
}

/* At most @size bytes of @name, whole characters, in XML. */
static void put_name(FILE *out, const char *name, size_t size)
{
	char part[NAME_BYTES + 1];

	if (strlen(name) <= size) {
		seam_text_put(out, name, SEAM_TEXT_XML);
		return;
	}
	while (size && ((unsigned char)name[size] & 0xc0) == 0x80)
		size--;
	memcpy(part, name, size);
	part[size] = '\0';
	seam_text_put(out, part, SEAM_TEXT_XML);
	fputs("…", out);
}

/* The bytes of the first @n characters of @name. */
static size_t bytes_of(const char *name, size_t n)
{
	size_t bytes = 0;

	for (; name[bytes] && n; n--)
		do {
			bytes++;
		} while (((unsigned char)name[bytes] & 0xc0) == 0x80);
	return bytes;
}

/* The first @n characters of @name, the last an ellipsis if it is longer. */
static void put_label(FILE *out, const char *name, size_t n)
{
	size_t bytes = bytes_of(name, n);

	if (name[bytes])
		bytes = bytes_of(name, n ? n - 1 : 0);
	put_name(out, name, !name[bytes] || bytes < NAME_BYTES ? bytes :
		 NAME_BYTES);
}

static void put_amount(const struct picture *p, const char *what,
		       uint64_t samples, uint64_t weight)
{
	const struct seam_node *root = &p->tree.items[0];
	char n[SEAM_NUMBER], share[SEAM_NUMBER], w[SEAM_NUMBER];

	fprintf(p->out, "%s%s, %s", what,
		seam_format_amount(n, samples,
				   seam_selected_noun(p->graph->selected)),
		seam_format_percent(share, p->by_weight ? weight : samples,
				    size_of(p, root)));
	if (p->by_weight)
		fprintf(p->out, ", %s", seam_format_weight(w, weight, p->unit));
}

/* Lines: name; layer and module; total; self.  The script splits them. */
static void put_title(const struct picture *p, const struct seam_node *node)
{
	fputs("<title>", p->out);
	put_name(p->out, name_of(p, node), NAME_BYTES);
	fputc('\n', p->out);
	if (!node->is_group) {
		const struct seam_function *f = function_of(p, node);

		fprintf(p->out, "%s%s · ",
			seam_layer_names[f->layer],
			node->key & 1 ? ", inlined" : "");
		put_name(p->out, seam_profile_path(p->profile, f->module),
			 NAME_BYTES);
		fputc('\n', p->out);
	}
	if (p->graph->changes) {
		p->graph->changes->put_details(p->graph->changes->context,
			(uint32_t)(node - p->tree.items), p->out);
		fputs("</title>", p->out);
		return;
	}
	put_amount(p, "total ", node->samples, node->weight);
	fputc('\n', p->out);
	put_amount(p, "self ", node->self_samples, node->self_weight);
	fputs("</title>", p->out);
}

/* Of the picture without its script: @size in the weight of all. */
static double pixels(const struct picture *p, uint64_t size)
{
	return (WIDTH - 2 * MARGIN) * (double)size /
	       (double)size_of(p, &p->tree.items[0]);
}

static uint32_t row_y(const struct picture *p, uint32_t depth)
{
	return TOP + ROW * (p->graph->inverted ? depth : p->rows - 1 - depth);
}

static void put_rect(const struct picture *p, double x, uint32_t y,
		     double width)
{
	fprintf(p->out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" "
		"height=\"%d\" rx=\"2\"/>", x, y,
		width - GAP > 0.3 ? width - GAP : 0.3, ROW - 1);
}

/*
 * The callees of @id that are not drawn, and what they called, depth-first:
 * "NAME:WEIGHT,NAME,NAME^2,NAME".  A comma goes down to a callee, "^n," up by
 * n first.  Numbers are hexadecimal; without a weight, the caller's counts, or
 * @weight for the first level.
 */
static void put_list(const struct picture *p, uint32_t id, uint64_t weight)
{
	const struct seam_node *nodes = p->tree.items;
	uint32_t depth = nodes[id].depth;

	fputs(" data-list=\"", p->out);
	for (uint32_t i = nodes[id].first_child;
	     i != SEAM_NONE && nodes[i].depth > nodes[id].depth;
	     i = seam_tree_next(&p->tree, i, !p->drawn[i])) {
		uint64_t size = size_of(p, &nodes[i]);

		if (p->drawn[i])
			continue;
		if (depth >= nodes[i].depth)
			fprintf(p->out, "^%x", depth - nodes[i].depth + 1);
		fprintf(p->out, ",%x", p->name[i]);
		if (size != (nodes[i].parent == id ? weight :
			     size_of(p, &nodes[nodes[i].parent])))
			fprintf(p->out, ":%" PRIx64, size);
		depth = nodes[i].depth;
	}
	fputc('"', p->out);
}

/* The names to which lists refer, one a line. */
static void put_names(const struct picture *p)
{
	fprintf(p->out, "<metadata id=\"names\" data-cut=\"%d\">",
		p->has_no_lists);
	for (uint32_t i = 1; i < p->names.texts.n && !p->has_no_lists; i++) {
		fputc('\n', p->out);
		put_name(p->out, seam_strings_get(&p->names, i), NAME_BYTES);
	}
	fputs("</metadata>\n", p->out);
}

/* One dashed frame in place of callees that are too narrow. */
static void put_rest(const struct picture *p, uint32_t id)
{
	const struct rest *rest = &p->rest[id];
	uint64_t size = size_of_rest(p, id);
	char n[SEAM_NUMBER];

	if (!size)
		return;
	fprintf(p->out, "<g class=\"rest\" data-w=\"%" PRIu64 "\"", size);
	if (!p->has_no_lists)
		put_list(p, id, size);
	fprintf(p->out, "><title>%s, not drawn\n",
		seam_format_amount(n, rest->n, "narrow frame"));
	put_amount(p, "total ", rest->samples, rest->weight);
	fputs("</title>", p->out);
	put_rect(p, MARGIN + pixels(p, rest->x),
		 row_y(p, p->tree.items[id].depth + 1), pixels(p, size));
	fputs("</g>\n", p->out);
}

/* The number in a frame's class: of neighbours, or of the size of a change. */
static unsigned int shade_of(const struct picture *p,
			     const struct seam_node *node, enum frame_look look)
{
	const char *name = name_of(p, node);

	if (look == LOOK_LESS || look == LOOK_MORE)
		return change_of(p, node).level;
	if (look == LOOK_GROUP)
		return node->depth % 2;
	return (unsigned int)(seam_hash_stable(name, strlen(name), 0) % SHADES);
}

/* A mark is before the name: "+5% main". */
static void put_text(const struct picture *p, const struct seam_node *node,
		     double x, uint32_t y, double width)
{
	const char *name = name_of(p, node);
	char marked[NAME_BYTES];

	if (p->graph->changes) {
		struct seam_flamegraph_change change = change_of(p, node);

		snprintf(marked, sizeof(marked), "%s%s%s", change.mark,
			 change.mark[0] ? " " : "", name);
		name = marked;
	}
	fprintf(p->out, "<text x=\"%.2f\" y=\"%u\">", x + 4, y + ROW - 6);
	put_label(p->out, name, (size_t)((width - 7) / character_width));
	fputs("</text>", p->out);
}

static void put_frame(const struct picture *p, uint32_t id)
{
	const struct seam_node *node = &p->tree.items[id];
	double x = MARGIN + (id ? pixels(p, p->x[id]) : 0);
	double width = id ? pixels(p, size_of(p, node)) : WIDTH - 2 * MARGIN;
	uint32_t y = row_y(p, node->depth);
	enum frame_look look = look_of(p, node);

	fprintf(p->out, "<g class=\"f %c%u\" role=\"treeitem\" "
		"aria-level=\"%u\" data-x=\"%" PRIu64 "\" data-w=\"%" PRIu64
		"\"", looks[look].letter, shade_of(p, node, look),
		node->depth + 1, p->x[id], size_of(p, node));
	if (p->graph->changes)
		fprintf(p->out, " data-mark=\"%s\"", change_of(p, node).mark);
	fputc('>', p->out);
	put_title(p, node);
	put_rect(p, x, y, width);
	if (width >= least_text_width)
		put_text(p, node, x, y, width);
	fputs("</g>\n", p->out);
	put_rest(p, id);
}

static void put_legend(const struct picture *p)
{
	int x = 0;

	fprintf(p->out, "<g aria-hidden=\"true\">");
	for (int i = 0; i < N_LOOKS; i++) {
		if (!p->used[i])
			continue;
		fprintf(p->out, "<rect class=\"%c%c\" x=\"%d\" y=\"56\" "
			"width=\"12\" height=\"12\" rx=\"3\"/>"
			"<text class=\"key\" x=\"%d\" y=\"66\">%s</text>",
			looks[i].letter, i == LOOK_LESS || i == LOOK_MORE ?
			'1' : '0', MARGIN + x, MARGIN + x + 17, looks[i].word);
		x += 17 + 18 + 7 * (int)strlen(looks[i].word);
	}
	fputs("</g>\n", p->out);
}

static void put_subtitle(const struct picture *p)
{
	const struct seam_node *root = &p->tree.items[0];
	const struct seam_profile *profile = p->profile;
	char line[256], n[SEAM_NUMBER];
	const struct seam_selected *selected = p->graph->selected;
	uint32_t event = seam_selected_event(selected);
	size_t n_names = 0;

	fprintf(p->out, "<text class=\"sub%s\" x=\"%d\" y=\"45\">",
		profile->losses.n ? " lossy" : "", MARGIN);
	if (p->graph->changes) {
		put_name(p->out, p->graph->changes->subtitle, NAME_BYTES);
		fputs("</text>\n", p->out);
		return;
	}
	for (uint32_t i = 0; i < profile->events.n; i++)
		if (i == event || (event == SEAM_NONE && selected->events &&
				   selected->events[i])) {
			fputs(n_names++ ? " + " : "", p->out);
			put_name(p->out, seam_profile_text(profile,
					profile->events.items[i].name), 60);
		}
	fputs(n_names ? ": " : "", p->out);
	fputs(seam_summary_line(p->graph->selected, root->samples, line,
				sizeof(line)), p->out);
	if (p->n_small)
		fprintf(p->out, "; %s not drawn",
			seam_format_amount(n, p->n_small, "narrow frame"));
	fputs("</text>\n", p->out);
}

static void put_head(const struct picture *p, uint32_t height)
{
	fprintf(p->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%u\" viewBox=\"0 0 %d %u\">\n<title>", WIDTH,
		height, WIDTH, height);
	put_name(p->out, p->graph->title, NAME_BYTES);
	fprintf(p->out, "</title>\n<style>\n%s</style>\n"
		"<rect id=\"page\" class=\"page\" width=\"100%%\" "
		"height=\"%u\"/>\n", flamegraph_css, height);
	fprintf(p->out, "<g id=\"head\"><rect class=\"band\" width=\"100%%\" "
		"height=\"%d\"/>\n<text class=\"title\" x=\"%d\" y=\"26\">",
		TOP - 8, MARGIN);
	put_label(p->out, p->graph->title, 110);
	fputs("</text>\n", p->out);
	put_subtitle(p);
	put_legend(p);
	fprintf(p->out, "<path class=\"rule\" d=\"M0 %d.5H10000\"/></g>\n",
		TOP - 9);
}

/* Text below the frames, which the script moves. */
static void put_foot(const struct picture *p, uint32_t y)
{
	const struct seam_flamegraph_changes *changes = p->graph->changes;

	if (!changes || !changes->n_foot)
		return;
	fprintf(p->out, "<g id=\"foot\" data-height=\"%zu\" "
		"transform=\"translate(0 %u)\">", changes->n_foot * FOOT_ROW,
		y);
	for (size_t i = 0; i < changes->n_foot; i++) {
		fprintf(p->out, "<text class=\"key\" x=\"%d\" y=\"%zu\">",
			MARGIN, (i + 1) * FOOT_ROW);
		put_label(p->out, changes->foot[i], 160);
		fputs("</text>", p->out);
	}
	fputs("</g>\n", p->out);
}

static void put_picture(const struct picture *p)
{
	uint32_t foot_y = TOP + p->rows * ROW;
	uint32_t height = foot_y + MARGIN + (!p->graph->changes ? 0 : FOOT_ROW *
			  (uint32_t)p->graph->changes->n_foot);

	put_head(p, height);
	fprintf(p->out, "<g id=\"frames\" role=\"tree\" aria-label=\"Call "
		"tree\" data-margin=\"%d\" data-top=\"%d\" data-row=\"%d\" "
		"data-inverted=\"%d\">\n", MARGIN, TOP, ROW,
		p->graph->inverted);
	for (uint32_t i = 0; i != SEAM_NONE;) {
		if (p->drawn[i])
			put_frame(p, i);
		i = seam_tree_next(&p->tree, i, p->drawn[i]);
	}
	fputs("</g>\n", p->out);
	put_foot(p, foot_y);
	put_names(p);
	fprintf(p->out, "<script><![CDATA[\n%s]]></script>\n</svg>\n",
		flamegraph_js);
}

static ssize_t count_bytes(void *context, const char *data, size_t size)
{
	(void)data;
	*(uint64_t *)context += size;
	return (ssize_t)size;
}

/* The size of the page.  0 or -ENOMEM. */
static int measure_page(const struct picture *p, uint64_t *n_bytes)
{
	static const cookie_io_functions_t counter = { .write = count_bytes };
	struct picture again = *p;

	*n_bytes = 0;
	again.out = fopencookie(n_bytes, "w", counter);
	if (!again.out)
		return -ENOMEM;
	put_picture(&again);
	fclose(again.out);
	return 0;
}

static uint32_t put_group(void *groups, const char *name)
{
	return seam_strings_put(groups, name);
}

static int copy_tree(struct picture *p)
{
	const struct seam_flamegraph_changes *changes = p->graph->changes;

	p->by_weight = true;
	p->unit = changes->unit;
	return SEAM_ARRAY_EXTEND(&p->tree, changes->tree->items,
				 changes->tree->n) ?
	       seam_tree_sort(&p->tree, larger_first, p) : -ENOMEM;
}

static int make_tree(struct picture *p)
{
	const struct seam_selected *selected = p->graph->selected;
	struct seam_tallies tallies;
	uint32_t unit = seam_selected_unit(selected);
	int rc = seam_tallies_make(&tallies, selected, SEAM_NONE,
				   p->graph->group);

	if (rc)
		return rc;
	p->by_weight = unit != SEAM_NONE && tallies.weight != 0;
	if (p->by_weight)
		p->unit = (enum seam_unit)unit;
	rc = seam_tallies_name(&tallies, p->profile, p->graph->group, put_group,
			       &p->groups);
	if (!rc)
		rc = seam_tree_make(&p->tree, selected, &tallies, NULL,
				    p->graph->group != SEAM_GROUP_NONE);
	free(tallies.items);
	return rc ? rc : seam_tree_sort(&p->tree, larger_first, p);
}

int seam_flamegraph_write(const struct seam_flamegraph *graph, FILE *out)
{
	struct picture p = {
		.graph = graph, .profile = graph->selected->profile,
		.out = out,
	};
	uint64_t n_bytes;
	int rc = graph->changes ? copy_tree(&p) : make_tree(&p);

	if (!rc)
		rc = choose_frames(&p);
	if (!rc)
		rc = lay_out(&p);
	if (!rc)
		rc = measure_page(&p, &n_bytes);
	if (!rc && n_bytes > SEAM_FLAMEGRAPH_MAX_BYTES) {
		p.has_no_lists = true;
		rc = measure_page(&p, &n_bytes);
	}
	if (!rc && n_bytes > SEAM_FLAMEGRAPH_MAX_BYTES)
		rc = -EFBIG;
	if (!rc)
		put_picture(&p);
	free(p.rest);
	seam_strings_fini(&p.groups);
	seam_strings_fini(&p.names);
	free(p.name);
	free(p.x);
	free(p.drawn);
	free(p.tree.items);
	return rc;
}
