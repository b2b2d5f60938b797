/* SPDX-License-Identifier: MIT */
/*
 * file.h - whole files: mapped to read, written until done
 *
 * A mapped file that another process shortens raises SIGBUS in its reader;
 * base/guard.h handles that.  Files that others may still change are read into
 * memory (seam_file_read).  Only regular files are opened by name: a FIFO would
 * block the caller, a device may act or never end.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"

/* Zeroed is valid and empty. */
struct seam_file {
	struct seam_bytes bytes;	/* valid until seam_file_close() */
	bool mapped;			/* else in heap memory */
};

/*
 * Map the file @path; read standard input ("-") and a pipe without a name
 * (<(command) of a shell) to their end.  A folder gives -EISDIR; a FIFO, a
 * socket or a device -EINVAL.
 */
int seam_file_open(struct seam_file *file, const char *path,
		   struct seam_err *err);

/*
 * Map a regular file of a folder that others may have made: a link is not
 * followed (-ELOOP), and nothing is waited for.
 */
int seam_file_open_part(struct seam_file *file, const char *path,
			struct seam_err *err);

/*
 * Open the regular file @path to read, relative to @dir (AT_FDCWD for the
 * current folder), @flags 0 or O_NOFOLLOW.  Returns a descriptor that
 * the caller closes, or -errno as above.
 */
int seam_file_open_fd(int dir, const char *path, int flags,
		      struct seam_err *err);

/*
 * Read at most @max_bytes of the regular file @path, relative to folder @dir
 * (AT_FDCWD for the current one), into heap memory.  @path itself
 * must not be a symbolic link.  -EFBIG when the file is larger.
 */
int seam_file_read(struct seam_file *file, int dir, const char *path,
		   size_t max_bytes, struct seam_err *err);

/* Everything that is left to read from @fd, /proc files included. */
int seam_file_read_fd(struct seam_file *file, int fd, size_t max_bytes,
		      struct seam_err *err);

/*
 * Map the pages of @bytes, part of a mapped file that is about to be read, at
 * once: a tenth of the cost of a fault for each.  Only a hint; any bytes.
 */
void seam_file_prepare(struct seam_bytes bytes);

/* Valid on a zeroed struct, and again after itself. */
void seam_file_close(struct seam_file *file);

/* Close @fd; nothing if it is negative. */
static inline void seam_file_close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* All @size bytes at @offset of @fd, through EINTR.  0, -ENODATA or -errno. */
static inline int seam_file_read_at(int fd, void *to, size_t size,
				    uint64_t offset)
{
	uint8_t *at = to;

	while (size) {
		ssize_t n = offset > INT64_MAX ? 0 :
			    pread(fd, at, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/*
 * Write all @size bytes at @offset of @fd, through EINTR and short writes.
 * Returns 0 or -errno; @name and the offset are in the message.
 */
int seam_file_write_at(int fd, const void *data, size_t size, uint64_t offset,
		       const char *name, struct seam_err *err);

/*
 * Copy the first @max_bytes of @from, or as many as there are, to the start of
 * @to.  0 or -errno; @name is of both in messages.
 */
int seam_file_copy(int from, int to, uint64_t max_bytes, const char *name,
		   struct seam_err *err);

/* @path without its folders. */
static inline const char *seam_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The executable file that @name is for execvp(3).  False: there is none. */
bool seam_file_find_program(const char *name, char path[PATH_MAX]);

/*
 * The program that the #! line of the script at @path names, or its operand
 * where that is env(1).  False: no script.
 */
bool seam_file_interpreter(const char *path, char name[PATH_MAX]);

/* "a folder", "a fifo", ...: for messages about other than regular files. */
const char *seam_file_kind(mode_t mode);
