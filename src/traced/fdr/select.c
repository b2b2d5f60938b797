/* SPDX-License-Identifier: MIT */
/* select.c - which functions are recorded; see select.h */
#include "traced/fdr/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/check/triggers.h"
#include "traced/fdr/cyg/cyg_announce.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/events.h"
#include "traced/fdr/record/trampolines.h"
#include "traced/fdr/registered.h"
#include "traced/fdr/sleds/function_names.h"
#include "traced/fdr/start.h"

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

/* Whether a name has matched GLOB @i of options->functions. */
static bool is_glob_used(size_t i)
{
	return i >= 64 || (used >> i & 1);
}

/* As is_any_match(); those that are not used so far are all tried. */
static bool is_named(const struct seam_fdr_globs *globs,
		     const struct forms *forms)
{
	bool is = false;

	for (size_t i = 0; i < globs->list.n; i++) {
		if ((is && is_glob_used(i)) ||
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

/*
 * Call @on_match for the functions of @list whose names match @glob, ascending.
 * How many there are, or a failure.
 */
static int64_t each_match(const char *glob, const struct seam_fdr_image *image,
			  struct seam_fdr_list *list,
			  void (*on_match)(void *context,
					   struct seam_fdr_list *list,
					   size_t i),
			  void *context)
{
	size_t n = list->functions.sleds.functions.n;
	struct by_glob by = { glob, calloc(n, 1) };
	int64_t n_named = 0;
	int r = 0;

	if (!by.marks)
		return -ENOMEM;
	/* all of them need no names */
	if (!strcmp(glob, "*"))
		memset(by.marks, NAMED, n);
	else
		r = seam_fdr_names_each(
			image, list->functions.sleds.functions.items, n,
			mark_glob, &by);
	for (size_t i = 0; i < n && r == 0; i++)
		if (by.marks[i]) {
			on_match(context, list, i);
			n_named++;
		}
	free(by.marks);
	return r < 0 ? r : n_named;
}

/* ---- the sleds of wanted functions are in use ---- */

static struct seam_fdr_process *const process = &seam_fdr_process;

static struct seam_fdr_targets targets_of(uint32_t id)
{
	bool is_checked = seam_fdr_triggers_of(id);

	return (struct seam_fdr_targets) {
		.entry = is_checked ? seam_fdr_checked_entry :
				      seam_fdr_sled_entry,
		.exit = is_checked ? seam_fdr_checked_exit : seam_fdr_sled_exit,
		.tail = is_checked ? seam_fdr_checked_tail : seam_fdr_sled_tail,
		.entry_args = seam_fdr_checked_entry,
		.entry_only = seam_fdr_sled_entry_only,
		.custom = seam_fdr_custom_event, .typed = seam_fdr_typed_event,
	};
}

static void take_trigger(unsigned int trigger, uint32_t function)
{
	process->n_matches[trigger]++;
	seam_fdr_trigger_function(trigger, function);
}

/* Of functions that have no exits; a bit for each trigger. */
static uint32_t slow_without_exits;

static void take_trigger_of_entries(unsigned int trigger, uint32_t function)
{
	take_trigger(trigger, function);
	if (process->options.triggers[trigger].kind == SEAM_TRIGGER_SLOW)
		slow_without_exits |= UINT32_C(1) << trigger;
}

static void note_without_exits(const struct seam_fdr_image *image)
{
	for (; slow_without_exits;
	     slow_without_exits &= slow_without_exits - 1) {
		int i = __builtin_ctz(slow_without_exits);
		const char *name = process->options.triggers[i].function;

		seam_fdr_note("trigger '%s' with a time is never met in %s: it "
			      "has entries alone, no exits; use 'calls:%s'",
			      name, image->path, name);
	}
}

/* The user learns of names that nothing has; a recorder says so itself. */
static void note_unmatched(void)
{
	const struct seam_fdr_options *o = &process->options;

	for (size_t i = 0; i < o->functions.list.n; i++)
		if (!is_glob_used(i))
			seam_fdr_note("'%s': " SEAM_TRIGGER_NO_FUNCTION,
				      o->functions.list.items[i]);
	for (uint32_t i = 0; i < o->n_triggers; i++) {
		if (o->triggers[i].function && !process->n_matches[i])
			seam_fdr_note("trigger '%s': " SEAM_TRIGGER_NO_FUNCTION,
				      o->triggers[i].function);
		process->n_matches[i] = 0;
	}
}

static void select_list(const struct seam_fdr_image *image,
			struct seam_fdr_list *list)
{
	int r;

	slow_without_exits = 0;
	r = seam_fdr_select(&process->options, image, list,
			    seam_fdr_list_has_entries_only(list) ?
			    take_trigger_of_entries : take_trigger);
	if (!list->is_selected)
		note_without_exits(image);
	if (!list->is_selected && list->functions.sleds.n_refused)
		seam_fdr_note("%zu places in %s are not used: they have %s",
			      list->functions.sleds.n_refused, image->path,
			      list->kind == SEAM_FDR_LIST_PATCHABLE ?
			      "no room for a call; it needs "
			      "-fpatchable-function-entry=5 or more" :
			      "not the bytes of a sled");
	list->is_selected = true;
	if (r < 0)
		seam_fdr_note("calls of %s are not recorded: %s", image->path,
			      r == -ENOENT ? "it has no symbols to select by" :
					     strerror(-r));
}

static int patch_list(struct seam_fdr_image *image, struct seam_fdr_list *list,
		      struct seam_fdr_patched *patched)
{
	struct seam_fdr_functions *f = &list->functions;
	bool *is_wanted = f->is_wanted;
	int r;

	if (process->is_ending)
		f->is_wanted = NULL;
	r = seam_fdr_patch(f, &image->code, targets_of, patched);
	f->is_wanted = is_wanted;
	return r;
}

/* Once for each image: they are patched again and again. */
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

/* Have the bytes follow what is wanted, in all images. */
void seam_fdr_patch_all(void)
{
	for (size_t i = 0; i < process->images.list.n; i++) {
		struct seam_fdr_image *image = process->images.list.items[i];
		struct seam_fdr_patched patched = { 0 };
		int r = 0;

		for (size_t j = 0; image->is_loaded && j < image->n_lists &&
				   r == 0; j++)
			r = patch_list(image, &image->lists[j], &patched);
		note_patched(image, &patched, r);
	}
}

void seam_fdr_note_unknown(void)
{
	if (!process->images.n_unknown || process->has_noted_unknown)
		return;
	process->has_noted_unknown = true;
	seam_fdr_note("%zu files have no section table, or cannot be read: "
		      "their calls are not recorded",
		      process->images.n_unknown);
}

/* ---- announcements ---- */

/* The user learns of triggers that no function is for. */
static int announce_matches(void)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < process->options.n_triggers; i++) {
		if (!process->options.triggers[i].function ||
		    !(process->matches_due >> i & 1))
			continue;
		r = seam_fdr_announce_match(i, process->n_matches[i]);
		if (r < 0)
			break;
		process->matches_due &= ~(UINT32_C(1) << i);
		process->n_matches[i] = 0;
	}
	return r;
}

/* Names that the program has registered since the last time. */
static int announce_registered(void)
{
	int r = 0;

	while (r == 0 && process->n_types < SEAM_FDR_MAX_TYPES) {
		uint16_t type = (uint16_t)(process->n_types + 1);
		const char *name = seam_fdr_type_name(type);

		if (!name)
			break;
		r = seam_fdr_announce_named(SEAM_XRAY_ANNOUNCED_EVENT_TYPE,
					    type, name);
		process->n_types += r == 0;
	}
	while (r == 0 && process->n_registered < seam_fdr_registered_count()) {
		uint32_t id;
		const char *name = seam_fdr_registered(process->n_registered,
						       &id);

		r = seam_fdr_announce_named(SEAM_XRAY_ANNOUNCED_NAME, id, name);
		process->n_registered += r == 0;
	}
	return r;
}

static int begin_again(void)
{
	int r = seam_fdr_announce_again(&process->images);

	if (r < 0)
		return r;
	process->n_types = process->n_registered = 0;
	seam_fdr_cyg_announce_all_again();
	return 0;
}

int seam_fdr_announce_new(void)
{
	struct seam_fdr_images *images = &process->images;
	int r = 0;

	seam_fdr_announce_set_behind(false);
	if (seam_fdr_announce_is_child())
		r = begin_again();
	r = r ?: seam_fdr_announce(images);
	r = r ?: seam_fdr_cyg_announce(images);
	r = r ?: announce_registered();
	r = r ?: announce_matches();
	if (r < 0)
		seam_fdr_announce_set_behind(true);
	return r;
}

void seam_fdr_announce_rest(void)
{
	seam_fdr_announce_begin_end();
	if (process->address[0] && seam_fdr_announce_is_behind())
		(void)seam_fdr_announce_new();
}

/* Which functions have no names at the end, the recorder says itself. */
static void note_behind(void)
{
	if (process->has_noted_behind)
		return;
	process->has_noted_behind = true;
	seam_fdr_note("some functions may have no names: the recorder does not "
		      "take them now");
}

bool seam_fdr_take_new(void)
{
	const struct seam_fdr_images *images = &process->images;
	bool has_new = false;

	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists; j++) {
			if (image->lists[j].is_selected)
				continue;
			select_list(image, &image->lists[j]);
			has_new = true;
		}
	}
	/* those that it gives ids are announced at once, by their images */
	if (process->address[0])
		(void)seam_fdr_announce_new();
	if (seam_fdr_cyg_select(&process->options, images, take_trigger) < 0)
		seam_fdr_note("some functions are not recorded: a file has no "
			      "symbols to select by");
	if (has_new)
		process->matches_due = UINT32_MAX;
	if (process->address[0] && seam_fdr_announce_new() < 0)
		note_behind();
	if (!seam_fdr_is_recorded())
		note_unmatched();
	seam_fdr_note_unknown();
	return has_new;
}

/* ---- changes ---- */

struct change {
	const char *glob;		/* NULL: by id */
	uint32_t id;
	bool is_wanted;
	int64_t n;
};

static int64_t change_id(struct seam_fdr_images *images,
			 const struct change *change)
{
	struct seam_fdr_image *image;
	struct seam_fdr_list *list = seam_fdr_images_find(images, change->id,
							  &image);

	if (!list)
		return -ENOENT;
	list->functions.is_wanted[change->id - list->functions.first_id] =
		change->is_wanted;
	return 1;
}

static void set_wanted(void *context, struct seam_fdr_list *list, size_t i)
{
	const struct change *change = context;

	list->functions.is_wanted[i] = change->is_wanted;
}

/* Images without symbols have no name that it is of. */
static int64_t change_glob(struct seam_fdr_images *images,
			   struct change *change)
{
	int64_t n = 0;

	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; image->is_loaded && j < image->n_lists;
		     j++) {
			int64_t found = each_match(change->glob, image,
						   &image->lists[j],
						   set_wanted, change);

			if (found == -ENOMEM)
				return found;
			n += found > 0 ? found : 0;
		}
	}
	return n;
}

static int change_locked(struct seam_fdr_images *images, bool has_changed,
			 void *context)
{
	struct change *change = context;

	(void)has_changed;
	change->n = change->glob ? change_glob(images, change) :
				   change_id(images, change);
	if (change->n > 0)
		seam_fdr_patch_all();
	return 0;
}

static int64_t make_change(struct change change)
{
	int saved_errno = errno, r = -ENODATA;

	if (!seam_fdr_lock())
		return -EDEADLK;
	if (atomic_load(&seam_fdr_is_on)) {
		r = seam_fdr_images_with(&process->images, NULL, NULL);
		seam_fdr_take_new();
		r = r ?: seam_fdr_images_with(&process->images, change_locked,
					      &change);
	}
	seam_fdr_unlock();
	errno = saved_errno;
	return r < 0 ? r : change.n;
}

int64_t seam_fdr_set_wanted(const char *glob, bool is_wanted)
{
	return make_change((struct change) { glob, 0, is_wanted, 0 });
}

int64_t seam_fdr_set_wanted_id(uint32_t id, bool is_wanted)
{
	return make_change((struct change) { NULL, id, is_wanted, 0 });
}

/* ---- find ---- */

struct find {
	const char *glob;
	uint32_t *ids;
	size_t room;
	int64_t n;
};

static void add_found(void *context, struct seam_fdr_list *list, size_t i)
{
	struct find *find = context;

	if ((size_t)find->n < find->room)
		find->ids[find->n] = list->functions.first_id + (uint32_t)i;
	find->n++;
}

/* Those of @image with list @number.  0 or -ENOMEM. */
static int find_in(struct find *find, struct seam_fdr_image *image,
		   uint32_t number)
{
	for (size_t j = 0; j < image->n_lists; j++)
		if (image->lists[j].number == number &&
		    each_match(find->glob, image, &image->lists[j], add_found,
			       find) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* Lists have ids in the order of their numbers. */
static int find_all(struct seam_fdr_images *images, bool has_changed,
		    void *context)
{
	int r = 0;

	(void)has_changed;
	for (uint32_t number = 1; number <= images->n_lists; number++)
		for (size_t i = 0; r == 0 && i < images->list.n; i++)
			r = find_in(context, images->list.items[i], number);
	return r;
}

int64_t seam_fdr_find_functions(const char *glob, uint32_t *ids, size_t n)
{
	struct find find = { .glob = glob, .ids = ids, .room = n };
	int saved_errno = errno, r;

	if (!seam_fdr_lock())
		return -EDEADLK;
	r = seam_fdr_images_with(&process->images, find_all, &find);
	seam_fdr_unlock();
	errno = saved_errno;
	return r < 0 ? r : find.n;
}
