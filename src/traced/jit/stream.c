/* SPDX-License-Identifier: MIT */
/*
 * stream.c - records to a recorder, through a ring, in place of a file
 *
 * The records of a block are a group (wire/jit/jit_chunk.h).  Each call sends
 * as much of the queue as the ring has room for.
 */
#include <errno.h>

#include "wire/jit/jit_chunk.h"
#include "traced/jit/writer.h"

enum { CONNECT_MS = 1000 };	/* for the recorder to answer */

/* No smaller part of a group is sent, unless it is the last. */
enum { MIN_CHUNK = 512 };

static int claim_ring(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	/* For the process: its threads may end before the dump. */
	int r = seam_link_client_claim(&dump->client, 0, (uint32_t)own->pid,
				       &own->claim);

	own->has_ring = r == 0;
	if (r)
		return r;
	/* relaxed: a count; from now on the ring has it */
	atomic_fetch_sub_explicit(&dump->client.memories[0].head->n_lost,
				  own->n_announced, memory_order_relaxed);
	own->n_announced = 0;
	return 0;
}

int seam_stream_open(struct seam_jitdump *dump, const char *address)
{
	int r;

	r = seam_link_client_connect(&dump->client, address, SEAM_JIT_SERVICE,
				     CONNECT_MS);
	if (r)
		return r;
	r = claim_ring(dump);
	if (r)
		seam_link_client_fini(&dump->client);
	dump->is_streamed = r == 0;
	return r;
}

/* The recording ended: what is queued is lost, and no child inherits. */
static int end_stream(struct seam_jitdump *dump)
{
	uint64_t n = seam_writer_lose_queue(dump);

	dump->is_over = true;
	seam_writer_free_blocks(dump);
	return n ? -EPIPE : 0;
}

/* Send the next part of @block, the first of the queue; false without room. */
static bool send_chunk(struct seam_ring_producer *ring,
		       struct seam_writer_block *block)
{
	size_t room = seam_ring_room(ring), left = block->size - block->n_sent;
	struct seam_jit_chunk chunk = {
		.flags = block->n_sent ? 0 : SEAM_JIT_CHUNK_FIRST,
	};
	struct seam_ring_writer w;

	room = room > sizeof(chunk) ? room - sizeof(chunk) : 0;
	if (room < left && room < MIN_CHUNK)
		return false;
	chunk.size = (uint32_t)(room < left ? room : left);
	chunk.flags |= chunk.size == left ? SEAM_JIT_CHUNK_LAST : 0;
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(chunk) + chunk.size))
		return false;
	seam_ring_put(&w, &chunk, sizeof(chunk));
	seam_ring_put(&w, block->bytes + block->n_sent, chunk.size);
	seam_ring_end(&w);
	block->n_sent += chunk.size;
	return true;
}

/* Send whole blocks and, of the next, the part that there is room for. */
static void send_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_block *block;

	for (; (block = dump->own->head); seam_writer_pop(dump))
		while (block->n_sent < block->size)
			if (!send_chunk(&dump->own->claim.ring, block))
				return;
}

/* Store the count in shared memory, where it outlives this process. */
static void announce_offered(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;
	/* relaxed: a count */
	uint64_t n = atomic_load_explicit(&own->n_offered,
					  memory_order_relaxed);

	if (own->has_ring) {
		/* relaxed: a count, written under the lock */
		atomic_store_explicit(
			&own->claim.ring.control->program.n_offered, n,
			memory_order_relaxed);
	} else if (n > own->n_announced) {
		/* relaxed: a count */
		atomic_fetch_add_explicit(
			&dump->client.memories[0].head->n_lost,
			n - own->n_announced, memory_order_relaxed);
	}
	own->n_announced = n;
}

/* Whether the recorder paused the ring: then the recording ends. */
static bool is_paused(const struct seam_writer_own *own)
{
	/* relaxed: pausing is a request; see ring/consumer.h */
	return atomic_load_explicit(&own->claim.ring.control->program.paused,
				    memory_order_relaxed);
}

int seam_stream_send(struct seam_jitdump *dump)
{
	struct seam_writer_own *own = dump->own;

	if (dump->is_over) {
		/* Without a ring, losses are counted in the memory's head. */
		if (!own->has_ring)
			announce_offered(dump);
		return 0;
	}
	if (!own->has_ring) {
		claim_ring(dump);
		/* Wake the recorder, so that it prepares further rings. */
		seam_ring_wakeup_send(&dump->client.wakeup);
	}
	if (own->has_ring && is_paused(own))
		return end_stream(dump);
	/* The program closed the slot, or another process claimed it. */
	if (own->has_ring &&
	    !seam_ring_memory_is_held(&dump->client.memories[0],
				      &own->claim)) {
		own->has_ring = false;
		announce_offered(dump);
		return end_stream(dump);
	}
	announce_offered(dump);
	if (own->has_ring)
		send_blocks(dump);
	return 0;
}

void seam_stream_close(struct seam_jitdump *dump)
{
	if (!dump->is_streamed)
		return;
	/* A child has no ring before its first call. */
	if (dump->own->has_ring)
		seam_ring_memory_close(&dump->client.memories[0],
				       &dump->own->claim);
	seam_link_client_fini(&dump->client);
}
