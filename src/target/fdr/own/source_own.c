/* SPDX-License-Identifier: MIT */
/*
 * source_own.c - slots of threads, and who writes what is in them
 *
 * What a forked child must not have is in one mapping that it finds zeroed
 * (MADV_WIPEONFORK), and the areas are not in it at all (MADV_DONTFORK).  A
 * thread in the child still has its parent's cursor, in a slot that is wiped:
 * 0 is the start of a chunk, so it comes to the slow path, and claims anew.
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
#include "target/fdr/own/source_own.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/layout.h"
#include "target/fdr/record/short_lock.h"
#include "target/fdr/record/system.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_SEALS = 1000,
};

enum slot_state {
	SLOT_FREE,
	SLOT_CLAIMED,
	SLOT_ENDED,	/* of a flight recorder: its thread has ended */
};

/* A thread's.  Its thread writes, but where @lock says otherwise. */
struct own_slot {
	_Atomic uint64_t cursor, reserved;
	_Atomic uint64_t n_lost;
	_Atomic uint32_t state;
	/* taken by who writes chunks to a log */
	_Atomic uint32_t lock;
	_Atomic uint32_t held;		/* not 0: it is being copied */
	/* with the lock */
	_Atomic uint64_t tail;		/* written up to here */
	uint8_t *bytes;			/* the area, and a chunk to work in */
	uint64_t ended_at;		/* order of ends */
} __attribute__((aligned(64)));

/* All of a process; zeroes in a forked child. */
struct own_process {
	_Atomic uint64_t n_records, n_lost, n_bad_bytes, n_ends;
	_Atomic int error;
	_Atomic uint32_t log_lock;	/* of the log, whichever it is */
	struct own_slot slots[SEAM_FDR_OWN_AREAS];
};

static struct own_process *own;
/* with the lock of the log; the bits are in a child's memory as they were */
static struct seam_xray_seen seen;
static struct seam_fdr_own_settings settings;
static uint32_t n_slots;
static bool has_membarrier;

/* ---- slots ---- */

static uint64_t position_of(struct own_slot *s)
{
	/* acquire: the records before it; the owner stores it after them */
	return atomic_load_explicit(&s->cursor, memory_order_acquire) &
	       SEAM_RING_AUX_POSITION;
}

static bool take(struct own_slot *s, uint32_t from)
{
	/* acquire: what the last owner did; pairs with the release in give() */
	return atomic_compare_exchange_strong_explicit(&s->state, &from,
			SLOT_CLAIMED, memory_order_acquire,
			memory_order_relaxed);
}

static void give(struct own_slot *s, uint32_t state)
{
	atomic_store_explicit(&s->state, state, memory_order_release);
}

/* Memory for one slot, once; the areas are kept for the next thread. */
static bool has_memory(struct own_slot *s)
{
	size_t bytes = settings.area_bytes + CHUNK;
	void *p;

	if (s->bytes)
		return true;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	/* a hint: what is copied at a fork is only never used */
	madvise(p, bytes, MADV_DONTFORK);
	s->bytes = p;
	return true;
}

static struct own_slot *take_free(void)
{
	for (uint32_t i = 0; i < n_slots; i++)
		if (take(&own->slots[i], SLOT_FREE))
			return &own->slots[i];
	return NULL;
}

/* That of the thread that ended first. */
static struct own_slot *take_ended(void)
{
	struct own_slot *first;

	do {
		first = NULL;
		for (uint32_t i = 0; i < n_slots; i++) {
			struct own_slot *s = &own->slots[i];

			/* relaxed, also below: take() decides */
			if (atomic_load_explicit(&s->state,
					memory_order_relaxed) == SLOT_ENDED &&
			    (!first || s->ended_at < first->ended_at))
				first = s;
		}
	} while (first && !take(first, SLOT_ENDED));
	return first;
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

/* The process' own; @counts are of this call alone. */
static void count_own(const struct seam_fdr_own_counts *counts)
{
	int none = 0;

	add(&own->n_records, counts->n_records);
	add(&own->n_lost, counts->n_lost);
	add(&own->n_bad_bytes, counts->n_bad_bytes);
	if (counts->error)
		atomic_compare_exchange_strong(&own->error, &none,
					       counts->error);
}

static const uint8_t *chunk_at(const struct own_slot *s, uint64_t position)
{
	return s->bytes + (position & (settings.area_bytes - 1));
}

static uint64_t wall_us(const struct seam_xray_chunk *found)
{
	return (uint64_t)found->wall_seconds * 1000000 +
	       (uint64_t)found->wall_microseconds;
}

/*
 * The first @size bytes of a chunk, to @log; NULL: that of the process, and
 * where there is none they are lost.
 */
static void write_chunk(struct own_slot *s, const uint8_t *chunk, size_t size,
			struct seam_xray_log *log,
			struct seam_fdr_own_counts *counts)
{
	uint8_t *records = s->bytes + settings.area_bytes;
	struct seam_xray_chunk found;
	int r = -EIO;

	seam_fdr_short_lock(&own->log_lock);
	seam_xray_chunk_read(chunk, size, records, &seen, &found);
	if (found.n_records && !log && settings.log)
		log = settings.log();
	if (found.n_records && log)
		r = seam_xray_log_append(log, &(struct seam_xray_log_thread) {
				.pid = found.pid, .tid = found.tid,
				.wall_us = wall_us(&found),
			}, records, found.n_bytes);
	seam_fdr_short_unlock(&own->log_lock);
	if (found.n_records || found.bad_bytes)
		count(counts, &found, found.n_records ? r : 0);
}

/* All chunks up to @end, which begins one. */
static void write_chunks(struct own_slot *s, uint64_t end,
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

/* ---- the source ---- */

static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	struct own_slot *s = own ? take_free() : NULL;

	(void)tid;
	if (own && !s)
		s = take_ended();
	if (!s)
		return -ENOSPC;
	if (!has_memory(s)) {
		give(s, SLOT_FREE);
		return -ENOSPC;
	}
	seam_fdr_short_lock(&s->lock);
	/* a chunk that is not begun, and nothing of the thread before */
	atomic_store(&s->cursor, (position_of(s) + CHUNK - 1) &
				 ~(uint64_t)(CHUNK - 1));
	atomic_store(&s->tail, position_of(s));
	atomic_store(&s->reserved, position_of(s));
	seam_fdr_short_unlock(&s->lock);
	*area = (struct seam_fdr_area) {
		.bytes = s->bytes, .size = settings.area_bytes,
		.cursor = &s->cursor, .reserved = &s->reserved,
		.tail = settings.is_flight ? NULL : &s->tail,
		.n_lost = &s->n_lost, .held = &s->held,
		.slot = (uint32_t)(s - own->slots),
	};
	return 0;
}

/* The area is full: its thread writes it.  Signals are not blocked. */
static bool make_room(struct seam_fdr_area *area)
{
	struct own_slot *s = &own->slots[area->slot];
	struct seam_fdr_own_counts counts = { 0 };
	uint64_t blocked, end;

	if (settings.is_flight)
		return false;
	blocked = seam_fdr_block();
	seam_fdr_short_lock(&s->lock);
	end = position_of(s) & ~(uint64_t)(CHUNK - 1);
	write_chunks(s, end, NULL, &counts);
	seam_fdr_short_unlock(&s->lock);
	count_own(&counts);
	seam_fdr_unblock(blocked);
	/* or another thread has written them */
	return true;
}

/* Its thread's last chunk is not full; no one seals it any more. */
static void write_rest(struct own_slot *s, struct seam_xray_log *log,
		       struct seam_fdr_own_counts *counts)
{
	uint64_t end = position_of(s), at = end & ~(uint64_t)(CHUNK - 1);

	write_chunks(s, at, log, counts);
	if (end > at && end > atomic_load(&s->tail))
		write_chunk(s, chunk_at(s, at), end - at, log, counts);
	at = end > at ? at + CHUNK : at;
	atomic_store(&s->cursor, at);
	atomic_store(&s->tail, at);
}

static void close_slot(struct seam_fdr_area *area)
{
	struct own_slot *s = &own->slots[area->slot];
	struct seam_fdr_own_counts counts = { 0 };

	if (settings.is_flight) {
		s->ended_at = atomic_fetch_add(&own->n_ends, 1);
		give(s, SLOT_ENDED);
		return;
	}
	seam_fdr_short_lock(&s->lock);
	write_rest(s, NULL, &counts);
	seam_fdr_short_unlock(&s->lock);
	count_own(&counts);
	give(s, SLOT_FREE);
}

static void lose(void)
{
	if (own)
		add(&own->n_lost, 1);
}

/*
 * A trigger's record: there is nobody to send it to, but what led up to it is
 * to be kept, and so the flight recorder stays frozen until its end.
 */
static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	(void)area;
	(void)payload;
	(void)bytes;
	return settings.is_flight;
}

const struct seam_fdr_source seam_fdr_source_own = {
	.claim = claim, .close = close_slot, .lose = lose,
	.make_room = make_room, .send = send,
};

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
static uint64_t seal(struct own_slot *s)
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
		if ((position_of(s) | (CHUNK - 1)) != (end | (CHUNK - 1)))
			return end;
	}
	return position_of(s) & ~(uint64_t)(CHUNK - 1);
}

/* Of a full trace: what is there, once. */
static void write_new(struct own_slot *s, struct seam_xray_log *log,
		      struct seam_fdr_own_counts *counts)
{
	uint64_t end = seal(s), at = end & ~(uint64_t)(CHUNK - 1);

	write_chunks(s, at, log, counts);
	if (end == at || atomic_load(&s->tail) != at)
		return;
	write_chunk(s, chunk_at(s, at), end - at, log, counts);
	atomic_store(&s->tail, at + CHUNK);
}

/*
 * Copy a chunk of an area that overwrites itself.  False: it was overwritten
 * meanwhile.
 */
static bool copy_chunk(struct own_slot *s, uint64_t at, size_t size,
		       uint8_t *to)
{
	memcpy(to, chunk_at(s, at), size);
	/* acquire fence: the copy comes before the load; pairs with the
	 * release fence after the owner's store of reserved */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&s->reserved, memory_order_relaxed) <=
	       at + settings.area_bytes;
}

/* Of a flight recorder: what is still there. */
static void write_copy(struct own_slot *s, struct seam_xray_log *log,
		       uint8_t *buffer, struct seam_fdr_own_counts *counts)
{
	uint64_t end = position_of(s), at = atomic_load(&s->tail);

	if (end - at > settings.area_bytes)
		at = ((end - 1) & ~(uint64_t)(CHUNK - 1)) + CHUNK -
		     settings.area_bytes;
	for (; at < end; at += CHUNK) {
		size_t size = end - at < CHUNK ? (size_t)(end - at) : CHUNK;

		if (copy_chunk(s, at, size, buffer))
			write_chunk(s, buffer, size, log, counts);
	}
}

static void write_slot(struct own_slot *s, struct seam_xray_log *log,
		       uint8_t *buffer, struct seam_fdr_own_counts *counts)
{
	uint32_t state = atomic_load(&s->state);

	if (state == SLOT_FREE || !s->bytes)
		return;
	seam_fdr_short_lock(&s->lock);
	/* what was taken back would be in the log, or half of it */
	atomic_store(&s->held, 1);
	restart_others();
	if (settings.is_flight)
		write_copy(s, log, buffer, counts);
	else
		write_new(s, log, counts);
	atomic_store(&s->held, 0);
	seam_fdr_short_unlock(&s->lock);
}

int seam_fdr_own_write(struct seam_xray_log *log,
		       struct seam_fdr_own_counts *counts)
{
	struct seam_fdr_own_counts now = { 0 };
	uint64_t blocked;
	void *buffer;

	if (!own)
		return 0;
	buffer = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return -ENOMEM;
	blocked = seam_fdr_block();
	for (uint32_t i = 0; i < n_slots; i++)
		write_slot(&own->slots[i], log, buffer, &now);
	seam_fdr_unblock(blocked);
	munmap(buffer, CHUNK);
	if (counts)
		*counts = now;
	else
		count_own(&now);
	return now.error;
}

void seam_fdr_own_discard(void)
{
	uint64_t blocked = seam_fdr_block();

	for (uint32_t i = 0; own && i < n_slots; i++) {
		struct own_slot *s = &own->slots[i];

		seam_fdr_short_lock(&s->lock);
		seal(s);
		atomic_store(&s->tail, position_of(s) &
				       ~(uint64_t)(CHUNK - 1));
		seam_fdr_short_unlock(&s->lock);
	}
	seam_fdr_unblock(blocked);
}

void seam_fdr_own_count(struct seam_fdr_own_counts *counts)
{
	*counts = (struct seam_fdr_own_counts) { 0 };
	if (!own)
		return;
	counts->n_records = atomic_load(&own->n_records);
	counts->n_lost = atomic_load(&own->n_lost);
	counts->n_bad_bytes = atomic_load(&own->n_bad_bytes);
	counts->error = atomic_load(&own->error);
	for (uint32_t i = 0; i < n_slots; i++)
		counts->n_lost += atomic_load(&own->slots[i].n_lost);
}

void seam_fdr_own_with_log(void (*work)(void *context), void *context)
{
	uint64_t blocked;

	if (!own)
		return;
	blocked = seam_fdr_block();
	seam_fdr_short_lock(&own->log_lock);
	work(context);
	seam_fdr_short_unlock(&own->log_lock);
	seam_fdr_unblock(blocked);
}

bool seam_fdr_own_has_seen(uint32_t function)
{
	return seam_xray_has_seen(&seen, function);
}

bool seam_fdr_own_has_records(void)
{
	for (uint32_t i = 0; own && i < n_slots; i++)
		if (atomic_load(&own->slots[i].state) != SLOT_FREE)
			return true;
	return own && atomic_load(&own->n_records);
}

/* ---- begin ---- */

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* A bit for each id that there can be; pages are used as ids are. */
static int map_seen(void)
{
	void *p = mmap(NULL, (SEAM_XRAY_MAX_FUNCTION + 1) / 8,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	seen.bits = p;
	seen.n = SEAM_XRAY_MAX_FUNCTION + 1;
	return 0;
}

static int map_process(void)
{
	void *p = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	if (madvise(p, sizeof(*own), MADV_WIPEONFORK)) {
		munmap(p, sizeof(*own));
		return -ENOSYS;
	}
	own = p;
	return 0;
}

int seam_fdr_own_begin(const struct seam_fdr_own_settings *wanted)
{
	struct seam_fdr_own_settings new = *wanted;

	if (!new.area_bytes)
		new.area_bytes = new.is_flight ? SEAM_FDR_OWN_FLIGHT_BYTES :
						 SEAM_FDR_OWN_AREA_BYTES;
	if (!is_power_of_two(new.area_bytes) ||
	    new.area_bytes < SEAM_FDR_OWN_AREA_BYTES ||
	    new.area_bytes > SEAM_FDR_OWN_BYTES)
		return -EINVAL;
	if (!own) {
		int r = seen.bits ? 0 : map_seen();

		r = r ? r : map_process();
		if (r)
			return r;
		has_membarrier = syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ,
			0, 0) == 0;
	} else if (new.area_bytes != settings.area_bytes ||
		   new.is_flight != settings.is_flight) {
		return -EINVAL;
	}
	settings = new;
	n_slots = (uint32_t)(SEAM_FDR_OWN_BYTES / new.area_bytes);
	if (n_slots > SEAM_FDR_OWN_AREAS)
		n_slots = SEAM_FDR_OWN_AREAS;
	return 0;
}
