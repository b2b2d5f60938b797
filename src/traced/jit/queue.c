/* SPDX-License-Identifier: MIT */
/*
 * queue.c - records on their way to the file or the ring
 *
 * Records are laid out in a block, and blocks are queued in the order of their
 * commits.  A block that was written is freed, unless it has the records of
 * loaded code: a child that is forked later queues those again.
 */
#include <errno.h>

#include "wire/jit/jit_chunk.h"
#include "traced/jit/writer.h"

int seam_writer_lose(struct seam_jitdump *dump, uint64_t n, int error)
{
	/* relaxed: counters, nothing is ordered by them */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&dump->own->n_offered, n,
				  memory_order_relaxed);
	return error;
}

struct seam_writer_block *seam_writer_reserve(struct seam_jitdump *dump,
					      size_t size, int *error)
{
	struct seam_writer_block *block;

	*error = 0;
	if (dump->is_streamed)
		*error = dump->is_over ? -EPIPE :
			 size > SEAM_JIT_MAX_GROUP ? -EMSGSIZE :
			 dump->own->n_queued > SEAM_WRITER_MAX_QUEUED ?
			 -ENOBUFS : 0;
	if (*error)
		return NULL;
	block = seam_writer_alloc(&dump->memory, size);
	*error = block ? 0 : -ENOMEM;
	return block;
}

static void push(struct seam_writer_own *own, struct seam_writer_block *block)
{
	block->is_queued = true;
	if (own->head)
		own->tail->next = block;
	else
		own->head = block;
	own->tail = block;
	own->n_queued += block->size;
}

int seam_writer_commit(struct seam_jitdump *dump,
		       struct seam_writer_block *block, size_t size, uint8_t n,
		       uint64_t id)
{
	struct seam_writer_own *own = dump->own;

	block->size = (uint32_t)size;
	block->n = n;
	block->id = id;
	/* relaxed: a count.  First: what is recorded was offered. */
	atomic_fetch_add_explicit(&own->n_offered, n, memory_order_relaxed);
	push(own, block);
	seam_writer_barrier();
	if (id)
		dump->entries.items[id - 1].block = block;
	return dump->is_streamed || own->n_queued < SEAM_WRITER_BUFFER_BYTES ?
	       0 : seam_writer_write(dump);
}

void seam_writer_pop(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	struct seam_writer_block *block = own->head;

	own->head = block->next;
	own->n_queued -= block->size;
	block->is_queued = false;
	if (!block->id)
		seam_writer_free(&dump->memory, block);
}

static void forget_records(struct seam_writer_entry *entry)
{
	struct seam_writer_block *block = entry->block;

	entry->block = NULL;
	seam_writer_barrier();
	block->id = 0;
}

uint64_t seam_writer_lose_queue(struct seam_jitdump *dump)
{
	uint64_t n = 0;

	for (struct seam_writer_block *block; (block = dump->own->head); ) {
		if (block->id)
			forget_records(&dump->entries.items[block->id - 1]);
		n += block->n;
		seam_writer_pop(dump);
	}
	/* relaxed: a count; they were offered already */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	return n;
}

int seam_writer_add_header(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;
	int error;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return 0;
	block = seam_writer_reserve(dump, SEAM_WRITER_SMALL, &error);
	return block ? seam_writer_commit(dump, block, seam_writer_put_header(
						dump, block->bytes), 0, 0) :
	       error;
}

int seam_writer_flush(struct seam_jitdump *dump)
{
	return dump->is_streamed ? seam_stream_send(dump) :
	       seam_writer_write(dump);
}

void seam_writer_unload(struct seam_jitdump *dump,
			struct seam_writer_entry *entry)
{
	struct seam_writer_block *block = entry->block;

	entry->is_loaded = false;
	if (!block)
		return;
	forget_records(entry);
	if (!block->is_queued)
		seam_writer_free(&dump->memory, block);
}

/* ---- in a child ---- */

/*
 * The records of code @id in a block of this process.  The queue may become
 * longer than that of seam_writer_reserve(): all code is inherited.
 */
static int inherit_code(struct seam_jitdump *dump, uint64_t id)
{
	struct seam_writer_entry *entry = &dump->entries.items[id - 1];
	struct seam_writer_block *old = entry->block, *block;
	bool is_map = dump->format == SEAM_JITDUMP_FORMAT_MAP;
	size_t size;
	int r;

	if (!old)
		return 0;
	block = seam_writer_alloc(&dump->memory, old->size +
				  (is_map ? SEAM_WRITER_MAX_HEX : 0));
	if (!block) {
		entry->block = NULL;
		return seam_writer_lose(dump, 1, -ENOMEM);
	}
	size = seam_writer_put_again(dump, block->bytes, old->bytes, old->size,
				     entry->addr);
	r = seam_writer_commit(dump, block, size, 1, id);
	seam_writer_free(&dump->memory, old);
	return r;
}

int seam_writer_inherit(struct seam_jitdump *dump)
{
	struct seam_writer_file *file = &dump->file;
	int first = 0, r;

	if (!dump->is_streamed) {
		seam_writer_close_file(file);
		first = seam_writer_create_file(file, dump->format,
						dump->own->pid, dump->folder);
	}
	/* Without memory for it a stream has no header, which is valid. */
	seam_writer_add_header(dump);
	for (uint64_t id = 1; id <= dump->entries.n; id++) {
		r = inherit_code(dump, id);
		first = first ? first : r;
	}
	if (dump->is_streamed)
		return first;
	r = seam_writer_write(dump);
	return first ? first : r;
}
