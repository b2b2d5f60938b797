/* SPDX-License-Identifier: MIT */
/* call_paths.c - a sink that finds each call's node; see call_paths.h */
#include "model/xray/call_paths.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static uint32_t add_node(struct seam_call_paths *tree, uint32_t parent,
			 uint32_t function, uint64_t hash)
{
	struct seam_call_path *node = SEAM_ARRAY_PUSH(&tree->nodes);
	uint32_t id = (uint32_t)(tree->nodes.n - 1);

	if (!node || id == SEAM_NONE || seam_index_add(&tree->index, hash, id))
		return SEAM_NONE;
	*node = (struct seam_call_path) {
		.parent = parent, .function = function,
	};
	return id;
}

static int make_root(struct seam_call_paths *tree)
{
	return tree->nodes.n == 0 &&
	       add_node(tree, SEAM_NONE, SEAM_NONE,
			seam_hash_u64(UINT64_MAX)) == SEAM_NONE ? -ENOMEM : 0;
}

static uint64_t hash_of(uint32_t parent, uint32_t function)
{
	return seam_hash_u64((uint64_t)parent << 32 | function);
}

static uint32_t find_child(const struct seam_call_paths *tree, uint32_t parent,
			   uint32_t function)
{
	struct seam_index_probe probe =
		seam_index_probe(&tree->index, hash_of(parent, function));
	uint32_t id;

	while ((id = seam_index_next(&tree->index, &probe)) != SEAM_NONE) {
		const struct seam_call_path *node = &tree->nodes.items[id];

		if (node->parent == parent && node->function == function)
			break;
	}
	return id;
}

uint32_t seam_call_paths_child(struct seam_call_paths *tree, uint32_t parent,
			       uint32_t function)
{
	uint32_t id;

	if (make_root(tree))
		return SEAM_NONE;
	id = find_child(tree, parent, function);
	return id != SEAM_NONE ? id :
	       add_node(tree, parent, function, hash_of(parent, function));
}

#define LEFT_OUT SEAM_NONE	/* user of a call that is not in the tree */

struct paths_pass {
	struct seam_call_paths *tree;
	const struct seam_time_range *range;
};

static void begin_call(void *context, struct seam_calls *calls)
{
	struct seam_call *call = &calls->calls[calls->n - 1];
	struct paths_pass *pass = context;
	size_t n = pass->tree->nodes.n;

	if (call[-1].user == LEFT_OUT) {
		call->user = LEFT_OUT;
		return;
	}
	if (pass->tree->max && pass->tree->nodes.n > pass->tree->max) {
		call->user = find_child(pass->tree, call[-1].user,
					call->function);
		if (call->user == SEAM_NONE)
			call->user = LEFT_OUT;
		return;
	}
	call->user = seam_call_paths_child(pass->tree, call[-1].user,
					   call->function);
	if (call->user == SEAM_NONE) {
		calls->error = -ENOMEM;
		call->user = 0;
	} else if (pass->tree->nodes.n > n) {
		pass->tree->nodes.items[n].first_ns = call->begin_ns;
	}
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
	if (call->user == LEFT_OUT) {
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
