/* SPDX-License-Identifier: MIT */
/* snapshot_client.c - find, signal, wait; see snapshot_client.h */
#include "record/snapshot_client.h"

#include "base/file.h"
#include "record/proc/procfs.h"
#include "record/snapshot.h"
#include "wire/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_WAIT_MS = 30000,
	POLL_MS = 10,
	MAX_SNAPSHOTS = 100000,
	MAX_MANIFEST_BYTES = 16 << 20,
	MAX_DEPTH = 64,		/* of processes */
};

/* The existing snapshots, by inode; 0 after the last. */
struct known {
	SEAM_ARRAY(ino_t) inodes;
};

static bool blocks_signal(int pid)
{
	char path[64], text[32];
	unsigned long long mask;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	mask = strtoull(seam_procfs_value(path, "SigBlk", text, sizeof(text)),
			NULL, 16);
	return mask >> (SIGUSR2 - 1) & 1;
}

/* Copy the path of the recording that @pid writes, to @folder. */
static bool writes_recording(int pid, char folder[PATH_MAX])
{
	static const char data[] = "/data";
	char path[64];
	struct dirent *e;
	bool found = false;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	while (fds && !found && (e = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), e->d_name, folder,
				       PATH_MAX - 1);
		size_t end = sizeof(data) - 1;

		if (n <= (ssize_t)end)
			continue;
		folder[n] = '\0';
		found = strcmp(folder + n - end, data) == 0;
		folder[(size_t)n - end] = '\0';
	}
	if (fds)
		closedir(fds);
	return found && blocks_signal(pid);
}

/* The recorder that writes @name, whose full path is copied to @folder. */
static int find_by_name(const char *name, char folder[PATH_MAX])
{
	struct seam_number_list pids = { 0 };
	char wanted[PATH_MAX];
	int found = 0;

	if (!realpath(name, wanted) || seam_procfs_processes(&pids) < 0)
		return 0;
	for (size_t i = 0; i < pids.n && !found; i++)
		if (writes_recording(pids.items[i], folder) &&
		    strcmp(folder, wanted) == 0)
			found = pids.items[i];
	free(pids.items);
	return found;
}

/* @pid, or the next above it that is a recorder: it has started @pid. */
static int find_above(int pid, char folder[PATH_MAX])
{
	for (int i = 0; i < MAX_DEPTH && pid > 0; i++) {
		char path[64], text[32];

		if (writes_recording(pid, folder))
			return pid;
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
		pid = atoi(seam_procfs_value(path, "PPid", text,
					     sizeof(text)));
	}
	return 0;
}

static int find_recorder(const char *name, char folder[PATH_MAX])
{
	size_t n = strlen(name);

	if (n > 0 && n < 10 && strspn(name, "0123456789") == n)
		return find_above(atoi(name), folder);
	return find_by_name(name, folder);
}

/* Two members of the manifest in @folder; false: it cannot be read. */
static bool read_manifest(const char *folder, bool *complete, bool *snapshots)
{
	struct seam_manifest m = { 0 };
	struct seam_file file = { 0 };
	char path[PATH_MAX + 16];
	bool ok;

	snprintf(path, sizeof(path), "%s/meta.json", folder);
	ok = seam_file_read(&file, AT_FDCWD, path, MAX_MANIFEST_BYTES,
			    NULL) == 0 &&
	     seam_manifest_read(&m, file.bytes, NULL) == 0;
	*complete = m.complete;
	*snapshots = m.snapshots;
	seam_manifest_fini(&m);
	seam_file_close(&file);
	return ok;
}

/* 0 when there is no snapshot number @n. */
static ino_t inode_of(const char *folder, unsigned int n, char *path,
		      size_t cap)
{
	struct stat st;

	seam_snapshot_name(path, cap, folder, n);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int list_known(struct known *known, const char *folder)
{
	char path[PATH_MAX + 16];

	for (unsigned int n = 1; n < MAX_SNAPSHOTS; n++) {
		ino_t inode = inode_of(folder, n, path, sizeof(path));

		if (!SEAM_ARRAY_ADD(&known->inodes, inode))
			return -ENOMEM;
		if (!inode)
			break;
	}
	return 0;
}

/* Find a complete snapshot that is not @known; its path is in @path. */
static bool find_new(const struct known *known, const char *folder,
		     char *path, size_t cap)
{
	bool complete, snapshots;

	for (size_t i = 0; i < known->inodes.n; i++) {
		ino_t inode = inode_of(folder, (unsigned int)i + 1, path, cap);

		if (inode && inode != known->inodes.items[i] &&
		    read_manifest(path, &complete, &snapshots) && complete)
			return true;
	}
	return false;
}

static int wait_for_new(const struct known *known, const char *folder,
			char *path, size_t cap, struct seam_err *err)
{
	for (int ms = 0; ms < MAX_WAIT_MS; ms += POLL_MS) {
		if (find_new(known, folder, path, cap))
			return 0;
		usleep(POLL_MS * 1000);
	}
	return seam_err_set(err, -ETIMEDOUT, "the recorder of '%s' made "
			    "no snapshot in %d s", folder,
			    MAX_WAIT_MS / 1000);
}

int seam_snapshot_request(const char *name, char *path, size_t cap,
			  struct seam_err *err)
{
	struct known known = { 0 };
	char folder[PATH_MAX];
	bool complete, snapshots;
	int pid = find_recorder(name, folder), r;

	if (!pid)
		return seam_err_set(err, -ESRCH, "no running seam "
				    "recorder matches '%s'", name);
	if (!read_manifest(folder, &complete, &snapshots) || !snapshots)
		return seam_err_set(err, -EINVAL, "the recorder of '%s' was "
				    "not started with --overwrite, -S or "
				    "--flight-recorder", folder);
	r = list_known(&known, folder);
	if (r < 0)
		seam_err_no_memory(err);
	else if (kill(pid, SIGUSR2) < 0)
		r = seam_err_errno(err, "cannot signal process %d", pid);
	else
		r = wait_for_new(&known, folder, path, cap, err);
	free(known.inodes.items);
	return r;
}
