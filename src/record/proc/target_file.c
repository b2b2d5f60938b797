/* SPDX-License-Identifier: MIT */
/* target_file.c - resolve, check, open with the user's rights; target_file.h */
#include "record/proc/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbol/elf/build_id.h"

enum {
	STATUS_BYTES = 64 * 1024,	/* with thousands of groups */
	PATH_BYTES = 4096,
	/* A user without files.  Source: kernel.overflowuid of Linux. */
	NOBODY = 65534,
	OPEN_ROOT = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

/* File systems that show kernel state and hold no data. */
static const uint64_t kernel_file_systems[] = {
	PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
	CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC,
	BPF_FS_MAGIC, DEVPTS_SUPER_MAGIC, SELINUX_MAGIC, SMACK_MAGIC,
	EFIVARFS_MAGIC, PSTOREFS_MAGIC, NSFS_MAGIC, BINFMTFS_MAGIC,
	RDTGROUP_SUPER_MAGIC, XENFS_SUPER_MAGIC,
};

/* ---- the process ---- */

void seam_target_init(struct seam_target *target)
{
	*target = (struct seam_target) {
		.uid = (uid_t)-1, .root = -1, .process = -1,
	};
}

static void read_groups(struct seam_target *target, const char *status)
{
	const char *line = strstr(status, "\nGid:");
	char *end;

	/* real, effective, saved, of the file system */
	for (int i = 0; line && i < 4; i++) {
		target->gid = (gid_t)strtoul(line + (i ? 0 : 5), &end, 10);
		line = end;
	}
	line = strstr(status, "\nGroups:");
	if (line)
		line += 8;
	while (line && target->n_groups < SEAM_TARGET_MAX_GROUPS) {
		line += strspn(line, "\t ");
		if (*line < '0' || *line > '9')
			return;
		target->groups[target->n_groups++] =
			(gid_t)strtoul(line, &end, 10);
		line = end;
	}
}

/* The last number of line @key of a /proc status file. */
static bool last_number(const char *status, const char *key, int64_t *value)
{
	const char *line = strstr(status, key), *end;
	char *after;

	if (!line)
		return false;
	line += strlen(key);
	end = line + strcspn(line, "\n");
	for (bool any = false; ; any = true) {
		int64_t v = strtoll(line, &after, 10);

		if (after == line || after > end)
			return any;
		*value = v;
		line = after;
	}
}

/* Ticks since boot, the 20th field after the name in parentheses. */
static bool start_ticks(const char *stat, uint64_t *ticks)
{
	const char *s = strrchr(stat, ')');

	for (int i = 0; s && i < 20; i++) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	if (s)
		*ticks = strtoull(s, NULL, 10);
	return s != NULL;
}

static uint64_t utc_of_ticks(uint64_t ticks)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t since_boot = ticks / hz * SEAM_NS_PER_S +
			      ticks % hz * (SEAM_NS_PER_S / hz);

	return seam_clock_now(CLOCK_REALTIME) -
	       seam_clock_now(CLOCK_BOOTTIME) + since_boot;
}

/* A file of /proc/PID as text. */
static bool read_text(int process, const char *name, char *buf, size_t cap)
{
	int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);

	seam_file_close_fd(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* False: it has ended, or may not be accessed. */
static bool read_process(struct seam_target *target)
{
	char text[STATUS_BYTES];
	int64_t inner = target->pid, uid = -1;
	uint64_t ticks = 0;

	/* all through one descriptor: it is one process, or none any more */
	if (target->process < 0 ||
	    !read_text(target->process, "stat", text, sizeof(text)) ||
	    !start_ticks(text, &ticks) ||
	    !read_text(target->process, "status", text, sizeof(text)) ||
	    !last_number(text, "\nUid:", &uid))
		return false;
	last_number(text, "\nNSpid:", &inner);
	read_groups(target, text);
	target->inner_pid = (int32_t)inner;
	target->uid = (uid_t)uid;
	target->start_ns = utc_of_ticks(ticks);
	return true;
}

int seam_target_open(struct seam_target *target, int32_t pid,
		     struct seam_err *err)
{
	char path[64];
	int r = -ESRCH;

	seam_target_init(target);
	target->pid = pid;
	snprintf(path, sizeof(path), "/proc/%" PRId32, pid);
	target->process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (read_process(target)) {
		target->root = openat(target->process, "root", OPEN_ROOT);
		/* a zombie has a user and no root: its root is ours */
		if (target->root < 0 && errno == ENOENT)
			target->root = open("/", OPEN_ROOT);
		if (target->root >= 0)
			return 0;
		r = -errno;
	}
	/* its files are looked for in our root, as nobody */
	seam_target_close(target);
	seam_target_init(target);
	target->pid = pid;
	target->root = open("/", OPEN_ROOT);
	return seam_err_set(err, r, "cannot read process %" PRId32 ": %s", pid,
			    strerror(-r));
}

void seam_target_close(struct seam_target *target)
{
	seam_file_close_fd(target->root);
	seam_file_close_fd(target->process);
	target->root = target->process = -1;
}

/* ---- its user's rights ---- */

struct rights {
	bool is_other;		/* the process's user is not ours */
	bool taken;		/* the thread has that user's rights */
	gid_t groups[SEAM_TARGET_MAX_GROUPS];
	int n_groups;
};

static uid_t user_of(const struct seam_target *target)
{
	return target->uid == (uid_t)-1 ?
	       (geteuid() ? geteuid() : NOBODY) : target->uid;
}

/*
 * Raw system calls: setgroups() of the C library changes all threads.  For our
 * own user nothing is changed.  If the groups can be changed, so can the user.
 */
static void take_rights(const struct seam_target *target, struct rights *old)
{
	uid_t uid = user_of(target);
	gid_t gid = uid == NOBODY ? NOBODY : target->gid;

	*old = (struct rights) { .is_other = uid != geteuid() };
	if (!old->is_other)
		return;
	old->n_groups = getgroups(SEAM_TARGET_MAX_GROUPS, old->groups);
	if (old->n_groups < 0 ||
	    syscall(SYS_setgroups, target->n_groups, target->groups) < 0)
		return;
	setfsgid(gid);
	setfsuid(uid);
	/* they return the former id, also on failure: read it back */
	old->taken = (uid_t)setfsuid((uid_t)-1) == uid &&
		     (gid_t)setfsgid((gid_t)-1) == gid;
	if (old->taken)
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
	syscall(SYS_setgroups, old->n_groups, old->groups);
}

static void restore_rights(const struct rights *old)
{
	if (!old->taken)
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
	/* this cannot fail: take_rights() has changed them */
	syscall(SYS_setgroups, old->n_groups, old->groups);
}

/* ---- a file ---- */

static int check_file_system(int fd, struct seam_err *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return seam_err_set(err, -errno, "%s", strerror(errno));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kernel_file_systems); i++)
		if ((uint64_t)fs.f_type == kernel_file_systems[i])
			return seam_err_set(err, -EPERM, "it is a file of the "
					    "kernel's, not on a disk");
	return 0;
}

/* Check @found, an O_PATH descriptor: the file itself is not open yet. */
static int check(const struct seam_target *target, const struct rights *rights,
		 int found, struct seam_err *err)
{
	struct stat st;

	if (fstat(found, &st) < 0)
		return seam_err_set(err, -errno, "%s", strerror(errno));
	if (S_ISLNK(st.st_mode))
		return seam_err_set(err, -ELOOP, "it is a symbolic link");
	if (!S_ISREG(st.st_mode))
		return seam_err_set(err, -EINVAL, "it is %s, not a file",
				    seam_file_kind(st.st_mode));
	if (rights->is_other && !rights->taken && !(st.st_mode & S_IROTH) &&
	    st.st_uid != user_of(target))
		return seam_err_set(err, -EPERM, "user %u may not read it",
				    user_of(target));
	return check_file_system(found, err);
}

/* Close @found, and return the same file open for reading. */
static int open_found(const struct seam_target *target,
		      const struct rights *rights, int found,
		      struct seam_err *err)
{
	char link[32];
	int r = check(target, rights, found, err);

	if (r == 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
		r = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (r < 0)
			r = seam_err_set(err, -errno, "%s", errno == EAGAIN ?
					 "another process has a lease on it" :
					 strerror(errno));
	}
	close(found);
	return r;
}

static int resolve(int dir, const char *path, uint64_t flags,
		   uint64_t resolve_flags)
{
	struct open_how how = {
		.flags = flags | O_PATH | O_CLOEXEC,
		.resolve = resolve_flags | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	/* -EAGAIN: something was renamed meanwhile; openat2(2) */
	for (int i = 0; i < 8; i++) {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

/*
 * Resolve the folder first: it may be in another file system (/tmp, a volume
 * of a container).  With the rights of the process's user its path may also
 * have links, because the user can follow them too.
 */
static int find(const struct seam_target *target, const struct rights *rights,
		const char *path)
{
	const char *slash = strrchr(path, '/');
	bool no_links = rights->is_other && !rights->taken;
	char folder[PATH_BYTES];
	int dir, fd, code;

	if (path[0] != '/' || !slash[1] ||
	    (size_t)(slash - path) >= sizeof(folder)) {
		errno = ENOENT;
		return -1;
	}
	snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path);
	dir = resolve(target->root, folder, O_DIRECTORY,
		      RESOLVE_IN_ROOT | (no_links ? RESOLVE_NO_SYMLINKS : 0));
	if (dir < 0)
		return -1;
	fd = resolve(dir, slash + 1, O_NOFOLLOW, RESOLVE_BENEATH |
		     RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	code = errno;
	close(dir);
	errno = code;
	return fd;
}

static int refused(int code, struct seam_err *err)
{
	return seam_err_set(err, -code, "%s", code == EXDEV ?
			    "something is mounted on it" : code == ELOOP ?
			    "it is a symbolic link" : strerror(code));
}

int seam_target_open_path(const struct seam_target *target, const char *path,
			  struct seam_err *err)
{
	struct rights rights;
	int fd;

	take_rights(target, &rights);
	fd = find(target, &rights, path);
	fd = fd < 0 ? refused(errno, err) :
	     open_found(target, &rights, fd, err);
	restore_rights(&rights);
	return fd;
}

/* Open the target of a link in the process's folder in /proc. */
static int open_link(const struct seam_target *target, const char *name,
		     struct seam_err *err)
{
	struct rights rights;
	int fd;

	if (target->process < 0)
		return refused(ESRCH, err);
	/* follow the link with our rights, open the file with the user's */
	fd = openat(target->process, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return refused(errno, err);
	take_rights(target, &rights);
	fd = open_found(target, &rights, fd, err);
	restore_rights(&rights);
	return fd;
}

int seam_target_open_mapping(const struct seam_target *target, uint64_t begin,
			     uint64_t end, struct seam_err *err)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, begin,
		 end);
	return open_link(target, name, err);
}

int seam_target_open_exe(const struct seam_target *target, struct seam_err *err)
{
	return open_link(target, "exe", err);
}

/* ---- mapped files ---- */

bool seam_mapped_file_is(int fd, const struct seam_file_identity *identity)
{
	uint8_t found[SEAM_MAPPED_BUILD_ID];
	struct stat st;

	if (identity->build_id_size)
		return seam_build_id_read(fd, 0, found) ==
		       identity->build_id_size &&
		       memcmp(found, identity->build_id,
			      identity->build_id_size) == 0;
	if (identity->content_id)
		return seam_content_id_read(fd) == identity->content_id;
	/* not the device: that of a layered file system is another one */
	return identity->ino && fstat(fd, &st) == 0 &&
	       st.st_ino == identity->ino;
}

/*
 * @fd if it is the recorded file, else -errno; of this and @before, another
 * try's, the one that is not merely "not found".  @fd may be -errno.
 */
static int if_identical(int fd, const struct seam_file_identity *identity,
			int before)
{
	if (fd >= 0 && seam_mapped_file_is(fd, identity))
		return fd;
	seam_file_close_fd(fd);
	fd = fd >= 0 ? -ENOENT : fd;
	return before == -ENOENT || before == -ESRCH || before == -EPERM ? fd :
	       before;
}

static int open_of(const struct seam_target *target,
		   const struct seam_file_mapping *m,
		   const struct seam_file_identity *identity)
{
	int fd = if_identical(seam_target_open_mapping(target, m->begin, m->end,
						       NULL),
			      identity, -ENOENT);

	if (fd < 0)
		fd = if_identical(seam_target_open_path(target, m->path, NULL),
				  identity, fd);
	/* why the program itself cannot be opened says nothing */
	if (fd < 0) {
		int exe = if_identical(seam_target_open_exe(target, NULL),
				       identity, -ENOENT);

		fd = exe >= 0 ? exe : fd == -ESRCH || fd == -EPERM ? -ENOENT :
		     fd;
	}
	return fd;
}

/* Whether the process sees the file systems that we see. */
static bool has_our_mounts(const struct seam_target *target)
{
	struct stat ours, theirs;

	if (target->process < 0)
		return true;		/* it was opened in our root */
	return stat("/proc/self/ns/mnt", &ours) == 0 &&
	       fstatat(target->process, "ns/mnt", &theirs, 0) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool seam_mapped_file_is_protected(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstat(fd, &st) == 0 && fstatfs(fd, &fs) == 0 &&
	       (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (uint32_t)fs.f_type != FUSE_SUPER_MAGIC &&
	       !(fs.f_flags & ST_NOSUID);
}

int seam_mapped_file_open(const struct seam_file_mapping *mapping,
			  const struct seam_file_identity *identity,
			  bool *is_protected)
{
	struct seam_target target;
	int fd;

	seam_target_open(&target, mapping->pid, NULL);
	fd = open_of(&target, mapping, identity);
	if (is_protected)
		*is_protected = fd >= 0 && has_our_mounts(&target) &&
				seam_mapped_file_is_protected(fd);
	seam_target_close(&target);
	return fd;
}
