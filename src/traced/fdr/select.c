/* SPDX-License-Identifier: MIT */
/*
 * select.c - which functions are recorded
 *
 * By GLOBs of names: of the symbol table, and of the source (base/demangle):
 * without the parameters of a C++ function, or with them where the GLOB has a
 * parenthesis.  Without GLOBs and triggers no names are read.
 */
#include <seam/fdr.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/trampolines.h"
#include "traced/fdr/sleds/function_names.h"

static struct seam_fdr_process *const process = &seam_fdr_process;

/* ---- names ---- */

/* All forms of a name that a GLOB can match. */
struct forms {
	const char *raw, *plain, *with_parameters;
};

static bool is_match(const char *glob, const struct forms *forms)
{
	const char *name = strchr(glob, '(') ? forms->with_parameters :
					       forms->plain;

	return !fnmatch(glob, name, 0) ||
	       (name != forms->raw && !fnmatch(glob, forms->raw, 0));
}

/* Tries all GLOBs that have matched nothing so far, and notes a match. */
static bool is_any_match(struct seam_fdr_globs *globs,
			 const struct forms *forms)
{
	bool is = false;

	for (size_t i = 0; i < globs->list.n; i++) {
		struct seam_fdr_glob *glob = &globs->list.items[i];

		if ((!is || !glob->has_matched) && is_match(glob->text, forms))
			is = glob->has_matched = true;
	}
	return is;
}

enum { NAMED = 1, EXCEPTED = 2, TRIGGERS = 4 };

/* The functions at some addresses, of which symbols give the names. */
struct selection {
	const char *glob;		/* NULL: the options */
	uint8_t *marks;			/* of each function */
	/* function @i matches a trigger */
	void (*on_trigger)(void *context, unsigned int trigger, uint32_t i);
	void *context;
};

static void mark_by_options(const struct selection *s, uint32_t function,
			    const struct forms *forms)
{
	struct seam_fdr_options *o = &process->options;

	if (is_any_match(&o->functions, forms))
		s->marks[function] |= NAMED;
	if (is_any_match(&o->except, forms))
		s->marks[function] |= EXCEPTED;
	for (unsigned int i = 0; i < o->n_triggers; i++)
		if (is_match(o->triggers[i].function, forms)) {
			s->marks[function] |= TRIGGERS;
			s->on_trigger(s->context, i, function);
		}
}

static int mark(void *context, uint32_t function, const char *name)
{
	const struct selection *s = context;
	struct seam_arena arena = { 0 };
	const struct forms forms = {
		name, seam_demangle(&arena, name),
		seam_demangle_with_parameters(&arena, name),
	};

	if (!s->glob)
		mark_by_options(s, function, &forms);
	else if (is_match(s->glob, &forms))
		s->marks[function] = NAMED;
	seam_arena_fini(&arena);
	return 0;
}

static bool needs_names(void)
{
	const struct seam_fdr_options *o = &process->options;

	return o->n_triggers || o->functions.list.n || o->except.list.n;
}

/*
 * Set @is_selected of the @n functions of @image at @addresses, by the options.
 * 0; or a failure, as of seam_fdr_names_each(), after which no function is
 * selected.
 */
static int select_functions(const struct seam_fdr_image *image,
			    const uint64_t *addresses, size_t n,
			    bool *is_selected, struct selection s)
{
	bool all = !process->options.functions.list.n;
	int r = 0;

	s.marks = calloc(n + 1, 1);
	if (!s.marks)
		return -ENOMEM;
	if (needs_names())
		r = seam_fdr_names_each(image, addresses, n, mark, &s);
	for (size_t i = 0; i < n; i++)
		is_selected[i] = r == 0 &&
			(((all || s.marks[i] & NAMED) &&
			  !(s.marks[i] & EXCEPTED)) || s.marks[i] & TRIGGERS);
	free(s.marks);
	return r;
}

/* ---- functions with sleds ---- */

struct list_triggers {
	const struct seam_fdr_list *list;
	uint32_t without_exits;		/* with a time; a bit for each */
};

static void take_trigger(void *context, unsigned int trigger, uint32_t i)
{
	struct list_triggers *t = context;

	process->n_matches[trigger]++;
	seam_fdr_trigger_function(trigger, t->list->functions.first_id + i);
	if (seam_fdr_list_has_entries_only(t->list) &&
	    process->options.triggers[trigger].kind == SEAM_TRIGGER_SLOW)
		t->without_exits |= UINT32_C(1) << trigger;
}

/* What the user learns of a list, once. */
static void note_list(const struct seam_fdr_image *image,
		      const struct seam_fdr_list *list, uint32_t without_exits)
{
	for (uint32_t left = without_exits; left; left &= left - 1) {
		const char *name = process->options.triggers
				   [__builtin_ctz(left)].function;

		seam_fdr_note("trigger '%s' with a time is never met in %s: it "
			      "has entries alone, no exits; use 'calls:%s'",
			      name, image->path, name);
	}
	if (list->functions.sleds.n_refused)
		seam_fdr_note("%zu places in %s are not used: they have %s",
			      list->functions.sleds.n_refused, image->path,
			      list->kind == SEAM_FDR_LIST_PATCHABLE ?
			      "no room for a call; it needs "
			      "-fpatchable-function-entry=5 or more" :
			      "not the bytes of a sled");
}

static void select_list(const struct seam_fdr_image *image,
			struct seam_fdr_list *list)
{
	struct seam_fdr_functions *f = &list->functions;
	struct list_triggers t = { .list = list };
	int r = select_functions(image, f->sleds.functions.items,
				 f->sleds.functions.n, f->is_wanted,
				 (struct selection) {
					.on_trigger = take_trigger,
					.context = &t });

	note_list(image, list, t.without_exits);
	list->is_selected = true;
	if (r < 0)
		seam_fdr_note("calls of %s are not recorded: %s", image->path,
			      r == -ENOENT ? "it has no symbols to select by" :
					     strerror(-r));
}

/* The user learns of names that nothing has; a recorder says so itself. */
static void note_unmatched(void)
{
	const struct seam_fdr_options *o = &process->options;

	for (size_t i = 0; i < o->functions.list.n; i++)
		if (!o->functions.list.items[i].has_matched)
			seam_fdr_note("'%s': " SEAM_TRIGGER_NO_FUNCTION,
				      o->functions.list.items[i].text);
	for (uint32_t i = 0; i < o->n_triggers; i++) {
		if (!process->n_matches[i])
			seam_fdr_note("trigger '%s': " SEAM_TRIGGER_NO_FUNCTION,
				      o->triggers[i].function);
		process->n_matches[i] = 0;
	}
}

/*
 * ---- functions of -finstrument-functions ----
 *
 * Names cannot be read where a function is called first, so with GLOBs or
 * triggers all functions of an image are looked through when it is loaded.
 */

/* GLOBs select; with triggers alone all functions are recorded. */
static bool has_globs(void)
{
	return process->options.functions.list.n ||
	       process->options.except.list.n;
}

void seam_fdr_select_none(void)
{
	for (size_t i = 0; i < process->images.list.n; i++)
		process->images.list.items[i]->has_read_names = false;
	seam_fdr_cyg_want_none(has_globs());
}

static void take_cyg_trigger(void *addresses, unsigned int trigger, uint32_t i)
{
	uint32_t id = seam_fdr_cyg_want(((uint64_t *)addresses)[i]);

	if (!id)
		return;
	process->n_matches[trigger]++;
	seam_fdr_trigger_function(trigger, id);
}

static int select_cyg(const struct seam_fdr_image *image)
{
	struct seam_fdr_addresses all = { .items = NULL };
	int r = seam_fdr_names_addresses(image, &all);
	bool *is_selected = calloc(all.n + 1, sizeof(*is_selected));

	if (!is_selected)
		r = -ENOMEM;
	r = r ?: select_functions(image, all.items, all.n, is_selected,
				  (struct selection) {
					.on_trigger = take_cyg_trigger,
					.context = all.items });
	for (size_t i = 0; r == 0 && has_globs() && i < all.n; i++)
		if (is_selected[i])
			seam_fdr_cyg_want(all.items[i]);
	free(is_selected);
	free(all.items);
	return r;
}

/* In images that are new.  False: in some image no function is selected. */
static bool select_all_cyg(void)
{
	bool all = true;

	for (size_t i = 0; needs_names() && i < process->images.list.n; i++) {
		struct seam_fdr_image *image = process->images.list.items[i];

		if (!image->is_loaded || !image->records_itself ||
		    image->has_read_names)
			continue;
		image->has_read_names = true;
		all &= select_cyg(image) == 0;
	}
	return all;
}

void seam_fdr_take_new(void)
{
	bool has_new = false;

	for (size_t i = 0; i < process->images.list.n; i++) {
		struct seam_fdr_image *image = process->images.list.items[i];

		for (size_t j = 0; j < image->n_lists; j++) {
			if (image->lists[j].is_selected)
				continue;
			select_list(image, &image->lists[j]);
			has_new = true;
		}
	}
	/* functions of -finstrument-functions are announced with their id */
	if (process->address[0])
		(void)seam_fdr_announce_new();
	if (!select_all_cyg())
		seam_fdr_note("some functions are not recorded: a file has no "
			      "symbols to select by");
	if (has_new)
		process->matches_due = UINT32_MAX;
	/* the recorder itself reports functions without names at the end */
	if (process->address[0] && seam_fdr_announce_new() < 0 &&
	    !process->has_noted_behind) {
		process->has_noted_behind = true;
		seam_fdr_note("some functions may have no names: the recorder "
			      "does not take them now");
	}
	if (!seam_fdr_is_recorded())
		note_unmatched();
}

/* ---- the sleds of selected functions are in use ---- */

static const void *target_of(uint32_t id, enum seam_fdr_sled_kind kind)
{
	static const char *const sleds[] = {
		[SEAM_FDR_SLED_ENTRY] = seam_fdr_sled_entry,
		[SEAM_FDR_SLED_EXIT] = seam_fdr_sled_exit,
		[SEAM_FDR_SLED_TAIL] = seam_fdr_sled_tail,
		[SEAM_FDR_SLED_ENTRY_ARGS] = seam_fdr_checked_entry,
		[SEAM_FDR_SLED_CUSTOM] = seam_fdr_custom_event,
		[SEAM_FDR_SLED_TYPED] = seam_fdr_typed_event,
		[SEAM_FDR_SLED_CALL] = seam_fdr_sled_entry_only,
	};
	static const char *const checked[] = {
		[SEAM_FDR_SLED_ENTRY] = seam_fdr_checked_entry,
		[SEAM_FDR_SLED_EXIT] = seam_fdr_checked_exit,
		[SEAM_FDR_SLED_TAIL] = seam_fdr_checked_tail,
	};

	return kind <= SEAM_FDR_SLED_TAIL && seam_fdr_triggers_of(id) ?
	       checked[kind] : sleds[kind];
}

/* Once for each image: images are patched again and again. */
static void note_patched(struct seam_fdr_image *image,
			 const struct seam_fdr_patched *p, int r)
{
	if (image->is_noted)
		return;
	image->is_noted = r < 0 || p->n_refused || p->n_divided || p->n_far;
	if (r < 0)
		seam_fdr_note("calls of %s are not recorded: its code cannot "
			      "be changed: %s", image->path, strerror(-r));
	if (p->n_refused)
		seam_fdr_note("%zu places in %s are left as they are: changed "
			      "by others", p->n_refused, image->path);
	if (p->n_divided)
		seam_fdr_note("%zu places in %s are left as they are: their "
			      "code cannot be changed while there are threads",
			      p->n_divided, image->path);
	if (p->n_far)
		seam_fdr_note("%zu places in %s are left as they are: no "
			      "memory near them", p->n_far, image->path);
}

void seam_fdr_patch_all(void)
{
	for (size_t i = 0; i < process->images.list.n; i++) {
		struct seam_fdr_image *image = process->images.list.items[i];
		struct seam_fdr_patched patched = { 0 };
		int r = 0;

		for (size_t j = 0; image->is_loaded && j < image->n_lists &&
				   r == 0; j++) {
			struct seam_fdr_functions *f =
				&image->lists[j].functions;
			bool *is_wanted = f->is_wanted;

			if (process->is_ending)
				f->is_wanted = NULL;
			r = seam_fdr_patch(f, &image->code, target_of,
					   &patched);
			f->is_wanted = is_wanted;
		}
		note_patched(image, &patched, r);
	}
}

/* ---- changes, and the ids of functions ---- */

struct glob_visit {
	const char *glob;		/* NULL: the function with @id */
	uint32_t id;
	bool is_change, is_wanted;
	uint32_t *ids;			/* found; the first @room of them */
	size_t room;
	int64_t n;
};

static void visit_function(struct glob_visit *v, struct seam_fdr_functions *f,
			   uint32_t i)
{
	if (v->is_change)
		f->is_wanted[i] = v->is_wanted;
	else if ((size_t)v->n < v->room)
		v->ids[v->n] = f->first_id + i;
	v->n++;
}

/* In a file without symbols no name matches.  0 or -ENOMEM. */
static int visit_list(struct glob_visit *v, const struct seam_fdr_image *image,
		      struct seam_fdr_functions *f)
{
	size_t n = f->sleds.functions.n;
	struct selection s = { .glob = v->glob, .marks = calloc(n + 1, 1) };
	int r = 0;

	if (!s.marks)
		return -ENOMEM;
	if (!strcmp(v->glob, "*"))
		memset(s.marks, NAMED, n);
	else
		r = seam_fdr_names_each(image, f->sleds.functions.items, n,
					mark, &s);
	for (uint32_t i = 0; i < n && r == 0; i++)
		if (s.marks[i])
			visit_function(v, f, i);
	free(s.marks);
	return r == -ENOMEM ? r : 0;
}

/* Lists have ids in the order of their numbers. */
static int visit_by_glob(struct glob_visit *v, struct seam_fdr_images *images)
{
	int r = 0;

	for (uint32_t number = 1; number <= images->n_lists; number++)
		for (size_t i = 0; i < images->list.n; i++) {
			struct seam_fdr_image *image = images->list.items[i];

			for (size_t j = 0; image->is_loaded && r == 0 &&
					   j < image->n_lists; j++)
				if (image->lists[j].number == number)
					r = visit_list(v, image,
						&image->lists[j].functions);
		}
	return r;
}

static void visit_by_id(struct glob_visit *v, struct seam_fdr_images *images)
{
	for (size_t i = 0; i < images->list.n; i++)
		for (size_t j = 0; j < images->list.items[i]->n_lists; j++) {
			struct seam_fdr_functions *f =
				&images->list.items[i]->lists[j].functions;

			if (v->id >= f->first_id &&
			    v->id - f->first_id < f->sleds.functions.n)
				visit_function(v, f, v->id - f->first_id);
		}
}

static int visit_all(struct seam_fdr_images *images, bool has_changed,
		     void *context)
{
	struct glob_visit *v = context;
	int r = 0;

	(void)has_changed;
	if (v->glob)
		r = visit_by_glob(v, images);
	else
		visit_by_id(v, images);
	if (v->is_change && v->n)
		seam_fdr_patch_all();
	return r;
}

/* How many functions there are; -EAGAIN; -ENOENT; or -errno. */
static int64_t visit(struct glob_visit v)
{
	int saved_errno = errno, r = -EAGAIN;

	if (!seam_fdr_lock())
		return -EDEADLK;
	if (atomic_load(&seam_fdr_is_on)) {
		r = seam_fdr_images_with(&process->images, NULL, NULL);
		if (v.is_change)
			seam_fdr_take_new();
		r = r ?: seam_fdr_images_with(&process->images, visit_all, &v);
	}
	seam_fdr_unlock();
	errno = saved_errno;
	return r < 0 ? r : v.n ? v.n : -ENOENT;
}

int64_t seam_fdr_patch_functions(const char *glob)
{
	return visit((struct glob_visit) {
		.glob = glob, .is_change = true, .is_wanted = true });
}

int64_t seam_fdr_unpatch_functions(const char *glob)
{
	return visit((struct glob_visit) { .glob = glob, .is_change = true });
}

static int change_id(uint32_t id, bool is_wanted)
{
	int64_t n = visit((struct glob_visit) {
		.id = id, .is_change = true, .is_wanted = is_wanted });

	return n < 0 ? (int)n : 0;
}

int seam_fdr_patch_id(uint32_t id)
{
	return change_id(id, true);
}

int seam_fdr_unpatch_id(uint32_t id)
{
	return change_id(id, false);
}

int64_t seam_fdr_find(const char *glob, uint32_t *ids, size_t n)
{
	return visit((struct glob_visit) {
		.glob = glob, .ids = ids, .room = n });
}
