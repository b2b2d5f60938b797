/* SPDX-License-Identifier: MIT */
/*
 * inherit.c - a forked child's own dump, with all code that is loaded
 *
 * Names and lines are not kept in memory where there is a file.  A child reads
 * them from its parent's file, through the inherited descriptor, and from its
 * copy of the parent's buffer, and writes them to a file of its own.
 *
 * The parent's output is not changed until the child's is complete: a child of
 * the child that is forked in the middle, and a thread that finds this one
 * dead, begin again from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "traced/jit/writer.h"

/* Copy the records of @entry from the file or the buffer to @to. */
static bool read_records(const struct seam_writer_output *out,
			 const struct seam_writer_entry *entry, uint8_t *to)
{
	uint64_t pos = entry->records.pos;

	if (pos < out->file.size)
		return seam_file_read_at(out->file.fd, to, entry->size,
					 pos) == 0;
	pos -= out->file.size;
	if (pos > out->buffer.used || entry->size > out->buffer.used - pos)
		return false;
	memcpy(to, out->buffer.bytes + pos, entry->size);
	return true;
}

int seam_writer_copy(struct seam_jitdump *dump,
		     const struct seam_writer_output *out,
		     const struct seam_writer_entry *from, uint64_t addr,
		     struct seam_writer_entry *entry)
{
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;
	size_t size = from->size, at = is_map ? size + SEAM_WRITER_MAX_HEX : 0;
	int error = 0;
	uint8_t *to = seam_writer_reserve(dump, at + size, &error);

	if (!to)
		return error;
	if (!read_records(out, from, to + at))
		return -EBADF;
	if (is_map)
		size = seam_writer_put_line_at(to, to + at, size, addr);
	else if (!seam_writer_adopt(to, size, addr))
		return -EBADF;
	seam_writer_commit(dump, size, 1, entry);
	return 0;
}

void seam_writer_release(struct seam_writer_output *out)
{
	struct seam_writer_buffer buffer = out->buffer;
	struct seam_writer_entries entries = out->entries;

	out->buffer = (struct seam_writer_buffer) { 0 };
	out->entries = (struct seam_writer_entries) { 0 };
	seam_writer_barrier();
	seam_writer_unmap(buffer.bytes, buffer.cap);
	seam_writer_unmap(entries.items, entries.cap * sizeof(*entries.items));
}

/* Drop an unfinished attempt, of our parent or with its file our own. */
static void discard(struct seam_writer_output *own)
{
	if (own->pid == seam_lock_pid() && own->file.fd >= 0)
		unlink(own->file.path);
	seam_writer_close_file(&own->file);
	seam_writer_release(own);
}

/* A child may have closed all descriptors, as daemons do. */
static void reopen(struct seam_writer_file *file)
{
	if (seam_writer_owns_fd(file))
		return;
	file->fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC |
			O_NONBLOCK);
	if (file->fd >= 0 && !seam_writer_owns_fd(file)) {
		close(file->fd);
		file->fd = -1;
	}
}

/* Begin the dump of this process, with a table for the code of @parent. */
static int begin(struct seam_jitdump *dump,
		 const struct seam_writer_output *parent)
{
	struct seam_writer_output *own = dump->out;
	size_t cap = parent->entries.cap;
	int r;

	discard(own);
	own->pid = seam_lock_pid();
	if (cap && !seam_writer_grow(&own->entries.items, 0,
				     cap * sizeof(*own->entries.items)))
		return -ENOMEM;
	own->entries.cap = cap;
	r = seam_writer_create_file(&own->file, dump->format, own->pid,
				    dump->folder);
	return r ? r : seam_writer_add_header(dump);
}

static int copy_entries(struct seam_jitdump *dump,
			const struct seam_writer_output *parent)
{
	struct seam_writer_entries *entries = &dump->out->entries;
	int first = 0;

	for (size_t i = 0; i < parent->entries.n; i++) {
		const struct seam_writer_entry *from =
			&parent->entries.items[i];
		struct seam_writer_entry *entry = &entries->items[i];
		int r;

		*entry = *from;
		entry->size = 0;
		entries->n++;
		r = from->size ? seam_writer_copy(dump, parent, from,
						  from->addr, entry) : 0;
		if (r)
			seam_writer_lose(dump, 1, r);
		first = first ? first : r;
	}
	return first;
}

/* No output of our own: all code is lost, and nothing is written. */
static int lose_all(struct seam_jitdump *dump,
		    struct seam_writer_output *parent, int error)
{
	uint64_t n = 0;

	for (size_t i = 0; i < parent->entries.n; i++) {
		n += parent->entries.items[i].size != 0;
		parent->entries.items[i].size = 0;
	}
	parent->buffer.used = parent->buffer.n = 0;
	seam_writer_close_file(&parent->file);
	parent->pid = seam_lock_pid();
	return seam_writer_lose(dump, n, n ? error : 0);
}

int seam_writer_inherit(struct seam_jitdump *dump)
{
	struct seam_writer_output *parent = dump->parent ? dump->parent :
					    dump->out;
	int r, flushed;

	if (dump->stream.is_on)
		return seam_stream_inherit(dump);
	dump->parent = parent;
	seam_writer_barrier();
	dump->out = &dump->outputs[parent == dump->outputs];
	reopen(&parent->file);
	r = begin(dump, parent);
	if (r) {
		discard(dump->out);
		dump->out = parent;
		r = lose_all(dump, parent, r);
		dump->parent = NULL;
		return r;
	}
	r = copy_entries(dump, parent);
	flushed = seam_writer_flush(dump);
	seam_writer_barrier();
	dump->parent = NULL;
	seam_writer_close_file(&parent->file);
	seam_writer_release(parent);
	return r ? r : flushed;
}
