/* SPDX-License-Identifier: MIT */
/* missing.c - nameless samples by file; see perf_notes.h */
#include "model/perf/perf_notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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
