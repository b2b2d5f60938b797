/* SPDX-License-Identifier: MIT */
/* snapshot_client.c - find a recorder, signal it, wait; see record.h */
#include "record/record.h"

#include "base/file.h"
#include "record/proc/procfs.h"
#include "record/recording.h"
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

/* The number in the line @key of /proc/@pid/status; 0: none. */
static unsigned long long status_of(int pid, const char *key, int base)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return strtoull(seam_procfs_value(path, key, text, sizeof(text)), NULL,
			base);
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
	return found && status_of(pid, "SigBlk", 16) >> (SIGUSR2 - 1) & 1;
}

/*
 * The recorder with process id @name, or the next above that process, which
 * has started it; or the recorder that writes @name.  0: none.
 */
static int find_recorder(const char *name, char folder[PATH_MAX])
{
	struct seam_number_list pids = { 0 };
	size_t n = strlen(name);
	char wanted[PATH_MAX];
	int found = 0;

	if (n > 0 && n < 10 && strspn(name, "0123456789") == n) {
		int pid = atoi(name);

		for (int i = 0; i < MAX_DEPTH && pid > 0 &&
		     !writes_recording(pid, folder); i++)
			pid = (int)status_of(pid, "PPid", 10);
		return pid > 0 && writes_recording(pid, folder) ? pid : 0;
	}
	if (!realpath(name, wanted) || seam_procfs_processes(&pids) < 0)
		return 0;
	for (size_t i = 0; i < pids.n && !found; i++)
		if (writes_recording(pids.items[i], folder) &&
		    strcmp(folder, wanted) == 0)
			found = pids.items[i];
	free(pids.items);
	return found;
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

int seam_snapshot_request(const char *name, char *path, size_t cap,
			  struct seam_err *err)
{
	SEAM_ARRAY(ino_t) known = { 0 };	/* 0 after the last snapshot */
	char folder[PATH_MAX];
	bool complete = false, snapshots, is_listed = false;
	int pid = find_recorder(name, folder), r = 0;

	if (!pid)
		return seam_err_set(err, -ESRCH, "no running seam "
				    "recorder matches '%s'", name);
	if (!read_manifest(folder, &complete, &snapshots) || !snapshots)
		return seam_err_set(err, -EINVAL, "the recorder of '%s' was "
				    "not started with --overwrite, -S or "
				    "--flight-recorder", folder);
	for (unsigned int n = 1; r == 0 && n < MAX_SNAPSHOTS && !is_listed;
	     n++) {
		ino_t inode = inode_of(folder, n, path, cap);

		is_listed = !inode;
		if (!SEAM_ARRAY_ADD(&known, inode))
			r = seam_err_no_memory(err);
	}
	if (r == 0 && kill(pid, SIGUSR2) < 0)
		r = seam_err_errno(err, "cannot signal process %d", pid);
	complete = false;
	for (int ms = 0; r == 0 && !complete; ms += POLL_MS) {
		for (size_t i = 0; !complete && i < known.n; i++) {
			ino_t inode = inode_of(folder, (unsigned int)i + 1,
					       path, cap);

			if (inode && inode != known.items[i] &&
			    !read_manifest(path, &complete, &snapshots))
				complete = false;
		}
		if (!complete && ms >= MAX_WAIT_MS)
			r = seam_err_set(err, -ETIMEDOUT, "the recorder of "
					 "'%s' made no snapshot in %d s",
					 folder, MAX_WAIT_MS / 1000);
		else if (!complete)
			usleep(POLL_MS * 1000);
	}
	free(known.items);
	return r;
}
