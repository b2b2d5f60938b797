/* SPDX-License-Identifier: MIT */
/* api.c - the public face of the writer; see <seam/jitdump.h> */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "target/jit/writer.h"

/*
 * Take the turn, and have a file that is this process's own and whole; *@lost
 * is 0, or why what it should begin with is not in it.  0 or -errno, and then
 * the turn is not ours.
 */
static int enter(struct seam_jitdump *dump, int *lost)
{
	int r = seam_turn_take(&dump->turn);

	*lost = 0;
	if (r < 0)
		return r;
	if (dump->pid != seam_turn_pid())
		*lost = seam_writer_inherit(dump);
	else if (r == SEAM_TURN_ABANDONED)
		*lost = seam_writer_repair(dump);
	return 0;
}

/* Give the turn back; write out first, unless records may wait. */
static int leave(struct seam_jitdump *dump, int r)
{
	if (!dump->is_buffered || dump->stream.is_on) {
		int flushed = seam_writer_flush(dump);

		r = r ? r : flushed;
	}
	seam_turn_give(&dump->turn);
	return r;
}

/*
 * Whether a recorder takes it.  Who names a folder wants the file, and a map
 * has no times to stream.
 */
static bool is_streamed(struct seam_jitdump *dump,
			const struct seam_jitdump_options *options)
{
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);

	return address && *address && !options->folder &&
	       options->format == SEAM_JITDUMP_FORMAT_DUMP &&
	       !seam_stream_open(dump, address);
}

int seam_jitdump_open(struct seam_jitdump **out,
		      const struct seam_jitdump_options *options)
{
	static const struct seam_jitdump_options defaults;
	struct seam_jitdump *dump;
	int saved_errno = errno, r = -ENOMEM;

	*out = NULL;
	options = options ? options : &defaults;
	seam_turn_init();
	dump = seam_writer_map(sizeof(*dump));
	if (!dump)
		goto out;
	dump->pid = seam_turn_pid();
	dump->format = options->format;
	dump->is_buffered = options->is_buffered;
	dump->buffer.bytes = seam_writer_map(SEAM_WRITER_BUFFER_BYTES);
	dump->buffer.cap = SEAM_WRITER_BUFFER_BYTES;
	if (dump->buffer.bytes)
		r = is_streamed(dump, options) ? 0 :
		    seam_writer_place(dump, options->folder);
	if (r)
		goto fail;
	seam_writer_commit(dump, seam_writer_put_header(
			dump, dump->buffer.bytes), 0);
	r = seam_writer_flush(dump);
	if (!r) {
		*out = dump;
		goto out;
	}
	seam_writer_discard(&dump->file);
fail:
	seam_writer_unmap(dump->buffer.bytes, dump->buffer.cap);
	seam_writer_unmap(dump, sizeof(*dump));
out:
	errno = saved_errno;
	return r;
}

/* Lay one piece out; it may be lost, but it has an id. */
static int load_one(struct seam_jitdump *dump, struct seam_jitdump_code *code)
{
	uint64_t addr = code->addr ? code->addr : (uintptr_t)code->bytes;
	size_t most = seam_writer_code_bytes(dump, code);
	struct seam_writer_entry entry = {
		.addr = addr, .written_addr = addr, .code_size = code->size,
		.is_there = true,
	};
	int error = -EFBIG;
	uint8_t *to = most ? seam_writer_reserve(dump, most, &error) : NULL;

	entry.pos = dump->file.size + dump->buffer.used;
	code->id = seam_writer_remember(dump, &entry);
	if (!to || !code->id)
		return seam_writer_lose(dump, 1, to ? -ENOMEM : error);
	/* A map has no line for nothing. */
	if (dump->format == SEAM_JITDUMP_FORMAT_MAP && !code->size)
		return 0;
	most = seam_writer_put_code(dump, to, code, code->id, addr);
	seam_writer_commit(dump, most, 1);
	seam_writer_may_fork();
	/* From here on a child can have it. */
	dump->entries.items[code->id - 1].size = (uint32_t)most;
	return 0;
}

int seam_jitdump_load(struct seam_jitdump *dump,
		      struct seam_jitdump_code *codes, size_t n)
{
	int saved_errno = errno, r, lost;

	if (!dump)
		return 0;
	r = enter(dump, &lost);
	if (r) {
		for (size_t i = 0; i < n; i++)
			codes[i].id = 0;
		r = seam_writer_lose(dump, n, r);
	} else {
		r = lost;
		for (size_t i = 0; i < n; i++) {
			int one = load_one(dump, &codes[i]);

			r = r ? r : one;
		}
		r = leave(dump, r);
	}
	errno = saved_errno;
	return r;
}

/* A map has no moves: the line stands there again, with the new address. */
static int move_line(struct seam_jitdump *dump, struct seam_writer_entry *entry,
		     uint64_t addr)
{
	enum { MORE = 16 };
	size_t size = entry->size;
	int error = -ENOENT;
	uint8_t *to, *line;
	uint64_t pos;

	to = seam_writer_reserve(dump, 2 * size + MORE, &error);
	/* Making room may have lost the very line. */
	if (!to || !entry->size)
		return seam_writer_lose(dump, 1, error);
	line = to + size + MORE;
	if (!seam_writer_read(&dump->file, &dump->buffer, entry, line))
		return seam_writer_lose(dump, 1, -EBADF);
	pos = dump->file.size + dump->buffer.used;
	size = seam_writer_adopt_line(to, line, size, addr);
	seam_writer_commit(dump, size, 1);
	seam_writer_may_fork();
	entry->pos = pos;
	entry->size = (uint32_t)size;
	entry->written_addr = addr;
	return 0;
}

static int move_record(struct seam_jitdump *dump,
		       const struct seam_writer_entry *entry, uint64_t id,
		       uint64_t addr)
{
	int error = 0;
	uint8_t *to = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);

	if (!to)
		return seam_writer_lose(dump, 1, error);
	seam_writer_commit(dump, seam_writer_put_move(dump, to, entry, id,
						      addr), 1);
	return 0;
}

static int move_code(struct seam_jitdump *dump, uint64_t id,
		     uint64_t new_addr)
{
	struct seam_writer_entry *entry = seam_writer_entry(dump, id);
	int r = 0;

	if (!entry)
		return -ENOENT;
	/* A move of what no reader has heard of says nothing. */
	if (entry->size && dump->format == SEAM_JITDUMP_FORMAT_MAP)
		r = move_line(dump, entry, new_addr);
	else if (entry->size)
		r = move_record(dump, entry, id, new_addr);
	else if (entry->code_size)
		r = seam_writer_lose(dump, 1, -ENODATA);
	entry->addr = new_addr;
	return r;
}

int seam_jitdump_move(struct seam_jitdump *dump, uint64_t id,
		      uint64_t new_addr)
{
	int saved_errno = errno, r, lost;

	if (!dump)
		return 0;
	r = enter(dump, &lost);
	if (r)
		r = seam_writer_lose(dump, 1, r);
	else
		r = leave(dump, move_code(dump, id, new_addr));
	errno = saved_errno;
	return r;
}

int seam_jitdump_unload(struct seam_jitdump *dump, uint64_t id)
{
	struct seam_writer_entry *entry;
	int saved_errno = errno, r, lost;

	if (!dump)
		return 0;
	r = enter(dump, &lost);
	if (!r) {
		entry = seam_writer_entry(dump, id);
		if (entry)
			entry->is_there = false;
		r = leave(dump, entry ? 0 : -ENOENT);
	}
	errno = saved_errno;
	return r;
}

int seam_jitdump_flush(struct seam_jitdump *dump)
{
	int saved_errno = errno, r, lost;

	if (!dump)
		return 0;
	r = enter(dump, &lost);
	if (!r) {
		r = seam_writer_flush(dump);
		if (!r && seam_stream_waits(dump))
			r = -ENOBUFS;
		r = lost ? lost : r;
		seam_turn_give(&dump->turn);
	}
	errno = saved_errno;
	return r;
}

uint64_t seam_jitdump_lost(const struct seam_jitdump *dump)
{
	/* relaxed: a counter, nothing is ordered by it */
	return dump ? atomic_load_explicit(&dump->n_lost,
					   memory_order_relaxed) : 0;
}

const char *seam_jitdump_path(const struct seam_jitdump *dump)
{
	return dump ? dump->file.path : "";
}

/* Say CLOSE, if the dump is this process's own. */
static void finish(struct seam_jitdump *dump)
{
	uint8_t *to;
	int r = 0;

	if (dump->pid != seam_turn_pid())
		return;
	/* No other thread is in a call: who has the turn never gives it. */
	if (seam_turn_seize(&dump->turn) == SEAM_TURN_ABANDONED)
		seam_writer_repair(dump);
	if (dump->format == SEAM_JITDUMP_FORMAT_DUMP) {
		to = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &r);
		if (to)
			seam_writer_commit(dump, seam_writer_put_close(to), 0);
	}
	seam_writer_flush(dump);
	/* Closing would not: the marker holds on to the open file. */
	if (seam_writer_is_ours(&dump->file))
		flock(dump->file.fd, LOCK_UN);
	seam_turn_give(&dump->turn);
}

void seam_jitdump_close(struct seam_jitdump *dump)
{
	int saved_errno = errno;

	if (!dump)
		return;
	finish(dump);
	seam_stream_close(dump);
	if (seam_writer_is_ours(&dump->file))
		close(dump->file.fd);
	seam_writer_unmap(dump->buffer.bytes, dump->buffer.cap);
	seam_writer_unmap(dump->entries.items, dump->entries.cap *
			  sizeof(*dump->entries.items));
	seam_writer_unmap(dump, sizeof(*dump));
	errno = saved_errno;
}
