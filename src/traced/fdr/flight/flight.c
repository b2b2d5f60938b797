/* SPDX-License-Identifier: MIT */
/*
 * flight.c - slots of threads, their areas, copies and bundles; see flight.h
 *
 * What a forked child must not have is in one mapping that the child finds
 * zeroed (MADV_WIPEONFORK), and the areas are not mapped in the child at all
 * (MADV_DONTFORK).  A thread in the child still has its parent's cursor, in a
 * slot that is wiped: 0 is the start of a chunk, so the thread comes to the
 * slow path, and claims anew.
 *
 * A slot is claimed by its thread and copied by a writer; neither waits.  The
 * writer sets held first: then the slot's thread takes nothing back, and a
 * thread that claims the slot gives the slot back.
 */
#include "traced/fdr/flight/flight.h"

#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <seam/fdr.h>

#include "ring/layout.h"
#include "ring/producer/local.h"
#include "traced/fdr/announce_functions.h"
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/system.h"
#include "traced/fdr/recorder.h"
#include "wire/xray/xray_chunk.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	AREA = 1 << 20,
	/* threads at a time; others record nothing, which is counted */
	N_AREAS = 256,
	/* for another writer, and for room in the ring */
	MAX_WAIT_MS = 10000,
};

static const struct timespec one_ms = { .tv_nsec = 1000 * 1000 };

enum slot_state { FREE, CLAIMED, ENDED };

/* A thread's, which writes all but held. */
struct flight_slot {
	_Atomic uint64_t cursor, reserved;
	_Atomic uint64_t n_lost, n_paused;
	_Atomic uint32_t state;
	_Atomic uint32_t held;		/* not 0: a writer copies the area */
	_Atomic uint64_t tail;		/* the area's records begin here */
	uint8_t *bytes;			/* the area; kept for the next thread */
	uint64_t ended_at;		/* order of ends */
} __attribute__((aligned(64)));

/* All of a process; zeroes in a forked child. */
struct flight_slots {
	_Atomic uint64_t n_lost;	/* without an area */
	_Atomic uint64_t n_ends;
	_Atomic bool is_locked;
	struct flight_slot list[N_AREAS];
};

static struct flight_slots *slots;
static bool has_membarrier;

static struct {
	char path[PATH_MAX];		/* absolute; "": no bundle */
	pid_t creator;
	struct seam_tsc_tie start;
	uint64_t n_lost, n_paused;	/* before the start */
} bundle;

/* The thread's position, without the count of records taken back. */
static uint64_t position(struct flight_slot *s)
{
	/* acquire: the thread stores the cursor after the records */
	return atomic_load_explicit(&s->cursor, memory_order_acquire) &
	       SEAM_RING_AUX_POSITION;
}

/* ---- the source ---- */

static bool take(struct flight_slot *s, uint32_t from)
{
	if (!atomic_compare_exchange_strong(&s->state, &from, CLAIMED))
		return false;
	if (!atomic_load(&s->held))
		return true;
	atomic_store(&s->state, from);
	return false;
}

/* A free slot, or the slot of the thread that ended first. */
static struct flight_slot *take_slot(void)
{
	struct flight_slot *first = NULL;

	for (uint32_t i = 0; i < N_AREAS; i++)
		if (take(&slots->list[i], FREE))
			return &slots->list[i];
	for (uint32_t i = 0; i < N_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];

		if (atomic_load(&s->state) == ENDED && !atomic_load(&s->held) &&
		    (!first || s->ended_at < first->ended_at))
			first = s;
	}
	return first && take(first, ENDED) ? first : NULL;
}

static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	struct flight_slot *s = slots ? take_slot() : NULL;
	uint64_t at;

	(void)tid;
	if (!s)
		return -ENOSPC;
	if (!s->bytes) {
		s->bytes = seam_fdr_map(AREA);
		/* a hint: a child never uses the copy */
		if (s->bytes)
			madvise(s->bytes, AREA, MADV_DONTFORK);
	}
	if (!s->bytes) {
		atomic_store(&s->state, FREE);
		return -ENOSPC;
	}
	/*
	 * A chunk that is not begun, and nothing of the thread before.  The
	 * tail first: a writer reads the cursor, then the tail.
	 */
	at = (position(s) + CHUNK - 1) & ~(uint64_t)(CHUNK - 1);
	atomic_store(&s->tail, at);
	atomic_store(&s->reserved, at);
	atomic_store(&s->cursor, at);
	*area = (struct seam_fdr_area) {
		.bytes = s->bytes, .size = AREA, .cursor = &s->cursor,
		.reserved = &s->reserved, .n_lost = &s->n_lost,
		.n_paused = &s->n_paused, .held = &s->held,
		.slot = (uint32_t)(s - slots->list),
	};
	return 0;
}

static void close_slot(struct seam_fdr_area *area)
{
	struct flight_slot *s = &slots->list[area->slot];

	s->ended_at = atomic_fetch_add(&slots->n_ends, 1);
	atomic_store(&s->state, ENDED);
}

/*
 * A trigger's record, which no recorder takes.  The areas are frozen until the
 * end: they keep what led up to the trigger.
 */
static bool send(struct seam_fdr_area *area, const void *payload, size_t bytes)
{
	(void)area;
	(void)payload;
	(void)bytes;
	return true;
}

const struct seam_fdr_source seam_fdr_source_flight = {
	.claim = claim, .close = close_slot, .send = send,
};

/* ---- counts ---- */

/* Whether a thread has recorded since the last discard, or a fork. */
static bool has_records(void)
{
	for (uint32_t i = 0; slots && i < N_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];

		if (position(s) > atomic_load(&s->tail))
			return true;
	}
	return false;
}

uint64_t seam_fdr_lost(void)
{
	uint64_t n = slots ? atomic_load(&slots->n_lost) : 0;

	for (uint32_t i = 0; slots && i < N_AREAS; i++)
		n += atomic_load(&slots->list[i].n_lost);
	return n;
}

static uint64_t n_paused(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < N_AREAS; i++)
		n += atomic_load(&slots->list[i].n_paused);
	return n;
}

/* ---- copies ---- */

/* Whether @ring gets room for a chunk at @at. */
static bool wait_for_room(const struct seam_fdr_area *ring, uint64_t at)
{
	for (int i = 0; i < MAX_WAIT_MS; i++) {
		/* acquire: the recorder has read what was there */
		uint64_t tail = atomic_load_explicit(ring->tail,
						     memory_order_acquire);

		if (at - tail <= ring->size - CHUNK)
			return true;
		seam_ring_wakeup_send(ring->wakeup);
		nanosleep(&one_ms, NULL);
	}
	return false;
}

/*
 * Copy @size bytes at @at into @ring, as a whole chunk; not where the thread of
 * @s has overwritten them meanwhile.
 */
static int put_chunk(struct seam_fdr_area *ring, const struct flight_slot *s,
		     uint64_t at, size_t size)
{
	uint64_t end = seam_local_load(ring->cursor);
	uint8_t *to = ring->bytes + (end & (ring->size - 1));

	if (!wait_for_room(ring, end))
		return -ETIMEDOUT;
	seam_local_store(ring->reserved, end + CHUNK);
	memcpy(to, s->bytes + (at & (AREA - 1)), size);
	memset(to + size, 0, CHUNK - size);
	/*
	 * acquire fence: the copy comes before the load; pairs with the release
	 * fence after the thread's store of reserved
	 */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&s->reserved, memory_order_relaxed) <=
	    at + AREA)
		/* release: the bytes come before the cursor */
		atomic_store_explicit(ring->cursor, end + CHUNK,
				      memory_order_release);
	return 0;
}

/* The cursor first: see claim(). */
static int put_slot(struct seam_fdr_area *ring, struct flight_slot *s)
{
	uint64_t end = position(s), at = atomic_load(&s->tail);
	int r = 0;

	if (end > at && end - at > AREA)
		at = ((end - 1) & ~(uint64_t)(CHUNK - 1)) + CHUNK - AREA;
	for (; r == 0 && at < end; at += CHUNK)
		r = put_chunk(ring, s, at,
			      end - at < CHUNK ? (size_t)(end - at) : CHUNK);
	return r;
}

static int put_all(struct seam_fdr_area *ring)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < N_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];

		if (atomic_load(&s->state) == FREE || !s->bytes)
			continue;
		atomic_store(&s->held, 1);
		/*
		 * a thread that takes records back begins again, and sees held
		 */
		if (has_membarrier)
			syscall(SYS_membarrier,
				MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0);
		r = put_slot(ring, s);
		atomic_store(&s->held, 0);
	}
	return r;
}

static int write_bundle(const char *path)
{
	int r = seam_fdr_connect_recorder(path, &bundle.start), s;
	struct seam_fdr_area area = { 0 };

	if (r)
		return r;
	r = seam_fdr_source_link.claim((uint32_t)getpid(), &area);
	if (r == 0) {
		seam_local_add(area.n_lost, seam_fdr_lost() - bundle.n_lost);
		seam_local_add(area.n_paused, n_paused() - bundle.n_paused);
		r = put_all(&area);
	}
	s = seam_fdr_recorder_stop();
	seam_fdr_announce_begin_anew();
	return r ? r : s;
}

/* ---- the bundle ---- */

/* Forget what has been recorded so far; no sled is patched. */
static void discard(void)
{
	for (uint32_t i = 0; i < N_AREAS; i++) {
		struct flight_slot *s = &slots->list[i];
		uint64_t at = atomic_load(&s->cursor);
		uint64_t next = (at | (CHUNK - 1)) + 1;

		/* a thread that records meanwhile goes on there */
		if ((at & SEAM_RING_AUX_POSITION) % CHUNK)
			atomic_compare_exchange_strong(&s->cursor, &at, next);
		atomic_store(&s->tail, (position(s) + CHUNK - 1) &
				       ~(uint64_t)(CHUNK - 1));
	}
}

static int begin(const char *path)
{
	discard();
	bundle.n_lost = seam_fdr_lost();
	bundle.n_paused = n_paused();
	bundle.start = seam_tsc_tie_now();
	bundle.creator = getpid();
	snprintf(bundle.path, sizeof(bundle.path), "%s", path);
	return 0;
}

/* A child's bundle is NAME-PID.seam.  Most children record nothing. */
static int write_own(const char *unused)
{
	size_t n = strlen(bundle.path);
	char path[PATH_MAX + 32];

	(void)unused;
	if (bundle.creator == getpid())
		return write_bundle(bundle.path);
	if (!has_records())
		return 0;
	if (n > 5 && strcmp(bundle.path + n - 5, ".seam") == 0)
		n -= 5;
	snprintf(path, sizeof(path), "%.*s-%d.seam", (int)n, bundle.path,
		 getpid());
	return write_bundle(path);
}

static int end(const char *unused)
{
	int r = write_own(unused);

	bundle.path[0] = '\0';
	return r;
}

static int snapshot(const char *folder)
{
	char path[PATH_MAX];
	int r = seam_fdr_bundle_path(folder, path);

	if (r)
		return r;
	return strcmp(path, bundle.path) ? write_bundle(path) : -EINVAL;
}

/*
 * One thread at a time, which cannot be cancelled; in a forked child no thread
 * is here.
 */
static int work(int (*what)(const char *path), const char *path)
{
	int r, state, i = 0;

	while (atomic_exchange(&slots->is_locked, true)) {
		if (++i == MAX_WAIT_MS)
			return -EBUSY;
		nanosleep(&one_ms, NULL);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	r = what(path);
	pthread_setcancelstate(state, &state);
	atomic_store(&slots->is_locked, false);
	return r;
}

int seam_fdr_flight_begin(const char *path)
{
	if (!slots)
		slots = seam_fdr_map_per_process(sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	seam_fdr_n_lost = &slots->n_lost;
	has_membarrier = syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0,
			0) == 0;
	return bundle.path[0] ? 0 : work(begin, path);
}

const char *seam_fdr_path(void)
{
	return bundle.path[0] ? bundle.path : seam_fdr_recorder_path();
}

int seam_fdr_snapshot(const char *folder)
{
	int saved_errno = errno, r;

	if (!atomic_load(&seam_fdr_is_on))
		return -ENOENT;
	if (!bundle.path[0])
		return -ENOTSUP;
	r = folder ? work(snapshot, folder) : -EINVAL;
	errno = saved_errno;
	return r;
}

int seam_fdr_flight_write(bool ends)
{
	return bundle.path[0] ? work(ends ? end : write_own, NULL) : 0;
}
