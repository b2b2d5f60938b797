/* SPDX-License-Identifier: MIT */
/* follow.c - the job that follows, and what becomes of it; see follow.h */
#include "record/bundle/follow.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/bundle/kept_files.h"
#include "record/proc/helper.h"
#include "record/proc/target_file.h"
#include "symbol/jit/jit_find.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MIN_INTERVAL_NS = 1000 * 1000,	/* between two reads of a map */
	FIRST_TRY_NS = 2 * 1000 * 1000,	/* for a file that is not there yet */
	READ_BYTES = 4 << 20,		/* of one file, then of the next */
	NAME_BYTES = 48,
	WAIT_MS = 50,
	TAIL_BYTES = 32,	/* read again: was the file written anew? */
	CHUNK_BYTES = 64 * 1024,
	/* Age of the oldest of several lines that are read at once. */
	BURST_NS = 5 * 1000 * 1000,
	/* From a write to the update that inotify causes, at most. */
	WAKE_NS = 1000 * 1000,
};

#define POLL_NS (SEAM_FOLLOW_POLL_MS * SEAM_NS_PER_MS)

/*
 * The copy of a perf map or a jitdump, made while its runtime appends to it.
 *
 * A perf map has no times: an index beside the copy has the interval in which
 * each piece was written (wire/jit/perf_map.h).  A map that was truncated
 * or replaced is read again from its beginning, and appended too.  A zero byte
 * ends the copy, because no map has one.
 *
 * A jitdump has times.  The copy of one that was truncated or replaced begins
 * anew: n_restarts is counted before a byte of the former copy is lost, so that
 * another thread that reads the copy finds out.  Holes are not read.
 *
 * One thread has it; n_bytes and n_restarts may be read by others.
 */
struct growing_copy {
	enum seam_jit_kind kind;
	int from;		/* the file; -1: not found yet */
	int to, times;		/* in the recording; -1: not made yet */
	uint64_t pos;		/* in the file: read up to there */
	_Atomic uint64_t n_bytes;	/* of the copy */
	_Atomic unsigned int n_restarts;	/* of a dump */
	uint64_t checked_ns;	/* when its end was last read; 0: never */
	uint64_t marked_ns;	/* from_ns of the last mark */
	uint64_t max_bytes;	/* of the copy */
	bool is_woken;		/* an inotify event has caused the update */
	bool is_over;		/* nothing more is copied ... */
	bool is_cut;		/* ... because of max_bytes */
	char last;		/* the last byte of the copy */
	uint8_t tail[TAIL_BYTES];	/* the last bytes read */
	size_t n_tail;
};

/* A file of a process; the helper uses it, but for what is said. */
struct followed {
	/* Constant. */
	int32_t pid, inner_pid;
	uid_t user;			/* of the process */
	/* The recorder writes: a later file is in its place, or no answer. */
	_Atomic bool is_replaced, is_stuck;

	bool is_open;			/* target was opened */
	bool is_ready;			/* inotify reported a write to it */
	bool has_failed;		/* the copy could not be written */
	int inotify_id;			/* -1: none */
	struct seam_target target;
	struct growing_copy copy;
	uint64_t try_ns, step_ns;	/* when to open it, and how often */
	uint64_t due_ns;		/* not read again before */
	struct seam_err refusal;	/* the last; no causes: none */

	/* The recorder's: what is handed on of a dump. */
	struct {
		bool is_over;		/* of no use */
		bool is_of_former;	/* of the program before an exec */
		uint64_t pos;		/* of the first byte not used */
		uint64_t seen;		/* there was nothing whole up to here */
		unsigned int n_restarts;
	} feed;
	char path[];			/* as the process sees it */
};

struct seam_follower {
	struct seam_helper *helper;
	struct seam_bundle bundle;	/* with a descriptor of its own */
	uint64_t max_bytes;
	int wakeup, inotify;		/* inotify -1: poll */
	_Atomic size_t n_items;		/* the recorder adds */
	struct followed *items[SEAM_FOLLOW_MAX];
	_Atomic bool shall_end;		/* the recorder writes */
	_Atomic(const struct follow_job *) job;	/* the one that is to run */
	_Atomic(struct followed *) current;	/* that the job is at */

	/* The job's. */
	int folder;			/* jit/; -1: not made */
	struct seam_err why;		/* the first failure to write */

	/* The recorder's. */
	bool has_ended, was_interrupted;
	unsigned int n_stuck;		/* jobs; they still use all this */
	size_t fed;			/* items: whose turn it was */
	uint8_t bytes[SEAM_FOLLOW_READ];
};

struct follow_job {
	struct seam_helper_job job;
	struct seam_follower *follower;
};

/* ---- a copy ---- */

static void close_fd(int *fd)
{
	seam_file_close_fd(*fd);
	*fd = -1;
}

static void copy_close(struct growing_copy *copy)
{
	close_fd(&copy->from);
	close_fd(&copy->to);
	close_fd(&copy->times);
}

/* Read the file from its beginning; a dump is copied from its beginning too. */
static void restart(struct growing_copy *copy)
{
	copy->pos = 0;
	copy->n_tail = 0;
	if (copy->kind == SEAM_JIT_MAP || !copy->n_bytes)
		return;
	copy->n_bytes = 0;
	copy->n_restarts++;
	copy->is_over |= ftruncate(copy->to, 0) != 0;
}

/* Read from @fd from now on; takes it, and closes the one before. */
static void copy_set_source(struct growing_copy *copy, int fd)
{
	close_fd(&copy->from);
	copy->from = fd;
	restart(copy);
}

/* Whether @fd is another file than the one that is read now. */
static bool copy_is_other_file(const struct growing_copy *copy, int fd)
{
	struct stat was, is;

	if (copy->from < 0)
		return true;
	return fstat(copy->from, &was) == 0 && fstat(fd, &is) == 0 &&
	       (was.st_dev != is.st_dev || was.st_ino != is.st_ino);
}

static uint64_t ns_of(int64_t seconds, uint32_t ns)
{
	return seconds < 0 ? 0 : (uint64_t)seconds * SEAM_NS_PER_S + ns;
}

/* A time of a file as CLOCK_MONOTONIC; 0: before that clock began. */
static uint64_t to_monotonic(const struct statx_timestamp *t)
{
	uint64_t now = seam_clock_ns(), then = ns_of(t->tv_sec, t->tv_nsec);
	uint64_t age = seam_clock_now(CLOCK_REALTIME);

	age = age > then ? age - then : 0;
	return now > age ? now - age : 0;
}

/* A write sets mtime to the last tick: at most this much earlier. */
static uint64_t tick_ns(void)
{
	struct timespec t;

	clock_getres(CLOCK_REALTIME_COARSE, &t);
	return ns_of(t.tv_sec, (uint32_t)t.tv_nsec);
}

/*
 * The earliest time at which the new @bytes can have been written.  Not before
 * the last update found the end of the map; that may be long ago.  The file's
 * mtime is that of the last write, at most a tick early.  Within that tick, an
 * update that inotify caused follows the write within WAKE_NS.
 */
static uint64_t written_from(const struct growing_copy *copy,
			     const uint8_t *bytes, size_t n, uint64_t to_ns)
{
	const uint8_t *end = memchr(bytes, '\n', n);
	bool is_one_line = end && (size_t)(end - bytes) == n - 1;
	uint64_t from_ns = copy->checked_ns, file_ns = 0;
	struct statx st;

	if (statx(copy->from, "", AT_EMPTY_PATH, STATX_MTIME | STATX_BTIME,
		  &st))
		return from_ns;
	if (copy->checked_ns == 0) {
		/* the first bytes: not before the file was made */
		if (st.stx_mask & STATX_BTIME)
			file_ns = to_monotonic(&st.stx_btime) + tick_ns();
	} else if (st.stx_mask & STATX_MTIME) {
		file_ns = to_monotonic(&st.stx_mtime);
		if (copy->is_woken && file_ns + tick_ns() >= to_ns)
			file_ns = to_ns - WAKE_NS;
		if (!is_one_line)
			file_ns = file_ns > BURST_NS ? file_ns - BURST_NS : 0;
	}
	if (file_ns > from_ns)
		from_ns = file_ns;
	if (copy->marked_ns > from_ns)
		from_ns = copy->marked_ns;
	return from_ns > to_ns ? to_ns : from_ns;
}

static int create(int folder, const char *name, const char *suffix,
		  struct seam_err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s%s", name, suffix);
	fd = openat(folder, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	return fd < 0 ? seam_err_errno(err, "cannot create '%s'", path) : fd;
}

static int make_files(struct growing_copy *copy, int folder, const char *name,
		      struct seam_err *err)
{
	if (copy->to < 0)
		copy->to = create(folder, name, "", err);
	if (copy->to >= 0 && copy->times < 0 && copy->kind == SEAM_JIT_MAP)
		copy->times = create(folder, name, SEAM_PERF_MAP_TIMES_SUFFIX,
				     err);
	return copy->to < 0 ? copy->to :
	       copy->kind == SEAM_JIT_MAP && copy->times < 0 ? copy->times : 0;
}

/* The mark is written first: readers ignore one beyond the map's end. */
static int append_mark(struct growing_copy *copy, const uint8_t *bytes,
		       size_t n, uint64_t to_ns, struct seam_err *err)
{
	/* a map that is read again begins on a new line */
	bool is_cut_line = copy->pos == 0 && copy->n_bytes &&
			   copy->last != '\n';
	struct seam_perf_map_mark mark = {
		.offset = copy->n_bytes + is_cut_line, .to_ns = to_ns,
		.from_ns = written_from(copy, bytes, n, to_ns),
	};
	char line[SEAM_PERF_MAP_MARK_BYTES];
	off_t at = lseek(copy->times, 0, SEEK_END);
	int r;

	copy->marked_ns = mark.from_ns;
	r = seam_file_write_at(copy->times, line,
			       seam_perf_map_mark_put(line, &mark),
			       at < 0 ? 0 : (uint64_t)at, "times of a perf map",
			       err);
	if (r == 0 && is_cut_line)
		r = seam_file_write_at(copy->to, "\n", 1, copy->n_bytes++,
				       "perf map", err);
	return r;
}

static int append(struct growing_copy *copy, const uint8_t *bytes, size_t n,
		  struct seam_err *err)
{
	bool is_map = copy->kind == SEAM_JIT_MAP;
	int r = is_map ? append_mark(copy, bytes, n, seam_clock_ns(), err) : 0;

	if (r == 0)
		r = seam_file_write_at(copy->to, bytes, n, copy->n_bytes,
				       is_map ? "perf map" : "jitdump", err);
	if (r == 0) {
		copy->n_bytes += n;
		copy->last = (char)bytes[n - 1];
	} else if (ftruncate(copy->to, (off_t)copy->n_bytes)) {
		/* part of a line or record stays: readers skip it */
	}
	return r;
}

/* A runtime writes to the end: what is beyond a hole was not written. */
static size_t before_hole(const struct growing_copy *copy, size_t max)
{
	off_t hole = copy->kind == SEAM_JIT_MAP ? -1 :
		     lseek(copy->from, (off_t)copy->pos, SEEK_HOLE);
	uint64_t left = hole < 0 ? max : (uint64_t)hole - copy->pos;

	return left < max ? (size_t)left : max;
}

/*
 * Read the last bytes once more, and the new ones after them: if the last are
 * different, the file was written again.  Returns the number of new bytes, at
 * @bytes + @copy->n_tail.
 */
static ssize_t read_on(struct growing_copy *copy, uint8_t *bytes, size_t max)
{
	for (int i = 0; i < 2; i++) {
		size_t new = before_hole(copy, max);
		ssize_t n = pread(copy->from, bytes, copy->n_tail + new,
				  (off_t)(copy->pos - copy->n_tail));

		if (n < 0)
			return -errno;
		if ((size_t)n >= copy->n_tail &&
		    memcmp(bytes, copy->tail, copy->n_tail) == 0)
			return n - (ssize_t)copy->n_tail;
		restart(copy);
	}
	return 0;
}

/* How many of @n bytes are copied: up to a map's zero byte, or max_bytes. */
static size_t limit(struct growing_copy *copy, const uint8_t *bytes, size_t n)
{
	const uint8_t *zero = copy->kind == SEAM_JIT_MAP ?
			      memchr(bytes, 0, n) : NULL;
	size_t taken = zero ? (size_t)(zero - bytes) : n;
	uint64_t left = copy->n_bytes < copy->max_bytes ?
			copy->max_bytes - copy->n_bytes : 0;

	if (taken > left) {
		taken = (size_t)left;
		copy->is_cut = true;
	}
	copy->is_over |= taken < n;
	return taken;
}

/* Copy one piece.  1: there may be more; 0: there is none; -errno. */
static int copy_piece(struct growing_copy *copy, int folder, const char *name,
		      size_t max, struct seam_err *err)
{
	uint8_t bytes[TAIL_BYTES + CHUNK_BYTES];
	uint64_t before_ns = seam_clock_ns();
	ssize_t got = read_on(copy, bytes, max < CHUNK_BYTES ? max :
			      CHUNK_BYTES);
	size_t tail = copy->n_tail, n;
	int r;

	if (got <= 0) {
		/* an error is not the end of the file */
		if (got == 0)
			copy->checked_ns = before_ns;
		return 0;
	}
	n = limit(copy, bytes + tail, (size_t)got);
	r = n ? make_files(copy, folder, name, err) : 0;
	if (r == 0 && n)
		r = append(copy, bytes + tail, n, err);
	copy->pos += (size_t)got;
	tail += (size_t)got;
	copy->n_tail = tail < sizeof(copy->tail) ? tail : sizeof(copy->tail);
	memcpy(copy->tail, bytes + tail - copy->n_tail, copy->n_tail);
	copy->is_over |= r < 0;
	return r < 0 ? r : !copy->is_over;
}

/*
 * Append what is new in the file, at most @max bytes, to the copy @name in
 * @folder; the copy, and the index of a map, are made with the first bytes.
 * Returns the bytes read, or -errno of writing them: then nothing more is
 * copied.
 */
static ssize_t copy_update(struct growing_copy *copy, int folder,
			   const char *name, size_t max, struct seam_err *err)
{
	uint64_t began = copy->pos;
	int r = copy->from >= 0 && !copy->is_over;

	while (r > 0 && copy->pos - began < max)
		r = copy_piece(copy, folder, name, max, err);
	return r < 0 ? r : (ssize_t)(copy->pos > began ? copy->pos - began : 0);
}

/* ---- names ---- */

/* In jit/ while the recording goes on. */
static void name_of(const struct followed *item, char name[NAME_BYTES])
{
	if (item->copy.kind == SEAM_JIT_MAP)
		snprintf(name, NAME_BYTES, "perf-%" PRId32 ".map", item->pid);
	else
		snprintf(name, NAME_BYTES, "jit-%" PRId32 "-%" PRId32 ".dump",
			 item->pid, item->pid);
}

/* In jit/ at the end: a dump may have the short name if no stream has it. */
static void last_name(const struct followed *item, int folder,
		      char name[NAME_BYTES])
{
	if (item->copy.kind == SEAM_JIT_DUMP) {
		snprintf(name, NAME_BYTES, "jit-%" PRId32 ".dump", item->pid);
		if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return;
	}
	name_of(item, name);
}

static uint64_t bytes_of(const struct followed *item)
{
	return item->is_replaced ? 0 : item->copy.n_bytes;
}

static uint64_t sum_bytes(const struct seam_follower *f)
{
	uint64_t bytes = 0;

	for (size_t i = f->n_items; i-- > 0;)
		bytes += bytes_of(f->items[i]);
	return bytes;
}

uint64_t seam_follow_bytes(const struct seam_follow *follow)
{
	return follow->follower ? sum_bytes(follow->follower) : 0;
}

/* ---- in the helper ---- */

static void add_inotify(struct seam_follower *f, struct followed *item)
{
	char path[32];

	if (f->inotify < 0)
		return;
	if (item->inotify_id >= 0)
		inotify_rm_watch(f->inotify, item->inotify_id);
	/* the validated file, not one that has taken its name since */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", item->copy.from);
	item->inotify_id = inotify_add_watch(f->inotify, path, IN_MODIFY);
}

static void copy_more(struct seam_follower *f, struct followed *item)
{
	struct seam_err err = { 0 };
	uint64_t had = sum_bytes(f);
	char name[NAME_BYTES];

	if (item->copy.from < 0 || item->copy.is_over)
		return;
	item->copy.max_bytes = item->copy.n_bytes +
		(had < f->max_bytes ? f->max_bytes - had : 0);
	name_of(item, name);
	if (f->folder < 0)
		f->folder = seam_bundle_folder(&f->bundle, "jit", &err);
	/* of a program before an exec, or of a process with that number */
	if (f->folder >= 0 && item->copy.to < 0 &&
	    item->copy.kind == SEAM_JIT_DUMP)
		unlinkat(f->folder, name, 0);
	if (f->folder >= 0 &&
	    copy_update(&item->copy, f->folder, name, READ_BYTES, &err) >= 0)
		return;
	item->has_failed = item->copy.is_over = true;
	if (!f->why.n_causes)
		f->why = err;
}

/* Open and validate the file.  -ENOENT: there is none. */
static int open_file(const struct seam_follower *f, struct followed *item)
{
	struct seam_target *target = &item->target;
	struct seam_err *why = &item->refusal;
	char map[64];
	const char *path = item->copy.kind == SEAM_JIT_DUMP ? item->path : map;
	struct seam_jit_owner owner;
	int fd;

	/* of a process that has ended, files are looked for in our root */
	if (!item->is_open)
		seam_target_open(target, item->pid, NULL);
	item->is_open = true;
	owner = (struct seam_jit_owner) {
		.pid = item->pid, .uid = target->uid,
		.inner_pid = target->inner_pid ? target->inner_pid :
			     item->inner_pid,
		.start_ns = target->start_ns,
	};
	*why = (struct seam_err) { 0 };
	snprintf(map, sizeof(map), "/tmp/perf-%" PRId32 ".map",
		 owner.inner_pid ? owner.inner_pid : item->pid);
	fd = seam_target_open_path(target, path, why);
	if (fd == -ENOENT || fd == -ENOTDIR)
		*why = (struct seam_err) { 0 };
	return fd < 0 ? fd :
	       seam_jit_check(&owner, item->copy.kind, path, fd,
			      f->max_bytes < SEAM_JIT_MAX_BYTES ?
			      f->max_bytes : SEAM_JIT_MAX_BYTES, why);
}

/* Open the file by its name; later calls find a file that replaced it. */
static void find_file(struct seam_follower *f, struct followed *item)
{
	int fd = open_file(f, item);

	if (fd < 0)
		return;
	if (!copy_is_other_file(&item->copy, fd)) {
		close(fd);
		return;
	}
	copy_more(f, item);		/* the rest of the former file */
	copy_set_source(&item->copy, fd);
	add_inotify(f, item);
}

/* @now_ns UINT64_MAX: for the last time. */
static void update(struct seam_follower *f, struct followed *item,
		   uint64_t now_ns)
{
	bool is_due = item->is_ready && item->due_ns <= now_ns;

	if (item->copy.is_over || (!is_due && item->try_ns > now_ns))
		return;
	if (item->try_ns <= now_ns) {
		find_file(f, item);
		/* at first often, for a file that is about to be made */
		item->step_ns = item->step_ns < POLL_NS / 2 ?
				2 * item->step_ns : POLL_NS;
		item->try_ns = seam_clock_ns() + item->step_ns;
	}
	item->copy.is_woken = item->is_ready;
	item->is_ready = false;
	copy_more(f, item);
	if (item->copy.kind == SEAM_JIT_DUMP)
		item->due_ns = seam_clock_ns() + SEAM_FOLLOW_DUMP_NS;
}

/* Read the events of inotify, and mark the files that were written. */
static void read_events(struct seam_follower *f)
{
	char bytes[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	size_t n_items = f->n_items;
	uint64_t n_wakeups;
	ssize_t n = f->inotify < 0 ? 0 :
		    read(f->inotify, bytes, sizeof(bytes));

	(void)!read(f->wakeup, &n_wakeups, sizeof(n_wakeups));
	for (ssize_t at = 0; at < n; at += (ssize_t)sizeof(*event) +
					   (ssize_t)event->len) {
		event = (const void *)(bytes + at);
		for (size_t i = 0; i < n_items; i++)
			f->items[i]->is_ready |=
				f->items[i]->inotify_id == event->wd ||
				event->mask & IN_Q_OVERFLOW;
	}
}

/* When the next file is to be read or tried. */
static uint64_t next_time(const struct seam_follower *f)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = f->n_items; i-- > 0;) {
		const struct followed *item = f->items[i];
		uint64_t ns = item->is_ready && item->due_ns < item->try_ns ?
			      item->due_ns : item->try_ns;

		if (!item->copy.is_over && !item->is_stuck && ns < next_ns)
			next_ns = ns;
	}
	return next_ns;
}

/* False: the recorder was killed. */
static bool wait_for_events(struct seam_follower *f)
{
	const struct timespec interval = { .tv_nsec = MIN_INTERVAL_NS };
	struct pollfd fds[] = {
		{ .fd = f->wakeup, .events = POLLIN },
		{ .fd = f->inotify, .events = POLLIN },
		{ .fd = seam_helper_owner_fd(), .events = POLLIN },
	};
	int timeout_ms = SEAM_FOLLOW_STUCK_MS / 4;	/* it is not stuck */
	uint64_t next_ns, now_ns;

	nanosleep(&interval, NULL);
	next_ns = next_time(f);
	now_ns = seam_clock_ns();
	if (next_ns < now_ns + POLL_NS)
		timeout_ms = next_ns > now_ns ?
			     (int)((next_ns - now_ns) / SEAM_NS_PER_MS) : 0;
	poll(fds, SEAM_ARRAY_SIZE(fds), timeout_ms);
	read_events(f);
	return fds[2].revents == 0;
}

/* Look at all files once.  False: the job was given up. */
static bool look(struct follow_job *j, bool is_last)
{
	struct seam_follower *f = j->follower;

	for (size_t i = f->n_items; i-- > 0;) {
		struct followed *item = f->items[i];

		if (item->is_stuck)
			continue;
		seam_helper_set_user(&j->job, item->user);
		f->current = item;
		if (!item->is_replaced)
			update(f, item, is_last ? UINT64_MAX : seam_clock_ns());
		if (is_last) {
			item->copy.is_over = true;
			if (item->copy.from >= 0)
				item->refusal = (struct seam_err) { 0 };
			close_fd(&item->copy.from);
			seam_target_close(&item->target);
		}
		/* another job may run since: its file has answered late */
		if (f->job != j)
			return false;
		f->current = NULL;
		seam_helper_progress(&j->job);
	}
	return true;
}

static void run(struct seam_helper_job *job)
{
	struct follow_job *j = (struct follow_job *)job;
	bool is_last;

	do {
		is_last = j->follower->shall_end;
		if (!look(j, is_last))
			return;
	} while (!is_last && wait_for_events(j->follower) &&
		 j->follower->job == j);
}

/* ---- the recorder: the job ---- */

static void done(struct seam_helper_job *job, void *context)
{
	struct seam_follower *f = context;

	(void)job;
	f->job = NULL;
	f->has_ended = true;
}

/* Its file is given up; with the last that a user may have, all of the user. */
static void given_up(void *context, uint64_t tag)
{
	struct seam_follower *f = context;
	struct followed *item = f->current;
	unsigned int n = 0;

	(void)tag;
	f->job = NULL;
	f->n_stuck++;
	if (!item)
		return;
	item->is_stuck = true;
	for (size_t i = 0; i < f->n_items; i++)
		n += f->items[i]->is_stuck && f->items[i]->user == item->user;
	for (size_t i = 0; n >= SEAM_HELPER_MAX_STUCK && i < f->n_items; i++)
		if (f->items[i]->user == item->user)
			f->items[i]->is_stuck = true;
}

static void free_job(struct seam_helper_job *job)
{
	free(job);
}

static void wake(struct seam_follower *f)
{
	const uint64_t one = 1;

	(void)!write(f->wakeup, &one, sizeof(one));
}

/* Have a helper follow the files that answer, from now on. */
static int begin_job(struct seam_follower *f)
{
	struct follow_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->job = (struct seam_helper_job) {
		.run = run, .done = done, .given_up = given_up,
		.free = free_job, .context = f, .user = SEAM_HELPER_NO_USER,
		.limit_ns = SEAM_FOLLOW_STUCK_MS * SEAM_NS_PER_MS,
	};
	j->follower = f;
	f->current = NULL;
	f->job = j;
	r = seam_helper_submit(f->helper, &j->job);
	if (r < 0)
		f->job = NULL;
	return r;
}

static void collect(struct seam_follower *f)
{
	seam_helper_collect(f->helper);
	if (f->job || f->has_ended || begin_job(f) == 0)
		return;
	f->has_ended = true;
	f->n_stuck++;
	for (size_t i = 0; i < f->n_items; i++)
		f->items[i]->is_stuck = true;
}

/* Have it read what was written until now, and close all files. */
static void end_job(struct seam_follower *f,
		    bool (*wait)(void *context, int fd, int timeout_ms),
		    void *context)
{
	bool has_time = true;

	f->shall_end = true;
	wake(f);
	for (collect(f); has_time && !f->has_ended; collect(f))
		has_time = wait(context, seam_helper_fd(f->helper), WAIT_MS);
	if (f->has_ended)
		return;
	f->was_interrupted = f->has_ended = true;
	seam_helper_abandon(f->helper);
}

static void destroy(struct seam_follower *f)
{
	seam_helper_free(f->helper);
	if (f->n_stuck)
		return;		/* they still use it */
	for (size_t i = 0; i < f->n_items; i++) {
		copy_close(&f->items[i]->copy);
		seam_target_close(&f->items[i]->target);
		free(f->items[i]);
	}
	seam_file_close_fd(f->bundle.dir);
	seam_file_close_fd(f->folder);
	seam_file_close_fd(f->wakeup);
	seam_file_close_fd(f->inotify);
	free(f);
}

static struct seam_follower *start(const struct seam_follow *follow)
{
	struct seam_follower *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->bundle = *follow->bundle;
	f->folder = -1;
	f->max_bytes = follow->max_bytes ? follow->max_bytes :
		       SEAM_FOLLOW_MAX_BYTES;
	f->bundle.dir = fcntl(follow->bundle->dir, F_DUPFD_CLOEXEC, 0);
	f->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	f->helper = seam_helper_new(NULL);
	if (f->bundle.dir >= 0 && f->wakeup >= 0 && f->helper &&
	    begin_job(f) == 0)
		return f;
	destroy(f);
	return NULL;
}

/* ---- the recorder: files ---- */

/* The file of @pid of that kind; NULL: none. */
static struct followed *find(const struct seam_follower *f, int32_t pid,
			     enum seam_jit_kind kind)
{
	for (size_t i = f->n_items; i-- > 0;)
		if (f->items[i]->pid == pid && f->items[i]->copy.kind == kind)
			return f->items[i];
	return NULL;
}

/* @path: of a dump; else "".  False: no room, no memory or no helper. */
static bool add(struct seam_follow *follow, int32_t pid, int32_t inner_pid,
		const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct seam_follower *f;
	struct followed *item;

	if (!follow->follower && !follow->has_failed)
		follow->follower = start(follow);
	f = follow->follower;
	follow->has_failed = !f;
	item = f && f->n_items < SEAM_FOLLOW_MAX ?
	       calloc(1, sizeof(*item) + bytes) : NULL;
	if (!item)
		return false;
	item->pid = pid;
	item->inner_pid = inner_pid;
	item->user = seam_helper_user_of(pid);
	item->inotify_id = -1;
	item->step_ns = FIRST_TRY_NS;
	memcpy(item->path, path, bytes);
	seam_target_init(&item->target);
	item->copy = (struct growing_copy) {
		.kind = *path ? SEAM_JIT_DUMP : SEAM_JIT_MAP,
		.from = -1, .to = -1, .times = -1,
	};
	f->items[f->n_items] = item;
	/* pairs with the loads of the job: the item before */
	f->n_items++;
	wake(f);
	return true;
}

static void add_map(struct seam_follow *follow, int32_t pid)
{
	if (follow->left_out_pid == pid ||
	    (follow->follower && find(follow->follower, pid, SEAM_JIT_MAP)) ||
	    add(follow, pid, 0, ""))
		return;
	follow->n_too_many++;
	follow->left_out_pid = pid;
}

static void add_dump(struct seam_follow *follow, int32_t pid,
		     int32_t inner_pid, const char *path)
{
	struct followed *former = follow->follower ?
		find(follow->follower, pid, SEAM_JIT_DUMP) : NULL;

	if (former && !former->feed.is_of_former &&
	    strcmp(former->path, path) == 0)
		return;
	/* first: the copy of the other takes the name of its copy */
	if (former)
		former->is_replaced = true;
	if (add(follow, pid, inner_pid, path))
		return;
	follow->n_too_many++;
	if (former)
		former->is_replaced = false;
}

/* Process @pid runs another program, or is a new one with an old number. */
static void forget(const struct seam_follow *follow, int32_t pid)
{
	struct followed *dump = follow->follower ?
		find(follow->follower, pid, SEAM_JIT_DUMP) : NULL;

	if (dump)
		dump->feed.is_of_former = true;
}

void seam_follow_sideband(struct seam_follow *follow,
			  const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	int32_t inner_pid;

	if (record->type == PERF_RECORD_COMM &&
	    record->misc & PERF_RECORD_MISC_COMM_EXEC)
		forget(follow, record->comm.pid);
	if (record->type == PERF_RECORD_FORK &&
	    record->task.pid != record->task.ppid)
		forget(follow, record->task.pid);
	if (!m)
		return;
	if (seam_jit_marker(m->filename, &inner_pid)) {
		add_map(follow, m->pid);
		add_dump(follow, m->pid, inner_pid, m->filename);
	} else if (seam_perf_mapping_is_memory(m->filename)) {
		add_map(follow, m->pid);
	}
}

/* ---- the recorder: code of dumps ---- */

/* The bytes of the header, if times are ns and numbers as ours; 0: no use. */
static size_t header_bytes(struct seam_bytes bytes)
{
	struct seam_jitdump_reader reader;

	if (seam_jitdump_begin(&reader, bytes, NULL) ||
	    reader.endian != SEAM_NATIVE ||
	    reader.header.flags == SEAM_JITDUMP_ARCH_TIMESTAMP ||
	    reader.header.total_size > bytes.size)
		return 0;
	return reader.header.total_size > SEAM_JITDUMP_HEADER_BYTES ?
	       reader.header.total_size : SEAM_JITDUMP_HEADER_BYTES;
}

/*
 * The bytes of whole records up to a load or a move, which what is before it
 * belongs to.
 */
static size_t whole_bytes(struct seam_bytes bytes)
{
	size_t pos = 0, whole = 0;

	while (bytes.size - pos >= SEAM_JITDUMP_PREFIX_BYTES) {
		uint32_t id, size;

		memcpy(&id, bytes.data + pos, sizeof(id));
		memcpy(&size, bytes.data + pos + sizeof(id), sizeof(size));
		if (size < SEAM_JITDUMP_PREFIX_BYTES || size > bytes.size - pos)
			break;
		pos += size;
		if (id != SEAM_JITDUMP_DEBUG_INFO &&
		    id != SEAM_JITDUMP_UNWINDING_INFO)
			whole = pos;
	}
	return whole;
}

/* A record that is larger than a read is skipped, with what belongs to it. */
static void skip_large(struct followed *item, struct seam_bytes bytes)
{
	uint32_t size;

	if (bytes.size < SEAM_FOLLOW_READ)
		return;			/* its end is not written yet */
	memcpy(&size, bytes.data + sizeof(uint32_t), sizeof(size));
	item->feed.is_over = size < SEAM_JITDUMP_PREFIX_BYTES;
	item->feed.pos += size;
}

static void hand_on(const struct seam_follow *follow, struct followed *item,
		    struct seam_bytes bytes)
{
	size_t n, header = 0;

	if (item->feed.pos == 0) {
		header = header_bytes(bytes);
		item->feed.is_over = header == 0;
		bytes.data += header;
		bytes.size -= header;
	}
	if (item->feed.is_over)
		return;
	n = whole_bytes(bytes);
	item->feed.pos += header + n;
	if (n)
		follow->on_code(follow->context, (uint32_t)item->pid,
				(struct seam_bytes) { bytes.data, n });
	else if (!header)
		skip_large(item, bytes);
}

/* False: there was nothing new to read. */
static bool feed(const struct seam_follow *follow, struct followed *item)
{
	uint8_t *bytes = follow->follower->bytes;
	uint64_t n_bytes;
	ssize_t n;

	if (item->copy.kind != SEAM_JIT_DUMP || item->is_replaced ||
	    item->feed.is_of_former)
		return false;
	if (item->feed.n_restarts != item->copy.n_restarts) {
		item->feed.n_restarts = item->copy.n_restarts;
		item->feed.pos = item->feed.seen = 0;
		item->feed.is_over = false;
	}
	n_bytes = item->copy.n_bytes;
	if (item->feed.is_over || n_bytes <= item->feed.pos ||
	    n_bytes == item->feed.seen)
		return false;
	item->feed.seen = n_bytes;
	n_bytes -= item->feed.pos;
	n = pread(item->copy.to, bytes, n_bytes < SEAM_FOLLOW_READ ?
		  n_bytes : SEAM_FOLLOW_READ, (off_t)item->feed.pos);
	/* after the read: it may have been written anew meanwhile */
	if (n > 0 && item->feed.n_restarts == item->copy.n_restarts)
		hand_on(follow, item, (struct seam_bytes) { bytes, (size_t)n });
	if (item->feed.pos + SEAM_JITDUMP_PREFIX_BYTES <= item->feed.seen &&
	    n == SEAM_FOLLOW_READ)
		item->feed.seen = 0;	/* there is more */
	return true;
}

void seam_follow_step(struct seam_follow *follow)
{
	struct seam_follower *f = follow->follower;

	if (!f)
		return;
	collect(f);
	for (size_t i = 0; follow->on_code && i < f->n_items; i++) {
		f->fed = (f->fed + 1) % f->n_items;
		if (feed(follow, f->items[f->fed]))
			break;
	}
}

/* ---- the recorder: the end ---- */

static int copy_file(const struct followed *item, int folder,
		     struct seam_err *err)
{
	char name[NAME_BYTES], times[2 * NAME_BYTES];
	int r;

	last_name(item, folder, name);
	/* the index last: readers ignore marks beyond the map's end */
	r = seam_bundle_copy(item->copy.to, folder, name, bytes_of(item), err);
	if (r < 0 || item->copy.kind == SEAM_JIT_DUMP)
		return r;
	snprintf(times, sizeof(times), "%s%s", name,
		 SEAM_PERF_MAP_TIMES_SUFFIX);
	return seam_bundle_copy(item->copy.times, folder, times, UINT64_MAX,
				err);
}

static void copy_into_snapshot(const struct seam_follower *f,
			       const struct seam_bundle *bundle,
			       struct seam_kept_counts *counts)
{
	struct seam_err err = { 0 };
	int folder = sum_bytes(f) ? seam_bundle_folder(bundle, "jit", &err) :
		     -1;

	for (size_t i = 0; i < f->n_items; i++) {
		uint64_t n_bytes = bytes_of(f->items[i]);

		if (!n_bytes)
			continue;
		if (folder >= 0 && copy_file(f->items[i], folder, &err) == 0) {
			counts->n_copied++;
			counts->n_bytes += n_bytes;
		} else {
			seam_kept_counts_leave_out(counts, -EIO, &err);
		}
	}
	seam_file_close_fd(folder);
}

static void add_result(const struct seam_follower *f,
		       const struct followed *item,
		       struct seam_kept_counts *counts)
{
	static const struct seam_err too_large = {
		.code = -EFBIG, .n_causes = 1,
		.cause = { "it is larger than is copied" },
	};
	char name[NAME_BYTES], last[NAME_BYTES];

	if (item->is_replaced)
		return;
	if (bytes_of(item)) {
		counts->n_copied++;
		counts->n_bytes += bytes_of(item);
		name_of(item, name);
		last_name(item, f->folder, last);
		renameat(f->folder, name, f->folder, last);
	}
	counts->n_left_out[SEAM_KEPT_TIMED_OUT] += item->is_stuck;
	if (item->is_stuck || f->was_interrupted)
		return;			/* a job may still use the rest */
	if (item->has_failed)
		seam_kept_counts_leave_out(counts, -EIO, &f->why);
	if (item->refusal.n_causes)
		seam_kept_counts_leave_out(counts, item->refusal.code,
					   &item->refusal);
	if (item->copy.is_cut)
		seam_kept_counts_leave_out(counts, -EFBIG, &too_large);
}

void seam_follow_copy(struct seam_follow *follow,
		      const struct seam_kept_destination *to,
		      struct seam_kept_counts *counts)
{
	struct seam_follower *f = follow->follower;

	*counts = (struct seam_kept_counts) {
		.n_left_out[SEAM_KEPT_TOO_MANY] = follow->n_too_many,
	};
	if (!f)
		return;
	if (to->is_snapshot) {
		copy_into_snapshot(f, to->bundle, counts);
		return;
	}
	end_job(f, to->wait, to->context);
	for (size_t i = 0; i < f->n_items; i++)
		add_result(f, f->items[i], counts);
	counts->n_left_out[SEAM_KEPT_INTERRUPTED] += f->was_interrupted;
	/* most programs with code in anonymous memory have neither file */
	if (counts->n_copied == 0)
		unlinkat(to->bundle->dir, "jit", AT_REMOVEDIR);
}

static bool wait_a_little(void *context, int fd, int timeout_ms)
{
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	int *n_waits = context;

	poll(&ended, 1, timeout_ms);
	return ++*n_waits < 10;
}

void seam_follow_fini(struct seam_follow *follow)
{
	int n_waits = 0;

	if (follow->follower) {
		end_job(follow->follower, wait_a_little, &n_waits);
		destroy(follow->follower);
	}
	*follow = (struct seam_follow) { 0 };
}
