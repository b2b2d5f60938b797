/* SPDX-License-Identifier: MIT */
/* perf_map_watch.c - open maps, wait until they grow; see perf_map_watch.h */
#include "record/bundle/perf_map_watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/bundle/perf_map_copy.h"
#include "record/proc/apart.h"
#include "record/proc/target_file.h"
#include "symbol/jit/jit_find.h"
#include "wire/jit/perf_map_times.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	MIN_INTERVAL_NS = 1000 * 1000,	/* between two reads of a map */
	FIRST_TRY_NS = 2 * 1000 * 1000,	/* for a map that is not there yet */
	READ_BYTES = 4 << 20,		/* of one map, then of the next */
	NAME_BYTES = 48,
};

#define POLL_NS (SEAM_PERF_MAP_WATCH_POLL_MS * SEAM_NS_PER_MS)

/* Only the process uses it, but for n_bytes. */
struct watched {
	int32_t pid;
	bool is_open;			/* target was opened */
	bool is_ready;			/* inotify reported a write to it */
	bool has_failed;		/* the copy could not be written */
	int inotify_id;			/* -1: none */
	struct seam_target target;
	struct seam_perf_map_copy copy;
	uint64_t try_ns, step_ns;	/* when to open it, and how often */
	struct seam_err refusal;	/* the last; no causes: none */
	_Atomic uint64_t n_bytes;	/* the process writes, any reads */
};

struct seam_perf_map_watch {
	pthread_t thread;		/* as of seam_apart_start() */
	struct seam_bundle bundle;	/* with a descriptor of its own */
	int folder;			/* the process's: jit/; -1: not made */
	int wakeup, inotify;		/* inotify -1: poll */
	_Atomic size_t n_items;		/* the caller adds */
	struct watched items[SEAM_PERF_MAP_WATCH_MAX];
	_Atomic bool shall_end;		/* the caller writes */
	bool has_ended, is_stuck;	/* the caller's */
	struct seam_err why;		/* the process's: the first failure */
};

static size_t count_items(const struct seam_perf_map_watch *w)
{
	/* acquire: pairs with the release in seam_perf_map_watch_add() */
	return atomic_load_explicit(&w->n_items, memory_order_acquire);
}

static uint64_t bytes_of(const struct watched *item)
{
	/* relaxed: a count */
	return atomic_load_explicit(&item->n_bytes, memory_order_relaxed);
}

uint64_t seam_perf_map_watch_bytes(struct seam_perf_map_watch *w)
{
	uint64_t bytes = 0;

	for (size_t i = w ? count_items(w) : 0; i-- > 0;)
		bytes += bytes_of(&w->items[i]);
	return bytes;
}

static void name_of(const struct watched *item, char *name)
{
	snprintf(name, NAME_BYTES, "perf-%" PRId32 ".map", item->pid);
}

/* ---- the process ---- */

static void add_inotify(struct seam_perf_map_watch *w, struct watched *item)
{
	char path[32];

	if (w->inotify < 0)
		return;
	if (item->inotify_id >= 0)
		inotify_rm_watch(w->inotify, item->inotify_id);
	/* the validated file, not one that has taken its name since */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", item->copy.from);
	item->inotify_id = inotify_add_watch(w->inotify, path, IN_MODIFY);
}

static void copy_more(struct seam_perf_map_watch *w, struct watched *item)
{
	struct seam_err err = { 0 };
	uint64_t had = seam_perf_map_watch_bytes(w);
	char name[NAME_BYTES];

	if (item->copy.from < 0 || item->copy.is_over)
		return;
	if (w->folder < 0)
		w->folder = seam_bundle_folder(&w->bundle, "jit", &err);
	item->copy.max_bytes = item->copy.n_bytes +
		(had < SEAM_PERF_MAP_WATCH_MAX_BYTES ?
		 SEAM_PERF_MAP_WATCH_MAX_BYTES - had : 0);
	name_of(item, name);
	if (w->folder < 0 ||
	    seam_perf_map_copy_update(&item->copy, w->folder, name, READ_BYTES,
				      &err) < 0) {
		item->has_failed = item->copy.is_over = true;
		if (!w->why.n_causes)
			w->why = err;
	}
	/* relaxed: a count */
	atomic_store_explicit(&item->n_bytes, item->copy.n_bytes,
			      memory_order_relaxed);
}

/* Open and validate the map of the process.  -ENOENT: there is none. */
static int open_map(struct watched *item)
{
	const struct seam_jit_owner *owner = &item->target.owner;
	struct seam_err *why = &item->refusal;
	char path[64];
	int fd;

	if (!item->is_open)
		seam_target_open(&item->target, item->pid, NULL);
	item->is_open = true;
	*why = (struct seam_err) { 0 };
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId32 ".map",
		 owner->inner_pid ? owner->inner_pid : item->pid);
	fd = seam_target_open_path(&item->target, path, why);
	if (fd == -ENOENT || fd == -ENOTDIR)
		*why = (struct seam_err) { 0 };
	return fd < 0 ? fd : seam_jit_check(owner, SEAM_JIT_MAP, path, fd,
					    SEAM_JIT_MAX_BYTES, why);
}

/* Open the map by its name; later calls find a file that replaced it. */
static void find_map(struct seam_perf_map_watch *w, struct watched *item)
{
	int fd = open_map(item);

	if (fd < 0)
		return;
	if (!seam_perf_map_copy_is_other_file(&item->copy, fd)) {
		close(fd);
		return;
	}
	copy_more(w, item);		/* the rest of the former file */
	seam_perf_map_copy_set_source(&item->copy, fd);
	add_inotify(w, item);
}

/* @now_ns UINT64_MAX: for the last time. */
static void update(struct seam_perf_map_watch *w, struct watched *item,
		   uint64_t now_ns)
{
	if (item->copy.is_over || (!item->is_ready && item->try_ns > now_ns))
		return;
	if (item->try_ns <= now_ns) {
		find_map(w, item);
		/* at first often, for a map that is about to be made */
		item->step_ns = item->step_ns < POLL_NS / 2 ?
				2 * item->step_ns : POLL_NS;
		item->try_ns = seam_clock_ns() + item->step_ns;
	}
	item->copy.is_woken = item->is_ready;
	item->is_ready = false;
	copy_more(w, item);
}

/* Read the events of inotify, and mark the maps that were written. */
static void read_events(struct seam_perf_map_watch *w)
{
	char bytes[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	size_t n_items = count_items(w);
	uint64_t n_wakeups;
	ssize_t n = w->inotify < 0 ? 0 :
		    read(w->inotify, bytes, sizeof(bytes));

	(void)!read(w->wakeup, &n_wakeups, sizeof(n_wakeups));
	for (ssize_t at = 0; at < n; at += (ssize_t)sizeof(*event) +
					   (ssize_t)event->len) {
		event = (const void *)(bytes + at);
		for (size_t i = 0; i < n_items; i++)
			w->items[i].is_ready |=
				w->items[i].inotify_id == event->wd ||
				event->mask & IN_Q_OVERFLOW;
	}
}

/* False: the recorder was killed. */
static bool wait_for_events(struct seam_perf_map_watch *w)
{
	const struct timespec interval = { .tv_nsec = MIN_INTERVAL_NS };
	struct pollfd fds[] = {
		{ .fd = w->wakeup, .events = POLLIN },
		{ .fd = w->inotify, .events = POLLIN },
		{ .fd = seam_apart_owner_fd(), .events = POLLIN },
	};
	uint64_t next_ns = UINT64_MAX, now_ns;
	int timeout_ms = SEAM_PERF_MAP_WATCH_POLL_MS;

	nanosleep(&interval, NULL);
	for (size_t i = count_items(w); i-- > 0;)
		if (!w->items[i].copy.is_over &&
		    w->items[i].try_ns < next_ns)
			next_ns = w->items[i].try_ns;
	now_ns = seam_clock_ns();
	if (next_ns < now_ns + POLL_NS)
		timeout_ms = next_ns > now_ns ?
			     (int)((next_ns - now_ns) / SEAM_NS_PER_MS) : 0;
	else if (next_ns == UINT64_MAX)
		timeout_ms = -1;
	poll(fds, SEAM_ARRAY_SIZE(fds), timeout_ms);
	read_events(w);
	return fds[2].revents == 0;
}

/* Their file systems may not answer: close() may block. */
static void close_maps(struct seam_perf_map_watch *w)
{
	for (size_t i = count_items(w); i-- > 0;) {
		struct watched *item = &w->items[i];

		if (item->copy.from >= 0)
			item->refusal = (struct seam_err) { 0 };
		seam_perf_map_copy_close(&item->copy);
		seam_target_close(&item->target);
	}
}

static void run(void *context)
{
	struct seam_perf_map_watch *w = context;
	bool is_last;

	do {
		/* acquire: pairs with the release in join() */
		is_last = atomic_load_explicit(&w->shall_end,
					       memory_order_acquire);
		for (size_t i = count_items(w); i-- > 0;)
			update(w, &w->items[i], is_last ? UINT64_MAX :
			       seam_clock_ns());
	} while (!is_last && wait_for_events(w));
	close_maps(w);
}

/* ---- the recorder ---- */

static void destroy(struct seam_perf_map_watch *w)
{
	seam_file_close_fd(w->bundle.dir);
	seam_file_close_fd(w->folder);
	seam_file_close_fd(w->wakeup);
	seam_file_close_fd(w->inotify);
	free(w);
}

struct seam_perf_map_watch *seam_perf_map_watch_start(
	const struct seam_bundle *bundle)
{
	struct seam_perf_map_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->bundle = *bundle;
	w->folder = -1;
	w->bundle.dir = fcntl(bundle->dir, F_DUPFD_CLOEXEC, 0);
	w->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->bundle.dir >= 0 && w->wakeup >= 0 &&
	    seam_apart_start(&w->thread, run, w) == 0)
		return w;
	destroy(w);
	return NULL;
}

static void wake(struct seam_perf_map_watch *w)
{
	const uint64_t one = 1;

	(void)!write(w->wakeup, &one, sizeof(one));
}

bool seam_perf_map_watch_add(struct seam_perf_map_watch *w, int32_t pid)
{
	/* relaxed: only this thread writes it */
	size_t n = atomic_load_explicit(&w->n_items, memory_order_relaxed);
	struct watched *item = &w->items[n];

	if (n == SEAM_PERF_MAP_WATCH_MAX)
		return false;
	*item = (struct watched) {
		.pid = pid, .inotify_id = -1, .step_ns = FIRST_TRY_NS,
	};
	seam_target_init(&item->target);
	item->target.owner.pid = pid;
	seam_perf_map_copy_init(&item->copy, SEAM_PERF_MAP_WATCH_MAX_BYTES);
	/* release: pairs with the acquire in count_items(); the item before */
	atomic_store_explicit(&w->n_items, n + 1, memory_order_release);
	wake(w);
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
		return seam_err_errno(err, "cannot copy '%s'", path);
	r = seam_jit_copy(fd, to, path, max_bytes, err);
	close(fd);
	return r;
}

/* The index is copied last: readers ignore marks beyond the map's end. */
int seam_perf_map_watch_copy(struct seam_perf_map_watch *w, int folder,
			     struct seam_err *err)
{
	int from = seam_perf_map_watch_bytes(w) ?
		   seam_bundle_folder(&w->bundle, "jit", err) : -1;
	char name[NAME_BYTES];
	int r = 0;

	for (size_t i = 0; r == 0 && from >= 0 && i < w->n_items; i++) {
		uint64_t n_bytes = bytes_of(&w->items[i]);

		if (!n_bytes)
			continue;
		name_of(&w->items[i], name);
		r = copy_file(from, folder, name, "", n_bytes, err);
		if (r == 0)
			r = copy_file(from, folder, name,
				      SEAM_PERF_MAP_TIMES_SUFFIX, UINT64_MAX,
				      err);
	}
	seam_file_close_fd(from);
	return r;
}

static void join(struct seam_perf_map_watch *w)
{
	struct timespec until;

	/* release: pairs with the acquire in run() */
	atomic_store_explicit(&w->shall_end, true, memory_order_release);
	wake(w);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SEAM_PERF_MAP_WATCH_STOP_MS / 1000;
	w->is_stuck = pthread_timedjoin_np(w->thread, NULL, &until) != 0;
	w->has_ended = true;
	if (w->is_stuck)
		seam_apart_leave();
}

static void add_result(const struct watched *item,
		       struct seam_kept_counts *counts)
{
	static const struct seam_err too_large = {
		.code = -EFBIG, .n_causes = 1,
		.cause = { "a perf map is larger than is copied" },
	};

	counts->n_left_out[SEAM_KEPT_NOT_WRITTEN] += item->has_failed;
	if (item->refusal.n_causes)
		seam_kept_counts_leave_out(counts, item->refusal.code,
					   &item->refusal);
	if (item->copy.is_cut)
		seam_kept_counts_leave_out(counts, -EFBIG, &too_large);
}

void seam_perf_map_watch_stop(struct seam_perf_map_watch *w,
			      struct seam_kept_counts *counts)
{
	if (!w->has_ended)
		join(w);
	counts->n_left_out[SEAM_KEPT_TIMED_OUT] += w->is_stuck;
	counts->n_bytes += seam_perf_map_watch_bytes(w);
	if (!w->is_stuck)
		seam_kept_counts_explain(counts, SEAM_KEPT_NOT_WRITTEN,
					 &w->why);
	for (size_t i = 0; i < w->n_items; i++) {
		counts->n_copied += bytes_of(&w->items[i]) > 0;
		/* one that is stuck may still write the rest */
		if (!w->is_stuck)
			add_result(&w->items[i], counts);
	}
}

void seam_perf_map_watch_free(struct seam_perf_map_watch *w)
{
	struct seam_kept_counts counts = { 0 };

	if (!w)
		return;
	seam_perf_map_watch_stop(w, &counts);
	if (w->is_stuck)
		return;		/* it still uses it */
	destroy(w);
}
