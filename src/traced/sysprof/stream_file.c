/* SPDX-License-Identifier: MIT */
/* stream_file.c - open, write and close it; see stream_file.h */
#include "traced/sysprof/stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
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

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/*
 * As write(2), without its signals: the program would die of SIGXFSZ at its
 * limit of a file's size, and of SIGPIPE where @fd is a FIFO that nobody reads
 * any more.  One that was pending before stays.
 */
static ssize_t write_without_signal(int fd, const void *bytes, size_t n)
{
	const struct timespec now = { 0 };
	uint64_t signals = bit_of(SIGXFSZ) | bit_of(SIGPIPE);
	uint64_t old = 0, pending = 0;
	ssize_t r;
	int error;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &old, sizeof(old));
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	r = write(fd, bytes, n);
	error = errno;
	signals &= ~pending;
	if (r < 0 && (error == EFBIG || error == EPIPE))
		syscall(SYS_rt_sigtimedwait, &signals, NULL, &now,
			sizeof(signals));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	errno = error;
	return r;
}

/* In handlers. */
static size_t write_file(const void **data, size_t n, void *ctx)
{
	const struct stream_file *file = ctx;
	const uint8_t *bytes = *data;
	size_t done = 0;

	while (done < n) {
		ssize_t r = write_without_signal(file->fd, bytes + done,
						 n - done);

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
