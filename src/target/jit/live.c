/* SPDX-License-Identifier: MIT */
/*
 * live.c - which code is there, and how a child comes to say so
 *
 * Names and lines are not kept in memory: the parent's file has them.  An
 * entry says where, and a child reads them back through the descriptor it
 * inherited (what still waited at the fork is in its copy of the buffer),
 * makes them its own and writes them to its own file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/jit/writer.h"

uint64_t seam_writer_remember(struct seam_jitdump *dump,
			      const struct seam_writer_entry *entry)
{
	struct seam_writer_entries *entries = &dump->entries;

	if (entries->n == entries->cap) {
		size_t size = entries->cap * sizeof(*entries->items);
		size_t cap = entries->cap ? 2 * entries->cap : 1024;

		if (!seam_writer_grow(&entries->items, size,
				      cap * sizeof(*entries->items)))
			return 0;
		entries->cap = cap;
	}
	entries->items[entries->n] = *entry;
	seam_writer_may_fork();
	return ++entries->n;
}

struct seam_writer_entry *seam_writer_entry(struct seam_jitdump *dump,
					    uint64_t id)
{
	struct seam_writer_entries *entries = &dump->entries;

	if (!id || id > entries->n || !entries->items[id - 1].is_there)
		return NULL;
	return &entries->items[id - 1];
}

/* The first of them, whose records are in our file or buffer. */
static size_t n_own(const struct seam_writer_entries *entries)
{
	return entries->is_inheriting ? entries->n_inherited : entries->n;
}

/*
 * Positions rise with ids, but for lines that were moved; so the search stops
 * at the first entry that was never in the buffer and never moved.  Of what is
 * lost the position says nothing, nor do those of a parent.
 */
void seam_writer_forget_waiting(struct seam_jitdump *dump)
{
	struct seam_writer_entries *entries = &dump->entries;
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;

	for (size_t i = n_own(entries); i; i--) {
		struct seam_writer_entry *entry = &entries->items[i - 1];

		if (!entry->size)
			continue;
		if (entry->pos >= dump->file.size)
			entry->size = 0;
		else if (!is_map)
			return;
	}
}

/* @size bytes of the file at @pos. */
static bool read_all(int fd, uint8_t *to, size_t size, uint64_t pos)
{
	while (size) {
		ssize_t n = pread(fd, to, size, (off_t)pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		size -= (size_t)n;
		pos += (uint64_t)n;
	}
	return true;
}

bool seam_writer_read(const struct seam_writer_file *file,
		      const struct seam_writer_buffer *buffer,
		      const struct seam_writer_entry *entry, uint8_t *to)
{
	uint64_t pos = entry->pos;

	if (pos < file->size)
		return read_all(file->fd, to, entry->size, pos);
	pos -= file->size;
	if (pos > buffer->used || entry->size > buffer->used - pos)
		return false;
	memcpy(to, buffer->bytes + pos, entry->size);
	return true;
}

/* What a child has of its parent: file and buffer. */
struct parent {
	struct seam_writer_file file;
	struct seam_writer_buffer buffer;
};

/* One entry out of the parent's dump into ours. */
static int inherit_entry(struct seam_jitdump *dump,
			 const struct parent *parent,
			 struct seam_writer_entry *entry)
{
	enum { MORE = 16 };		/* another address may be longer */
	int error = 0;
	uint8_t *to = seam_writer_reserve(dump, 2 * (size_t)entry->size + MORE,
					  &error);
	size_t size = entry->size;

	if (!to)
		return error;
	if (dump->format == SEAM_JITDUMP_FORMAT_MAP) {
		uint8_t *line = to + entry->size + MORE;

		if (!seam_writer_read(&parent->file, &parent->buffer, entry,
				      line))
			return -EBADF;
		size = seam_writer_adopt_line(to, line, entry->size,
					      entry->addr);
	} else {
		if (!seam_writer_read(&parent->file, &parent->buffer, entry,
				      to) ||
		    !seam_writer_adopt(dump, to, size, entry->written_addr,
				       entry->addr))
			return -EBADF;
	}
	entry->pos = dump->file.size + dump->buffer.used;
	entry->size = (uint32_t)size;
	entry->written_addr = entry->addr;
	seam_writer_commit(dump, size, 1);
	return 0;
}

/*
 * Of @parent, who had @n_known of them.  @parent NULL: nothing can be had of
 * it, because of @error.  Returns 0, or the first error that lost something.
 */
static int inherit_entries(struct seam_jitdump *dump,
			   const struct parent *parent, size_t n_known,
			   int error)
{
	struct seam_writer_entries *entries = &dump->entries;
	int r, first = 0;

	for (size_t i = 0; i < entries->n; i++) {
		struct seam_writer_entry *entry = &entries->items[i];

		entries->n_inherited = i;
		if (!entry->is_there)
			entry->size = 0;
		if (!entry->size)
			continue;
		r = !parent       ? error
		    : i < n_known ? inherit_entry(dump, parent, entry)
				  : -ENODATA;
		if (!r)
			continue;
		entry->size = 0;
		first = first ? first : r;
		seam_writer_lose(dump, 1, r);
	}
	entries->is_inheriting = false;
	return first;
}

/* Leave the parent's file alone: what we have of it are copies. */
static void leave_parent(struct parent *parent)
{
	if (seam_writer_is_ours(&parent->file))
		close(parent->file.fd);
	if (parent->file.marker)
		munmap(parent->file.marker, (size_t)sysconf(_SC_PAGESIZE));
	seam_writer_unmap(parent->buffer.bytes, parent->buffer.cap);
}

/* A child may have closed all it did not open itself, as daemons do. */
static void reopen(struct seam_writer_file *file)
{
	if (seam_writer_is_ours(file))
		return;
	file->fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC |
			O_NONBLOCK);
	if (!seam_writer_is_ours(file) && file->fd >= 0) {
		close(file->fd);
		file->fd = -1;
	}
}

/* The child's own place for records: a file, or a ring to come. */
static int make_own(struct seam_jitdump *dump, struct parent *parent)
{
	int r = 0;

	if (dump->stream.is_on) {
		seam_stream_fork(dump);
	} else {
		reopen(&parent->file);
		r = seam_writer_create(dump, dump->folder);
	}
	if (!r)
		seam_writer_commit(dump, seam_writer_put_header(
				dump, dump->buffer.bytes), 0);
	return r;
}

int seam_writer_inherit(struct seam_jitdump *dump)
{
	struct parent *parent = seam_writer_map(sizeof(*parent));
	struct seam_writer_buffer buffer = {
		.bytes = seam_writer_map(SEAM_WRITER_BUFFER_BYTES),
		.cap = SEAM_WRITER_BUFFER_BYTES,
	};
	/* Forked while our parent inherited: the rest is its parent's. */
	size_t n_known = dump->stream.is_moving ? 0 : n_own(&dump->entries);
	int r, flushed;

	/* Whatever comes of it, nothing more goes to the parent's dump. */
	dump->pid = seam_turn_pid();
	dump->entries.n_inherited = 0;
	dump->entries.is_inheriting = true;
	/* Before file and buffer change: positions are not in these. */
	seam_writer_may_fork();
	if (!parent || !buffer.bytes) {
		dump->file.fd = -1;
		dump->buffer.used = dump->buffer.n = 0;
		seam_stream_fork(dump);
		dump->stream.is_over = true;
		r = inherit_entries(dump, NULL, 0, -ENOMEM);
		goto out;
	}
	parent->file = dump->file;
	parent->buffer = dump->buffer;
	dump->buffer = buffer;
	buffer.bytes = NULL;
	/* Positions are the parent's until each is ours. */
	dump->stream.is_moving = true;
	r = make_own(dump, parent);
	r = inherit_entries(dump, r ? NULL : parent, n_known, r);
	dump->stream.is_moving = false;
	flushed = seam_writer_flush(dump);
	r = r ? r : flushed;
	leave_parent(parent);
out:
	seam_writer_unmap(buffer.bytes, buffer.cap);
	seam_writer_unmap(parent, sizeof(*parent));
	return r;
}
