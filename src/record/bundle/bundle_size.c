/* SPDX-License-Identifier: MIT */
/* bundle_size.c - the sum of the sizes of a bundle's files; see bundle.h */
#include "record/bundle/bundle.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 2 };	/* files, and folders of files */

static uint64_t folder_bytes(int dir, const char *name, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;

	if (!names) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(names))) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
		else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			sum += folder_bytes(fd, e->d_name, depth + 1);
	}
	closedir(names);
	return sum;
}

uint64_t seam_bundle_bytes(const struct seam_bundle *bundle)
{
	return bundle->dir < 0 ? 0 : folder_bytes(bundle->dir, ".", 1);
}
