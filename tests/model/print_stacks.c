/* SPDX-License-Identifier: MIT */
/*
 * print_stacks.c - the stacks of a recording, as test_stack_dumps.py compares
 * them with those of perf
 *
 * print_stacks FILE [SYMFS [JIT]]: for each sample "TID TIME_NS", then a line
 * for each frame, leaf first: address (as struct seam_frame has it), the path
 * of its module, the layer, the function.
 */
#include <inttypes.h>
#include <stdio.h>

#include "model/load.h"
#include "model/profile/stack_ends.h"

static void print_frame(const struct seam_profile *p, uint32_t id)
{
	static const char *const layers[] = { "kernel", "native", "jit" };
	const struct seam_frame *f = &p->frames.items[id];
	const struct seam_function *function = &p->functions.items[f->function];
	const char *path = f->module ? seam_profile_path(p, f->module) : "";

	if (!f->is_inlined)
		printf(" %" PRIx64 "\t%s\t%s\t%s\n", f->addr, path,
		       function->layer < 3 ? layers[function->layer] : "?",
		       seam_profile_text(p, function->name));
}

static void print_stack(const struct seam_profile *p, uint32_t stack)
{
	for (; stack; stack = p->stacks.items[stack].parent)
		print_frame(p, p->stacks.items[stack].frame);
}

int main(int argc, char **argv)
{
	const struct seam_load_options options = {
		.symbols.symfs = (const char *const *)&argv[2],
		.symbols.n_symfs = argc > 2 && *argv[2],
		.jit = (const char *const *)&argv[3], .n_jit = argc > 3,
		.symbols.no_lines = true,
	};
	struct seam_stack_counts counts;
	struct seam_err err = { 0 };
	struct seam_profile p;

	seam_profile_init(&p);
	if (argc < 2 || seam_load(&p, argv[1], &options, &err)) {
		fprintf(stderr, "%s\n", err.n_causes ? err.cause[0] : "usage");
		return 1;
	}
	for (size_t i = 0; i < p.samples.n; i++) {
		const struct seam_thread *t =
			&p.threads.items[p.samples.thread[i]];

		printf("%" PRId32 " %" PRIu64 "\n", t->tid,
		       p.samples.time_ns[i]);
		print_stack(&p, p.samples.stack[i]);
	}
	if (seam_stack_ends_count(&p, NULL, &counts))
		return 1;
	for (int i = 0; i < SEAM_STACK_N_ENDS; i++)
		fprintf(stderr, "%s %" PRIu64 "\n",
			seam_stack_ends[i].key,
			counts.n_ended[i]);
	for (size_t i = 0; i < counts.n_modules; i++)
		fprintf(stderr, "module %s %s %" PRIu64 "\n",
			counts.modules[i].path,
			seam_stack_ends[counts.modules[i].end].key,
			counts.modules[i].n);
	seam_profile_fini(&p);
	return 0;
}
