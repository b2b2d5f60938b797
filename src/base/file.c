/* SPDX-License-Identifier: MIT */
/* file.c - open, map, read to the end, write until done; see file.h */
#include "base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/guard.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

int seam_file_read_fd(struct seam_file *file, int fd, size_t max_bytes,
		      struct seam_err *err)
{
	size_t cap = 64 * 1024, n = 0;
	uint8_t *buf = malloc(cap);
	ssize_t got = 1;

	*file = (struct seam_file) { 0 };
	if (!buf)
		return seam_err_no_memory(err);
	while (got != 0) {
		uint8_t *bigger;

		got = read(fd, buf + n, cap - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			goto fail;
		n += (size_t)got;
		if (n > max_bytes) {
			errno = EFBIG;
			goto fail;
		}
		if (n < cap)
			continue;
		bigger = realloc(buf, cap *= 2);
		if (!bigger) {
			errno = ENOMEM;
			goto fail;
		}
		buf = bigger;
	}
	file->bytes = (struct seam_bytes) { buf, n };
	return 0;

fail:
	free(buf);
	return seam_err_errno(err, "cannot read");
}

static int map(struct seam_file *file, int fd, size_t size,
	       struct seam_err *err)
{
	void *p;

	if (size == 0)
		return 0;
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return seam_err_errno(err, "cannot map %zu bytes", size);
	file->bytes = (struct seam_bytes) { p, size };
	file->mapped = true;
	seam_guard_add(file->bytes);
	return 0;
}

const char *seam_file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR: return "a folder";
	case S_IFIFO: return "a fifo";
	case S_IFSOCK: return "a socket";
	case S_IFLNK: return "a symbolic link";
	default: return "a device";
	}
}

static int refuse(mode_t mode, struct seam_err *err)
{
	return S_ISDIR(mode) ?
	       seam_err_set(err, -EISDIR, "%s", strerror(EISDIR)) :
	       seam_err_set(err, -EINVAL, "it is %s, not a regular file",
			    seam_file_kind(mode));
}

/*
 * The type is checked with O_PATH before the open: opening a device may have
 * an effect, and a socket cannot be opened.
 */
static int open_fd(int dir, const char *path, int flags, bool or_pipe,
		   struct seam_err *err)
{
	int fd, checked = openat(dir, path, O_PATH | O_CLOEXEC | flags);
	char link[32];
	struct statfs fs;
	struct stat st;
	int r;

	if (checked < 0 || fstat(checked, &st) < 0) {
		r = seam_err_set(err, -errno, "%s", strerror(errno));
	} else if (S_ISLNK(st.st_mode)) {
		r = seam_err_set(err, -ELOOP, "it is %s",
				 seam_file_kind(st.st_mode));
	/* a pipe without a name, as a shell's <(command), has a writer */
	} else if (!S_ISREG(st.st_mode) &&
		   !(or_pipe && S_ISFIFO(st.st_mode) &&
		     fstatfs(checked, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)) {
		r = refuse(st.st_mode, err);
	} else {
		/* The same file, even if @path was replaced since. */
		snprintf(link, sizeof(link), "/proc/self/fd/%d", checked);
		fd = open(link, OPEN_FLAGS);
		r = fd >= 0 ? fd :
		    seam_err_set(err, -errno, "%s", strerror(errno));
	}
	if (checked >= 0)
		close(checked);
	return r;
}

int seam_file_open_fd(int dir, const char *path, int flags,
		      struct seam_err *err)
{
	return open_fd(dir, path, flags, false, err);
}

/* Map the regular file @fd or read a pipe to its end, and close @fd. */
static int open_bytes(struct seam_file *file, int fd, bool or_socket,
		      struct seam_err *err)
{
	struct stat st;
	int r, flags;

	*file = (struct seam_file) { 0 };
	if (fstat(fd, &st) < 0) {
		r = seam_err_set(err, -errno, "%s", strerror(errno));
	} else if (S_ISREG(st.st_mode)) {
		r = map(file, fd, (size_t)st.st_size, err);
	} else if (S_ISFIFO(st.st_mode) ||
		   (or_socket && S_ISSOCK(st.st_mode))) {
		/* a pipe may be empty for a while: wait for its writer */
		flags = fcntl(fd, F_GETFL);
		if (flags >= 0 && flags & O_NONBLOCK)
			fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
		r = seam_file_read_fd(file, fd, SIZE_MAX, err);
	} else {
		r = refuse(st.st_mode, err);
	}
	close(fd);
	return r;
}

int seam_file_open_part(struct seam_file *file, const char *path,
			struct seam_err *err)
{
	int fd = open_fd(AT_FDCWD, path, O_NOFOLLOW, false, err);

	*file = (struct seam_file) { 0 };
	return fd < 0 ? fd : open_bytes(file, fd, false, err);
}

int seam_file_open(struct seam_file *file, const char *path,
		   struct seam_err *err)
{
	bool is_input = strcmp(path, "-") == 0;
	int fd = is_input ? dup(STDIN_FILENO) :
		 open_fd(AT_FDCWD, path, 0, true, err);

	*file = (struct seam_file) { 0 };
	if (fd < 0)
		return is_input ? seam_err_set(err, -errno, "%s",
					       strerror(errno)) : fd;
	return open_bytes(file, fd, is_input, err);
}

int seam_file_read(struct seam_file *file, int dir, const char *path,
		   size_t max_bytes, struct seam_err *err)
{
	int r, fd = seam_file_open_fd(dir, path, O_NOFOLLOW, err);

	*file = (struct seam_file) { 0 };
	if (fd < 0)
		return fd;
	r = seam_file_read_fd(file, fd, max_bytes, err);
	close(fd);
	return r;
}

void seam_file_prepare(struct seam_bytes bytes)
{
#ifdef MADV_POPULATE_READ	/* Linux 5.14 */
	uintptr_t begin = (uintptr_t)bytes.data & ~(uintptr_t)4095;

	madvise((void *)begin, (uintptr_t)bytes.data + bytes.size - begin,
		MADV_POPULATE_READ);
#else
	(void)bytes;
#endif
}

void seam_file_close(struct seam_file *file)
{
	if (file->mapped) {
		seam_guard_remove(file->bytes);
		munmap((void *)(uintptr_t)file->bytes.data, file->bytes.size);
	} else {
		free((void *)(uintptr_t)file->bytes.data);
	}
	*file = (struct seam_file) { 0 };
}

int seam_file_write_at(int fd, const void *data, size_t size, uint64_t offset,
		       const char *name, struct seam_err *err)
{
	const uint8_t *p = data;

	while (size > 0) {
		ssize_t n = pwrite(fd, p, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int code = n < 0 ? errno : EIO;

			return seam_err_set(err, -code,
				"cannot write %zu bytes at offset %" PRIu64
				" of '%s': %s", size, offset, name,
				strerror(code));
		}
		p += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int seam_file_copy(int from, int to, uint64_t max_bytes, const char *name,
		   struct seam_err *err)
{
	uint8_t buf[32 * 1024];
	uint64_t pos = 0;
	int r = 0;

	while (!r && pos < max_bytes) {
		uint64_t left = max_bytes - pos;
		ssize_t n = pread(from, buf, left < sizeof(buf) ?
				  (size_t)left : sizeof(buf), (off_t)pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = seam_err_errno(err, "cannot read '%s'", name);
		if (n <= 0)
			break;
		r = seam_file_write_at(to, buf, (size_t)n, pos, name, err);
		pos += (uint64_t)n;
	}
	return r;
}

static bool is_program(const char *path)
{
	struct stat st;

	return access(path, X_OK) == 0 && stat(path, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

bool seam_file_find_program(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	size_t n;

	if (!name[0] || strlen(name) >= PATH_MAX)
		return false;
	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return is_program(path);
	}
	for (folders = folders ? folders : "/bin:/usr/bin"; *folders;
	     folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", n ? (int)n : 1,
			     n ? folders : ".", name) < PATH_MAX &&
		    is_program(path))
			return true;
	}
	return false;
}

bool seam_file_interpreter(const char *path, char name[PATH_MAX])
{
	int fd = seam_file_open_fd(AT_FDCWD, path, 0, NULL);
	char line[256] = "", *left = line + 2, *word;
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	seam_file_close_fd(fd);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[strcspn(line, "\n")] = '\0';
	while ((word = strsep(&left, " \t\r")))
		if (word[0] && word[0] != '-' && !strchr(word, '=') &&
		    strcmp(seam_file_name(word), "env") != 0) {
			snprintf(name, PATH_MAX, "%s", word);
			return true;
		}
	return false;
}
