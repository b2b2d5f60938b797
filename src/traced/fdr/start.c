/* SPDX-License-Identifier: MIT */
/* start.c - begin and end in a process; see start.h */
#include "traced/fdr/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "ring/link/link_client.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/own/own_bundle.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/thread_area.h"
#include "traced/fdr/record/write_signals.h"
#include "traced/interpose/preloaded.h"
#include "wire/xray/trace_service.h"

struct seam_fdr_process seam_fdr_process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct seam_fdr_process *const process = &seam_fdr_process;

_Atomic bool seam_fdr_is_on;

/*
 * By SEAM_TRACE alone: standard error is the only way to report why there is no
 * bundle.
 */
static bool is_loading;

/* ---- the lock, and messages ---- */

/*
 * A thread that is cancelled in here would leave it locked, and a handler that
 * forks would wait for its own thread.
 */
static bool lock_by(int (*lock)(pthread_mutex_t *mutex))
{
	uint64_t blocked;
	int state;

	if (atomic_load(&process->owner) == &seam_fdr_self)
		return false;
	blocked = seam_fdr_block_handlers();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (lock(&process->lock)) {
		pthread_setcancelstate(state, &state);
		seam_fdr_unblock(blocked);
		return false;
	}
	atomic_store(&process->owner, &seam_fdr_self);
	process->cancel_state = state;
	process->blocked = blocked;
	return true;
}

bool seam_fdr_lock(void)
{
	return lock_by(pthread_mutex_lock);
}

void seam_fdr_unlock(void)
{
	uint64_t blocked = process->blocked;
	int state = process->cancel_state;

	/* a fork that began while it was off has it not */
	if (atomic_load(&process->owner) != &seam_fdr_self)
		return;
	atomic_store(&process->owner, NULL);
	pthread_mutex_unlock(&process->lock);
	pthread_setcancelstate(state, &state);
	seam_fdr_unblock(blocked);
}

void seam_fdr_note(const char *format, ...)
{
	char text[SEAM_LINK_NOTE_BYTES];
	struct seam_fdr_write_signals signals;
	va_list list;

	va_start(list, format);
	seam_preloaded_format(text, format, list);
	va_end(list);
	/* a program without a message goes on as one with it */
	if (process->address[0]) {
		(void)seam_link_client_note(process->address, text);
	} else if (is_loading) {
		signals = seam_fdr_write_signals_block();
		dprintf(STDERR_FILENO, "seam-fdr: %s\n", text);
		seam_fdr_write_signals_unblock(signals);
	}
}

/* ---- what is loaded ---- */

/* Without the lock: it goes through all functions. */
static void name_bundle(void)
{
	if (atomic_exchange(&process->is_unnamed, false))
		seam_fdr_bundle_name();
}

static bool has_calls(const struct seam_fdr_images *images)
{
	for (size_t i = 0; i < images->list.n; i++)
		if (images->list.items[i]->n_lists ||
		    images->list.items[i]->records_itself)
			return true;
	return false;
}

static int patch(struct seam_fdr_images *images, bool has_changed,
		 void *context)
{
	(void)context;
	seam_fdr_patch_all();
	/* what came just now is not selected yet */
	if (has_changed)
		return 0;
	process->n_adds = images->n_adds;
	process->n_subs = images->n_subs;
	return 0;
}

/* Other visits of the list may have seen the change before. */
static bool is_out_of_date(void)
{
	return process->images.n_adds != process->n_adds ||
	       process->images.n_subs != process->n_subs;
}

/*
 * Most processes of a build, or a shell script, have nothing to record: they do
 * not connect.
 */
static int begin_if_needed(void)
{
	char why[256];
	int r;

	if (!has_calls(&process->images)) {
		seam_fdr_note_unknown();
		return 0;
	}
	r = seam_fdr_prepare(why, sizeof(why));
	if (r < 0) {
		process->is_armed = false;
		seam_fdr_note("calls are not recorded: %s", why);
	}
	return r;
}

/*
 * The loader is locked only while code is patched, not while names are read or
 * sent.  What is loaded in between is for the next time, which comes soon: that
 * thread waits for our lock.
 */
static int refresh(bool is_forced)
{
	int r = seam_fdr_images_with(&process->images, NULL, NULL);

	if (r == 0 && !atomic_load(&seam_fdr_is_on)) {
		r = begin_if_needed();
		is_forced = true;
	}
	if (r < 0 || !atomic_load(&seam_fdr_is_on))
		return r;
	if (is_forced || is_out_of_date()) {
		seam_fdr_take_new();
		r = seam_fdr_images_with(&process->images, patch, NULL);
	}
	seam_fdr_cyg_set(true);
	return r;
}

void seam_fdr_refresh(void)
{
	int saved_errno = errno;

	if (!seam_fdr_wants_loads() || !seam_fdr_lock())
		return;
	if (process->is_armed)
		refresh(false);
	seam_fdr_unlock();
	name_bundle();
	errno = saved_errno;
}

bool seam_fdr_wants_loads(void)
{
	/* a hint: it is looked at again with the lock */
	return process->is_armed;
}

/* ---- begin ---- */

/* Why this process is not recorded; NULL: it is. */
static const char *refusal(void)
{
	if (getauxval(AT_SECURE))
		return "it has the rights of another user";
	if (process->is_off || process->images.is_final)
		return "it has ended";
	return seam_preloaded_is_in_valgrind() ? "it runs under valgrind" :
						 NULL;
}

void seam_fdr_number_functions(void)
{
	/* without memory they have ids when recording begins */
	if (!refusal())
		(void)seam_fdr_images_with(&process->images, NULL, NULL);
}

static int arm(const char *text, char *why, size_t why_bytes)
{
	int r;

	if (refusal()) {
		snprintf(why, why_bytes, "%s", refusal());
		return -EPERM;
	}
	if (atomic_load(&seam_fdr_is_on)) {
		snprintf(why, why_bytes, "it has begun");
		return -EALREADY;
	}
	seam_fdr_options_fini(&process->options);
	r = seam_fdr_options_parse(&process->options, text, why, why_bytes);
	if (r < 0)
		return r;
	r = seam_fdr_fork_init();
	if (r < 0)
		snprintf(why, why_bytes, "cannot prepare for forks: %s",
			 strerror(-r));
	process->is_armed = r == 0;
	return r;
}

/* The program begins: a recorder that has ended, or refuses it, is none. */
static int prepare(char *why, size_t why_bytes)
{
	int r = seam_fdr_prepare(why, why_bytes);
	bool is_absent = r == -ECONNREFUSED || r == -ENOENT;

	/* with an address there is no other way to these, no bundle is made */
	if (is_absent && process->address[0]) {
		process->address[0] = '\0';
		r = seam_fdr_prepare(why, why_bytes);
	}
	return r;
}

int seam_fdr_begin(const char *options, char *why, size_t why_bytes)
{
	int saved_errno = errno, r;

	why[0] = 0;
	if (!seam_fdr_lock())
		return -EDEADLK;
	r = arm(options, why, why_bytes);
	/* ids are given before anything is registered */
	r = r ?: seam_fdr_images_with(&process->images, NULL, NULL);
	r = r ?: prepare(why, why_bytes);
	if (r == 0)
		refresh(true);
	else if (r != -EALREADY)
		process->is_armed = false;
	seam_fdr_unlock();
	name_bundle();
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
	if (images->is_final)
		return 0;
	seam_fdr_patch_all();
	for (size_t i = 0; i < images->list.n; i++)
		for (size_t j = 0; j < images->list.items[i]->n_lists; j++)
			images->list.items[i]->lists[j].is_selected = false;
	return 0;
}

int seam_fdr_end(const char *why)
{
	int saved_errno = errno, r = 0;
	bool was_on;

	if (process->is_off)
		return 0;
	if (!seam_fdr_lock())
		return -EDEADLK;
	process->is_stopped = why && process->is_armed;
	process->is_armed = false;
	was_on = atomic_load(&seam_fdr_is_on);
	if (was_on) {
		seam_fdr_cyg_set(false);
		process->is_ending = true;
		seam_fdr_images_with(&process->images, unpatch, NULL);
		process->is_ending = false;
		seam_fdr_announce_rest();
		atomic_store(&seam_fdr_is_on, false);
		if (why)
			seam_fdr_note("recording of calls ends: %s", why);
	}
	if (why)
		process->is_off = true;
	seam_fdr_unlock();
	/* without the lock: it goes through all functions */
	if (was_on)
		r = seam_fdr_bundle_end();
	if (why)
		seam_fdr_is_quiet = true;
	errno = saved_errno;
	return r;
}

void seam_fdr_resume(void)
{
	int saved_errno = errno;

	if (!process->is_stopped || !seam_fdr_lock())
		return;
	process->is_off = false;
	seam_fdr_is_quiet = false;
	process->is_armed = true;
	seam_fdr_note("recording of calls goes on: there is no filter");
	(void)refresh(true);
	process->is_stopped = false;
	seam_fdr_unlock();
	name_bundle();
	errno = saved_errno;
}

void seam_fdr_at_exit(void)
{
	int saved_errno = errno;

	if (!process->address[0]) {
		/* glibc leaves a child its list locked by another thread */
		process->images.is_final = process->is_child;
		(void)seam_fdr_end(NULL);
	} else if (atomic_load(&seam_fdr_is_on) &&
		   seam_fdr_announce_is_behind() &&
		   lock_by(pthread_mutex_trylock)) {
		seam_fdr_announce_rest();
		seam_fdr_unlock();
	}
	errno = saved_errno;
}

/* ---- for others ---- */

int seam_fdr_with_images(int (*work)(struct seam_fdr_images *images,
				     bool has_changed, void *context),
			 void *context)
{
	int saved_errno = errno, r;

	if (!seam_fdr_lock())
		return -EDEADLK;
	r = seam_fdr_images_with(&process->images, work, context);
	seam_fdr_unlock();
	errno = saved_errno;
	return r;
}

void seam_fdr_names_changed(void)
{
	int saved_errno = errno;

	if (!seam_fdr_lock())
		return;
	if (atomic_load(&seam_fdr_is_on) && process->address[0])
		(void)seam_fdr_announce_new();
	seam_fdr_unlock();
	errno = saved_errno;
}

/* ---- fork ---- */

void seam_fdr_fork_begin_child(void)
{
	process->is_child = true;
	seam_fdr_announce_begin_child();
	/* those it calls later are announced in handlers: all others now */
	if (process->address[0] && seam_fdr_cyg_count())
		(void)seam_fdr_announce_new();
	if (atomic_load(&seam_fdr_is_on))
		seam_fdr_resume_triggers();
}

/* ---- the library is loaded ---- */

__attribute__((constructor))
static void load(void)
{
	/* Source: secure_getenv(3): NULL for set-user-ID and the like */
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);
	const char *text = secure_getenv(SEAM_TRACE_VARIABLE);
	int saved_errno = errno, r;
	char why[256];

	if (getauxval(AT_SECURE))
		return;
	if (address && strlen(address) < sizeof(process->address))
		memcpy(process->address, address, strlen(address) + 1);
	if (!text || !seam_fdr_lock())
		return;
	is_loading = true;
	r = arm(text, why, sizeof(why));
	if (r < 0)
		seam_fdr_note("calls are not recorded: %s", why);
	else if (process->options.is_started)
		refresh(true);
	else
		process->is_armed = false;
	is_loading = false;
	seam_fdr_unlock();
	name_bundle();
	errno = saved_errno;
}
