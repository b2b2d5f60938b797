/* SPDX-License-Identifier: MIT */
/* call_paths.c - a sink that finds each call's node; see call_paths.h */
#include "model/xray/call_paths.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static int make_root(struct seam_call_paths *tree)
{
	return tree->nodes.n == 0 &&
	       !SEAM_ARRAY_ADD(&tree->nodes, (struct seam_call_path) {
			.parent = SEAM_NONE, .function = SEAM_NONE }) ?
	       -ENOMEM : 0;
}

uint32_t seam_call_paths_child(struct seam_call_paths *tree, uint32_t parent,
			       uint32_t function)
{
	uint64_t hash = seam_hash_u64((uint64_t)parent << 32 | function);
	const struct seam_call_path *nodes = tree->nodes.items;
	uint32_t id = SEAM_INDEX_FIND(&tree->index, hash, i,
				      nodes[i].parent == parent &&
				      nodes[i].function == function);

	if (id != SEAM_NONE || parent == SEAM_NONE)
		return id;
	if (make_root(tree))
		return 0;
	if (tree->max && tree->nodes.n > tree->max)
		return SEAM_NONE;
	id = SEAM_INDEX_APPEND(&tree->index, hash, &tree->nodes,
			       (struct seam_call_path) {
				.parent = parent, .function = function });
	return id == SEAM_NONE ? 0 : id;
}

struct paths_pass {
	struct seam_call_paths *tree;
	const struct seam_time_range *range;
};

static void begin_call(void *context, struct seam_calls *calls)
{
	struct seam_call *call = &calls->calls[calls->n - 1];
	struct paths_pass *pass = context;
	size_t n = pass->tree->nodes.n;

	call->user = seam_call_paths_child(pass->tree, call[-1].user,
					   call->function);
	if (call->user == 0)
		calls->error = -ENOMEM;
	else if (pass->tree->nodes.n > n)
		pass->tree->nodes.items[n].first_ns = call->begin_ns;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct paths_pass *pass = context;
	struct seam_call_path *nodes = pass->tree->nodes.items, *node;
	uint64_t ns = seam_time_range_clip(pass->range, call->begin_ns, end_ns);

	(void)calls;
	if (call->user == 0)	/* memory ran out where it began */
		return;
	if (call->user == SEAM_NONE) {
		pass->tree->n_left_out++;
		return;
	}
	node = &nodes[call->user];
	node->count += seam_time_range_has(pass->range, call->begin_ns);
	node->total_ns += ns;
	/* each callee, which ended before, has subtracted its time */
	node->self_ns += ns;
	if (node->parent != 0)
		nodes[node->parent].self_ns -= ns;
}

static const struct seam_calls_sink sink = {
	.begin = begin_call, .end = end_call,
};

int seam_call_paths_add(struct seam_call_paths *tree,
			const struct seam_trace *trace, size_t stream,
			struct seam_calls *calls,
			struct seam_xray_problems *problems)
{
	struct paths_pass pass = { .tree = tree, .range = &trace->range };

	if (make_root(tree))
		return -ENOMEM;
	return seam_stream_calls(calls, trace, stream, &sink, &pass, problems);
}

void seam_call_paths_fini(struct seam_call_paths *tree)
{
	seam_index_fini(&tree->index);
	free(tree->nodes.items);
	*tree = (struct seam_call_paths) { 0 };
}
