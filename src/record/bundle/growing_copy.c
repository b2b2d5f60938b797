/* SPDX-License-Identifier: MIT */
/* growing_copy.c - read what is new, find its time; see growing_copy.h */
#include "record/bundle/growing_copy.h"

#include "base/clock.h"
#include "base/file.h"
#include "wire/jit/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHUNK_BYTES = 64 * 1024,
	/* Age of the oldest of several lines that are read at once. */
	BURST_NS = 5 * 1000 * 1000,
	/* From a write to the update that inotify causes, at most. */
	WAKE_NS = 1000 * 1000,
};

void seam_growing_copy_init(struct seam_growing_copy *copy,
			    enum seam_jit_kind kind, uint64_t max_bytes)
{
	*copy = (struct seam_growing_copy) {
		.kind = kind, .from = -1, .to = -1, .times = -1,
		.max_bytes = max_bytes,
	};
}

static void close_fd(int *fd)
{
	seam_file_close_fd(*fd);
	*fd = -1;
}

void seam_growing_copy_close_source(struct seam_growing_copy *copy)
{
	close_fd(&copy->from);
}

void seam_growing_copy_close(struct seam_growing_copy *copy)
{
	close_fd(&copy->from);
	close_fd(&copy->to);
	close_fd(&copy->times);
}

/* Read the file from its beginning; a dump is copied from its beginning too. */
static void restart(struct seam_growing_copy *copy)
{
	copy->pos = 0;
	copy->n_tail = 0;
	if (copy->kind == SEAM_JIT_MAP || !copy->n_bytes)
		return;
	copy->n_bytes = 0;
	copy->n_restarts++;
	copy->is_over |= ftruncate(copy->to, 0) != 0;
}

void seam_growing_copy_set_source(struct seam_growing_copy *copy, int fd)
{
	close_fd(&copy->from);
	copy->from = fd;
	restart(copy);
}

bool seam_growing_copy_is_other_file(const struct seam_growing_copy *copy,
				      int fd)
{
	struct stat was, is;

	if (copy->from < 0)
		return true;
	return fstat(copy->from, &was) == 0 && fstat(fd, &is) == 0 &&
	       (was.st_dev != is.st_dev || was.st_ino != is.st_ino);
}

/* ---- times ---- */

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
static uint64_t written_from(const struct seam_growing_copy *copy,
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

/* ---- the copy ---- */

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

static int make_files(struct seam_growing_copy *copy, int folder,
		      const char *name, struct seam_err *err)
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
static int append_mark(struct seam_growing_copy *copy, const uint8_t *bytes,
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

static int append(struct seam_growing_copy *copy, const uint8_t *bytes,
		  size_t n, struct seam_err *err)
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
static size_t before_hole(const struct seam_growing_copy *copy, size_t max)
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
static ssize_t read_on(struct seam_growing_copy *copy, uint8_t *bytes,
		       size_t max)
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
static size_t limit(struct seam_growing_copy *copy, const uint8_t *bytes,
		    size_t n)
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
static int copy_piece(struct seam_growing_copy *copy, int folder,
		      const char *name, size_t max, struct seam_err *err)
{
	uint8_t bytes[SEAM_GROWING_COPY_TAIL + CHUNK_BYTES];
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

ssize_t seam_growing_copy_update(struct seam_growing_copy *copy, int folder,
				  const char *name, size_t max,
				  struct seam_err *err)
{
	uint64_t began = copy->pos;
	int r = copy->from >= 0 && !copy->is_over;

	while (r > 0 && copy->pos - began < max)
		r = copy_piece(copy, folder, name, max, err);
	return r < 0 ? r : (ssize_t)(copy->pos > began ? copy->pos - began :
				     0);
}
