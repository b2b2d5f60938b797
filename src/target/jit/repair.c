/* SPDX-License-Identifier: MIT */
/*
 * repair.c - a dump whose last caller died in its call
 *
 * That call stopped at any instruction, as for a child that was forked in the
 * middle of it; so the same order of stores that a child relies on (writer.h)
 * says what can be used.  Pieces of code that were half laid out are not
 * there; those whose records cannot be found any more are counted as lost.
 */
#include <unistd.h>

#include "target/jit/writer.h"

/* A child that died while it took over its parent's code. */
static void end_inheriting(struct seam_jitdump *dump)
{
	struct seam_writer_entries *entries = &dump->entries;

	if (!entries->is_inheriting)
		return;
	for (size_t i = entries->n_inherited; i < entries->n; i++) {
		if (entries->items[i].size)
			seam_writer_lose(dump, 1, 0);
		entries->items[i].size = 0;
	}
	entries->is_inheriting = false;
}

/* The file ends where its last whole record does. */
static int repair_file(struct seam_jitdump *dump)
{
	struct seam_writer_buffer *buffer = &dump->buffer;

	end_inheriting(dump);
	/* Written, and not emptied any more. */
	if (buffer->pos != dump->file.size)
		buffer->used = buffer->n = 0;
	buffer->pos = dump->file.size;
	seam_writer_cut(&dump->file);
	return 0;
}

int seam_writer_repair(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (!s->is_on)
		return repair_file(dump);
	if (s->is_over)
		return 0;
	/* A record that was begun in the ring never ends: take another. */
	seam_stream_leave(dump);
	return seam_writer_inherit(dump);
}
