/* SPDX-License-Identifier: MIT */
/* tracefs.c - find tracefs, or mount it for ourselves; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A mount without a place in the tree.  By system calls: glibc 2.36 has it. */
static int mount_detached(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd = -1;

	if (context >= 0 && syscall(SYS_fsconfig, context,
				    FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	seam_file_close_fd(context);
	return fd;
}

const char *seam_tracefs_remedy(int code)
{
	return code == -ENOENT ? "mount -t tracefs -o gid=GROUP,mode=750 "
	       "tracefs /sys/kernel/tracing" :
	       "mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing";
}

static int refuse(int code, struct seam_err *err)
{
	return seam_err_set(err, code, "tracefs is not %s: '%s'",
			    code == -ENOENT ? "mounted" : "readable",
			    seam_tracefs_remedy(code));
}

int seam_tracefs_open(struct seam_err *err)
{
	int fd = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int code;

	if (fd >= 0 && faccessat(fd, "events", R_OK | X_OK, 0) == 0)
		return fd;
	code = -errno;
	seam_file_close_fd(fd);
	fd = code == -ENOENT ? mount_detached() : -1;
	return fd >= 0 ? fd : refuse(code, err);
}

int seam_tracefs_id(int root, const char *system, const char *name,
		    struct seam_err *err)
{
	char path[PATH_MAX], text[32];
	int fd, code;
	ssize_t n;

	snprintf(path, sizeof(path), "events/%s/%s/id", system, name);
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	code = n < 0 ? -errno : -ENOENT;
	seam_file_close_fd(fd);
	if (n > 0) {
		text[n] = '\0';
		return atoi(text);
	}
	return code != -ENOENT ? refuse(code, err) :
	       seam_err_set(err, code, "there is no tracepoint '%s:%s'",
			    system, name);
}
