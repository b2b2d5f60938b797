/* SPDX-License-Identifier: MIT */
/*
 * output.c - bytes to the file: whole records, or none of them
 *
 * Records stand in the buffer until they are written with one write(2).  If
 * that fails, whatever part of them reached the file is cut off again, the
 * buffer is emptied and what was in it is counted.  Room may come back, so
 * the next call tries again.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/jit/writer.h"

void *seam_writer_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void seam_writer_unmap(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

bool seam_writer_grow(void *array, size_t size, size_t bigger)
{
	void *p = seam_writer_map(bigger), *old;

	if (!p)
		return false;
	memcpy(&old, array, sizeof(old));
	if (old)
		memcpy(p, old, size);
	seam_writer_may_fork();
	memcpy(array, &p, sizeof(p));
	seam_writer_may_fork();
	seam_writer_unmap(old, size);
	return true;
}

int seam_writer_lose(struct seam_jitdump *dump, uint64_t n, int error)
{
	/* relaxed: counters, nothing is ordered by them */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&dump->stream.n_offered, n,
				  memory_order_relaxed);
	return error;
}

/* A write past the limit raises SIGXFSZ, which would end the program. */
static bool is_past_limit(uint64_t size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/*
 * Not write(): that is a place where a thread may be cancelled, and then the
 * turn would never be given back.  The limit is looked at before each call: a
 * write that was cut by one that has just been set is followed by the signal.
 */
static int write_all(const struct seam_writer_file *file,
		     const uint8_t *bytes, size_t size)
{
	uint64_t end = file->size + size;

	while (size) {
		long n = is_past_limit(end) ? -EFBIG :
			 syscall(SYS_write, file->fd, bytes, size);

		if (n == -EFBIG)
			return -EFBIG;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

void seam_writer_cut(struct seam_writer_file *file)
{
	if (!seam_writer_is_ours(file) ||
	    !ftruncate(file->fd, (off_t)file->size))
		return;
	close(file->fd);
	file->fd = -1;
}

int seam_writer_flush(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	struct seam_writer_buffer *buffer = &dump->buffer;
	int r = 0;

	if (dump->stream.is_on)
		return seam_stream_publish(dump);
	if (!buffer->used)
		return 0;
	if (!seam_writer_is_ours(file))
		r = -EBADF;	/* closed behind our back; it may be anything */
	else
		r = write_all(file, buffer->bytes, buffer->used);
	if (!r) {
		file->size += buffer->used;
		seam_writer_may_fork();
		buffer->used = 0;
		buffer->n = 0;
		buffer->pos = file->size;
		return 0;
	}
	seam_writer_cut(file);
	seam_writer_forget_waiting(dump);
	seam_writer_lose(dump, buffer->n, r);
	buffer->used = buffer->n = 0;
	/* Without its header the rest could not be read: it waits again. */
	if (!file->size && file->fd >= 0 && r != -EBADF)
		buffer->used = seam_writer_put_header(dump, buffer->bytes);
	return r;
}

uint8_t *seam_writer_reserve(struct seam_jitdump *dump, size_t size,
			     int *error)
{
	struct seam_writer_buffer *buffer = &dump->buffer;

	if (dump->stream.is_on)
		return seam_stream_reserve(dump, size, error);
	if (size <= buffer->cap - buffer->used)
		return buffer->bytes + buffer->used;
	*error = seam_writer_flush(dump);
	if (*error)
		return NULL;
	if (size <= buffer->cap)
		return buffer->bytes;
	/* Seldom: code of more than the buffer. */
	if (!seam_writer_grow(&buffer->bytes, buffer->cap, size)) {
		*error = -ENOMEM;
		return NULL;
	}
	buffer->cap = size;
	return buffer->bytes;
}

void seam_writer_commit(struct seam_jitdump *dump, size_t size, uint64_t n)
{
	dump->buffer.n += n;
	/* relaxed: a counter */
	atomic_fetch_add_explicit(&dump->stream.n_offered, n,
				  memory_order_relaxed);
	dump->buffer.used += size;
}
