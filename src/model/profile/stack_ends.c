/* SPDX-License-Identifier: MIT */
/* stack_ends.c - a pass over samples; see stack_ends.h */
#include "model/profile/stack_ends.h"

#include <errno.h>
#include <stdlib.h>

struct stack_ends {
	const struct seam_profile *profile;
	uint32_t *modules;	/* by stack: of its outermost frame; 0: none */
	bool *is_jvm;		/* by process */
	struct seam_stack_counts *counts;
};

/* Parents come before their children. */
static void find_modules(const struct stack_ends *e)
{
	const struct seam_profile *p = e->profile;

	for (size_t i = 1; i < p->stacks.n; i++) {
		uint32_t parent = p->stacks.items[i].parent;
		uint32_t frame = p->stacks.items[i].frame;

		e->modules[i] = parent ? e->modules[parent] :
				p->frames.items[frame].module;
	}
}

/* Stacks that end early in a JVM have a remedy of their own. */
static void find_jvms(const struct stack_ends *e)
{
	const struct seam_profile *p = e->profile;

	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct seam_mapping *m = &p->mappings.items[i];

		if (strcmp(basename(seam_profile_path(p, m->module)),
			   "libjvm.so"))
			continue;
		for (size_t k = 0; k < p->processes.n; k++)
			e->is_jvm[k] |= p->processes.items[k].pid == m->pid;
	}
}

static void count(const struct stack_ends *e, size_t i)
{
	const struct seam_profile *p = e->profile;
	enum seam_stack_end end = (enum seam_stack_end)p->samples.end[i];
	uint32_t module = e->modules[p->samples.stack[i]];
	uint8_t kind = p->modules.items[module].kind;

	seam_stack_counts_add(e->counts, end, module == 0 ? NULL :
			      kind == SEAM_MODULE_ANON ? "[jit]" :
			      seam_profile_path(p, module));
	if (end != SEAM_STACK_COMPLETE && end < SEAM_STACK_JOINED)
		e->counts->n_jvm += e->is_jvm[p->threads.items[
			p->samples.thread[i]].process];
}

int seam_stack_ends_count(const struct seam_profile *profile,
			  const struct seam_selected *selected,
			  struct seam_stack_counts *counts)
{
	struct stack_ends e = { .profile = profile, .counts = counts };
	int r = 0;

	*counts = profile->stack_counts;
	if (!profile->samples.end)
		return 0;
	e.modules = calloc(profile->stacks.n, sizeof(*e.modules));
	e.is_jvm = calloc(profile->processes.n + 1, sizeof(*e.is_jvm));
	if (e.modules && e.is_jvm) {
		find_modules(&e);
		find_jvms(&e);
		for (size_t i = 0; i < profile->samples.n; i++)
			if (!selected || seam_selected_has(selected, i))
				count(&e, i);
		seam_stack_counts_sort(counts);
	} else {
		r = -ENOMEM;
	}
	free(e.modules);
	free(e.is_jvm);
	return r;
}
