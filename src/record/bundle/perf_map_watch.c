/* SPDX-License-Identifier: MIT */
/* perf_map_watch.c - a thread that waits for maps to grow; see perf_map_watch.h */
#include "record/bundle/perf_map_watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/bundle/perf_map_copy.h"
#include "record/proc/target_file.h"
#include "symbol/jit/jit_find.h"
#include "wire/jit/perf_map_times.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	PACE_NS = 1000 * 1000,		/* from look to look, at least */
	FIRST_TRY_NS = 2 * 1000 * 1000,	/* for a map that is not there yet */
	LOOK_BYTES = 4 << 20,		/* of one map; then others' turn */
	NAME_BYTES = 48,
};

#define POLL_NS (SEAM_PERF_MAP_WATCH_POLL_MS * SEAM_NS_PER_MS)

/* The thread's alone, but for what is atomic. */
struct followed {
	int32_t pid;
	bool is_held;			/* the process was looked for */
	bool is_ready;			/* inotify names it */
	bool has_failed;
	int watch;			/* of inotify; -1: none */
	struct seam_target target;
	struct seam_perf_map_copy copy;
	uint64_t try_ns, step_ns;	/* when to open it, and then again */
	struct seam_err refusal;	/* the last; code 0: none */
	_Atomic uint64_t n_bytes;	/* the thread writes, any reads */
};

struct seam_perf_map_watch {
	pthread_t thread;
	struct seam_bundle bundle;	/* with a descriptor of our own */
	int folder;			/* its jit/; -1: not made; the thread's */
	int wake, inotify;		/* inotify -1: looking has to do */
	pthread_mutex_t lock;		/* of n_items, which the caller adds to */
	size_t n_items;
	struct followed items[SEAM_PERF_MAP_WATCH_MAX];
	_Atomic bool shall_end;
	bool has_ended, is_stuck;	/* the caller's */
	struct seam_err why;		/* the thread's; the first failure */
};

static size_t count_items(struct seam_perf_map_watch *f)
{
	size_t n;

	pthread_mutex_lock(&f->lock);
	n = f->n_items;
	pthread_mutex_unlock(&f->lock);
	return n;
}

static uint64_t bytes_of(const struct followed *item)
{
	/* relaxed: a count */
	return atomic_load_explicit(&item->n_bytes, memory_order_relaxed);
}

uint64_t seam_perf_map_watch_bytes(struct seam_perf_map_watch *f)
{
	uint64_t bytes = 0;

	for (size_t i = count_items(f); i-- > 0;)
		bytes += bytes_of(&f->items[i]);
	return bytes;
}

static void name_of(const struct followed *item, char *name)
{
	snprintf(name, NAME_BYTES, "perf-%" PRId32 ".map", item->pid);
}

/* ---- the thread ---- */

static void watch(struct seam_perf_map_watch *f, struct followed *item)
{
	char path[32];

	if (f->inotify < 0)
		return;
	if (item->watch >= 0)
		inotify_rm_watch(f->inotify, item->watch);
	/* The file that was judged, whatever its name leads to by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", item->copy.from);
	item->watch = inotify_add_watch(f->inotify, path, IN_MODIFY);
}

static void keep_first(struct seam_perf_map_watch *f, const struct seam_err *err)
{
	if (!f->why.n_causes)
		f->why = *err;
}

static void copy_more(struct seam_perf_map_watch *f, struct followed *item)
{
	struct seam_err err = { 0 };
	uint64_t had = seam_perf_map_watch_bytes(f);
	char name[NAME_BYTES];

	if (item->copy.from < 0 || item->copy.is_over)
		return;
	if (f->folder < 0)
		f->folder = seam_bundle_folder(&f->bundle, "jit", &err);
	item->copy.max_bytes = item->copy.n_bytes +
		(had < SEAM_PERF_MAP_WATCH_MAX_BYTES ?
		 SEAM_PERF_MAP_WATCH_MAX_BYTES - had : 0);
	name_of(item, name);
	if (f->folder < 0 ||
	    seam_perf_map_copy_update(&item->copy, f->folder, name, LOOK_BYTES,
			       &err) < 0) {
		item->has_failed = item->copy.is_over = true;
		keep_first(f, &err);
	}
	/* relaxed: a count */
	atomic_store_explicit(&item->n_bytes, item->copy.n_bytes,
			      memory_order_relaxed);
}

/* With the rights of the process's user, and checked.  -ENOENT: none. */
static int open_map(struct followed *item)
{
	const struct seam_jit_owner *owner = &item->target.owner;
	struct seam_err *why = &item->refusal;
	char path[64];
	int fd;

	if (!item->is_held)
		seam_target_open(&item->target, item->pid, NULL);
	item->is_held = true;
	*why = (struct seam_err) { 0 };
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId32 ".map",
		 owner->inner_pid ? owner->inner_pid : item->pid);
	fd = seam_target_open_path(&item->target, path, why);
	if (fd == -ENOENT || fd == -ENOTDIR)
		*why = (struct seam_err) { 0 };
	return fd < 0 ? fd : seam_jit_check(owner, SEAM_JIT_MAP, path, fd,
					    SEAM_JIT_MAX_BYTES, why);
}

/* The map under its name: for the first time, or another than before. */
static void find_map(struct seam_perf_map_watch *f, struct followed *item)
{
	int fd = open_map(item);

	if (fd < 0)
		return;
	if (!seam_perf_map_copy_is_other_file(&item->copy, fd)) {
		close(fd);
		return;
	}
	copy_more(f, item);		/* the last of the one before */
	seam_perf_map_copy_set_source(&item->copy, fd);
	watch(f, item);
}

/* @now_ns UINT64_MAX: for the last time. */
static void look(struct seam_perf_map_watch *f, struct followed *item,
		 uint64_t now_ns)
{
	if (item->copy.is_over || (!item->is_ready && item->try_ns > now_ns))
		return;
	if (item->try_ns <= now_ns) {
		find_map(f, item);
		/* Later and later while there is none. */
		item->step_ns = item->step_ns < POLL_NS / 2 ?
				2 * item->step_ns : POLL_NS;
		item->try_ns = seam_clock_ns() + item->step_ns;
	}
	item->copy.is_woken = item->is_ready;
	item->is_ready = false;
	copy_more(f, item);
}

/* Names of what has changed, and then all who wait are served. */
static void drain_events(struct seam_perf_map_watch *f)
{
	char bytes[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	size_t n_items = count_items(f);
	uint64_t woken;
	ssize_t n = f->inotify < 0 ? 0 :
		    read(f->inotify, bytes, sizeof(bytes));

	(void)!read(f->wake, &woken, sizeof(woken));
	for (ssize_t at = 0; at < n; at += (ssize_t)sizeof(*event) +
					   (ssize_t)event->len) {
		event = (const void *)(bytes + at);
		for (size_t i = 0; i < n_items; i++)
			f->items[i].is_ready |=
				f->items[i].watch == event->wd ||
				event->mask & IN_Q_OVERFLOW;
	}
}

static void wait_for_news(struct seam_perf_map_watch *f)
{
	const struct timespec pace = { .tv_nsec = PACE_NS };
	struct pollfd fds[] = {
		{ .fd = f->wake, .events = POLLIN },
		{ .fd = f->inotify, .events = POLLIN },
	};
	uint64_t next_ns = UINT64_MAX, now_ns;
	int timeout_ms = SEAM_PERF_MAP_WATCH_POLL_MS;

	nanosleep(&pace, NULL);
	for (size_t i = count_items(f); i-- > 0;)
		if (!f->items[i].copy.is_over &&
		    f->items[i].try_ns < next_ns)
			next_ns = f->items[i].try_ns;
	now_ns = seam_clock_ns();
	if (next_ns < now_ns + POLL_NS)
		timeout_ms = next_ns > now_ns ?
			     (int)((next_ns - now_ns) / SEAM_NS_PER_MS) : 0;
	else if (next_ns == UINT64_MAX)
		timeout_ms = -1;
	poll(fds, 2, timeout_ms);
	drain_events(f);
}

static void *run(void *context)
{
	struct seam_perf_map_watch *f = context;
	bool is_last;

	do {
		/* acquire: pairs with the release in _finish() */
		is_last = atomic_load_explicit(&f->shall_end,
					       memory_order_acquire);
		for (size_t i = count_items(f); i-- > 0;)
			look(f, &f->items[i], is_last ? UINT64_MAX :
			     seam_clock_ns());
		if (!is_last)
			wait_for_news(f);
	} while (!is_last);
	return NULL;
}

/* ---- the recorder ---- */

/* No signal is for it: the recorder gets them as data. */
static int start_thread(struct seam_perf_map_watch *f)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&f->thread, NULL, run, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static void drop(struct seam_perf_map_watch *f)
{
	if (f->bundle.dir >= 0)
		close(f->bundle.dir);
	if (f->folder >= 0)
		close(f->folder);
	if (f->wake >= 0)
		close(f->wake);
	if (f->inotify >= 0)
		close(f->inotify);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

struct seam_perf_map_watch *seam_perf_map_watch_start(const struct seam_bundle *bundle)
{
	struct seam_perf_map_watch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	f->bundle = *bundle;
	f->folder = -1;
	f->bundle.dir = fcntl(bundle->dir, F_DUPFD_CLOEXEC, 0);
	f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->bundle.dir >= 0 && f->wake >= 0 && start_thread(f) == 0)
		return f;
	drop(f);
	return NULL;
}

static void wake(struct seam_perf_map_watch *f)
{
	const uint64_t one = 1;

	(void)!write(f->wake, &one, sizeof(one));
}

bool seam_perf_map_watch_add(struct seam_perf_map_watch *f, int32_t pid)
{
	struct followed *item;

	/* The caller alone changes it. */
	if (f->n_items == SEAM_PERF_MAP_WATCH_MAX)
		return false;
	item = &f->items[f->n_items];
	*item = (struct followed) {
		.pid = pid, .watch = -1, .step_ns = FIRST_TRY_NS,
	};
	seam_target_init(&item->target);
	item->target.owner.pid = pid;
	seam_perf_map_copy_init(&item->copy, SEAM_PERF_MAP_WATCH_MAX_BYTES);
	pthread_mutex_lock(&f->lock);
	f->n_items++;
	pthread_mutex_unlock(&f->lock);
	wake(f);
	return true;
}

static int copy_file(int from, int to, const char *name, const char *suffix,
		     uint64_t max_bytes, struct seam_err *err)
{
	char path[NAME_BYTES + 8];
	int fd, r;

	snprintf(path, sizeof(path), "%s%s", name, suffix);
	fd = openat(from, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return seam_err_set(err, -errno, "cannot copy '%s': %s", path,
				    strerror(errno));
	r = seam_jit_copy(fd, to, path, max_bytes, err);
	close(fd);
	return r;
}

/* Marks that are beyond the map's end say nothing: the index is copied last. */
int seam_perf_map_watch_copy(struct seam_perf_map_watch *f, int folder,
			 struct seam_err *err)
{
	int from = seam_perf_map_watch_bytes(f) ?
		   seam_bundle_folder(&f->bundle, "jit", err) : -1;
	char name[NAME_BYTES];
	int r = 0;

	for (size_t i = 0; r == 0 && from >= 0 && i < f->n_items; i++) {
		uint64_t n_bytes = bytes_of(&f->items[i]);

		if (!n_bytes)
			continue;
		name_of(&f->items[i], name);
		r = copy_file(from, folder, name, "", n_bytes, err);
		if (r == 0)
			r = copy_file(from, folder, name,
				      SEAM_PERF_MAP_TIMES_SUFFIX, UINT64_MAX,
				      err);
	}
	if (from >= 0)
		close(from);
	return r;
}

static void join(struct seam_perf_map_watch *f)
{
	struct timespec until;

	/* release: pairs with the acquire in run() */
	atomic_store_explicit(&f->shall_end, true, memory_order_release);
	wake(f);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SEAM_PERF_MAP_WATCH_END_MS / 1000;
	f->is_stuck = pthread_timedjoin_np(f->thread, NULL, &until) != 0;
	f->has_ended = true;
}

static void add_result(const struct followed *item,
		       struct seam_perf_map_watch_result *result)
{
	bool is_refused = item->refusal.n_causes && item->copy.from < 0;

	result->n_refused += is_refused;
	result->n_failed += item->has_failed;
	result->n_cut += item->copy.is_cut;
	if (is_refused && !result->why.n_causes)
		result->why = item->refusal;
}

void seam_perf_map_watch_stop(struct seam_perf_map_watch *f,
			    struct seam_perf_map_watch_result *result)
{
	*result = (struct seam_perf_map_watch_result) { 0 };
	if (!f->has_ended)
		join(f);
	result->is_stuck = f->is_stuck;
	result->n_bytes = seam_perf_map_watch_bytes(f);
	if (!f->is_stuck)
		result->why = f->why;
	for (size_t i = 0; i < f->n_items; i++) {
		result->n_copied += bytes_of(&f->items[i]) > 0;
		/* What else there is may still be written. */
		if (!f->is_stuck)
			add_result(&f->items[i], result);
	}
}

void seam_perf_map_watch_free(struct seam_perf_map_watch *f)
{
	struct seam_perf_map_watch_result result;

	if (!f)
		return;
	seam_perf_map_watch_stop(f, &result);
	if (f->is_stuck)
		return;		/* the thread may come back to it */
	for (size_t i = 0; i < f->n_items; i++) {
		seam_perf_map_copy_close(&f->items[i].copy);
		seam_target_close(&f->items[i].target);
	}
	drop(f);
}
