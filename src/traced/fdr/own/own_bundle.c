/* SPDX-License-Identifier: MIT */
/*
 * own_bundle.c - see own_bundle.h
 *
 * What belongs to one process is in memory that a forked child finds zeroed:
 * so the child has no log yet, and opens one of its own.
 */
#include "traced/fdr/own/own_bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/high_fd.h"
#include "traced/fdr/own/own_folder.h"
#include "traced/fdr/own/own_manifest.h"
#include "traced/fdr/own/own_names.h"
#include "traced/fdr/record/map_memory.h"
#include "traced/fdr/record/thread_states.h"
#include "traced/fdr/record/write_signals.h"
#include "wire/xray/xray_join.h"

enum {
	MAX_LOGS = 10,		/* of processes that had the same pid */
	/* until then the frequency is measured again with each chunk */
	GOOD_NS = 20 * 1000 * 1000,
	FAIR_NS = 2 * 1000 * 1000,
	MAX_PATH = PATH_MAX,
};

/* A number of an inode is used again for the next file, once it is free. */
struct file_identity {
	uint32_t major, minor;
	uint64_t inode;
	struct statx_timestamp born;	/* 0 where the file system has none */
};

/* Of one process; zeroes in a forked child. */
struct own_log {
	struct seam_xray_log log;
	char stem[64];			/* "xray/PID", "xray/PID.2" */
	struct file_identity file;
	bool is_open, has_frequency;
	bool has_ended;			/* or cannot begin */
};

static struct own_log *process;
/* With the lock of the log: threads may have small stacks. */
static char log_path[MAX_PATH];
static struct {
	char path[MAX_PATH];		/* absolute; "": no bundle */
	pid_t creator;
	bool is_flight;
	struct seam_tsc_tie start;
	/* of the bundles before, whose errors they had reported */
	struct seam_fdr_own_counts before;
} bundle;

/* ---- the calling thread, while it writes files ---- */

struct thread_before {
	int cancel_state;
	struct seam_fdr_write_signals signals;
};

/* Files are written by libc, whose functions are cancellation points. */
static struct thread_before begin_writing(void)
{
	struct thread_before before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel_state);
	before.signals = seam_fdr_write_signals_block();
	return before;
}

static void end_writing(struct thread_before before)
{
	seam_fdr_write_signals_unblock(before.signals);
	pthread_setcancelstate(before.cancel_state, &before.cancel_state);
}

/* ---- paths ---- */

static char *append(char *to, const char *end, const char *text)
{
	while (*text && to < end - 1)
		*to++ = *text++;
	*to = '\0';
	return to;
}

static char *append_number(char *to, const char *end, uint32_t number)
{
	char digits[11], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	return append(to, end, at);
}

/* @path: folder/stem and suffix.  Not snprintf(): in handlers too. */
static void make_path(char path[MAX_PATH], const char *folder,
		      const char *stem, const char *suffix)
{
	const char *end = path + MAX_PATH;
	char *at = append(path, end, folder);

	at = append(at, end, "/");
	append(append(at, end, stem), end, suffix);
}

static void make_stem(char *stem, size_t bytes, int number)
{
	const char *end = stem + bytes;
	char *at = append(stem, end, "xray/");

	at = append_number(at, end, seam_fdr_states_pid());
	if (number > 1)
		append_number(append(at, end, "."), end, (uint32_t)number);
}

/* ---- the log ---- */

static int open_file(const char *path, int flags)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			      flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static void close_file(int fd)
{
	syscall(SYS_close, fd);
}

/* With the frequency since the start. */
static struct seam_xray_header measured_header(void)
{
	const struct seam_tsc_tie now = seam_tsc_tie_now();

	return seam_xray_log_header(seam_tsc_hz(&bundle.start, &now));
}

static uint64_t age_ns(void)
{
	return seam_clock_ns() - bundle.start.ns;
}

/* Until the frequency is right to 50 ppm. */
static void wait_for_frequency(void)
{
	uint64_t age;

	while ((age = age_ns()) < FAIR_NS) {
		struct timespec left = { 0, (long)(FAIR_NS - age) };

		syscall(SYS_nanosleep, &left, NULL);
	}
}

static int begin_log(struct seam_xray_log *log, int fd)
{
	const struct seam_xray_header header = measured_header();

	return seam_xray_log_begin(log, fd, &header);
}

/* A new file of the pid's name; another process may have had that pid. */
static int create_log(const char *folder, char *stem, size_t bytes, char *path)
{
	int fd = -EEXIST;

	for (int i = 1; fd == -EEXIST && i <= MAX_LOGS; i++) {
		make_stem(stem, bytes, i);
		make_path(path, folder, stem, ".xray");
		fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
	}
	return fd;
}

static int identify(int fd, struct file_identity *file)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st))
		return -errno;
	*file = (struct file_identity) {
		.major = st.stx_dev_major, .minor = st.stx_dev_minor,
		.inode = st.stx_ino,
	};
	if (st.stx_mask & STATX_BTIME)
		file->born = st.stx_btime;
	return 0;
}

/* Where no descriptor is free now, one may be later. */
static int open_log(struct own_log *own)
{
	int fd = create_log(bundle.path, own->stem, sizeof(own->stem),
			    log_path);
	int r;

	if (fd < 0)
		return fd;
	fd = seam_high_fd(fd);
	r = identify(fd, &own->file);
	r = r ? r : begin_log(&own->log, fd);
	if (r < 0) {
		close_file(fd);
		own->has_ended = true;
		return r;
	}
	own->is_open = true;
	return 0;
}

static bool is_our_file(const struct own_log *own, int fd)
{
	const struct file_identity *a = &own->file;
	struct file_identity b = { .inode = 0 };

	return identify(fd, &b) == 0 && a->inode == b.inode &&
	       a->major == b.major && a->minor == b.minor &&
	       a->born.tv_sec == b.born.tv_sec &&
	       a->born.tv_nsec == b.born.tv_nsec;
}

/* The descriptor is ours, or was closed, and we have another. */
static bool check_log(struct own_log *own)
{
	int fd;

	if (is_our_file(own, own->log.fd))
		return true;
	make_path(log_path, bundle.path, own->stem, ".xray");
	fd = open_file(log_path, O_RDWR);
	if (fd < 0)
		return false;
	if (is_our_file(own, fd)) {
		own->log.fd = seam_high_fd(fd);
		return true;
	}
	close_file(fd);
	return false;
}

/* For a chunk, and the header of a log that is not begun: no SIGXFSZ. */
static bool has_room(const struct own_log *own)
{
	const size_t bytes = SEAM_XRAY_HEADER_BYTES + SEAM_XRAY_CHUNK_BYTES;
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ||
	       limit.rlim_cur == RLIM_INFINITY ||
	       seam_xray_log_bytes_with(&own->log, bytes) <= limit.rlim_cur;
}

/* Better each time, until it is known well enough. */
static void set_frequency(struct own_log *own)
{
	struct seam_xray_header header;
	bool is_good;

	if (own->has_frequency)
		return;
	is_good = age_ns() >= GOOD_NS;
	header = measured_header();
	own->has_frequency =
		seam_xray_log_set_header(&own->log, &header) == 0 && is_good;
}

/* For seam_fdr_own_begin(): one thread at a time, signals are blocked. */
static struct seam_xray_log *log_of_process(void)
{
	struct own_log *own = process;

	if (!own || own->has_ended || !bundle.path[0] || !has_room(own))
		return NULL;
	if (!own->is_open && open_log(own) < 0)
		return NULL;
	if (!check_log(own))
		return NULL;
	set_frequency(own);
	return &own->log;
}

/* ---- begin ---- */

static int set_path(const char *path)
{
	char folder[MAX_PATH] = "";
	size_t n;

	if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
		return -errno;
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	/* room for the longest name in it */
	if (n == 0 || strlen(folder) + n + 64 >= MAX_PATH)
		return n == 0 ? -EINVAL : -ENAMETOOLONG;
	snprintf(bundle.path, sizeof(bundle.path), "%s%s%.*s", folder,
		 folder[0] ? "/" : "", (int)n, path);
	return 0;
}

static int make_process(void)
{
	if (process)
		*process = (struct own_log) { .is_open = false };
	else
		process = seam_fdr_map_per_process(sizeof(*process));
	return process ? 0 : -errno;
}

static void begin_process(void *error)
{
	*(int *)error = open_log(process);
}

/*
 * With a manifest from the beginning: without one only an empty folder can be
 * replaced by the next bundle.  0; 1: joined, the bundle is that of another
 * program, which writes its manifest; or -errno.
 */
static int make_folder(int dir, const char *path, bool is_flight,
		       bool may_join)
{
	char logs[MAX_PATH];
	int r = dir < 0 ? dir : seam_fdr_folder_make(dir, may_join);

	if (r)
		return r;
	r = seam_fdr_manifest_write(path, &bundle.start, is_flight, NULL);
	if (r) {
		make_path(logs, path, "xray", "");
		rmdir(logs);
	}
	return r;
}

/* In the folder; the program may give up its rights, or its root, later. */
static int begin_files(bool is_flight, bool may_join)
{
	int r, error = 0, dir = seam_fdr_folder_open(bundle.path);

	bundle.is_flight = is_flight;
	bundle.start = seam_tsc_tie_now();
	seam_fdr_own_discard();
	seam_fdr_own_count(&bundle.before);
	r = make_folder(dir, bundle.path, is_flight, may_join);
	bundle.creator = r == 0 ? getpid() : 0;
	/* others see by its log that it writes to the folder */
	if (r >= 0)
		seam_fdr_own_with_log(begin_process, &error);
	seam_fdr_folder_close(dir);
	return r < 0 ? r : error;
}

int seam_fdr_bundle_begin(const char *path, bool is_flight, bool goes_on)
{
	/*
	 * Programs that it starts have its out=; it means its own again.
	 * What goes on after it was stopped has one log more.
	 */
	static bool has_begun;
	struct thread_before before;
	char name[NAME_MAX + 1];
	int r;

	if (bundle.path[0])
		return -EBUSY;
	if (!path) {
		snprintf(name, sizeof(name), "%.200s-%d.seam",
			 program_invocation_short_name, getpid());
		path = name;
	}
	r = seam_fdr_own_begin(is_flight, log_of_process);
	if (!r)
		r = make_process();
	if (!r)
		r = set_path(path);
	before = begin_writing();
	if (!r)
		r = begin_files(is_flight, !has_begun || goes_on);
	end_writing(before);
	if (r)
		bundle.path[0] = '\0';
	has_begun |= !r;
	return r;
}

void seam_fdr_bundle_name(void)
{
	struct thread_before before;
	char path[MAX_PATH];

	if (!bundle.path[0] || !process->stem[0])
		return;
	before = begin_writing();
	make_path(path, bundle.path, process->stem, ".yaml");
	/* where it cannot be written, seam_fdr_bundle_end() fails too */
	(void)seam_fdr_names_write_few(path);
	end_writing(before);
}

const char *seam_fdr_bundle_path(void)
{
	return bundle.path;
}

/* ---- write ---- */

/* The blocks of the log at @path/@stem joined, where that is needed. */
static int join(const char *folder, const char *stem,
		const struct seam_xray_log *log)
{
	char path[MAX_PATH], part[MAX_PATH];
	int to, r;

	make_path(path, folder, stem, ".xray");
	make_path(part, folder, stem, ".xray.part");
	to = open_file(part, O_RDWR | O_CREAT | O_TRUNC);
	if (to < 0)
		return to;
	r = seam_xray_join(log->fd, log->bytes, to, NULL);
	close_file(to);
	if (r == 1 && rename(part, path) == 0)
		return 0;
	if (r == 1)
		r = -errno;
	unlink(part);
	return r;
}

/* What belongs to a log that will not grow any more. */
static int finish_log(const char *folder, const char *stem,
		      struct seam_xray_log *log)
{
	struct seam_xray_header header;
	char path[MAX_PATH];
	int r, s;

	wait_for_frequency();
	header = measured_header();
	r = seam_xray_log_set_header(log, &header);
	/* where the disk is full it stays as it is: llvm-xray alone minds */
	(void)join(folder, stem, log);
	make_path(path, folder, stem, ".yaml");
	s = seam_fdr_names_write_functions(path);
	r = r ? r : s;
	make_path(path, folder, stem, ".events");
	s = seam_fdr_names_write_types(path);
	return r ? r : s;
}

/* Whether @path is the bundle itself, whose logs others may be writing. */
static bool is_bundle(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(bundle.path, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int write_flight(const char *path)
{
	struct seam_fdr_own_counts counts = { 0 };
	char stem[64], name[MAX_PATH];
	struct seam_xray_log log;
	int fd, dir, r;

	if (is_bundle(path))
		return -EINVAL;
	dir = seam_fdr_folder_open(path);
	r = make_folder(dir, path, true, false);
	seam_fdr_folder_close(dir);
	if (r)
		return r;
	fd = create_log(path, stem, sizeof(stem), name);
	if (fd < 0)
		return fd;
	r = begin_log(&log, fd);
	if (!r)
		r = seam_fdr_own_write(&log, &counts);
	if (!r)
		r = finish_log(path, stem, &log);
	close_file(fd);
	return r ? r : seam_fdr_manifest_write(path, &bundle.start, true,
					       &counts);
}

int seam_fdr_bundle_write(const char *path)
{
	struct thread_before before;
	int r;

	if (!bundle.path[0])
		return -ENOENT;
	if (bundle.is_flight != !!path)
		return -EINVAL;
	before = begin_writing();
	r = path ? write_flight(path) : seam_fdr_own_write(NULL, NULL);
	end_writing(before);
	return r;
}

/* ---- end ---- */

/* Threads that still run find no log from now on. */
static void take_log(void *taken)
{
	struct own_log *log = taken;

	if (process) {
		*log = *process;
		*process = (struct own_log) { .has_ended = true };
	}
}

/* Nothing was recorded. */
static int remove_log(const struct own_log *own)
{
	char path[MAX_PATH];

	make_path(path, bundle.path, own->stem, ".xray");
	return unlink(path) ? -errno : 0;
}

static int end_process(struct seam_fdr_own_counts *counts)
{
	struct own_log log = { .is_open = false };
	int r = 0;

	if (seam_fdr_own_has_records())
		r = seam_fdr_own_write(NULL, NULL);
	seam_fdr_own_count(counts);
	r = counts->error ? counts->error : r;
	seam_fdr_own_with_log(take_log, &log);
	if (log.is_open && check_log(&log)) {
		int s = log.log.n_blocks ?
			finish_log(bundle.path, log.stem, &log.log) :
			remove_log(&log);

		close_file(log.log.fd);
		r = r ? r : s;
	}
	return r;
}

static struct seam_fdr_own_counts
since_begin(const struct seam_fdr_own_counts *counts)
{
	const struct seam_fdr_own_counts *before = &bundle.before;

	return (struct seam_fdr_own_counts) {
		.n_records = counts->n_records - before->n_records,
		.n_lost = counts->n_lost - before->n_lost,
		.n_paused = counts->n_paused - before->n_paused,
		.n_bad_bytes = counts->n_bad_bytes - before->n_bad_bytes,
	};
}

int seam_fdr_bundle_end(void)
{
	struct seam_fdr_own_counts counts;
	struct thread_before before;
	int r, s = 0;

	if (!bundle.path[0])
		return 0;
	before = begin_writing();
	r = end_process(&counts);
	counts = since_begin(&counts);
	if (bundle.creator == getpid())
		s = seam_fdr_manifest_write(bundle.path, &bundle.start,
					    bundle.is_flight, &counts);
	bundle.path[0] = '\0';
	end_writing(before);
	return r ? r : s;
}
