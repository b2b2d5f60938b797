/* SPDX-License-Identifier: MIT */
/* stream_file.c - open, write and close it; see stream_file.h */
#include "target/sysprof/stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BUFFER_BYTES = 8 << 20,
	ENOUGH_BYTES = 256 << 10,
};

struct stream_file {
	int fd;
	uint8_t *buffer;
	char path[];
};

static int open_file(void *ctx)
{
	struct stream_file *file = ctx;

	file->fd = open(file->path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC |
				    O_NOCTTY, 0644);
	return file->fd < 0 ? -errno : 0;
}

/* In handlers. */
static size_t write_file(const void **data, size_t n, void *ctx)
{
	const struct stream_file *file = ctx;
	const uint8_t *bytes = *data;
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(file->fd, bytes + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return done;
}

static int release(struct stream_file *file)
{
	int r = file->fd >= 0 ? close(file->fd) : 0, error = errno;

	munmap(file->buffer, BUFFER_BYTES);
	free(file);
	errno = error;
	return r;
}

static int close_file(void *ctx, uint8_t *buffer)
{
	(void)buffer;
	return release(ctx);
}

static void release_in_child(void *ctx)
{
	release(ctx);
}

int seam_sysprof_stream_file(const char *path, struct luam_sysprof_options *opt,
			     struct seam_sysprof_output *output)
{
	size_t n = strlen(path) + 1;
	struct stream_file *file = malloc(sizeof(*file) + n);
	void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!file || buffer == MAP_FAILED) {
		free(file);
		if (buffer != MAP_FAILED)
			munmap(buffer, BUFFER_BYTES);
		return -ENOMEM;
	}
	file->fd = -1;
	file->buffer = buffer;
	memcpy(file->path, path, n);
	opt->ctx = file;
	opt->buf = buffer;
	opt->len = BUFFER_BYTES;
	*output = (struct seam_sysprof_output) {
		.open = open_file, .writer = write_file, .on_stop = close_file,
		.on_child = release_in_child, .ends_at_exit = true,
		.enough = ENOUGH_BYTES,
	};
	return 0;
}
