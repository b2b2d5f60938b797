/* SPDX-License-Identifier: MIT */
/* start.c - begin and end in a process; see start.h */
#include "target/fdr/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "target/fdr/announce_functions.h"
#include "target/fdr/checked.h"
#include "target/fdr/cyg_announce.h"
#include "target/fdr/cyg_profile.h"
#include "target/fdr/events.h"
#include "target/fdr/fdr_fork.h"
#include "target/fdr/own_bundle.h"
#include "target/fdr/rseq.h"
#include "target/fdr/select.h"
#include "target/fdr/source_link.h"
#include "target/fdr/thread_area.h"
#include "target/fdr/trampolines.h"
#include "target/fdr/trigger_signals.h"
#include "target/fdr/triggers.h"
#include "target/interpose/interpose.h"

/* For the recorder to answer: it may have hundreds of programs to serve. */
enum { CONNECT_MS = 5000 };

/* Of the process; the lock is taken before the loader's, never after it. */
static struct {
	pthread_mutex_t lock;
	char address[SEAM_LINK_ADDRESS_BYTES];	/* of the recorder; "": none */
	struct seam_fdr_options options;
	struct seam_fdr_images images;
	uint64_t n_adds, n_subs;	/* of the loader, when last patched */
	_Atomic bool is_armed;		/* it has begun, if only to look */
	bool has_source;		/* once, for all beginnings */
	bool has_noted_unknown;
	uint32_t n_matches[SEAM_FDR_MAX_TRIGGERS];	/* not announced */
	bool is_off;			/* for good */
	bool is_ending;			/* nothing is wanted */
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Atomic bool seam_fdr_is_on;

/* ---- the lock, and messages ---- */

void seam_fdr_fork_lock(void)
{
	pthread_mutex_lock(&process.lock);
}

void seam_fdr_fork_unlock(void)
{
	pthread_mutex_unlock(&process.lock);
}

void seam_fdr_note(const char *format, ...)
{
	char text[SEAM_LINK_NOTE_BYTES];
	va_list list;
	int n = snprintf(text, sizeof(text), "%s (%d): ",
			 program_invocation_short_name, getpid());

	va_start(list, format);
	if (n >= 0 && (size_t)n < sizeof(text))
		vsnprintf(text + n, sizeof(text) - (size_t)n, format, list);
	va_end(list);
	/* a program without a message goes on as one with it */
	if (process.address[0])
		(void)seam_link_client_note(process.address, text);
}

/* ---- what is loaded: announce, select, patch ---- */

static struct seam_fdr_targets targets_of(uint32_t id)
{
	struct seam_fdr_trampolines t = seam_fdr_trampolines(id);
	bool needs_exit = process.options.min_ns || process.options.depth;

	return (struct seam_fdr_targets) {
		.entry = t.entry, .exit = t.exit, .tail = t.tail,
		.entry_args = seam_fdr_checked_entry,
		.entry_only = needs_exit ? seam_fdr_entry : t.entry,
		.custom = seam_fdr_custom_event, .typed = seam_fdr_typed_event,
	};
}

static void take_trigger(unsigned int trigger, uint32_t function)
{
	process.n_matches[trigger]++;
	seam_fdr_trigger_function(trigger, function);
}

/* The user learns of triggers that no function is for. */
static void announce_matches(void)
{
	for (uint32_t i = 0; i < process.options.n_triggers; i++) {
		if (process.options.triggers[i].function)
			(void)seam_fdr_announce_match(i, process.n_matches[i]);
		process.n_matches[i] = 0;
	}
}

static void select_list(const struct seam_fdr_image *image,
			struct seam_fdr_list *list)
{
	int r = seam_fdr_select(&process.options, image, list, take_trigger);

	if (!list->is_selected && list->functions.sleds.n_refused)
		seam_fdr_note("%zu places in %s are not used: they have not "
			      "the bytes of a sled",
			      list->functions.sleds.n_refused, image->path);
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

	if (process.is_ending) {
		f->is_wanted = calloc(f->sleds.functions.n, sizeof(bool));
		r = f->is_wanted ? seam_fdr_patch(f, &image->code, targets_of,
						  patched) : -ENOMEM;
		free(f->is_wanted);
		f->is_wanted = is_wanted;
		return r;
	}
	return seam_fdr_patch(f, &image->code, targets_of, patched);
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
		seam_fdr_note("%zu functions of %s are not recorded: they begin "
			      "with several nops, and there are threads",
			      p->n_divided, image->path);
	if (p->n_far)
		seam_fdr_note("%zu places in %s are left as they are: no memory "
			      "near them", p->n_far, image->path);
}

/* Have the bytes follow what is wanted, in all images. */
static void patch_all(void)
{
	for (size_t i = 0; i < process.images.list.n; i++) {
		struct seam_fdr_image *image = process.images.list.items[i];
		struct seam_fdr_patched patched = { 0 };
		int r = 0;

		for (size_t j = 0; image->is_loaded && j < image->n_lists &&
				   r == 0; j++)
			r = patch_list(image, &image->lists[j], &patched);
		note_patched(image, &patched, r);
	}
}

static void note_unknown(struct seam_fdr_images *images)
{
	if (!images->n_unknown || process.has_noted_unknown)
		return;
	process.has_noted_unknown = true;
	seam_fdr_note("%zu files have no section table, or cannot be read: "
		      "their calls are not recorded", images->n_unknown);
}

/* With the loader's lock: take what is new into account, and patch. */
static int apply(struct seam_fdr_images *images, bool has_changed,
		 void *context)
{
	const bool *is_forced = context;
	bool has_new = false;

	/* other visits of the list may have seen the change before */
	(void)has_changed;
	if (images->n_adds == process.n_adds &&
	    images->n_subs == process.n_subs && !*is_forced)
		return 0;
	process.n_adds = images->n_adds;
	process.n_subs = images->n_subs;
	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists; j++) {
			if (image->lists[j].is_selected)
				continue;
			select_list(image, &image->lists[j]);
			has_new = true;
		}
	}
	if (process.address[0] && (seam_fdr_announce(images) < 0 ||
				   seam_fdr_cyg_announce(images) < 0))
		seam_fdr_note("some functions have no names: the recorder does "
			      "not take them");
	if (process.address[0] && has_new)
		announce_matches();
	note_unknown(images);
	patch_all();
	return 0;
}

/* ---- prepare, where there are calls ---- */

enum {
	PREPARE_SOURCE,
	PREPARE_CHECKS,
	PREPARE_ADDRESSES,
	PREPARE_BUNDLE,
	N_STEPS,
};

/* As in target/agent: valgrind preloads vgpreload_core-PLATFORM.so. */
static bool is_in_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "/vgpreload_core");
}

static int begin_source(void)
{
	const struct seam_fdr_source *source = &seam_fdr_source_own;
	int r;

	if (process.address[0]) {
		r = seam_fdr_link_connect(process.address, CONNECT_MS);
		if (r < 0)
			return r;
		source = &seam_fdr_source_link;
	}
	seam_fdr_rseq_init(false);
	seam_fdr_call_saved_init();
	return seam_fdr_thread_init(source);
}

/* A flight recorder's triggers need to know what is copied. */
static void resume_triggers(void)
{
	/* without a recorder the first one freezes until the end */
	static const _Atomic uint32_t never;
	struct seam_ring_control *control;

	if (!process.address[0])
		seam_fdr_triggers_resume_at(&never);
	if (!process.address[0] || !process.options.n_triggers ||
	    seam_fdr_announce_claim() < 0)
		return;
	control = seam_fdr_announce_control();
	seam_fdr_triggers_resume_at(&control->program.n_resumed);
}

/* A static program has no handlers in front of its own. */
extern __typeof__(seam_fdr_trigger_signals_init) seam_fdr_trigger_signals_init
	__attribute__((weak));
extern __typeof__(seam_fdr_trigger_signals_fini) seam_fdr_trigger_signals_fini
	__attribute__((weak));

static void begin_triggers(void)
{
	int r = 0;

	if (seam_fdr_trigger_signals_init)
		r = seam_fdr_trigger_signals_init(&process.options);
	if (r < 0)
		seam_fdr_note("signals do not trigger: %s", strerror(-r));
	resume_triggers();
}

/* The recorder's client is there, or there is none. */
static void announce_types(void)
{
	for (uint16_t type = 1; process.address[0] && seam_fdr_type_name(type);
	     type++)
		(void)seam_fdr_announce_event_type(type,
						   seam_fdr_type_name(type));
}

void seam_fdr_types_changed(uint16_t type)
{
	int saved_errno = errno;

	pthread_mutex_lock(&process.lock);
	if (atomic_load(&seam_fdr_is_on) && process.address[0])
		(void)seam_fdr_announce_event_type(type,
						   seam_fdr_type_name(type));
	pthread_mutex_unlock(&process.lock);
	errno = saved_errno;
}

static int do_step(int step)
{
	switch (step) {
	case PREPARE_SOURCE:
		return process.has_source ? 0 : begin_source();
	case PREPARE_CHECKS:
		return seam_fdr_check_init(&process.options);
	case PREPARE_ADDRESSES:
		return seam_fdr_cyg_init();
	case PREPARE_BUNDLE:
		return process.address[0] ? 0 :
		       seam_fdr_bundle_begin(process.options.out,
					     process.options.is_flight, 0);
	}
	return 0;
}

/* Connect, and all else that only a program with calls to record needs. */
static int prepare(char *why, size_t why_bytes)
{
	static const char *const steps[] = {
		[PREPARE_SOURCE] = "connect to the recorder",
		[PREPARE_CHECKS] = "prepare checks",
		[PREPARE_ADDRESSES] = "prepare for -finstrument-functions",
		[PREPARE_BUNDLE] = "make the bundle",
	};

	for (int i = 0; i < N_STEPS; i++) {
		int r = do_step(i);

		if (r == 0)
			continue;
		snprintf(why, why_bytes, "cannot %s: %s", steps[i],
			 strerror(-r));
		return r;
	}
	process.has_source = true;
	begin_triggers();
	atomic_store(&seam_fdr_is_on, true);
	announce_types();
	return 0;
}

static bool has_calls(const struct seam_fdr_images *images)
{
	for (size_t i = 0; i < images->list.n; i++)
		if (images->list.items[i]->n_lists ||
		    images->list.items[i]->records_itself)
			return true;
	return false;
}

/*
 * Most processes of a build, or a shell script, have nothing to record: they do
 * not connect.
 */
static int refresh(bool is_forced)
{
	char why[256];
	int r = seam_fdr_images_with(&process.images, NULL, NULL);

	if (r == 0 && !atomic_load(&seam_fdr_is_on)) {
		if (!has_calls(&process.images)) {
			note_unknown(&process.images);
			return 0;
		}
		r = prepare(why, sizeof(why));
		if (r < 0) {
			process.is_armed = false;
			seam_fdr_note("calls are not recorded: %s", why);
			return r;
		}
		is_forced = true;
	}
	/* without the lock of the loader until here */
	r = r ?: seam_fdr_images_with(&process.images, apply, &is_forced);
	seam_fdr_cyg_set(true);
	return r;
}

void seam_fdr_refresh(void)
{
	int saved_errno = errno;

	pthread_mutex_lock(&process.lock);
	if (process.is_armed)
		refresh(false);
	pthread_mutex_unlock(&process.lock);
	errno = saved_errno;
}

bool seam_fdr_wants_loads(void)
{
	/* a hint: it is looked at again with the lock */
	return process.is_armed;
}

/* ---- begin ---- */

/* Why this process is not recorded; NULL: it is. */
static const char *refusal(void)
{
	if (getauxval(AT_SECURE))
		return "it has the rights of another user";
	if (process.is_off)
		return "it has ended";
	return is_in_valgrind() ? "it runs under valgrind" : NULL;
}

static int arm(const char *text, char *why, size_t why_bytes)
{
	int r;

	if (refusal()) {
		snprintf(why, why_bytes, "%s", refusal());
		return -EPERM;
	}
	if (process.is_armed) {
		snprintf(why, why_bytes, "it has begun");
		return -EALREADY;
	}
	seam_fdr_options_fini(&process.options);
	r = seam_fdr_options_parse(&process.options, text, why, why_bytes);
	if (r < 0)
		return r;
	r = seam_fdr_fork_init();
	if (r < 0)
		snprintf(why, why_bytes, "cannot prepare for forks: %s",
			 strerror(-r));
	process.is_armed = r == 0;
	return r;
}

int seam_fdr_begin(const char *options, char *why, size_t why_bytes)
{
	int saved_errno = errno, r;

	why[0] = 0;
	pthread_mutex_lock(&process.lock);
	r = arm(options, why, why_bytes);
	/* ids are given before anything is registered */
	r = r ?: seam_fdr_images_with(&process.images, NULL, NULL);
	r = r ?: prepare(why, why_bytes);
	if (r == 0)
		refresh(true);
	else if (r != -EALREADY)
		process.is_armed = false;
	pthread_mutex_unlock(&process.lock);
	errno = saved_errno;
	return r;
}

/* ---- end ---- */

/* The next beginning selects anew. */
static int unpatch(struct seam_fdr_images *images, bool has_changed,
		   void *context)
{
	(void)has_changed;
	(void)context;
	patch_all();
	for (size_t i = 0; i < images->list.n; i++)
		for (size_t j = 0; j < images->list.items[i]->n_lists; j++)
			images->list.items[i]->lists[j].is_selected = false;
	return 0;
}

int seam_fdr_end(const char *why)
{
	int saved_errno = errno, r = 0;
	bool was_on;

	pthread_mutex_lock(&process.lock);
	process.is_armed = false;
	was_on = atomic_load(&seam_fdr_is_on);
	if (was_on) {
		seam_fdr_cyg_set(false);
		process.is_ending = true;
		seam_fdr_images_with(&process.images, unpatch, NULL);
		process.is_ending = false;
		atomic_store(&seam_fdr_is_on, false);
		if (seam_fdr_trigger_signals_fini)
			seam_fdr_trigger_signals_fini();
		if (why)
			seam_fdr_note("recording of calls ends: %s", why);
	}
	if (why)
		process.is_off = true;
	pthread_mutex_unlock(&process.lock);
	/* without the lock: it goes through all functions */
	if (was_on)
		r = seam_fdr_bundle_end();
	errno = saved_errno;
	return r;
}

/* ---- while it runs ---- */

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

/* Images without symbols have no name that it is of. */
static int64_t change_glob(struct seam_fdr_images *images,
			   const struct change *change)
{
	int64_t n = 0;

	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; image->is_loaded && j < image->n_lists;
		     j++) {
			int64_t found = seam_fdr_select_glob(
						change->glob, change->is_wanted,
						image, &image->lists[j]);

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
	bool is_forced = false;

	apply(images, has_changed, &is_forced);
	change->n = change->glob ? change_glob(images, change) :
				   change_id(images, change);
	if (change->n > 0)
		patch_all();
	return 0;
}

static int64_t make_change(struct change change)
{
	int saved_errno = errno, r = -ENODATA;

	pthread_mutex_lock(&process.lock);
	if (atomic_load(&seam_fdr_is_on))
		r = seam_fdr_images_with(&process.images, change_locked,
					 &change);
	pthread_mutex_unlock(&process.lock);
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

int seam_fdr_with_images(int (*work)(struct seam_fdr_images *images,
				     bool has_changed, void *context),
			 void *context)
{
	int saved_errno = errno, r;

	pthread_mutex_lock(&process.lock);
	r = seam_fdr_images_with(&process.images, work, context);
	pthread_mutex_unlock(&process.lock);
	errno = saved_errno;
	return r;
}

/* ---- fork ---- */

void seam_fdr_fork_begin_child(void)
{
	seam_fdr_announce_begin_child();
	if (process.address[0])
		(void)seam_fdr_cyg_announce_begin_child(&process.images);
	if (atomic_load(&seam_fdr_is_on))
		resume_triggers();
}

/* ---- the library is loaded ---- */

__attribute__((constructor))
static void load(void)
{
	/* Source: secure_getenv(3): NULL for set-user-ID and the like */
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);
	const char *text = secure_getenv(SEAM_FDR_VARIABLE);
	int saved_errno = errno, r;
	char why[256];

	if (getauxval(AT_SECURE))
		return;
	if (address && strlen(address) < sizeof(process.address))
		memcpy(process.address, address, strlen(address) + 1);
	if (!text)
		return;
	pthread_mutex_lock(&process.lock);
	r = arm(text, why, sizeof(why));
	if (r < 0)
		seam_fdr_note("calls are not recorded: %s", why);
	else if (process.options.is_started)
		refresh(true);
	else
		process.is_armed = false;
	pthread_mutex_unlock(&process.lock);
	errno = saved_errno;
}
