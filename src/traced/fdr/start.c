/* SPDX-License-Identifier: MIT */
/* start.c - begin and end in a process; see fdr_process.h */
#include <seam/fdr.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ring/link/link.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/cyg/cyg_profile.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/flight/flight.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/recorder.h"
#include "traced/interpose/preloaded.h"
#include "wire/xray/trace_service.h"

/* For the recorder to answer, which may have hundreds of programs to serve. */
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

static void begin_fork(void);
static void end_fork(void);
static void begin_child(void);
static int fork_error;

static void install_fork_handlers(void)
{
	fork_error = -pthread_atfork(begin_fork, end_fork, begin_child);
}

/*
 * A thread that is cancelled while it has the lock would leave it locked, and a
 * handler that forks would wait for its own thread.
 */
static bool lock_by(int (*lock)(pthread_mutex_t *mutex))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t blocked;
	int state;

	if (atomic_load(&process->owner) == &seam_fdr_self)
		return false;
	blocked = seam_fdr_block_handlers();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	/* a child must not find the lock held by a thread that it lacks */
	pthread_once(&once, install_fork_handlers);
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

	/* a fork that began while is_off was set has not taken the lock */
	if (atomic_load(&process->owner) != &seam_fdr_self)
		return;
	atomic_store(&process->owner, NULL);
	pthread_mutex_unlock(&process->lock);
	pthread_setcancelstate(state, &state);
	seam_fdr_unblock(blocked);
}

void seam_fdr_note(const char *format, ...)
{
	struct pollfd standard_error = { .fd = STDERR_FILENO };
	struct rlimit limit;
	char text[SEAM_LINK_NOTE_BYTES];
	va_list list;

	va_start(list, format);
	seam_preloaded_format(text, format, list);
	va_end(list);
	if (seam_fdr_is_recorded())
		(void)seam_link_client_note(process->address, text);
	/* a pipe that nobody reads raises SIGPIPE, a limited file SIGXFSZ */
	else if (is_loading && poll(&standard_error, 1, 0) == 0 &&
		 getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		 limit.rlim_cur == RLIM_INFINITY)
		dprintf(STDERR_FILENO, "seam-fdr: %s\n", text);
}

bool seam_fdr_is_recorded(void)
{
	return process->address[0] && !*seam_fdr_recorder_path();
}

/* ---- where the calls go ---- */

static int fail(const char *what, int code, struct seam_err *err)
{
	return seam_err_set(err, code, "cannot %s: %s", what, strerror(-code));
}

/* The library, or a static program.  Not by dladdr(): it takes a lock. */
static const char *own_file(void)
{
	for (size_t i = 0; i < process->images.list.n; i++) {
		const struct seam_fdr_image *image =
			process->images.list.items[i];

		if (image->is_loaded &&
		    seam_fdr_code_segment(&image->code,
					  (uint64_t)(uintptr_t)process, 1, 0))
			return image->file;
	}
	return "";
}

/* With the lock. */
static int connect_recorder(const char *path, const struct seam_tsc_tie *since,
			    char address[SEAM_LINK_ADDRESS_BYTES],
			    struct seam_err *err)
{
	int r = seam_fdr_recorder_start(path, own_file(), since, address, err);

	if (r)
		return r;
	r = seam_fdr_link_connect(address, CONNECT_MS);
	if (r == 0)
		return 0;
	(void)seam_fdr_recorder_stop();
	return fail("connect to the recorder", r, err);
}

int seam_fdr_connect_recorder(const char *path,
			      const struct seam_tsc_tie *since)
{
	_Atomic uint64_t *n_lost = seam_fdr_n_lost;
	char address[SEAM_LINK_ADDRESS_BYTES];
	int r;

	if (!seam_fdr_lock())
		return -EDEADLK;
	r = connect_recorder(path, since, address, NULL);
	/* threads record into another source */
	seam_fdr_n_lost = n_lost;
	if (r == 0)
		(void)seam_fdr_announce_new();
	seam_fdr_unlock();
	return r;
}

/*
 * A full trace: start a recorder.  A flight recorder is in the program's own
 * memory, where a bundle can be written after a filter too.
 */
static int begin_bundle(struct seam_err *err)
{
	char path[PATH_MAX], program[PATH_MAX];
	int r = seam_fdr_bundle_path(process->options.out, path);

	if (r)
		return fail("make the bundle", r, err);
	if (process->options.is_flight) {
		/* no start without the program that writes the bundle later */
		r = seam_fdr_recorder_find(own_file(), program, err);
		if (r)
			return r;
		r = seam_fdr_flight_begin(path);
		return r ? fail("make the bundle", r, err) : 0;
	}
	r = connect_recorder(path, NULL, process->address, err);
	if (r)
		process->address[0] = '\0';
	/*
	 * Programs that this program executes join its bundle, unless a
	 * recorder without --trace is above us.  Only before main(): other
	 * threads may read the environment later.
	 */
	else if (is_loading)
		setenv(SEAM_LINK_VARIABLE, process->address, 0);
	return r;
}

static int begin_source(struct seam_err *err)
{
	const struct seam_fdr_source *source = &seam_fdr_source_link;
	int r = 0;

	if (process->address[0] && process->has_source)
		return 0;
	if (process->address[0])
		r = seam_fdr_link_connect(process->address, CONNECT_MS);
	/* a recorder that records no calls: as without a recorder */
	if (r == -ENOPROTOOPT)
		process->address[0] = '\0';
	else if (r < 0)
		return fail("connect to the recorder", r, err);
	if (!process->address[0] && process->options.is_flight)
		source = &seam_fdr_source_flight;
	if (process->has_source && source != seam_fdr_source)
		return fail("change flight= after the first start", -EINVAL,
			    err);
	r = process->address[0] ? 0 : begin_bundle(err);
	seam_fdr_rseq_init(false);
	return r ? r : seam_fdr_thread_init(source);
}

/* A flight recorder's triggers freeze until the recorder has copied. */
static void resume_triggers(void)
{
	/* without a recorder the first trigger freezes until the end */
	static const _Atomic uint32_t never;
	struct seam_ring_control *control;

	if (!process->address[0]) {
		seam_fdr_triggers_resume_at(&never);
		return;
	}
	control = process->options.n_triggers ? seam_fdr_announce_control() :
						NULL;
	if (control)
		seam_fdr_triggers_resume_at(&control->program.n_resumed);
}

/* Connect, and all else that only a program with calls to record needs. */
static int prepare(struct seam_err *err)
{
	int r = seam_fdr_check_init(&process->options);

	if (r)
		return fail("prepare checks", r, err);
	r = begin_source(err);
	if (r)
		return r;
	seam_fdr_select_none();
	process->has_source = true;
	process->pid = getpid();
	resume_triggers();
	atomic_store(&seam_fdr_is_on, true);
	return 0;
}

/* ---- loaded images ---- */

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
	/* images that came just now are not selected yet */
	if (!has_changed)
		process->loads = images->loads;
	return 0;
}

/* Report files that cannot be read, once. */
static void note_unknown(void)
{
	if (!process->images.n_unknown || process->has_noted_unknown)
		return;
	process->has_noted_unknown = true;
	seam_fdr_note("%zu files have no section table, or cannot be read: "
		      "their calls are not recorded",
		      process->images.n_unknown);
}

static void note_failure(const struct seam_err *err)
{
	char text[SEAM_ERR_TEXT];

	seam_err_text(err, text);
	seam_fdr_note("calls are not recorded: %s", text);
}

/*
 * Most processes of a build, or a shell script, have nothing to record: they do
 * not connect.
 */
static int begin_if_needed(void)
{
	struct seam_err err = { .n_causes = 0 };
	int r;

	if (!has_calls(&process->images))
		return 0;
	r = prepare(&err);
	if (r < 0) {
		process->is_armed = false;
		note_failure(&err);
	}
	return r;
}

/*
 * The loader is locked only while code is patched, not while names are read or
 * sent.  A library that is loaded in between is patched the next time, which
 * comes soon: its thread waits for our lock.
 */
static int refresh(bool is_forced)
{
	int r = seam_fdr_images_with(&process->images, NULL, NULL);

	if (r == 0 && !atomic_load(&seam_fdr_is_on)) {
		r = begin_if_needed();
		is_forced = true;
	}
	note_unknown();
	if (r < 0 || !atomic_load(&seam_fdr_is_on))
		return r;
	/* other visits of the list may have seen the change before */
	if (is_forced || !seam_self_loads_equal(process->images.loads,
						process->loads)) {
		seam_fdr_take_new();
		r = seam_fdr_images_with(&process->images, patch, NULL);
	}
	seam_fdr_cyg_set(true);
	return r;
}

void seam_fdr_refresh(void)
{
	int saved_errno = errno;

	/* a hint, which is read again with the lock */
	if (!process->is_armed || !seam_fdr_lock())
		return;
	if (process->is_armed)
		refresh(false);
	seam_fdr_unlock();
	errno = saved_errno;
}

/* ---- begin ---- */

/* Why this process is not recorded; NULL: no reason. */
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

static int arm(const char *text, struct seam_err *err)
{
	int r;

	if (refusal())
		return seam_err_set(err, -EPERM, "%s", refusal());
	if (atomic_load(&seam_fdr_is_on))
		return seam_err_set(err, -EALREADY, "it has begun");
	if (process->is_completing)
		return seam_err_set(err, -EBUSY, "another thread stops it");
	seam_fdr_options_fini(&process->options);
	r = seam_fdr_options_parse(&process->options, text, err);
	if (r < 0)
		return r;
	if (fork_error)
		return fail("prepare for forks", fork_error, err);
	process->is_armed = true;
	return 0;
}

int seam_fdr_start_why(const char *options, char *why, size_t why_bytes)
{
	struct seam_err err = { .n_causes = 0 };
	char text[SEAM_ERR_TEXT];
	int saved_errno = errno, r;

	why[0] = 0;
	if (!options)
		options = secure_getenv(SEAM_TRACE_VARIABLE);
	if (!seam_fdr_lock())
		return -EDEADLK;
	r = arm(options ? options : "", &err);
	/* ids are given before anything is registered */
	r = r ?: seam_fdr_images_with(&process->images, NULL, NULL);
	r = r ?: prepare(&err);
	/* only connect() gives these: the recorder of SEAM_LINK has ended */
	if ((r == -ECONNREFUSED || r == -ENOENT) && process->address[0]) {
		process->address[0] = '\0';
		r = prepare(&err);
	}
	if (r == 0)
		refresh(true);
	else if (r != -EALREADY)
		process->is_armed = false;
	seam_fdr_unlock();
	if (r == 0)
		err.n_causes = 0;
	seam_err_text(&err, text);
	snprintf(why, why_bytes, "%s", text);
	errno = saved_errno;
	return r;
}

int seam_fdr_start(const char *options)
{
	char why[SEAM_ERR_TEXT];

	return seam_fdr_start_why(options, why, sizeof(why));
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
 * Without the lock, as this may take long.  Before a filter, which may be
 * refused, a flight recorder's calls are written, and a full trace's recorder
 * goes on.
 */
static int complete(const char *why)
{
	int r;

	if (why || !*seam_fdr_recorder_path())
		return seam_fdr_flight_write(!why);
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

int seam_fdr_stop(void)
{
	return seam_fdr_end(NULL);
}

__attribute__((destructor))
static void end_with_the_process(void)
{
	int saved_errno = errno;

	if (!process->address[0]) {
		/* glibc's list may be locked, by a thread that a child lacks */
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
 * Not after the end for good, when our system calls may kill.  is_off is set
 * with the lock, so is_off says as long as the fork lasts whether it has the
 * lock.
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

/* Whether it was a fork in a fault's handler, whose thread has the lock. */
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

/* With the lock: the child has announced nothing so far. */
static void begin_anew(void)
{
	process->is_child = true;
	seam_fdr_announce_begin_anew();
	seam_fdr_recorder_forked(process->pid);
	process->pid = getpid();
	/* new functions may be announced in handlers: all others now */
	if (process->address[0] && seam_fdr_cyg_has_functions())
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
	if (end_nested()) {
		seam_fdr_announce_begin_anew();
		return;
	}
	begin_anew();
	seam_fdr_unlock();
}

/* ---- the library is loaded ---- */

__attribute__((constructor))
static void load(void)
{
	/* Source: secure_getenv(3): NULL for set-user-ID and the like */
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);
	const char *text = secure_getenv(SEAM_TRACE_VARIABLE);
	struct seam_err err = { .n_causes = 0 };
	int saved_errno = errno;

	if (getauxval(AT_SECURE))
		return;
	if (address && strlen(address) < sizeof(process->address))
		memcpy(process->address, address, strlen(address) + 1);
	if (!text || !seam_fdr_lock())
		return;
	is_loading = true;
	if (arm(text, &err) < 0)
		note_failure(&err);
	else if (process->options.is_started)
		refresh(true);
	else
		process->is_armed = false;
	is_loading = false;
	seam_fdr_unlock();
	errno = saved_errno;
}
