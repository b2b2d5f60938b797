/* SPDX-License-Identifier: MIT */
/* api.c - the public functions of the writer; see <seam/jitdump.h> */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "traced/jit/writer.h"

/*
 * Lock @dump, whose output then is this process's own and whole; *@lost is 0,
 * or why some of what it inherited is lost.  Returns 0; or -errno, not locked.
 */
static int enter(struct seam_jitdump *dump, int *lost)
{
	int r = seam_lock_acquire(&dump->lock);

	*lost = 0;
	if (r < 0)
		return r;
	if (dump->out->pid != seam_lock_pid() || dump->parent)
		*lost = seam_writer_inherit(dump);
	else if (r == SEAM_LOCK_OWNER_DIED)
		seam_writer_repair(dump);
	return 0;
}

/* Unlock it; write first, unless records may be buffered. */
static int leave(struct seam_jitdump *dump, int r)
{
	if (!dump->is_buffered || dump->stream.is_on) {
		int flushed = seam_writer_flush(dump);

		r = r ? r : flushed;
	}
	seam_lock_release(&dump->lock);
	return r;
}

/*
 * Whether a recorder takes the records.  A folder in the options means a
 * file, and a map has no times to stream.
 */
static bool is_streamed(struct seam_jitdump *dump,
			const struct seam_jitdump_options *options)
{
	const char *address = secure_getenv(SEAM_LINK_VARIABLE);

	return address && *address && !options->folder &&
	       options->format == SEAM_JITDUMP_FORMAT_DUMP &&
	       !seam_stream_open(dump, address);
}

/* Free @dump.  The marker stays mapped: code that was loaded may still run. */
static void release(struct seam_jitdump *dump)
{
	seam_stream_close(dump);
	if (seam_writer_owns_fd(&dump->out->file))
		close(dump->out->file.fd);
	seam_writer_release(dump->out);
	seam_writer_unmap(dump, sizeof(*dump));
}

int seam_jitdump_open(struct seam_jitdump **out,
		      const struct seam_jitdump_options *options)
{
	static const struct seam_jitdump_options defaults;
	struct seam_jitdump *dump;
	int saved_errno = errno, r = -ENOMEM;

	*out = NULL;
	options = options ? options : &defaults;
	seam_lock_init();
	dump = seam_writer_map(sizeof(*dump));
	if (!dump)
		goto out;
	dump->out = dump->outputs;
	dump->outputs[0].pid = seam_lock_pid();
	dump->outputs[0].file.fd = dump->outputs[1].file.fd = -1;
	dump->format = options->format;
	dump->is_buffered = options->is_buffered;
	r = is_streamed(dump, options) ? 0 :
	    seam_writer_choose_file(dump, options->folder);
	r = r ? r : seam_writer_add_header(dump);
	r = r ? r : seam_writer_flush(dump);
	if (!r) {
		*out = dump;
		goto out;
	}
	if (dump->out->file.fd >= 0)
		unlink(dump->out->file.path);
	seam_writer_close_file(&dump->out->file);
	release(dump);
out:
	errno = saved_errno;
	return r;
}

/* Add one piece of code; its records may be lost, but it has an id. */
static int load_one(struct seam_jitdump *dump, struct seam_jitdump_code *code)
{
	struct seam_writer_entries *entries = &dump->out->entries;
	uint64_t addr = code->addr ? code->addr : (uintptr_t)code->bytes;
	size_t size = seam_writer_code_bytes(dump, code);
	int error = -EFBIG;
	uint8_t *to;

	code->id = seam_writer_add_entry(entries, addr, code->size);
	if (!code->id)
		return seam_writer_lose(dump, 1, -ENOMEM);
	to = size ? seam_writer_reserve(dump, size, &error) : NULL;
	if (!to)
		return seam_writer_lose(dump, 1, error);
	/* A line of a map is of at least a byte of code. */
	if (dump->format == SEAM_JITDUMP_FORMAT_MAP && !code->size)
		return 0;
	size = seam_writer_put_code(dump, to, code, code->id, addr);
	seam_writer_commit(dump, size, 1, &entries->items[code->id - 1]);
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

static int move_record(struct seam_jitdump *dump,
		       const struct seam_writer_entry *entry, uint64_t id,
		       uint64_t addr)
{
	int error = 0;
	uint8_t *to = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);

	if (to)
		seam_writer_commit(dump, seam_writer_put_move(to, entry, id,
							      addr), 1, NULL);
	return error;
}

static int move_code(struct seam_jitdump *dump, uint64_t id,
		     uint64_t new_addr)
{
	struct seam_writer_entry *entry =
		seam_writer_find_entry(&dump->out->entries, id);
	int r;

	if (!entry)
		return -ENOENT;
	/* Readers cannot use a move of code whose load they do not have. */
	if (!entry->size)
		r = entry->code_size ? -ENODATA : 0;
	else if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		/* A map has no moves: the line again, with the new address. */
		r = seam_writer_copy(dump, dump->out, entry, new_addr, NULL);
	else
		r = move_record(dump, entry, id, new_addr);
	entry->addr = new_addr;
	return seam_writer_lose(dump, r != 0, r);
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

static void unload(struct seam_jitdump *dump, struct seam_writer_entry *entry)
{
	if (dump->stream.is_on)
		seam_stream_unload(dump, entry);
	entry->size = 0;
	entry->is_loaded = false;
}

int seam_jitdump_unload(struct seam_jitdump *dump, uint64_t id)
{
	struct seam_writer_entry *entry;
	int saved_errno = errno, r, lost;

	if (!dump)
		return 0;
	r = enter(dump, &lost);
	if (!r) {
		entry = seam_writer_find_entry(&dump->out->entries, id);
		if (entry)
			unload(dump, entry);
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
		if (!r && dump->stream.head)
			r = -ENOBUFS;
		r = lost ? lost : r;
		seam_lock_release(&dump->lock);
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
	return dump ? dump->out->file.path : "";
}

/* Add CLOSE to the dump, if it is this process's own. */
static void finish(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->out->file;
	uint8_t *to;
	int r = 0;

	if (dump->out->pid != seam_lock_pid() || dump->parent)
		return;
	/* No other thread is in a call; an owner never releases the lock. */
	if (seam_lock_seize(&dump->lock) == SEAM_LOCK_OWNER_DIED)
		seam_writer_repair(dump);
	if (dump->format == SEAM_JITDUMP_FORMAT_DUMP) {
		to = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &r);
		if (to)
			seam_writer_commit(dump, seam_writer_put_close(to), 0,
					   NULL);
	}
	seam_writer_flush(dump);
	/* close(2) would not unlock it: the marker keeps the file open. */
	if (seam_writer_owns_fd(file))
		flock(file->fd, LOCK_UN);
	seam_lock_release(&dump->lock);
}

void seam_jitdump_close(struct seam_jitdump *dump)
{
	int saved_errno = errno;

	if (!dump)
		return;
	finish(dump);
	release(dump);
	errno = saved_errno;
}
