/* SPDX-License-Identifier: MIT */
/* jit_find.c - search, open once, check the open file; see jit_find.h */
#include "symbol/jit/jit_find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"

enum {
	PATH_BYTES = 4096,
	NAME_BYTES = 64,
	MAX_TIMES_BYTES = 256 << 20,	/* a mark a millisecond for an hour */
	/*
	 * File times come from a clock that is read once a tick, process
	 * starts are rounded down to 1/100 s: a file made at once may seem
	 * this much older.
	 */
	TIME_SLACK_NS = 30 * 1000 * 1000,
};

/* The checks besides those of a regular file and its size. */
enum trust {
	TRUST_PROCESS,		/* named by a process: everything */
	TRUST_NAME,		/* found by its name alone: the same */
	TRUST_FOLDER,		/* owner */
	TRUST_USER,		/* nothing */
};

static bool take_number(const char **s, int32_t *value)
{
	uint64_t v;
	const char *end = seam_text_number(*s, *s + strlen(*s), 10, &v);

	*value = (int32_t)v;
	*s = end;
	return end && v && v <= INT32_MAX;
}

bool seam_jit_marker(const char *path, int32_t *inner_pid)
{
	const char *s = basename(path);

	if (strncmp(s, "jit-", 4))
		return false;
	s += 4;
	if (!take_number(&s, inner_pid))
		return false;
	if (*s == '-') {
		s++;
		if (!take_number(&s, inner_pid))
			return false;
	}
	return strcmp(s, ".dump") == 0;
}

/* ---- checking a file ---- */

struct jit_search {
	const struct seam_jit_owner *owner;
	enum seam_jit_kind kind;
	uint64_t max_bytes;
	uid_t also;		/* another owner that will do; -1: none */
	struct seam_err *err;	/* all refusals */

	/* the file that is tried */
	enum trust trust;
	const char *path;	/* for messages */

	/* the search; of seam_jit_check() zero */
	const struct seam_jit_places *places;
	char names[3][NAME_BYTES];	/* base names it may have; "" ends */
	int refusal;			/* the last, or 0 */
	char *found;
	size_t found_cap;
};

__attribute__((format(printf, 3, 4)))
static int refuse(const struct jit_search *s, int code, const char *fmt, ...)
{
	char reason[SEAM_ERR_TEXT / 2], path[SEAM_ERR_TEXT / 2];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	seam_text_copy(path, sizeof(path), s->path, SEAM_TEXT_TERMINAL);
	return seam_err_add(s->err, code, "cannot trust '%s': %s", path,
			    reason);
}

static int check_owner(const struct jit_search *s, const struct stat *st)
{
	uid_t wanted = s->owner->uid == (uid_t)-1 ? geteuid() : s->owner->uid;

	if (st->st_uid == wanted ||
	    (!st->st_uid && s->trust != TRUST_PROCESS) ||
	    (s->also != (uid_t)-1 && st->st_uid == s->also))
		return 0;
	return refuse(s, -EPERM, "it belongs to user %u, the process to "
		      "user %u", st->st_uid, wanted);
}

static int check_mode_and_age(const struct jit_search *s, const struct stat *st)
{
	bool own_group = st->st_gid == (gid_t)st->st_uid;
	uint64_t written = seam_clock_of(st->st_mtim);

	/* any user may link another's file (fs.protected_hardlinks) */
	if (st->st_nlink > 1)
		return refuse(s, -EPERM, "it has %lu names (hard links)",
			      (unsigned long)st->st_nlink);
	if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && !own_group))
		return refuse(s, -EPERM, "others may write it (mode %04o)",
			      (unsigned int)st->st_mode & 07777);
	if (written + TIME_SLACK_NS < s->owner->start_ns)
		return refuse(s, -ESTALE, "it was written %.1f s before "
			      "process %d began",
			      (double)(s->owner->start_ns - written) / 1e9,
			      s->owner->pid);
	return 0;
}

/* A dump has the pid of its process. */
static int check_header(const struct jit_search *s, int fd)
{
	uint8_t bytes[SEAM_JITDUMP_HEADER_BYTES];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	struct seam_jitdump_reader reader;
	struct seam_err why = { 0 };

	if (seam_jitdump_begin(&reader, (struct seam_bytes) {
				bytes, n > 0 ? (size_t)n : 0 }, &why))
		return refuse(s, why.code, "%s", why.cause[0]);
	if (s->owner->inner_pid &&
	    reader.header.pid != (uint32_t)s->owner->inner_pid)
		return refuse(s, -ESTALE, "it is of process %" PRIu32
			      ", not %d", reader.header.pid,
			      s->owner->inner_pid);
	return 0;
}

static int check_file(const struct jit_search *s, int fd)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st))
		return refuse(s, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(s, -EINVAL, "it is %s, not a file",
			      seam_file_kind(st.st_mode));
	if ((uint64_t)st.st_size > s->max_bytes)
		return refuse(s, -EFBIG, "it has %" PRIu64 " bytes, more than "
			      "%" PRIu64, (uint64_t)st.st_size, s->max_bytes);
	if (s->trust <= TRUST_FOLDER)
		r = check_owner(s, &st);
	if (!r && s->trust <= TRUST_NAME)
		r = check_mode_and_age(s, &st);
	if (!r && s->kind == SEAM_JIT_DUMP)
		r = check_header(s, fd);
	return r;
}

/* @fd if it can be trusted; else -errno, and it is closed. */
static int check_open_file(const struct jit_search *s, int fd)
{
	int r;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT :
		       refuse(s, -errno, "%s", errno == ELOOP ?
			      "it is a symbolic link" : strerror(errno));
	r = check_file(s, fd);
	if (!r)
		return fd;
	close(fd);
	return r;
}

int seam_jit_check(const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		   const char *path, int fd, uint64_t max_bytes,
		   struct seam_err *err)
{
	const struct jit_search s = {
		.owner = owner, .kind = kind, .trust = TRUST_PROCESS,
		.max_bytes = max_bytes, .also = (uid_t)-1, .path = path,
		.err = err,
	};

	if (err)
		*err = (struct seam_err) { 0 };
	return check_open_file(&s, fd);
}

/* ---- searching ---- */

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

/* Open @path with the checks of @trust.  A descriptor, or -1. */
static int try_path(struct jit_search *s, const char *path, enum trust trust)
{
	int flags = trust == TRUST_USER ? OPEN_FLAGS : OPEN_FLAGS | O_NOFOLLOW;
	int fd;

	s->trust = trust;
	s->path = path;
	fd = check_open_file(s, open(path, flags));
	if (fd < 0) {
		s->refusal = fd == -ENOENT ? s->refusal : fd;
		return -1;
	}
	snprintf(s->found, s->found_cap, "%s", path);
	return fd;
}

static int try_folder(struct jit_search *s, const char *folder, size_t size,
		      const char *below, enum trust trust)
{
	char path[PATH_BYTES];
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < SEAM_ARRAY_SIZE(s->names); i++) {
		if (!*s->names[i])
			continue;
		snprintf(path, sizeof(path), "%.*s%s%s", (int)size, folder,
			 below, s->names[i]);
		fd = try_path(s, path, trust);
	}
	return fd;
}

/* A folder is searched; a file counts if it can be the one. */
static int try_named(struct jit_search *s, const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		s->refusal = seam_err_add(s->err, -errno, "--jit %s: %s", path,
					  strerror(errno));
		return -1;
	}
	if (S_ISDIR(st.st_mode))
		return try_folder(s, path, strlen(path), "/", TRUST_USER);
	/* A dump has a pid inside; a map is identified by its name alone. */
	if (s->kind == SEAM_JIT_DUMP) {
		int32_t inner = 0;

		if (seam_jit_marker(path, &inner) &&
		    inner != s->owner->inner_pid && inner != s->owner->pid)
			return -1;
		return strstr(path, ".map") ? -1 :
		       try_path(s, path, TRUST_USER);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(s->names); i++)
		if (strcmp(basename(path), s->names[i]) == 0)
			return try_path(s, path, TRUST_USER);
	return -1;
}

static void make_names(struct jit_search *s, const char *path)
{
	const char *format = s->kind == SEAM_JIT_DUMP ? "jit-%d.dump" :
			     "perf-%d.map";
	int32_t inner = s->owner->inner_pid ? s->owner->inner_pid :
			s->owner->pid;

	if (s->places->is_second) {
		snprintf(s->names[0], NAME_BYTES, "jit-%d-%d.dump",
			 s->owner->pid, s->owner->pid);
		return;
	}
	/* A bundle numbers processes as the recording does. */
	snprintf(s->names[0], NAME_BYTES, format, s->owner->pid);
	if (inner != s->owner->pid)
		snprintf(s->names[1], NAME_BYTES, format, inner);
	if (path && strlen(basename(path)) < NAME_BYTES)
		snprintf(s->names[2], NAME_BYTES, "%s", basename(path));
}

static uid_t owner_of(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) ? st.st_uid : (uid_t)-1;
}

static int search_all(struct jit_search *s, const char *path, bool *is_live)
{
	const struct seam_jit_places *p = s->places;
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < p->n_paths && !p->is_second; i++)
		fd = try_named(s, p->paths[i]);
	if (fd < 0 && p->bundle)
		fd = try_folder(s, p->bundle, strlen(p->bundle), "/jit/",
				TRUST_FOLDER);
	*is_live = false;
	if (p->is_second)
		return fd;
	if (fd < 0 && p->recording)
		fd = try_folder(s, p->recording,
				(size_t)(basename(p->recording) -
					 p->recording), "", TRUST_FOLDER);
	*is_live = fd < 0;
	if (fd < 0 && path && !p->no_recorded_path)
		fd = try_path(s, path, TRUST_NAME);
	return fd;
}

int seam_jit_find(const struct seam_jit_places *places,
		  const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		  const char *path, struct seam_file *file, char *found,
		  size_t found_cap, struct seam_err *err)
{
	struct jit_search s = {
		.places = places, .owner = owner, .kind = kind,
		.max_bytes = places->max_bytes ? places->max_bytes :
			     SEAM_JIT_MAX_BYTES,
		.also = owner_of(places->bundle ? places->bundle :
				 places->recording),
		.found = found, .found_cap = found_cap, .err = err,
	};
	char proc[NAME_BYTES], map[NAME_BYTES];
	bool is_live;
	int fd, r;

	*file = (struct seam_file) { 0 };
	if (err)
		*err = (struct seam_err) { 0 };
	if (kind == SEAM_JIT_MAP && !path) {
		snprintf(map, sizeof(map), "/tmp/perf-%d.map",
			 owner->inner_pid ? owner->inner_pid : owner->pid);
		path = map;
	}
	make_names(&s, path);
	fd = search_all(&s, path, &is_live);
	if (fd < 0)
		return s.refusal ? s.refusal : -ENOENT;
	/* A file that may still be written could be cut while it is mapped. */
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	r = is_live ? seam_file_read_fd(file, fd, (size_t)s.max_bytes, err) :
	    seam_file_open(file, proc, err);
	close(fd);
	return r;
}

void seam_jit_find_times(const char *path, struct seam_file *times)
{
	char index[PATH_BYTES];
	struct stat map, st;
	int fd;

	*times = (struct seam_file) { 0 };
	snprintf(index, sizeof(index), "%s%s", path,
		 SEAM_PERF_MAP_TIMES_SUFFIX);
	fd = open(index, OPEN_FLAGS | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (stat(path, &map) == 0 && fstat(fd, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_uid == map.st_uid)
		seam_file_read_fd(times, fd, MAX_TIMES_BYTES, NULL);
	close(fd);
}
