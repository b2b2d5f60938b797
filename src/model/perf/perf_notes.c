/* SPDX-License-Identifier: MIT */
/* perf_notes.c - counters to losses and notes; see perf_notes.h */
#include "model/perf/perf_notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static uint32_t put(struct seam_profile *p, const char *text)
{
	return seam_strings_put(&p->strings, text);
}

void seam_perf_note_damage(struct seam_profile *p,
			   const struct seam_perf_scan *scan)
{
	uint32_t data = put(p, "data");

	if (scan->n_damaged)
		seam_profile_lost(p, "record damaged", data, scan->n_damaged,
				  0);
	if (scan->n_unknown)
		seam_profile_lost(p, "event not described", data,
				  scan->n_unknown, 0);
	if (scan->error == -EBADMSG || scan->error == -ENODATA) {
		seam_profile_lost(p, scan->error == -ENODATA ?
				  "file cut" : "record damaged", data, 0,
				  scan->limit - scan->stop);
		seam_profile_note(p, "reading stopped %" PRIu64 " bytes before "
				  "the end of the data: %s",
				  scan->limit - scan->stop,
				  scan->why.n_causes ? scan->why.cause[0] : "");
	}
}

/* A ring that overwrites is never full: its losses are those of pauses. */
static void note_event(struct seam_profile *p,
		       const struct seam_profile_event *event,
		       uint64_t *n_paused)
{
	uint64_t paused = event->n_lost < *n_paused ? event->n_lost :
			  *n_paused;

	*n_paused -= paused;
	if (paused)
		seam_profile_lost(p, "paused for a snapshot", event->name,
				  paused, 0);
	if (event->n_lost > paused)
		seam_profile_lost(p, "ring full", event->name,
				  event->n_lost - paused, 0);
}

static void note_aux(const struct seam_sideband *sb)
{
	struct seam_profile *p = sb->profile;

	if (sb->aux.n_bytes)
		seam_profile_note(p, "there is a hardware trace of %" PRIu64
			" bytes, which 'perf script --itrace' decodes",
			sb->aux.n_bytes);
	if (sb->aux.n_truncated)
		seam_profile_note(p, "its AUX buffer was full %" PRIu64
			" times: the hardware trace has gaps",
			sb->aux.n_truncated);
	if (sb->aux.n_partial)
		seam_profile_note(p, "the PMU reports the hardware trace as "
			"partial in %" PRIu64 " places", sb->aux.n_partial);
	if (sb->aux.n_collision)
		seam_profile_note(p, "samples of the hardware trace collided "
			"%" PRIu64 " times", sb->aux.n_collision);
}

void seam_perf_note_losses(const struct seam_sideband *sb, uint64_t n_paused)
{
	struct seam_profile *p = sb->profile;
	uint64_t n_events = 0;

	for (size_t i = 0; i < p->events.n; i++) {
		n_events += p->events.items[i].n_lost;
		note_event(p, &p->events.items[i], &n_paused);
	}
	if (sb->n_lost_ring > n_events)
		seam_profile_lost(p, "ring full", put(p, "any event"),
				  sb->n_lost_ring - n_events, 0);
	if (sb->is_throttled)
		seam_profile_note(p, "sampling was throttled: there are fewer "
				  "samples than the frequency asked for");
	note_aux(sb);
	if (sb->data->n_missing_bytes)
		seam_profile_lost(p, "file cut", put(p, "data"), 0,
				  sb->data->n_missing_bytes);
	if (sb->data->is_cut)
		seam_profile_note(p, "the recording was not closed: its writer "
				  "was killed, or the file is cut");
}

/* Guest stacks that end early, if they are many: most of them why? */
static void note_incomplete(struct seam_profile *p)
{
	const uint64_t *n = p->guest_counts.n_guest;
	uint64_t whole = seam_guest_counts_total(&p->guest_counts) -
			 n[SEAM_GUEST_ABSENT];
	size_t most = SEAM_GUEST_CUT;

	for (size_t i = most; i < SEAM_GUEST_N_ENDS; i++)
		if (n[i] > n[most])
			most = i;
	if (whole && n[SEAM_GUEST_COMPLETE] < whole - whole / 10)
		seam_profile_note(p, "%.1f %% of the VM stacks are complete; "
				  "most others: %s",
				  100 * (double)n[SEAM_GUEST_COMPLETE] /
				  (double)whole,
				  seam_guest_end_text((enum seam_guest_end)
						      most));
}

void seam_perf_note_guest(struct seam_profile *p,
			  const struct seam_guest_symbols *symbols,
			  bool has_clock)
{
	const struct seam_guest_counts *counts = &p->guest_counts;

	if (counts->n_bad) {
		seam_profile_lost(p, "guest record damaged",
				  put(p, SEAM_GUEST_EVENT), 0, 0);
		seam_profile_note(p, "guest records that break their format: "
				  "%" PRIu64 "; samples with one show the "
				  "native stack alone", counts->n_bad);
	}
	if (symbols->n_nameless)
		seam_profile_note(p, "functions of VMs without names, whose "
				  "symbol records were lost: %" PRIu64,
				  symbols->n_nameless);
	if (seam_guest_counts_total(counts) && !has_clock)
		seam_profile_note(p, "no other clock was recorded: seam:guest "
				  "is an event of its own");
	note_incomplete(p);
}

/* -- what is missing ---------------------------------------------------- */

/* Files with a note of their own; the others share one. */
enum { MAX_NOTES = 8 };

struct missing_file {
	uint32_t path;		/* string */
	int why;		/* as seam_symbols_missing() says */
	uint64_t n_leaf;	/* samples in it */
	uint64_t n_callers;	/* samples with callers, but no leaf in it */
};

struct missing {
	const struct seam_resolver *resolver;
	struct seam_profile *profile;
	SEAM_ARRAY(struct missing_file) files;
	uint32_t *by_module;	/* of files, + 1; 0: not missing */
	uint32_t *by_stack;	/* the one nearest to its leaf, + 1 */
};

static const char *reason(int why)
{
	switch (why) {
	case -ESTALE:
		return "has changed since";
	case -EXDEV:
		return "has no build id and was recorded on another machine";
	case -ENOENT:
		return "is gone";
	}
	return NULL;
}

static bool collect(struct missing *m, bool is_here)
{
	const struct seam_resolver *r = m->resolver;

	for (size_t i = 0; i < r->files.n; i++) {
		const struct seam_profile_module *module =
			&m->profile->modules.items[i];
		uint32_t file = r->files.items[i];
		int why = module->kind == SEAM_MODULE_FILE && file ?
			  seam_symbols_missing(r->symbols, file - 1) : 0;

		if (!reason(why) || (why == -ENOENT && !is_here))
			continue;
		if (!SEAM_ARRAY_ADD(&m->files, (struct missing_file) {
			module->path, why, 0, 0 }))
			return false;
		m->by_module[i] = (uint32_t)m->files.n;
	}
	return true;
}

/* The missing file that the leaf of @stack is in, + 1, or 0. */
static uint32_t leaf_file(const struct missing *m, uint32_t stack)
{
	const struct seam_profile *p = m->profile;

	return stack == 0 || seam_profile_leaf(p, stack)->is_named ? 0 :
	       m->by_module[p->frames.items[p->stacks.items[stack].frame]
			    .module];
}

/* Parents come before their children. */
static void mark_stacks(struct missing *m)
{
	const struct seam_profile *p = m->profile;

	for (uint32_t i = 1; i < p->stacks.n; i++) {
		uint32_t file = leaf_file(m, i);

		m->by_stack[i] = file ? file :
				 m->by_stack[p->stacks.items[i].parent];
	}
}

static void count(struct missing *m)
{
	const struct seam_samples *s = &m->profile->samples;

	for (size_t i = 0; i < s->n; i++) {
		uint32_t file = m->by_stack[s->stack[i]];

		if (!file)
			continue;
		if (leaf_file(m, s->stack[i]))
			m->files.items[file - 1].n_leaf++;
		else
			m->files.items[file - 1].n_callers++;
	}
}

static int most_first(const void *a, const void *b)
{
	const struct missing_file *x = a, *y = b;

	return SEAM_COMPARE(y->n_leaf, x->n_leaf) ?:
	       SEAM_COMPARE(y->n_callers, x->n_callers) ?:
	       SEAM_COMPARE(x->path, y->path);
}

static void note(const struct missing *m, const struct missing_file *file)
{
	uint64_t n = file->n_leaf ? file->n_leaf : file->n_callers;

	if (n)
		seam_profile_note(m->profile, "%" PRIu64 " sample%s without "
			"names%s: %s %s", n, n == 1 ? "" : "s",
			file->n_leaf ? "" : " of callers",
			seam_profile_text(m->profile, file->path),
			reason(file->why));
}

static void note_all(struct missing *m)
{
	uint64_t n_rest = 0;

	SEAM_ARRAY_SORT(&m->files, most_first);
	for (size_t i = 0; i < m->files.n; i++) {
		if (i < MAX_NOTES)
			note(m, &m->files.items[i]);
		else
			n_rest += m->files.items[i].n_leaf;
	}
	if (n_rest)
		seam_profile_note(m->profile, "%" PRIu64 " samples without "
				  "names: %zu more files have changed since, "
				  "or are not here", n_rest,
				  m->files.n - MAX_NOTES);
}

void seam_missing_note(const struct seam_resolver *resolver, bool is_here)
{
	struct missing m = {
		.resolver = resolver, .profile = resolver->profile,
	};

	m.by_module = calloc(m.profile->modules.n, sizeof(*m.by_module));
	if (m.by_module && collect(&m, is_here) && m.files.n)
		m.by_stack = calloc(m.profile->stacks.n + 1,
				    sizeof(*m.by_stack));
	if (m.by_stack) {
		mark_stacks(&m);
		count(&m);
		note_all(&m);
	}
	free(m.by_stack);
	free(m.by_module);
	free(m.files.items);
}

/* -- hints about stacks ------------------------------------------------- */

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
