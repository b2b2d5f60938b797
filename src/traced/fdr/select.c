/* SPDX-License-Identifier: MIT */
/* select.c - which functions are recorded; see select.h */
#include "traced/fdr/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "traced/fdr/sleds/function_names.h"

/* All forms of a name that a GLOB can be of. */
struct forms {
	const char *raw, *plain, *with_parameters;
};

static struct forms forms_of(struct seam_arena *arena, const char *name)
{
	return (struct forms) {
		name, seam_demangle(arena, name),
		seam_demangle_with_parameters(arena, name),
	};
}

static bool is_match(const char *glob, const struct forms *forms)
{
	const char *name = strchr(glob, '(') ? forms->with_parameters :
					       forms->plain;

	return !fnmatch(glob, name, 0) ||
	       (name != forms->raw && !fnmatch(glob, forms->raw, 0));
}

bool seam_fdr_name_is_of(const char *glob, const char *name)
{
	struct seam_arena arena = { 0 };
	const struct forms forms = forms_of(&arena, name);
	bool is = is_match(glob, &forms);

	seam_arena_fini(&arena);
	return is;
}

static bool is_any_match(const struct seam_fdr_globs *globs,
			 const struct forms *forms)
{
	for (size_t i = 0; i < globs->list.n; i++)
		if (is_match(globs->list.items[i], forms))
			return true;
	return false;
}

/* ---- by options ---- */

enum { NAMED = 1, EXCEPTED = 2, TRIGGERS = 4 };

struct by_options {
	const struct seam_fdr_options *options;
	uint32_t first_id;
	uint8_t *marks;			/* of each function */
	void (*on_trigger)(unsigned int trigger, uint32_t id);
};

/* The first GLOBs of options->functions that are of a function. */
static uint64_t used;

bool seam_fdr_glob_is_used(size_t i)
{
	return i >= 64 || (used >> i & 1);
}

/* As is_any_match(); those that are not used so far are all tried. */
static bool is_named(const struct seam_fdr_globs *globs,
		     const struct forms *forms)
{
	bool is = false;

	for (size_t i = 0; i < globs->list.n; i++) {
		if ((is && seam_fdr_glob_is_used(i)) ||
		    !is_match(globs->list.items[i], forms))
			continue;
		is = true;
		if (i < 64)
			used |= UINT64_C(1) << i;
	}
	return is;
}

static int mark(void *context, uint32_t function, const char *name)
{
	const struct by_options *by = context;
	const struct seam_fdr_options *o = by->options;
	struct seam_arena arena = { 0 };
	const struct forms forms = forms_of(&arena, name);

	if (is_named(&o->functions, &forms))
		by->marks[function] |= NAMED;
	if (is_any_match(&o->except, &forms))
		by->marks[function] |= EXCEPTED;
	for (unsigned int i = 0; i < o->n_triggers; i++)
		if (o->triggers[i].function &&
		    is_match(o->triggers[i].function, &forms)) {
			by->marks[function] |= TRIGGERS;
			by->on_trigger(i, by->first_id + function);
		}
	seam_arena_fini(&arena);
	return 0;
}

bool seam_fdr_needs_names(const struct seam_fdr_options *options)
{
	for (unsigned int i = 0; i < options->n_triggers; i++)
		if (options->triggers[i].function)
			return true;
	return options->functions.list.n || options->except.list.n;
}

static bool is_wanted(const struct seam_fdr_options *options, uint8_t marks)
{
	bool has_name = !options->functions.list.n || (marks & NAMED);

	return (has_name && !(marks & EXCEPTED)) || (marks & TRIGGERS);
}

int seam_fdr_select(const struct seam_fdr_options *options,
		    const struct seam_fdr_image *image,
		    struct seam_fdr_list *list,
		    void (*on_trigger)(unsigned int trigger, uint32_t id))
{
	size_t n = list->functions.sleds.functions.n;
	struct by_options by = {
		.options = options, .first_id = list->functions.first_id,
		.on_trigger = on_trigger,
	};
	int r = 0;

	by.marks = calloc(n, sizeof(*by.marks));
	if (!by.marks)
		return -ENOMEM;
	if (seam_fdr_needs_names(options))
		r = seam_fdr_names_each(
			image, list->functions.sleds.functions.items, n, mark,
			&by);
	for (size_t i = 0; i < n; i++)
		list->functions.is_wanted[i] = r == 0 &&
					       is_wanted(options, by.marks[i]);
	free(by.marks);
	return r;
}

/* ---- one GLOB ---- */

struct by_glob {
	const char *glob;
	uint8_t *marks;
};

static int mark_glob(void *context, uint32_t function, const char *name)
{
	const struct by_glob *by = context;
	struct seam_arena arena = { 0 };
	const struct forms forms = forms_of(&arena, name);

	if (is_match(by->glob, &forms))
		by->marks[function] = NAMED;
	seam_arena_fini(&arena);
	return 0;
}

int64_t seam_fdr_select_glob(const char *glob, bool is_wanted,
			     const struct seam_fdr_image *image,
			     struct seam_fdr_list *list)
{
	size_t n = list->functions.sleds.functions.n;
	struct by_glob by = { glob, calloc(n, 1) };
	int64_t n_named = 0;
	int r;

	if (!by.marks)
		return -ENOMEM;
	/* all of them need no names */
	if (!strcmp(glob, "*")) {
		memset(by.marks, NAMED, n);
		r = 0;
	} else {
		r = seam_fdr_names_each(
			image, list->functions.sleds.functions.items, n,
			mark_glob, &by);
	}
	for (size_t i = 0; i < n && r == 0; i++)
		if (by.marks[i]) {
			list->functions.is_wanted[i] = is_wanted;
			n_named++;
		}
	free(by.marks);
	return r < 0 ? r : n_named;
}
