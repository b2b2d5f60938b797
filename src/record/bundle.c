/* SPDX-License-Identifier: MIT */
/* bundle.c - make, replace and remove bundles; see bundle.h */
#include "record/bundle.h"

#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * All that a bundle may hold.  Only a folder whose every entry is here is
 * taken for one: it alone is moved aside and, later, removed.
 */
static const struct entry {
	const char *name;
	bool is_folder;		/* of files */
} entries[] = {
	{ "data", false },
	{ "data.part", false },
	{ "meta.json", false },
	{ "meta.json.part", false },
	{ "kernel.sym.zst", false },
	{ "kernel.sym.zst.part", false },
	{ "elf", true },
	{ "jit", true },
	{ "xray", true },
};

enum { OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int type_of(int dir, const char *name, mode_t *type)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*type = st.st_mode & S_IFMT;
	return 0;
}

static bool may_be_in_bundle(int dir, const char *name)
{
	mode_t type;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(entries); i++)
		if (strcmp(entries[i].name, name) == 0)
			return type_of(dir, name, &type) == 0 &&
			       type == (entries[i].is_folder ? S_IFDIR :
					S_IFREG);
	return false;
}

static bool is_file(int dir, const char *name)
{
	mode_t type;

	return type_of(dir, name, &type) == 0 && type == S_IFREG;
}

/*
 * Call @visit for each name in folder @dir until one gives false; then so
 * does this.  Names that @visit removes do not disturb it.
 */
static bool each_name(int dir, bool (*visit)(int dir, const char *name))
{
	int copy = openat(dir, ".", OPEN_FOLDER);
	DIR *names = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	bool ok = names;

	if (!names) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while (ok && (e = readdir(names)))
		ok = is_dot(e->d_name) || visit(dir, e->d_name);
	closedir(names);
	return ok;
}

/* Entries of the folders inside are files only. */
static bool holds_files_only(int dir, const char *name)
{
	int inner = openat(dir, name, OPEN_FOLDER);
	bool ok;

	if (inner < 0)
		return is_file(dir, name);
	ok = each_name(inner, is_file);
	close(inner);
	return ok;
}

static bool belongs(int dir, const char *name)
{
	return may_be_in_bundle(dir, name) && holds_files_only(dir, name);
}

static bool is_bundle(int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	       each_name(dir, belongs);
}

static bool unlink_file(int dir, const char *name)
{
	return unlinkat(dir, name, 0) == 0;
}

static bool remove_entry(int dir, const char *name)
{
	int inner = openat(dir, name, OPEN_FOLDER);
	bool ok;

	if (inner < 0)
		return unlink_file(dir, name);
	ok = each_name(inner, unlink_file);
	close(inner);
	return ok && unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

static const char *quoted(char *buf, size_t cap, const char *path)
{
	return seam_text_copy(buf, cap, path, SEAM_TEXT_TERMINAL);
}

/*
 * Open the bundle at @path to see whether it is one.  Returns its fd,
 * -ENOENT when nothing is there, or -EEXIST when something else is.
 */
static int open_old(const char *path, struct seam_err *err)
{
	int dir = open(path, OPEN_FOLDER);
	char shown[256];

	quoted(shown, sizeof(shown), path);
	if (dir < 0 && errno == ENOENT)
		return -ENOENT;
	if (dir < 0 && errno == EACCES)
		return seam_err_set(err, -EACCES, "cannot open '%s': %s",
				    shown, strerror(EACCES));
	if (dir >= 0 && is_bundle(dir))
		return dir;
	if (dir >= 0)
		close(dir);
	return seam_err_set(err, -EEXIST, "'%s' exists and is not a recording "
			    "of yours, so it is not replaced", shown);
}

static int remove_bundle(const char *path, struct seam_err *err)
{
	int dir = open_old(path, err);
	bool ok;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	ok = each_name(dir, remove_entry);
	close(dir);
	if (!ok || rmdir(path) < 0)
		return seam_err_set(err, -errno, "cannot remove the older "
				    "recording '%s': %s", path,
				    strerror(errno));
	return 0;
}

/* PATH.old or PATH.older. */
struct aside {
	char path[sizeof(((struct seam_bundle *)NULL)->path) + 8];
};

static struct aside aside(const struct seam_bundle *bundle, const char *suffix)
{
	struct aside a;

	snprintf(a.path, sizeof(a.path), "%s.%s", bundle->path, suffix);
	return a;
}

static int move(const char *from, const char *to, struct seam_err *err)
{
	if (rename(from, to) == 0)
		return 0;
	return seam_err_set(err, -errno, "cannot rename '%s' to '%s': %s",
			    from, to, strerror(errno));
}

/* 1: there is a bundle at @path; 0: nothing is. */
static int look(const char *path, struct seam_err *err)
{
	int dir = open_old(path, err);

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	close(dir);
	return 1;
}

static void move_back(struct seam_bundle *bundle)
{
	struct aside old = aside(bundle, "old");

	if (bundle->moved)
		rename(old.path, bundle->path);
	if (bundle->moved_old)
		rename(aside(bundle, "older").path, old.path);
	bundle->moved = bundle->moved_old = false;
}

/* Give the bundles that are there, if there are, their other names. */
static int move_aside(struct seam_bundle *bundle, struct seam_err *err)
{
	struct aside old = aside(bundle, "old");
	struct aside older = aside(bundle, "older");
	int r = look(bundle->path, err);

	if (r <= 0)
		return r;
	r = look(old.path, err);
	if (r > 0) {
		/* of a recorder that was killed before it had settled */
		r = remove_bundle(older.path, err);
		if (r == 0)
			r = move(old.path, older.path, err);
		bundle->moved_old = r == 0;
	}
	if (r == 0)
		r = move(bundle->path, old.path, err);
	bundle->moved = r == 0;
	if (r < 0)
		move_back(bundle);
	return r;
}

/*
 * Whether it is ours.  Where all files have one owner, whoever makes them, a
 * file that we make has the folder's.
 */
static bool is_ours(int dir, const struct stat *folder)
{
	static const char name[] = "owner.part";
	struct stat st;
	bool same;
	int fd;

	if (folder->st_uid == geteuid())
		return true;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	same = fstat(fd, &st) == 0 && st.st_uid == folder->st_uid;
	close(fd);
	unlinkat(dir, name, 0);
	return same;
}

/* The folder that was just made, and not one that was put in its place. */
static int open_made(const struct seam_bundle *bundle)
{
	int dir = open(bundle->path, OPEN_FOLDER);
	struct stat st;

	/* not its mode: some file systems have none */
	if (dir >= 0 && fstat(dir, &st) == 0 && is_ours(dir, &st))
		return dir;
	if (dir < 0)
		return -errno;
	close(dir);
	return -EACCES;
}

static int make(struct seam_bundle *bundle, struct seam_err *err)
{
	char shown[256];

	quoted(shown, sizeof(shown), bundle->path);
	if (mkdir(bundle->path, 0700) < 0)
		return seam_err_set(err, -errno, "cannot create folder "
				    "'%s': %s", shown, strerror(errno));
	bundle->dir = open_made(bundle);
	if (bundle->dir >= 0)
		return 0;
	rmdir(bundle->path);
	return seam_err_set(err, bundle->dir, "cannot open folder '%s': %s",
			    shown, strerror(-bundle->dir));
}

int seam_bundle_create(struct seam_bundle *bundle, const char *path,
		       struct seam_err *err)
{
	size_t length = strlen(path);
	int r;

	bundle->dir = -1;
	bundle->moved = bundle->moved_old = false;
	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length == 0 || length >= sizeof(bundle->path))
		return seam_err_set(err, -EINVAL, "the name of a recording "
				    "has 1 to %zu bytes",
				    sizeof(bundle->path) - 1);
	memcpy(bundle->path, path, length);
	bundle->path[length] = '\0';
	r = move_aside(bundle, err);
	if (r < 0)
		return r;
	r = make(bundle, err);
	if (r == 0)
		return 0;
	bundle->dir = -1;
	move_back(bundle);
	return r;
}

bool seam_bundle_has_its_name(const struct seam_bundle *bundle)
{
	struct stat ours, theirs;

	return fstat(bundle->dir, &ours) < 0 ||
	       (stat(bundle->path, &theirs) == 0 &&
		ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev);
}

void seam_bundle_settle(struct seam_bundle *bundle)
{
	if (bundle->moved_old)
		remove_bundle(aside(bundle, "older").path, NULL);
	bundle->moved_old = false;
}

static void part_name(char *buf, size_t cap, const char *name)
{
	snprintf(buf, cap, "%s.part", name);
}

int seam_bundle_file(const struct seam_bundle *bundle, const char *name,
		     struct seam_err *err)
{
	char part[64];
	int fd;

	part_name(part, sizeof(part), name);
	fd = openat(bundle->dir, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	if (fd < 0)
		return seam_err_set(err, -errno, "cannot create '%s' in '%s': "
				    "%s", part, bundle->path, strerror(errno));
	return fd;
}

int seam_bundle_publish(const struct seam_bundle *bundle, const char *name,
			struct seam_err *err)
{
	char part[64];

	part_name(part, sizeof(part), name);
	if (renameat(bundle->dir, part, bundle->dir, name) < 0)
		return seam_err_set(err, -errno, "cannot rename '%s' to '%s' "
				    "in '%s': %s", part, name, bundle->path,
				    strerror(errno));
	return 0;
}

void seam_bundle_drop(const struct seam_bundle *bundle, const char *name)
{
	char part[64];

	part_name(part, sizeof(part), name);
	unlinkat(bundle->dir, part, 0);
}

int seam_bundle_folder(const struct seam_bundle *bundle, const char *name,
		       struct seam_err *err)
{
	int fd;

	if (mkdirat(bundle->dir, name, 0700) < 0 && errno != EEXIST)
		return seam_err_set(err, -errno, "cannot create folder '%s' "
				    "in '%s': %s", name, bundle->path,
				    strerror(errno));
	fd = openat(bundle->dir, name, OPEN_FOLDER);
	if (fd < 0)
		return seam_err_set(err, -errno, "cannot open folder '%s' in "
				    "'%s': %s", name, bundle->path,
				    strerror(errno));
	return fd;
}

void seam_bundle_remove(struct seam_bundle *bundle)
{
	if (remove_bundle(bundle->path, NULL) == 0)
		move_back(bundle);
	seam_bundle_close(bundle);
}

void seam_bundle_close(struct seam_bundle *bundle)
{
	if (bundle->dir >= 0)
		close(bundle->dir);
	bundle->dir = -1;
}
