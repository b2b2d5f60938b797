/* SPDX-License-Identifier: MIT */
/*
 * output.c - records to the file: whole ones, or none of them
 *
 * Records are buffered until they are written with one write(2).  If that
 * fails, the part of them that reached the file is truncated again, the buffer
 * is emptied and its records are counted as lost.  There may be room again
 * later, so the next call tries again.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/jit/writer.h"

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
 * Not write(): that is a cancellation point, and the lock of a thread that is
 * cancelled there would never be released.  The limit is checked before each
 * call: a limit set meanwhile cuts one write short, and the next one raises the
 * signal.
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

/*
 * Truncate the file after its last whole record.  Where that fails the file is
 * closed, and nothing more is added to it.
 */
static void truncate_file(struct seam_writer_file *file)
{
	if (!seam_writer_owns_fd(file) ||
	    !ftruncate(file->fd, (off_t)file->size))
		return;
	close(file->fd);
	file->fd = -1;
}

static void empty(struct seam_writer_buffer *buffer, uint64_t pos)
{
	buffer->used = 0;
	buffer->n = 0;
	buffer->pos = pos;
}

int seam_writer_flush(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->out->file;
	struct seam_writer_buffer *buffer = &dump->out->buffer;
	int r;

	if (dump->stream.is_on)
		return seam_stream_send(dump);
	if (!buffer->used)
		return 0;
	/* The program may have closed it; the descriptor may be any file. */
	r = seam_writer_owns_fd(file) ?
	    write_all(file, buffer->bytes, buffer->used) : -EBADF;
	if (!r) {
		file->size += buffer->used;
		seam_writer_barrier();
		empty(buffer, file->size);
		return 0;
	}
	truncate_file(file);
	seam_writer_drop_records(&dump->out->entries, file->size);
	seam_writer_lose(dump, buffer->n, r);
	empty(buffer, file->size);
	/* No record can be read without the header: it is buffered again. */
	if (!file->size && file->fd >= 0 && r != -EBADF)
		buffer->used = seam_writer_put_header(dump, buffer->bytes);
	return r;
}

uint8_t *seam_writer_reserve(struct seam_jitdump *dump, size_t size,
			     int *error)
{
	struct seam_writer_buffer *buffer = &dump->out->buffer;
	size_t cap = size > SEAM_WRITER_BUFFER_BYTES ? size :
		     SEAM_WRITER_BUFFER_BYTES;

	if (dump->stream.is_on)
		return seam_stream_reserve(dump, size, error);
	if (size <= buffer->cap - buffer->used)
		return buffer->bytes + buffer->used;
	*error = seam_writer_flush(dump);
	if (*error)
		return NULL;
	if (size <= buffer->cap - buffer->used)
		return buffer->bytes + buffer->used;
	/* The first record, or one that is larger than the buffer. */
	if (!seam_writer_grow(&buffer->bytes, buffer->cap, cap)) {
		*error = -ENOMEM;
		return NULL;
	}
	buffer->cap = cap;
	return buffer->bytes;
}

void seam_writer_commit(struct seam_jitdump *dump, size_t size, uint64_t n,
			struct seam_writer_entry *entry)
{
	struct seam_writer_output *out = dump->out;

	if (dump->stream.is_on) {
		seam_stream_commit(dump, size, n, entry);
		return;
	}
	if (entry)
		entry->records.pos = out->file.size + out->buffer.used;
	out->buffer.n += n;
	out->buffer.used += size;
	/* A child that is forked after the next store has it. */
	seam_writer_barrier();
	if (entry)
		entry->size = (uint32_t)size;
}

int seam_writer_add_header(struct seam_jitdump *dump)
{
	int error = 0;
	uint8_t *to = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);

	if (to)
		seam_writer_commit(dump, seam_writer_put_header(dump, to), 0,
				   NULL);
	return error;
}

void seam_writer_repair(struct seam_jitdump *dump)
{
	struct seam_writer_output *out = dump->out;

	if (dump->stream.is_on) {
		seam_stream_repair(dump);
		return;
	}
	/* Written, but the buffer was not emptied. */
	if (out->buffer.pos != out->file.size)
		empty(&out->buffer, out->file.size);
	truncate_file(&out->file);
}
