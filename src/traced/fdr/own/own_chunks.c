/* SPDX-License-Identifier: MIT */
/*
 * own_chunks.c - see own_chunks.h
 *
 * Two may write a slot's chunks: its thread, when the area is full, and the
 * thread that calls seam_fdr_own_write().  Both have the slot's lock, and for
 * each chunk that of the log, with signals blocked: a handler of the same
 * thread would wait for itself.
 *
 * A chunk that is being filled is *sealed* before it is written: the cursor is
 * set to the next chunk by another thread than its owner.  An owner inside of a
 * restartable sequence has read the old cursor; membarrier(2) restarts it, and
 * where its commit came first, the cursor is not ours and we try again.
 */
#include "traced/fdr/own/own_chunks.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/fdr/own/own_slots.h"
#include "traced/fdr/record/map_memory.h"
#include "traced/fdr/record/short_lock.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/record/thread_area.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_SEALS = 1000,
	/* ids from 1 on: no program has so many functions */
	MAX_SEEN = 1 << 24,
};

/* with the lock of the log; the bits are in a child's memory as they were */
static struct seam_xray_seen seen;
static bool has_membarrier;

/* Around all that has a lock.  What was blocked, for end_write(). */
static uint64_t begin_write(void)
{
	uint64_t blocked = seam_fdr_block();

	seam_fdr_n_in_source++;
	return blocked;
}

static void end_write(uint64_t blocked)
{
	seam_fdr_n_in_source--;
	seam_fdr_unblock(blocked);
}

/* ---- chunks to a log ---- */

static void add(_Atomic uint64_t *count, uint64_t n)
{
	/* relaxed: a count */
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static void count(struct seam_fdr_own_counts *counts,
		  const struct seam_xray_chunk *found, int r)
{
	if (r && !counts->error)
		counts->error = r;
	*(r ? &counts->n_lost : &counts->n_records) += found->n_records;
	counts->n_bad_bytes += found->bad_bytes;
}

/* Into the process' own; @counts are of this call alone. */
static void count_own(const struct seam_fdr_own_counts *counts)
{
	int none = 0;

	add(&seam_fdr_slots->n_records, counts->n_records);
	add(&seam_fdr_slots->n_lost, counts->n_lost);
	add(&seam_fdr_slots->n_bad_bytes, counts->n_bad_bytes);
	if (counts->error)
		atomic_compare_exchange_strong(&seam_fdr_slots->error, &none,
					       counts->error);
}

static const uint8_t *chunk_at(const struct seam_fdr_slot *s, uint64_t position)
{
	return s->bytes + (position & (seam_fdr_own.area_bytes - 1));
}

/*
 * The first @size bytes of a chunk, to @log; NULL: that of the process, and
 * where there is none they are lost.
 */
static void write_chunk(struct seam_fdr_slot *s, const uint8_t *chunk,
			size_t size, struct seam_xray_log *log,
			struct seam_fdr_own_counts *counts)
{
	uint8_t *records = s->bytes + seam_fdr_own.area_bytes;
	struct seam_xray_chunk found;
	int r = -EIO;

	seam_fdr_short_lock(&seam_fdr_slots->log_lock);
	seam_xray_chunk_read(chunk, size, records, &seen, &found);
	if (found.n_records && !log && seam_fdr_own.log)
		log = seam_fdr_own.log();
	if (found.n_records && log)
		r = seam_xray_log_append(log, &(struct seam_xray_log_thread) {
				.pid = found.pid, .tid = found.tid,
				.wall_us = found.wall_us,
			}, records, found.n_bytes);
	seam_fdr_short_unlock(&seam_fdr_slots->log_lock);
	if (found.n_records || found.bad_bytes)
		count(counts, &found, found.n_records ? r : 0);
}

/* All chunks up to @end, which begins one. */
static void write_chunks(struct seam_fdr_slot *s, uint64_t end,
			 struct seam_xray_log *log,
			 struct seam_fdr_own_counts *counts)
{
	/* relaxed: only changed with the lock */
	uint64_t at = atomic_load_explicit(&s->tail, memory_order_relaxed);

	for (; at < end; at += CHUNK)
		write_chunk(s, chunk_at(s, at), CHUNK, log, counts);
	/* release: what was read there may be overwritten from now on */
	atomic_store_explicit(&s->tail, at, memory_order_release);
}

/* The same up to any @end; the chunk that it is in is not gone on with. */
static void write_up_to(struct seam_fdr_slot *s, uint64_t end,
			struct seam_xray_log *log,
			struct seam_fdr_own_counts *counts)
{
	uint64_t at = end & ~(uint64_t)(CHUNK - 1);

	write_chunks(s, at, log, counts);
	if (end == at || atomic_load(&s->tail) != at)
		return;
	write_chunk(s, chunk_at(s, at), end - at, log, counts);
	atomic_store(&s->tail, at + CHUNK);
}

void seam_fdr_chunks_write(struct seam_fdr_slot *s, bool and_rest)
{
	struct seam_fdr_own_counts counts = { 0 };
	uint64_t blocked = begin_write(), end;

	seam_fdr_short_lock(&s->lock);
	end = seam_fdr_slot_position(s);
	if (!and_rest)
		end &= ~(uint64_t)(CHUNK - 1);
	write_up_to(s, end, NULL, &counts);
	seam_fdr_short_unlock(&s->lock);
	count_own(&counts);
	end_write(blocked);
}

/* ---- on request ---- */

static void restart_others(void)
{
	if (has_membarrier)
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

/*
 * Make the owner go on in a chunk of its own.  Returns where it had come to;
 * without membarrier, the start of the chunk, so the rest is left to it.
 */
static uint64_t seal(struct seam_fdr_slot *s)
{
	for (int i = 0; has_membarrier && i < MAX_SEALS; i++) {
		uint64_t before = atomic_load(&s->cursor);
		uint64_t end = before & SEAM_RING_AUX_POSITION, next;

		if (end % CHUNK == 0)
			return end;
		next = (before | (CHUNK - 1)) + 1;
		if (!atomic_compare_exchange_strong(&s->cursor, &before, next))
			continue;
		restart_others();
		/* it may have begun the next chunk since, but not have gone
		 * on in the old one */
		if (seam_fdr_slot_position(s) / CHUNK != end / CHUNK)
			return end;
	}
	return seam_fdr_slot_position(s) & ~(uint64_t)(CHUNK - 1);
}

/*
 * Copy a chunk of an area that overwrites itself.  False: it was overwritten
 * meanwhile.
 */
static bool copy_chunk(struct seam_fdr_slot *s, uint64_t at, size_t size,
		       uint8_t *to)
{
	memcpy(to, chunk_at(s, at), size);
	/* acquire fence: the copy comes before the load; pairs with the
	 * release fence after the owner's store of reserved */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&s->reserved, memory_order_relaxed) <=
	       at + seam_fdr_own.area_bytes;
}

/* Of a flight recorder: what is still there. */
static void write_copy(struct seam_fdr_slot *s, struct seam_xray_log *log,
		       uint8_t *buffer, struct seam_fdr_own_counts *counts)
{
	uint64_t end = seam_fdr_slot_position(s), at = atomic_load(&s->tail);

	if (end - at > seam_fdr_own.area_bytes)
		at = ((end - 1) & ~(uint64_t)(CHUNK - 1)) + CHUNK -
		     seam_fdr_own.area_bytes;
	for (; at < end; at += CHUNK) {
		size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;

		if (copy_chunk(s, at, size, buffer))
			write_chunk(s, buffer, size, log, counts);
	}
}

static void write_slot(struct seam_fdr_slot *s, struct seam_xray_log *log,
		       uint8_t *buffer, struct seam_fdr_own_counts *counts)
{
	uint32_t state = atomic_load(&s->state);

	if (state == SEAM_FDR_SLOT_FREE || !s->bytes)
		return;
	seam_fdr_short_lock(&s->lock);
	/* what was taken back would be in the log, or half of it */
	atomic_store(&s->held, 1);
	restart_others();
	if (seam_fdr_own.is_flight)
		write_copy(s, log, buffer, counts);
	else
		write_up_to(s, seal(s), log, counts);
	atomic_store(&s->held, 0);
	seam_fdr_short_unlock(&s->lock);
}

int seam_fdr_own_write(struct seam_xray_log *log,
		       struct seam_fdr_own_counts *counts)
{
	struct seam_fdr_own_counts now = { 0 };
	uint64_t blocked;
	void *buffer;

	if (!seam_fdr_slots)
		return 0;
	buffer = seam_fdr_map(CHUNK);
	if (!buffer)
		return -ENOMEM;
	blocked = begin_write();
	for (uint32_t i = 0; i < seam_fdr_own.n_slots; i++)
		write_slot(&seam_fdr_slots->list[i], log, buffer, &now);
	end_write(blocked);
	seam_fdr_unmap(buffer, CHUNK);
	if (counts)
		*counts = now;
	else
		count_own(&now);
	return now.error;
}

void seam_fdr_own_discard(void)
{
	uint64_t blocked = begin_write();

	if (seam_fdr_slots)
		atomic_store(&seam_fdr_slots->error, 0);
	for (uint32_t i = 0; seam_fdr_slots && i < seam_fdr_own.n_slots; i++) {
		struct seam_fdr_slot *s = &seam_fdr_slots->list[i];

		seam_fdr_short_lock(&s->lock);
		seal(s);
		atomic_store(&s->tail, seam_fdr_slot_position(s) &
				       ~(uint64_t)(CHUNK - 1));
		seam_fdr_short_unlock(&s->lock);
	}
	end_write(blocked);
}

void seam_fdr_own_count(struct seam_fdr_own_counts *counts)
{
	*counts = (struct seam_fdr_own_counts) { 0 };
	if (!seam_fdr_slots)
		return;
	counts->n_records = atomic_load(&seam_fdr_slots->n_records);
	counts->n_lost = atomic_load(&seam_fdr_slots->n_lost);
	counts->n_bad_bytes = atomic_load(&seam_fdr_slots->n_bad_bytes);
	counts->error = atomic_load(&seam_fdr_slots->error);
	for (uint32_t i = 0; i < seam_fdr_own.n_slots; i++) {
		const struct seam_fdr_slot *s = &seam_fdr_slots->list[i];

		counts->n_lost += atomic_load(&s->n_lost);
		counts->n_paused += atomic_load(&s->n_paused);
	}
}

void seam_fdr_own_with_log(void (*work)(void *context), void *context)
{
	uint64_t blocked;

	if (!seam_fdr_slots)
		return;
	blocked = begin_write();
	seam_fdr_short_lock(&seam_fdr_slots->log_lock);
	work(context);
	seam_fdr_short_unlock(&seam_fdr_slots->log_lock);
	end_write(blocked);
}

bool seam_fdr_own_has_seen(uint32_t function)
{
	return seam_xray_has_seen(&seen, function);
}

bool seam_fdr_own_has_records(void)
{
	if (!seam_fdr_slots)
		return false;
	for (uint32_t i = 0; i < seam_fdr_own.n_slots; i++)
		if (atomic_load(&seam_fdr_slots->list[i].state) !=
		    SEAM_FDR_SLOT_FREE)
			return true;
	return atomic_load(&seam_fdr_slots->n_records);
}

/* ---- begin ---- */

int seam_fdr_chunks_init(void)
{
	if (!seen.bits)
		seen.bits = seam_fdr_map(MAX_SEEN / 8);
	if (!seen.bits)
		return -ENOMEM;
	seen.n = MAX_SEEN;
	has_membarrier = syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0,
			0) == 0;
	return 0;
}
