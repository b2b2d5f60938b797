/* SPDX-License-Identifier: MIT */
/* stack_hints.c - how far stacks reach; see perf_notes.h */
#include "model/perf/perf_notes.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	MIN_SAMPLES = 20,	/* of fewer, a share means nothing */
	MIN_CUT_PERCENT = 10,	/* of stacks, for a note */
	/* Source: kernel.perf_event_max_stack, the default of the kernel. */
	MAX_STACK = 127,
};

/* How far a stack reaches outward. */
struct reach {
	uint32_t outermost;	/* frame; SEAM_NONE: none of user code */
	uint32_t n_user;	/* frames of user code */
	uint32_t n;
	bool is_complete;	/* it reaches the program's entry */
};

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where processes and threads begin, and the stacks of Go's scheduler. */
static bool is_entry(const char *name)
{
	static const char *const names[] = {
		"_start", "__libc_start", "_dl_start", "clone", "__clone",
		"start_thread", "thread_start", "__start_thread",
		"_rt0_", "runtime.", "ret_from_fork",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (begins_with(name, names[i]))
			return true;
	return false;
}

/* Whether code of @module starts threads, so that it needs no name. */
static bool starts_threads(const char *module)
{
	static const char *const names[] = {
		"libc.so", "libc-", "libpthread", "ld-linux", "ld-musl",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (begins_with(basename(module), names[i]))
			return true;
	return false;
}

static bool is_complete(const struct seam_profile *profile,
			const struct reach *reach)
{
	const struct seam_function *f =
		seam_profile_function_of(profile, reach->outermost);

	return reach->n >= MAX_STACK ||
	       is_entry(seam_profile_text(profile, f->name)) ||
	       (reach->n_user > 1 &&
		starts_threads(seam_profile_path(profile, f->module)));
}

/* Of each stack; parents come before their children.  NULL: no memory. */
static struct reach *measure(const struct seam_profile *profile)
{
	struct reach *reach = calloc(profile->stacks.n, sizeof(*reach));

	if (!reach)
		return NULL;
	reach[0].outermost = SEAM_NONE;
	for (size_t i = 1; i < profile->stacks.n; i++) {
		const struct seam_stack *stack = &profile->stacks.items[i];
		bool is_user = seam_profile_leaf(profile, (uint32_t)i)->layer !=
			       SEAM_LAYER_KERNEL;

		reach[i] = reach[stack->parent];
		reach[i].n++;
		reach[i].n_user += is_user;
		if (is_user && reach[i].outermost == SEAM_NONE)
			reach[i].outermost = stack->frame;
		reach[i].is_complete = reach[i].outermost != SEAM_NONE &&
				       is_complete(profile, &reach[i]);
	}
	return reach;
}

static void count_cut(struct seam_profile *profile, const struct reach *reach,
		      bool is_overwrite)
{
	const struct seam_samples *s = &profile->samples;
	uint64_t n_user = 0, n_cut = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct reach *r = &reach[s->stack[i]];

		if (r->outermost == SEAM_NONE)
			continue;
		n_user++;
		n_cut += !r->is_complete;
	}
	if (n_user >= MIN_SAMPLES && n_cut * 100 >= n_user * MIN_CUT_PERCENT)
		seam_profile_note(profile, "%" PRIu64 " %% of stacks are cut: "
			"no frame pointers (%s)", n_cut * 100 / n_user,
			is_overwrite ? "needed with --overwrite and "
				       "--flight-recorder" :
				       "seam record --call-graph auto");
}

void seam_stack_hint(struct seam_profile *profile, bool has_chains,
		     bool is_overwrite)
{
	struct reach *reach;

	if (!profile->samples.n)
		return;
	if (!has_chains) {
		seam_profile_note(profile, "stacks were not recorded, so each "
				  "total is a self: 'seam record' without "
				  "--call-graph none records them");
		return;
	}
	reach = measure(profile);
	if (reach)
		count_cut(profile, reach, is_overwrite);
	free(reach);
}
