/* SPDX-License-Identifier: MIT */
/* cgroup.c - find the mount point, open a folder below it; see cgroup.h */
#include "record/proc/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

const char *seam_cgroup_root(char root[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	bool has_own = false;
	struct mntent *m;

	root[0] = '\0';
	while (mounts && !has_own && (m = getmntent(mounts))) {
		has_own = strcmp(m->mnt_type, "cgroup") == 0 &&
			  hasmntopt(m, "perf_event");
		if (has_own ||
		    (strcmp(m->mnt_type, "cgroup2") == 0 && !root[0]))
			snprintf(root, PATH_MAX, "%s", m->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return root;
}

static bool is_cgroup(int folder)
{
	struct statfs fs;

	return fstatfs(folder, &fs) == 0 &&
	       (fs.f_type == CGROUP_SUPER_MAGIC ||
		fs.f_type == CGROUP2_SUPER_MAGIC);
}

int seam_cgroup_open(const char *name, struct seam_err *err)
{
	char root[PATH_MAX], path[2 * PATH_MAX];
	int fd;

	if (!*seam_cgroup_root(root))
		return seam_err_set(err, -ENOENT, "no cgroups are mounted: it "
			"needs cgroup2, or the controller perf_event");
	snprintf(path, sizeof(path), "%s/%s", root, name + strspn(name, "/"));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && is_cgroup(fd))
		return fd;
	if (fd >= 0) {
		close(fd);
		return seam_err_set(err, -ENOENT, "'%s' is no cgroup", path);
	}
	if (errno == ENOENT || errno == ENOTDIR)
		return seam_err_set(err, -ENOENT, "there is no cgroup '%s' in "
				    "'%s'", name, root);
	return seam_err_errno(err, "cannot open '%s'", path);
}
