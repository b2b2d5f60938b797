/* SPDX-License-Identifier: MIT */
/* stream.c - the buffer as a queue into a ring; see stream.h */
#include "target/jit/stream.h"

#include <errno.h>
#include <sys/prctl.h>

#include "ring/link/jit_chunk.h"
#include "target/jit/writer.h"
#include "wire/jit/jitdump.h"

/* A chunk that brings less than this waits for more room, unless it is all. */
enum { LEAST_CHUNK = 512 };

static int claim_ring(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	/* As the process: threads of ours come and go, the dump stays. */
	int r = seam_link_client_claim(&s->client, 0, (uint32_t)dump->pid,
				       &s->claim);

	s->has_ring = r == 0;
	if (r == 0 && s->n_told)
		/* relaxed: a count */
		atomic_fetch_sub_explicit(&s->client.memories[0].head->n_lost,
					  s->n_told, memory_order_relaxed);
	if (r == 0)
		s->n_told = 0;
	return r;
}

int seam_stream_open(struct seam_jitdump *dump, const char *address)
{
	struct seam_writer_stream *s = &dump->stream;
	char name[16] = "";		/* Source: prctl(2), PR_GET_NAME */
	int r;

	prctl(PR_GET_NAME, name);
	r = seam_link_client_connect(&s->client, address, SEAM_JIT_SERVICE,
				     name, SEAM_STREAM_MEET_MS);
	if (r)
		return r;
	/* Programs close what they did not open; the ring needs no socket. */
	seam_link_client_disconnect(&s->client);
	r = claim_ring(dump);
	if (r) {
		seam_link_client_fini(&s->client);
		return r;
	}
	s->is_on = true;
	dump->file.fd = -1;
	return 0;
}

bool seam_stream_waits(const struct seam_jitdump *dump)
{
	return dump->stream.is_on && dump->stream.sent < dump->buffer.used;
}

/* ---- memory ---- */

/* An entry whose records have gone, and stay for children. */
static bool is_kept(const struct seam_writer_entry *entry, size_t sent)
{
	return entry->size && entry->is_there && entry->pos < sent;
}

static size_t kept_bytes(const struct seam_jitdump *dump)
{
	size_t n = 0;

	for (size_t i = 0; i < dump->entries.n; i++)
		if (is_kept(&dump->entries.items[i], dump->stream.sent))
			n += dump->entries.items[i].size;
	return n;
}

/* What is kept, then what waits, without what is gone, at @to. */
static void copy_kept(const struct seam_jitdump *dump, uint8_t *to)
{
	const struct seam_writer_buffer *b = &dump->buffer;
	size_t sent = dump->stream.sent;

	for (size_t i = 0; i < dump->entries.n; i++) {
		const struct seam_writer_entry *e = &dump->entries.items[i];

		if (!is_kept(e, sent))
			continue;
		memcpy(to, b->bytes + e->pos, e->size);
		to += e->size;
	}
	memcpy(to, b->bytes + sent, b->used - sent);
}

/* The entries' positions after copy_kept(). */
static void move_entries(struct seam_jitdump *dump, size_t kept)
{
	size_t sent = dump->stream.sent, pos = 0;

	for (size_t i = 0; i < dump->entries.n; i++) {
		struct seam_writer_entry *e = &dump->entries.items[i];

		if (is_kept(e, sent)) {
			e->pos = pos;
			pos += e->size;
		} else if (e->pos >= sent) {
			e->pos = e->pos - sent + kept;
		} else {
			e->size = 0;
		}
	}
}

/* Room for @size more, by letting go of dead code and by more memory. */
static bool make_room(struct seam_jitdump *dump, size_t size)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_buffer *b = &dump->buffer, old = *b;
	size_t kept = s->is_moving ? s->sent : kept_bytes(dump);
	size_t waiting = b->used - s->sent, cap = b->cap;
	uint8_t *bytes;

	/* Half of it free again: so it is seldom done. */
	while ((kept + waiting + size) > cap / 2)
		cap *= 2;
	bytes = seam_writer_map(cap);
	if (!bytes)
		return false;
	if (s->is_moving) {
		memcpy(bytes, b->bytes, b->used);
		b->bytes = bytes;
	} else {
		copy_kept(dump, bytes);
		s->is_moving = true;
		atomic_signal_fence(memory_order_seq_cst);
		move_entries(dump, kept);
		b->bytes = bytes;
		b->used = kept + waiting;
		s->sent = kept;
		atomic_signal_fence(memory_order_seq_cst);
		s->is_moving = false;
	}
	b->cap = cap;
	seam_writer_unmap(old.bytes, old.cap);
	return true;
}

uint8_t *seam_stream_reserve(struct seam_jitdump *dump, size_t size,
			     int *error)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_buffer *b = &dump->buffer;

	*error = s->is_over ? -EPIPE :
		 size > SEAM_JIT_MAX_GROUP ? -EMSGSIZE :
		 b->used - s->sent > SEAM_STREAM_MOST_WAITING ? -ENOBUFS : 0;
	if (!*error && size > b->cap - b->used && !make_room(dump, size))
		*error = -ENOMEM;
	return *error ? NULL : b->bytes + b->used;
}

/* ---- into the ring ---- */

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * The bytes of the group at @p, of which there are @most.  We laid it out
 * ourselves; but the program may have written over it, and must not find
 * itself in a loop for that.  0: it has.
 */
static size_t group_bytes(const uint8_t *p, size_t most, uint64_t *n)
{
	size_t size = 0;
	uint32_t id, bytes;

	*n = 0;
	if (most < SEAM_JITDUMP_PREFIX_BYTES)
		return 0;
	if (u32_at(p) == SEAM_JITDUMP_MAGIC)
		return most < SEAM_JITDUMP_HEADER_BYTES ? 0 :
		       SEAM_JITDUMP_HEADER_BYTES;
	do {
		if (most - size < SEAM_JITDUMP_PREFIX_BYTES)
			return 0;
		id = u32_at(p + size);
		bytes = u32_at(p + size + 4);
		if (bytes < SEAM_JITDUMP_PREFIX_BYTES || bytes > most - size)
			return 0;
		size += bytes;
	} while (id == SEAM_JITDUMP_DEBUG_INFO ||
		 id == SEAM_JITDUMP_UNWINDING_INFO);
	*n = id != SEAM_JITDUMP_CLOSE;
	return size;
}

/* The next bytes of a group of @size.  False where there is no room. */
static bool put_chunk(struct seam_writer_stream *s, const uint8_t *group,
		      size_t size)
{
	struct seam_ring_producer *ring = &s->claim.ring;
	size_t room = seam_ring_room(ring), left = size - s->part;
	struct seam_jit_chunk chunk = {
		.flags = s->part ? 0 : SEAM_JIT_CHUNK_FIRST,
	};
	struct seam_ring_writer w;

	room = room > sizeof(chunk) ? room - sizeof(chunk) : 0;
	if (room < left && room < LEAST_CHUNK)
		return false;
	chunk.size = (uint32_t)(room < left ? room : left);
	chunk.flags |= chunk.size == left ? SEAM_JIT_CHUNK_LAST : 0;
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(chunk) + chunk.size))
		return false;
	seam_ring_put(&w, &chunk, sizeof(chunk));
	seam_ring_put(&w, group + s->part, chunk.size);
	seam_ring_end(&w);
	s->part += chunk.size;
	return true;
}

/* Nobody listens, or nothing that makes sense is left: let go of it all. */
static int end_stream(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_buffer *b = &dump->buffer;
	uint64_t n = b->n;

	s->is_over = true;
	b->used = b->n = s->sent = s->part = 0;
	for (size_t i = 0; i < dump->entries.n; i++)
		dump->entries.items[i].size = 0;
	/* They were offered already. */
	atomic_fetch_add_explicit(&dump->n_lost, n, memory_order_relaxed);
	return n ? -EPIPE : 0;
}

/* As many whole groups as there is room for, and of the next a part. */
static int put_groups(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_writer_buffer *b = &dump->buffer;

	while (s->sent < b->used) {
		const uint8_t *group = b->bytes + s->sent;
		uint64_t n;
		size_t size = group_bytes(group, b->used - s->sent, &n);

		if (!size)
			return end_stream(dump);
		while (s->part < size)
			if (!put_chunk(s, group, size))
				return 0;
		s->sent += size;
		s->part = 0;
		b->n -= n;
	}
	return 0;
}

/* For the recorder, who finds it there even after our death. */
static void tell_offered(struct seam_writer_stream *s)
{
	/* relaxed: a count */
	uint64_t n = atomic_load_explicit(&s->n_offered,
					  memory_order_relaxed);
	struct seam_ring_memory *m = &s->client.memories[0];

	if (s->has_ring) {
		/* relaxed: a count, which one at a time writes */
		atomic_store_explicit(&s->claim.ring.control->own.n_offered, n,
				      memory_order_relaxed);
	} else if (n > s->n_told) {
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_lost, n - s->n_told,
					  memory_order_relaxed);
	}
	s->n_told = n;
}

/* The recorder stopped our ring: the recording ends. */
static bool is_stopped(const struct seam_writer_stream *s)
{
	/* relaxed: pausing is a request; see ring/backward.h */
	return atomic_load_explicit(&s->claim.ring.control->own.paused,
				    memory_order_relaxed);
}

int seam_stream_publish(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (s->is_over) {
		/* Who has no ring while others record loses, and says so. */
		if (!s->has_ring)
			tell_offered(s);
		return 0;
	}
	if (!s->has_ring) {
		claim_ring(dump);
		/* Others are to find one too: wake who makes them. */
		seam_ring_wakeup_send(&s->client.wakeup);
	}
	if (s->has_ring && is_stopped(s))
		return end_stream(dump);
	/* Somebody closed it, or it is another's. */
	if (s->has_ring &&
	    !seam_ring_memory_is_held(&s->client.memories[0], &s->claim)) {
		s->has_ring = false;
		tell_offered(s);
		return end_stream(dump);
	}
	tell_offered(s);
	return s->has_ring ? put_groups(dump) : 0;
}

void seam_stream_fork(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	s->has_ring = false;
	s->sent = s->part = 0;
	s->n_told = 0;
	atomic_store_explicit(&s->n_offered, 0, memory_order_relaxed);
}

void seam_stream_leave(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;
	struct seam_ring_state *own;
	uint64_t n;

	if (!s->has_ring)
		return;
	/* What waits goes through the next ring, and counts there. */
	own = &s->claim.ring.control->own;
	/* relaxed, all: counts */
	n = atomic_load_explicit(&s->n_offered, memory_order_relaxed);
	n = n > dump->buffer.n ? n - dump->buffer.n : 0;
	atomic_store_explicit(&own->n_offered, n, memory_order_relaxed);
	seam_ring_memory_close(&s->client.memories[0], &s->claim);
	s->has_ring = false;
}

void seam_stream_close(struct seam_jitdump *dump)
{
	struct seam_writer_stream *s = &dump->stream;

	if (!s->is_on)
		return;
	/* The parent's ring is not ours to close. */
	if (s->has_ring && dump->pid == seam_turn_pid())
		seam_ring_memory_close(&s->client.memories[0], &s->claim);
	seam_link_client_fini(&s->client);
	s->is_on = false;
}
