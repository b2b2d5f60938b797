/* SPDX-License-Identifier: MIT */
/*
 * folded.c - a call tree of shown names, walked in the order of its lines
 *
 * The tree is merged by the names as shown, so no two lines are equal, and it
 * is walked in the order of the lines: none is stored.  A node is sorted as
 * up to two items, its own line ("name COUNT") and the lines below it
 * ("name;..."), because lines of its siblings may sort between the two.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/profile/tree.h"

struct names {
	const struct seam_profile *profile;
	struct seam_strings shown;	/* as they are in a line */
	uint32_t *of_frame;		/* shown string, by frame */
	const char *root_prefix;	/* of groups; or NULL */
	SEAM_ARRAY(char) buf;
};

const char *seam_folded_suffix(enum seam_layer layer, bool is_inlined)
{
	switch (layer) {
	case SEAM_LAYER_KERNEL:
		return "_[k]";
	case SEAM_LAYER_JIT:
		return "_[j]";
	case SEAM_LAYER_GUEST:
		return "_[g]";
	default:
		return is_inlined ? "_[i]" : "";
	}
}

/* The id of @text, escaped, with suffix @end; SEAM_NONE without memory. */
static uint32_t show(struct names *n, const char *text, const char *end)
{
	size_t most = strlen(text) * 4 + sizeof("_[k]"), used;

	n->buf.n = 0;
	if (!SEAM_ARRAY_RESERVE(&n->buf, most))
		return SEAM_NONE;
	seam_text_copy(n->buf.items, most, text, SEAM_TEXT_FOLDED);
	used = strlen(n->buf.items);
	snprintf(n->buf.items + used, most - used, "%s", end);
	return seam_strings_put(&n->shown, n->buf.items);
}

static int name_frames(struct names *n)
{
	const struct seam_profile *profile = n->profile;
	uint32_t *of_key = calloc(2 * profile->functions.n + 1,
				  sizeof(*of_key));
	int rc = of_key ? 0 : -ENOMEM;

	n->of_frame = calloc(profile->frames.n + 1, sizeof(*n->of_frame));
	if (!n->of_frame)
		rc = -ENOMEM;
	for (size_t i = 0; i < profile->frames.n && !rc; i++) {
		const struct seam_frame *frame = &profile->frames.items[i];
		const struct seam_function *function =
			&profile->functions.items[frame->function];
		uint32_t *id = &of_key[seam_tree_key(frame)];

		if (!*id)
			*id = show(n, seam_profile_text(profile,
						function->name),
				   seam_folded_suffix(
					(enum seam_layer)function->layer,
					frame->is_inlined));
		if (*id == SEAM_NONE)
			rc = -ENOMEM;
		n->of_frame[i] = *id;
	}
	free(of_key);
	return rc;
}

static uint32_t show_group(void *context, const char *name)
{
	struct names *names = context;
	char text[SEAM_GROUP_NAME];

	if (!names->root_prefix)
		return show(names, name, "");
	snprintf(text, sizeof(text), "%s%s", names->root_prefix, name);
	return show(names, text, "");
}

/* One node's own line, or all lines below it. */
struct folded_stack {
	uint32_t node;
	bool is_line;
};

struct folded_writer {
	const struct seam_tree *tree;
	const struct seam_strings *names;
	bool by_weight;
	FILE *out;
	uint64_t n_bytes;		/* written */
	SEAM_ARRAY(struct folded_stack) todo;	/* a stack: the next is last */
	SEAM_ARRAY(const char *) path;
};

static uint64_t count_of(const struct folded_writer *w, uint32_t node)
{
	const struct seam_node *n = &w->tree->items[node];

	return w->by_weight ? n->self_weight : n->self_samples;
}

static const char *name_of(const struct folded_writer *w, uint32_t node)
{
	return seam_strings_get(w->names, w->tree->items[node].key);
}

/* What follows the name in an item's lines. */
static void tail_of(const struct folded_writer *w, struct folded_stack item,
		    char tail[32])
{
	if (item.is_line)
		snprintf(tail, 32, " %" PRIu64, count_of(w, item.node));
	else
		snprintf(tail, 32, ";");
}

/* As strcmp() of the lines, but descending: todo is popped from its end. */
static int compare_items(const void *x, const void *y, void *context)
{
	const struct folded_writer *w = context;
	const struct folded_stack *a = x, *b = y;
	const char *p = name_of(w, a->node), *q = name_of(w, b->node);
	char p_tail[32], q_tail[32];
	bool p_ended = false, q_ended = false;

	for (;; p++, q++) {
		if (!*p && !p_ended) {
			tail_of(w, *a, p_tail);
			p = p_tail;
			p_ended = true;
		}
		if (!*q && !q_ended) {
			tail_of(w, *b, q_tail);
			q = q_tail;
			q_ended = true;
		}
		if (*p != *q)
			return (unsigned char)*q - (unsigned char)*p;
		if (!*p)
			return 0;
	}
}

static bool push(struct folded_writer *w, uint32_t node, bool is_line)
{
	return SEAM_ARRAY_ADD(&w->todo,
			      (struct folded_stack) { node, is_line });
}

static int push_children(struct folded_writer *w, uint32_t parent)
{
	const struct seam_node *nodes = w->tree->items;
	size_t from = w->todo.n;

	for (uint32_t c = nodes[parent].first_child; c != SEAM_NONE;
	     c = nodes[c].next_sibling) {
		if (nodes[c].self_samples && !push(w, c, true))
			return -ENOMEM;
		if (nodes[c].first_child != SEAM_NONE && !push(w, c, false))
			return -ENOMEM;
	}
	if (w->todo.n > from)
		qsort_r(w->todo.items + from, w->todo.n - from,
			sizeof(*w->todo.items), compare_items, w);
	return 0;
}

static int put_line(struct folded_writer *w, uint32_t node)
{
	w->path.n = 0;
	for (uint32_t n = node; n != 0; n = w->tree->items[n].parent)
		if (!SEAM_ARRAY_ADD(&w->path, name_of(w, n)))
			return -ENOMEM;
	for (size_t i = w->path.n; i-- > 0;) {
		w->n_bytes += strlen(w->path.items[i]) + 1;
		fputs(w->path.items[i], w->out);
		if (i)
			fputc(';', w->out);
	}
	if (w->n_bytes > SEAM_FOLDED_MAX_BYTES)
		return -EFBIG;
	fprintf(w->out, " %" PRIu64 "\n", count_of(w, node));
	return 0;
}

static int put_lines(struct folded_writer *w)
{
	int rc = w->tree->n ? push_children(w, 0) : 0;

	/* samples without a stack, where no group is above them */
	if (!rc && w->tree->n && w->tree->items[0].self_samples)
		rc = put_line(w, 0);
	while (!rc && w->todo.n && !ferror(w->out)) {
		struct folded_stack item = w->todo.items[--w->todo.n];

		rc = item.is_line ? put_line(w, item.node) :
		     push_children(w, item.node);
	}
	free(w->todo.items);
	free(w->path.items);
	return rc;
}

int seam_write_folded(const struct seam_export *export, struct seam_err *err)
{
	const struct seam_selected *selected = export->selected;
	struct names names = {
		.profile = selected->profile,
		.root_prefix = export->root_prefix,
	};
	struct seam_tallies tallies;
	struct seam_tree tree = { 0 };
	struct folded_writer w = {
		.tree = &tree, .names = &names.shown,
		.by_weight = export->by_weight, .out = export->out,
	};
	int rc = seam_tallies_make(&tallies, selected, SEAM_NONE,
				   export->no_root ? SEAM_GROUP_NONE :
				   export->group);

	if (!rc)
		rc = name_frames(&names);
	if (!rc && !export->no_root)
		rc = seam_tallies_name(&tallies, selected->profile,
				       export->group, show_group, &names);
	if (!rc)
		rc = seam_tree_make(&tree, selected, &tallies, names.of_frame,
				    !export->no_root);
	if (!rc)
		rc = put_lines(&w);
	free(tree.items);
	free(tallies.items);
	free(names.of_frame);
	free(names.buf.items);
	seam_strings_fini(&names.shown);
	if (rc == -EFBIG)
		return seam_err_set(err, rc, "cannot convert: the lines are "
				    "more than 4 GiB; choose a part with "
				    "--time, --thread or --layer");
	return rc ? seam_err_no_memory(err) : 0;
}
