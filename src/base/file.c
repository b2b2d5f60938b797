/* SPDX-License-Identifier: MIT */
/* file.c - open, map, read to the end, write until done; see file.h */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int seam_file_read_fd(struct seam_file *file, int fd, size_t max_bytes,
		      struct seam_err *err)
{
	size_t cap = 64 * 1024, n = 0;
	uint8_t *buf = malloc(cap);
	ssize_t got = 1;

	*file = (struct seam_file) { 0 };
	if (!buf)
		return seam_err_set(err, -ENOMEM, "out of memory");
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
	return seam_err_set(err, -errno, "cannot read: %s", strerror(errno));
}

static int map(struct seam_file *file, int fd, size_t size,
	       struct seam_err *err)
{
	void *p;

	if (size == 0)
		return 0;
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return seam_err_set(err, -errno, "cannot map %zu bytes: %s",
				    size, strerror(errno));
	file->bytes = (struct seam_bytes) { p, size };
	file->mapped = true;
	return 0;
}

int seam_file_open(struct seam_file *file, const char *path,
		   struct seam_err *err)
{
	bool standard_input = strcmp(path, "-") == 0;
	int fd = standard_input ? dup(STDIN_FILENO) :
		 open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r;

	*file = (struct seam_file) { 0 };
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = seam_err_set(err, -errno, "%s", strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		r = seam_err_set(err, -EISDIR, "%s", strerror(EISDIR));
	} else if (S_ISREG(st.st_mode)) {
		r = map(file, fd, (size_t)st.st_size, err);
	} else {
		r = seam_file_read_fd(file, fd, SIZE_MAX, err);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int seam_file_read(struct seam_file *file, int dir, const char *path,
		   size_t max_bytes, struct seam_err *err)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	*file = (struct seam_file) { 0 };
	if (fd < 0)
		return seam_err_set(err, -errno, "%s", strerror(errno));
	if (fstat(fd, &st) < 0)
		r = seam_err_set(err, -errno, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = seam_err_set(err, -EINVAL, "not a regular file");
	else
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
	if (file->mapped)
		munmap((void *)(uintptr_t)file->bytes.data, file->bytes.size);
	else
		free((void *)(uintptr_t)file->bytes.data);
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
