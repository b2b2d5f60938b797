/* SPDX-License-Identifier: MIT */
/* start.c - begin and end in a process; see start.h */
#include "traced/fdr/start.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "ring/link/link_client.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/check/triggers.h"
#include "traced/fdr/cyg/cyg_announce.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/flight/flight_areas.h"
#include "traced/fdr/flight/flight_bundle.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/source_link.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/thread_area.h"
#include "traced/fdr/recorder.h"
#include "traced/interpose/preloaded.h"
#include "wire/xray/trace_service.h"

/* For the recorder to answer: it may have hundreds of programs to serve. */
enum { CONNECT_MS = 5000 };

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
	if (seam_fdr_is_recorded()) {
		(void)seam_link_client_note(process->address, text);
	} else if (is_loading) {
		signals = seam_fdr_write_signals_block();
		dprintf(STDERR_FILENO, "seam-fdr: %s\n", text);
		seam_fdr_write_signals_unblock(signals);
	}
}

bool seam_fdr_is_recorded(void)
{
	return process->address[0] && !seam_fdr_recorder_is_on();
}

/* ---- where the calls go ---- */

static int fail(char *why, size_t why_bytes, const char *what, int r)
{
	snprintf(why, why_bytes, "cannot %s: %s", what, strerror(-r));
	return r;
}

/*
 * Programs that this one executes join its bundle, unless a recorder without
 * --trace is above us.  Only before main(): other threads may read the
 * environment later.
 */
static void share_recorder(void)
{
	if (is_loading)
		setenv(SEAM_LINK_VARIABLE, process->address, 0);
}

/* The library, or a static program.  Not by dladdr(): it takes a lock. */
static const char *own_file(void)
{
	const struct seam_fdr_image *image = seam_fdr_images_at(
				&process->images, (uint64_t)(uintptr_t)process);

	return image ? image->file : "";
}

/* With the lock. */
static int connect_recorder(const char *path, const struct seam_tsc_tie *since,
			    char address[SEAM_LINK_ADDRESS_BYTES], char *why,
			    size_t why_bytes)
{
	int r = seam_fdr_recorder_start(path, own_file(), since, address, why,
					why_bytes);

	if (r)
		return r;
	r = seam_fdr_link_connect(address, CONNECT_MS);
	if (r == 0)
		return 0;
	(void)seam_fdr_recorder_stop();
	return fail(why, why_bytes, "connect to the recorder", r);
}

int seam_fdr_connect_recorder(const char *path,
			      const struct seam_tsc_tie *since, char *why,
			      size_t why_bytes)
{
	_Atomic uint64_t *n_lost = seam_fdr_n_lost;
	char address[SEAM_LINK_ADDRESS_BYTES];
	int r;

	if (!seam_fdr_lock())
		return -EDEADLK;
	r = connect_recorder(path, since, address, why, why_bytes);
	/* the threads' is another source */
	seam_fdr_n_lost = n_lost;
	if (r == 0)
		(void)seam_fdr_announce_new();
	seam_fdr_unlock();
	return r;
}

static int start_recorder(char *why, size_t why_bytes)
{
	char path[PATH_MAX];
	int r = seam_fdr_bundle_path(process->options.out, path);

	if (r)
		return fail(why, why_bytes, "make the bundle", r);
	r = connect_recorder(path, NULL, process->address, why, why_bytes);
	if (r == 0)
		share_recorder();
	else
		process->address[0] = '\0';
	return r;
}

/* In the program's own memory, where a bundle is open after a filter too. */
static int begin_flight(char *why, size_t why_bytes)
{
	char path[PATH_MAX];
	int r = seam_fdr_recorder_find(own_file(), why, why_bytes);

	if (r)
		return r;
	r = seam_fdr_flight_areas_init();
	if (r == 0)
		r = seam_fdr_bundle_path(process->options.out, path);
	if (r == 0 && !seam_fdr_flight_path()[0])
		r = seam_fdr_flight_begin(path);
	return r ? fail(why, why_bytes, "make the bundle", r) : 0;
}

static int begin_source(char *why, size_t why_bytes)
{
	const struct seam_fdr_source *source = &seam_fdr_source_link;
	int r = 0;

	if (process->address[0] && process->has_source)
		return 0;
	if (process->address[0])
		r = seam_fdr_link_connect(process->address, CONNECT_MS);
	/* it records no calls: as without a recorder */
	if (r == -ENOPROTOOPT)
		process->address[0] = '\0';
	else if (r < 0)
		return fail(why, why_bytes, "connect to the recorder", r);
	if (!process->address[0] && process->options.is_flight)
		source = &seam_fdr_source_flight;
	if (process->has_source && source != seam_fdr_source)
		return fail(why, why_bytes, "change flight= after the first "
			    "start", -EINVAL);
	if (!process->address[0])
		r = process->options.is_flight ? begin_flight(why, why_bytes) :
						 start_recorder(why, why_bytes);
	seam_fdr_rseq_init(false);
	return r ? r : seam_fdr_thread_init(source);
}

/* A flight recorder's triggers need to know what is copied. */
static void resume_triggers(void)
{
	/* without a recorder the first one freezes until the end */
	static const _Atomic uint32_t never;
	struct seam_ring_control *control;

	if (!process->address[0])
		seam_fdr_triggers_resume_at(&never);
	if (!process->address[0] || !process->options.n_triggers ||
	    seam_fdr_announce_claim() < 0)
		return;
	control = seam_fdr_announce_control();
	seam_fdr_triggers_resume_at(&control->program.n_resumed);
}

/* Connect, and all else that only a program with calls to record needs. */
static int prepare(char *why, size_t why_bytes)
{
	int r = seam_fdr_check_init(&process->options);

	if (r)
		return fail(why, why_bytes, "prepare checks", r);
	r = begin_source(why, why_bytes);
	if (r)
		return r;
	seam_fdr_cyg_select_none(&process->options);
	process->has_source = true;
	process->pid = getpid();
	resume_triggers();
	atomic_store(&seam_fdr_is_on, true);
	return 0;
}

/* ---- what is loaded ---- */

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
	r = prepare(why, sizeof(why));
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
	if (process->is_completing) {
		snprintf(why, why_bytes, "another thread stops it");
		return -EBUSY;
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
static int prepare_program(char *why, size_t why_bytes)
{
	int r = prepare(why, why_bytes);
	bool is_absent = r == -ECONNREFUSED || r == -ENOENT;

	/* ECONNREFUSED and ENOENT can only come from connect() */
	if (is_absent && process->address[0]) {
		process->address[0] = '\0';
		r = prepare(why, why_bytes);
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
	r = r ?: prepare_program(why, why_bytes);
	if (r == 0)
		refresh(true);
	else if (r != -EALREADY)
		process->is_armed = false;
	seam_fdr_unlock();
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

/*
 * Without the lock: it may take long.  Before a filter, which may be refused,
 * a flight recorder's calls are written, and the recorder waits for the end.
 */
static int complete(const char *why)
{
	int r;

	if (why)
		return seam_fdr_flight_write();
	if (!seam_fdr_recorder_is_on())
		return seam_fdr_flight_end();
	r = seam_fdr_recorder_stop();
	seam_fdr_announce_begin_anew();
	process->address[0] = '\0';
	return r;
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
	process->is_completing = was_on;
	seam_fdr_unlock();
	if (was_on) {
		r = complete(why);
		process->is_completing = false;
	}
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
	errno = saved_errno;
}

void seam_fdr_at_exit(void)
{
	int saved_errno = errno;

	if (!process->address[0]) {
		/* glibc leaves a child its list locked by another thread */
		process->images.is_final = process->is_child;
		(void)seam_fdr_end(NULL);
	} else if (atomic_load(&seam_fdr_is_on) && !process->is_off) {
		if (seam_fdr_announce_is_behind() &&
		    lock_by(pthread_mutex_trylock)) {
			seam_fdr_announce_rest();
			seam_fdr_unlock();
		}
		seam_fdr_recorder_exit();
	}
	errno = saved_errno;
}

/* ---- for others ---- */

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

/*
 * ---- what a fork copies ----
 *
 * A fork waits for a thread that patches or reads the list of images; so no
 * child finds a lock taken, of ours or, because of us, of the loader, nor half
 * of a list.  The child has the patched code of its parent, and records by its
 * own pid from its first call on (fdr_thread.h).
 *
 * vfork() and posix_spawn() do not come here.
 */

/*
 * Not after the end for good, when our system calls may kill.  That is set with
 * the lock, so whether a fork has it is seen from it as long as the fork lasts.
 */
static void begin_fork(void)
{
	if (process->is_off)
		return;
	if (!seam_fdr_lock())
		process->n_nested_forks++;
	else if (process->is_off)
		seam_fdr_unlock();
}

/* Whether it was a fork in a fault's handler: its thread goes on with it. */
static bool end_nested(void)
{
	if (!process->n_nested_forks)
		return false;
	process->n_nested_forks--;
	return true;
}

static void end_fork(void)
{
	if (!process->is_off && !end_nested())
		seam_fdr_unlock();
}

/* With the lock: it has announced nothing so far. */
static void begin_anew(void)
{
	process->is_child = true;
	seam_fdr_announce_begin_anew();
	seam_fdr_recorder_forked(process->pid);
	process->pid = getpid();
	/* those it calls later are announced in handlers: all others now */
	if (process->address[0] && seam_fdr_cyg_count())
		(void)seam_fdr_announce_new();
	if (atomic_load(&seam_fdr_is_on))
		resume_triggers();
}

static void begin_child(void)
{
	if (process->is_off)
		return;
	/* before a child of its own, by vfork(), records */
	(void)seam_fdr_states_pid();
	seam_fdr_thread_begin_child();
	if (end_nested()) {
		seam_fdr_announce_begin_anew();
		return;
	}
	begin_anew();
	seam_fdr_unlock();
}

static int code;

static void install(void)
{
	code = -pthread_atfork(begin_fork, end_fork, begin_child);
}

int seam_fdr_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return code;
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
	errno = saved_errno;
}
