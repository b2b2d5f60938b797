/* SPDX-License-Identifier: MIT */
/* bundle.c - create, replace and remove bundles; see bundle.h */
#include "record/bundle/bundle.h"

#include "base/file.h"
#include "base/folder_walk.h"
#include "wire/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	MAX_MANIFEST_BYTES = 16 << 20,
	MAX_DEPTH = 8,			/* a bundle's files are at 2 */
};

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), end = strlen(suffix);

	return n > end && strcmp(name + n - end, suffix) == 0;
}

/* Left by a recorder that was killed while it copied. */
static bool is_part(const char *name)
{
	return strcmp(name, SEAM_BUNDLE_PART) == 0;
}

/* elf/BUILDID */
static bool is_kept_file(const char *name)
{
	size_t n = strlen(name);

	return is_part(name) ||
	       (n >= 2 && strspn(name, "0123456789abcdef") == n);
}

/* jit/jit-PID.dump, jit/perf-PID.map and its jit/perf-PID.map.times */
static bool is_jit_file(const char *name)
{
	return is_part(name) ||
	       (strncmp(name, "jit-", 4) == 0 && ends_with(name, ".dump")) ||
	       (strncmp(name, "perf-", 5) == 0 &&
		(ends_with(name, ".map") || ends_with(name, ".map.times")));
}

/* xray/PID.xray, its map xray/PID.yaml and event names xray/PID.events */
static bool is_xray_file(const char *name)
{
	return ends_with(name, ".xray") || ends_with(name, ".yaml") ||
	       ends_with(name, ".events") || is_part(name);
}

/*
 * All files that a bundle may have.  A folder with any other entry is not a
 * recording, and is never renamed or removed.
 */
static const struct entry {
	const char *name;
	/* A folder: whether a file of that name may be in it; NULL: a file. */
	bool (*holds)(const char *name);
} entries[] = {
	{ "data", NULL },
	{ "data.part", NULL },
	{ "meta.json", NULL },
	{ "meta.json.part", NULL },
	{ "kernel.sym.zst", NULL },
	{ "kernel.sym.zst.part", NULL },
	{ "elf", is_kept_file },
	{ "jit", is_jit_file },
	{ "xray", is_xray_file },
};

/* The entry that the first name of @path is of; NULL: no bundle has that. */
static const struct entry *entry_of(const char *path)
{
	size_t n = strcspn(path, "/");

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(entries); i++)
		if (strlen(entries[i].name) == n &&
		    memcmp(entries[i].name, path, n) == 0)
			return &entries[i];
	return NULL;
}

/* -EEXIST, and the name in @context, of an entry that no recording has. */
static int check_entry(void *context, const struct seam_walk_entry *e)
{
	const struct entry *entry = entry_of(e->path);
	mode_t type = e->st.st_mode & S_IFMT;

	if (entry && (e->depth == 1 ?
		      type == (entry->holds ? S_IFDIR : S_IFREG) :
		      type == S_IFREG && entry->holds(e->name)))
		return SEAM_WALK_ON;
	snprintf(context, PATH_MAX, "%s", e->path);
	return -EEXIST;
}

/*
 * Remove the files in folder @name of @dir, and the folder.  Uses no heap: it
 * must work when memory has run out.
 */
static int remove_folder(int dir, const char *name)
{
	_Alignas(struct dirent64) char names[4096];
	int folder = openat(dir, name, OPEN_FOLDER), r = 0;
	ssize_t n;

	if (folder < 0)
		return -errno;
	while ((n = getdents64(folder, names, sizeof(names))) > 0 && r == 0)
		for (ssize_t at = 0; at < n; ) {
			struct dirent64 *e = (void *)(names + at);

			if (e->d_name[0] != '.' &&
			    unlinkat(folder, e->d_name, 0) < 0)
				r = -errno;
			at += e->d_reclen;
		}
	close(folder);
	return r ? r : unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Remove all that a bundle may have.  0, or the first -errno. */
static int remove_entries(int dir)
{
	int first = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(entries); i++) {
		const struct entry *e = &entries[i];
		int r = e->holds ? remove_folder(dir, e->name) :
			unlinkat(dir, e->name, 0) < 0 ? -errno : 0;

		if (r < 0 && r != -ENOENT && !first)
			first = r;
	}
	return first;
}

/* @path is not a recording, for the reason @why (and the entry @name). */
static int refuse(const char *path, const char *why, const char *name,
		  struct seam_err *err)
{
	return seam_err_set(err, -EEXIST, "'%.200s' exists and is not a "
			    "recording of yours, so it is not replaced: %s%s"
			    "%.200s%s", path, why, *name ? " '" : "", name,
			    *name ? "'" : "");
}

static int cannot(const char *verb, const char *path, int code,
		  struct seam_err *err)
{
	return seam_err_set(err, -code, "cannot %s '%.200s': %s", verb, path,
			    strerror(code));
}

/* Check that folder @dir has a manifest written by Seam. */
static int check_manifest(int dir, const char *path, struct seam_err *err)
{
	struct seam_file file = { 0 };
	int r = seam_file_read(&file, dir, "meta.json", MAX_MANIFEST_BYTES,
			       NULL);

	if (r == 0)
		r = seam_manifest_check(file.bytes, NULL);
	seam_file_close(&file);
	if (r == -ENOENT)
		return refuse(path, "it has no 'meta.json'", "", err);
	if (r == -EBADMSG || r == -EINVAL || r == -EFBIG)
		return refuse(path, "its 'meta.json' is not Seam's", "", err);
	return r < 0 ? cannot("read 'meta.json' of", path, -r, err) : 0;
}

/*
 * Check that folder @dir, at @path, is a recording with a manifest and no
 * other files: 0; -EEXIST: it is not; or the -errno of reading it.
 */
static int check_recording(int dir, const char *path, struct seam_err *err)
{
	char unexpected[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(dir, &st) < 0)
		return cannot("read", path, errno, err);
	if (st.st_uid != geteuid())
		return refuse(path, "it belongs to another user", "", err);
	r = seam_walk(dir, 2, check_entry, unexpected);
	if (r == -EEXIST)
		return refuse(path, "it holds", unexpected, err);
	return r < 0 ? cannot("read", path, -r, err) :
	       check_manifest(dir, path, err);
}

/*
 * Open the recording at @path.  Returns a descriptor; -ENOENT: nothing is
 * there; -EEXIST: it is not a recording; or the -errno of the check.
 */
static int open_old(const char *path, struct seam_err *err)
{
	int dir = open(path, OPEN_FOLDER), code = errno, r;
	struct stat st;

	if (dir < 0 && code == ENOENT)
		return -ENOENT;
	/* it, or a folder in its path, is a link or a file */
	if (dir < 0 && (code == ENOTDIR || code == ELOOP) &&
	    lstat(path, &st) == 0)
		return refuse(path, "it is not a folder", "", err);
	if (dir < 0)
		return cannot("open", path, code, err);
	r = check_recording(dir, path, err);
	if (r == 0)
		return dir;
	close(dir);
	return r;
}

static int remove_bundle(const char *path, struct seam_err *err)
{
	int dir = open_old(path, err), r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	r = remove_entries(dir);
	close(dir);
	if (r == 0 && rmdir(path) < 0)
		r = -errno;
	return r < 0 ? cannot("remove the older recording", path, -r, err) : 0;
}

/* NAME.old or NAME.older. */
struct old_name {
	char path[sizeof(((struct seam_bundle *)NULL)->path) + 8];
};

static struct old_name old_name(const struct seam_bundle *bundle,
				const char *suffix)
{
	struct old_name name;

	snprintf(name.path, sizeof(name.path), "%s.%s", bundle->path, suffix);
	return name;
}

static int move(const char *from, const char *to, struct seam_err *err)
{
	if (rename(from, to) == 0)
		return 0;
	return seam_err_errno(err, "cannot rename '%.200s' to '%.200s'", from,
			      to);
}

/* 1: there is a recording at @path; 0: nothing. */
static int exists(const char *path, struct seam_err *err)
{
	int dir = open_old(path, err);

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	close(dir);
	return 1;
}

static void move_back(struct seam_bundle *bundle)
{
	struct old_name old = old_name(bundle, "old");

	if (bundle->moved)
		rename(old.path, bundle->path);
	if (bundle->moved_old)
		rename(old_name(bundle, "older").path, old.path);
	bundle->moved = bundle->moved_old = false;
}

/* Rename existing recordings to NAME.old and NAME.older. */
static int rename_old(struct seam_bundle *bundle, struct seam_err *err)
{
	struct old_name old = old_name(bundle, "old");
	struct old_name older = old_name(bundle, "older");
	int r = exists(bundle->path, err);

	if (r <= 0)
		return r;
	r = exists(old.path, err);
	if (r > 0) {
		/* left by a recorder that was killed */
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
 * Make .seam-PID-XXXXXX in the parent folder of the bundle's path, and open
 * that one, and not one that has replaced it.
 */
static int make(struct seam_bundle *bundle, struct seam_err *err)
{
	const char *slash = strrchr(bundle->path, '/');
	int folder = slash ? (int)(slash + 1 - bundle->path) : 0;
	struct stat st;

	snprintf(bundle->made, sizeof(bundle->made), "%.*s.seam-%d-XXXXXX",
		 folder, bundle->path, getpid());
	if (!mkdtemp(bundle->made))
		return cannot("create folder", bundle->path, errno, err);
	bundle->dir = open(bundle->made, OPEN_FOLDER);
	if (bundle->dir >= 0 && fstat(bundle->dir, &st) == 0 &&
	    st.st_uid == geteuid())
		return 0;
	if (bundle->dir < 0) {
		int code = errno;

		rmdir(bundle->made);
		return cannot("open folder", bundle->made, code, err);
	}
	seam_bundle_close(bundle);
	return seam_err_set(err, -EACCES, "cannot record into '%s': the folder "
			    "made for it belongs to user %u", bundle->path,
			    st.st_uid);
}

static int set_path(struct seam_bundle *bundle, const char *path,
		    struct seam_err *err)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length == 0 || length >= sizeof(bundle->path))
		return seam_err_set(err, -EINVAL, "the name of a recording "
				    "has 1 to %zu bytes",
				    sizeof(bundle->path) - 1);
	memcpy(bundle->path, path, length);
	bundle->path[length] = '\0';
	return 0;
}

int seam_bundle_create(struct seam_bundle *bundle, const char *path,
		       struct seam_err *err)
{
	int r;

	*bundle = (struct seam_bundle) { .dir = -1 };
	r = set_path(bundle, path, err);
	if (r == 0)
		r = exists(bundle->path, err);
	if (r > 0)
		r = exists(old_name(bundle, "old").path, err);
	return r < 0 ? r : make(bundle, err);
}

int seam_bundle_place(struct seam_bundle *bundle, struct seam_err *err)
{
	int r = rename_old(bundle, err);

	if (r < 0)
		return r;
	r = move(bundle->made, bundle->path, err);
	if (r < 0)
		move_back(bundle);
	bundle->placed = r == 0;
	return r;
}

static bool is_at(const struct stat *ours, const char *path)
{
	struct stat theirs;

	return lstat(path, &theirs) == 0 && ours->st_ino == theirs.st_ino &&
	       ours->st_dev == theirs.st_dev;
}

enum seam_bundle_place seam_bundle_find(const struct seam_bundle *bundle,
					char *where, size_t cap)
{
	struct stat ours;
	char link[64];
	ssize_t n;

	if (fstat(bundle->dir, &ours) < 0 || is_at(&ours, bundle->path))
		return SEAM_BUNDLE_IN_PLACE;
	if (ours.st_nlink == 0)
		return SEAM_BUNDLE_REMOVED;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", bundle->dir);
	n = readlink(link, where, cap - 1);
	where[n > 0 ? n : 0] = '\0';
	return SEAM_BUNDLE_MOVED;
}

void seam_bundle_settle(struct seam_bundle *bundle)
{
	if (bundle->moved_old)
		remove_bundle(old_name(bundle, "older").path, NULL);
	bundle->moved_old = false;
}

/* A file until it is complete. */
struct part_name {
	char text[64];
};

static struct part_name part_of(const char *name)
{
	struct part_name part;

	snprintf(part.text, sizeof(part.text), "%s.part", name);
	return part;
}

int seam_bundle_file(const struct seam_bundle *bundle, const char *name,
		     struct seam_err *err)
{
	struct part_name part = part_of(name);
	int fd = openat(bundle->dir, part.text, O_RDWR | O_CREAT | O_EXCL |
			O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : seam_err_errno(err, "cannot create '%s' in '%s'",
					     part.text, bundle->path);
}

int seam_bundle_publish(const struct seam_bundle *bundle, const char *name,
			struct seam_err *err)
{
	struct part_name part = part_of(name);

	if (renameat(bundle->dir, part.text, bundle->dir, name) < 0)
		return seam_err_errno(err, "cannot rename '%s' to '%s' in '%s'",
				      part.text, name, bundle->path);
	return 0;
}

void seam_bundle_drop(const struct seam_bundle *bundle, const char *name)
{
	unlinkat(bundle->dir, part_of(name).text, 0);
}

int seam_bundle_folder(const struct seam_bundle *bundle, const char *name,
		       struct seam_err *err)
{
	int fd;

	if (mkdirat(bundle->dir, name, 0700) < 0 && errno != EEXIST)
		return seam_err_errno(err, "cannot create folder '%s' in '%s'",
				      name, bundle->path);
	fd = openat(bundle->dir, name, OPEN_FOLDER);
	if (fd >= 0)
		return fd;
	fd = seam_err_errno(err, "cannot open folder '%s' in '%s'", name,
			    bundle->path);
	/* a new folder: the removal of the bundle could not open it either */
	unlinkat(bundle->dir, name, AT_REMOVEDIR);
	return fd;
}

int seam_bundle_copy(int from, int folder, const char *name,
		     uint64_t max_bytes, struct seam_err *err)
{
	int to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL |
			O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (to < 0)
		return seam_err_errno(err, "cannot create '%s'", name);
	r = seam_file_copy(from, to, max_bytes, name, err);
	close(to);
	if (r < 0)
		unlinkat(folder, name, 0);
	return r;
}

void seam_bundle_remove(struct seam_bundle *bundle)
{
	/* older recordings get their names back even if this fails */
	if (bundle->placed && rename(bundle->path, bundle->made) == 0)
		bundle->placed = false;
	if (!bundle->placed)
		move_back(bundle);
	remove_entries(bundle->dir);
	rmdir(bundle->placed ? bundle->path : bundle->made);
	seam_bundle_close(bundle);
}

void seam_bundle_close(struct seam_bundle *bundle)
{
	seam_file_close_fd(bundle->dir);
	bundle->dir = -1;
}

/* ---- sizes ---- */

static int add_size(void *context, const struct seam_walk_entry *entry)
{
	uint64_t *sum = context;

	if (S_ISREG(entry->st.st_mode))
		*sum += (uint64_t)entry->st.st_size;
	return SEAM_WALK_ON;
}

uint64_t seam_bundle_bytes(const struct seam_bundle *bundle)
{
	uint64_t sum = 0;

	seam_walk(bundle->dir, MAX_DEPTH, add_size, &sum);
	return sum;
}
