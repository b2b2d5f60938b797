/* SPDX-License-Identifier: MIT */
/*
 * claim.c - a program maps a memory of rings, and claims rings of it
 *
 * The layout is here, for the recorder too: this file runs in the traced
 * program, without error texts and heap.  See ring_memory.h and claim.h.
 */
#include "ring/producer/claim.h"

#include "ring/producer/local.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_BYTES = 1 << 30,		/* of data, and of an AUX buffer */
	WINDOW_BYTES = 4 << 20,		/* or a single ring */
};

_Static_assert(sizeof(struct seam_ring_slot) == 64, "a cache line each");
_Static_assert(sizeof(struct seam_ring_control) <= SEAM_RING_PAGE, "a page");

static bool is_size(uint64_t bytes)
{
	return bytes >= SEAM_RING_PAGE && bytes <= MAX_BYTES &&
	       (bytes & (bytes - 1)) == 0;
}

bool seam_ring_geometry_is_valid(const struct seam_ring_geometry *geometry)
{
	return geometry->n_slots > 0 &&
	       geometry->n_slots <= SEAM_RING_MAX_SLOTS &&
	       is_size(geometry->data_bytes) &&
	       geometry->aux_free_running <= 1 &&
	       (geometry->aux_bytes == 0 || is_size(geometry->aux_bytes)) &&
	       geometry->watermark < geometry->data_bytes;
}

uint64_t seam_ring_memory_rings_at(const struct seam_ring_geometry *geometry)
{
	uint64_t slots = geometry->n_slots * sizeof(struct seam_ring_slot);

	return SEAM_RING_PAGE + ((slots + SEAM_RING_PAGE - 1) &
				 ~(uint64_t)(SEAM_RING_PAGE - 1));
}

static uint64_t ring_bytes(const struct seam_ring_geometry *geometry)
{
	return SEAM_RING_PAGE + geometry->data_bytes + geometry->aux_bytes;
}

uint64_t seam_ring_memory_bytes(const struct seam_ring_geometry *geometry)
{
	return seam_ring_memory_rings_at(geometry) +
	       geometry->n_slots * ring_bytes(geometry);
}

static int map(struct seam_ring_memory *m, int fd, uint64_t bytes,
	       const struct seam_ring_geometry *geometry)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*m = (struct seam_ring_memory) { 0 };
	if (p == MAP_FAILED)
		return -errno;
	*m = (struct seam_ring_memory) {
		.head = p,
		.slots = (void *)((uint8_t *)p + SEAM_RING_PAGE),
		.geometry = *geometry,
		.ring_bytes = ring_bytes(geometry),
		.bytes = bytes,
	};
	return 0;
}

int seam_ring_memory_attach(struct seam_ring_memory *m, int fd,
			    const struct seam_ring_geometry *geometry)
{
	int r = map(m, fd, seam_ring_memory_bytes(geometry), geometry);

	if (r == 0)
		m->rings = (uint8_t *)m->head +
			   seam_ring_memory_rings_at(geometry);
	return r;
}

/* ---- windows ---- */

static uint32_t n_windows(const struct seam_ring_memory *m)
{
	return (m->geometry.n_slots - 1) / m->rings_per_window + 1;
}

static size_t window_bytes(const struct seam_ring_memory *m)
{
	return m->rings_per_window * m->ring_bytes;
}

static int make_windows(struct seam_ring_memory *m)
{
	uint64_t n = WINDOW_BYTES / m->ring_bytes;
	void *p;

	m->rings_per_window = n ? (uint32_t)n : 1;
	p = mmap(NULL, n_windows(m) * sizeof(*m->windows),
		 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	m->windows = p;
	return 0;
}

static uint8_t *load_window(const struct seam_ring_memory *m, uint32_t w)
{
	/* acquire: pairs with the release in window() */
	return atomic_load_explicit(&m->windows[w], memory_order_acquire);
}

/* Whether one window more leaves a limited program its addresses. */
static bool is_within_limit(const struct seam_ring_memory *m)
{
	struct rlimit limit;
	uint64_t n = 1;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	for (uint32_t w = 0; w < n_windows(m); w++)
		n += load_window(m, w) != NULL;
	return n * window_bytes(m) <= limit.rlim_cur / SEAM_RING_LIMIT_SHARE;
}

/*
 * mremap(2) with an old size of 0 maps the same file once more, from the place
 * that the old address has in it: the program may have closed the descriptor.
 * So the new mapping begins at the end of the nearest one before window @w, and
 * what is between is unmapped.  Where that is locked, the new one would be.
 */
static uint8_t *map_window(const struct seam_ring_memory *m, uint32_t w)
{
	uint8_t *before = NULL, *p;
	size_t size, between;
	uint32_t from = w;

	while (from > 0 && !before)
		before = load_window(m, --from);
	size = before ? window_bytes(m) : m->bytes;
	between = SEAM_RING_PAGE +
		  (w - (before ? from + 1 : 0)) * window_bytes(m);
	before = before ? before : (uint8_t *)m->head;
	munlock(before, size);
	p = mremap(before + size - SEAM_RING_PAGE, 0,
		   between + window_bytes(m), MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return NULL;
	munmap(p, between);
	return p + between;
}

static uint8_t *window(const struct seam_ring_memory *m, uint32_t w)
{
	uint8_t *found = load_window(m, w), *mapped;

	if (found || !is_within_limit(m))
		return found;
	mapped = map_window(m, w);
	/* release: pairs with the acquire in load_window() */
	if (!mapped || atomic_compare_exchange_strong_explicit(
				&m->windows[w], &found, mapped,
				memory_order_acq_rel, memory_order_acquire))
		return mapped;
	munmap(mapped, window_bytes(m));
	return found;
}

struct seam_ring_control *seam_ring_memory_control(
		const struct seam_ring_memory *m, uint32_t slot)
{
	uint8_t *p;

	if (m->rings)
		return (void *)(m->rings + slot * m->ring_bytes);
	p = window(m, slot / m->rings_per_window);
	return p ? (void *)(p + slot % m->rings_per_window * m->ring_bytes) :
		   NULL;
}

/* ---- the program's ---- */

int seam_ring_memory_adopt(struct seam_ring_memory *m, int fd,
			   const struct seam_ring_geometry *geometry)
{
	struct stat st;
	int seals, r;

	*m = (struct seam_ring_memory) { 0 };
	if (!seam_ring_geometry_is_valid(geometry))
		return -EBADMSG;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEAM_RING_SEALS) != SEAM_RING_SEALS ||
	    fstat(fd, &st) ||
	    (uint64_t)st.st_size != seam_ring_memory_bytes(geometry))
		return -EBADMSG;
	/* where pages are not those of the layout, all is mapped at once */
	if (sysconf(_SC_PAGESIZE) != SEAM_RING_PAGE)
		r = seam_ring_memory_attach(m, fd, geometry);
	else
		r = map(m, fd, seam_ring_memory_rings_at(geometry), geometry);
	if (r == 0 && !m->rings)
		r = make_windows(m);
	if (r == 0 && (m->head->magic != SEAM_RING_MEMORY_MAGIC ||
		       m->head->version != SEAM_RING_MEMORY_VERSION))
		r = -EBADMSG;
	if (r < 0)
		seam_ring_memory_fini(m);
	return r;
}

void seam_ring_memory_fini(struct seam_ring_memory *m)
{
	for (uint32_t w = 0; m->windows && w < n_windows(m); w++)
		if (m->windows[w])
			munmap(m->windows[w], window_bytes(m));
	if (m->windows)
		munmap((void *)(uintptr_t)m->windows,
		       n_windows(m) * sizeof(*m->windows));
	if (m->head)
		munmap(m->head, m->bytes);
	*m = (struct seam_ring_memory) { 0 };
}

static void empty(void *p, size_t bytes)
{
	mmap(p, bytes, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void seam_ring_memory_abandon(struct seam_ring_memory *m)
{
	if (m->head)
		empty(m->head, m->bytes);
	for (uint32_t w = 0; m->windows && w < n_windows(m); w++)
		if (m->windows[w])
			empty(m->windows[w], window_bytes(m));
}

/* ---- claims ---- */

static void open_ring(const struct seam_ring_geometry *geometry, void *ring,
		      struct seam_ring_claim *c)
{
	struct seam_ring_control *control = ring;
	uint8_t *memory = ring;

	seam_ring_producer_init(&c->ring, memory, SEAM_RING_PAGE,
				geometry->data_bytes);
	if (geometry->watermark)
		c->ring.watermark = geometry->watermark;
	if (!geometry->aux_bytes)
		return;
	c->aux = memory + SEAM_RING_PAGE + geometry->data_bytes;
	c->aux_bytes = geometry->aux_bytes;
	/* nothing is reserved beyond the last owner's bytes */
	seam_local_store(&control->program.aux_head,
			 seam_local_load(&control->aux_head));
}

int seam_ring_memory_claim(struct seam_ring_memory *m, uint32_t tid,
			   struct seam_ring_claim *claim)
{
	uint32_t n = m->head ? m->geometry.n_slots : 0;
	bool is_short = false;

	for (uint32_t i = 0; i < n; i++) {
		/* relaxed: the exchange below decides */
		uint64_t word = atomic_load_explicit(&m->slots[i].word,
						     memory_order_relaxed);
		uint64_t mine = (word & 0xffffff00) |
				seam_ring_word(SEAM_RING_CLAIMED, 0, tid);
		void *ring;

		if (seam_ring_word_state(word) != SEAM_RING_FREE)
			continue;
		ring = seam_ring_memory_control(m, i);
		if (!ring) {
			is_short = true;
			continue;
		}
		/*
		 * acquire: pairs with the release in set_free(), owners.c:
		 * the ring is as the recorder prepared it
		 */
		if (!atomic_compare_exchange_strong_explicit(
				&m->slots[i].word, &word, mine,
				memory_order_acq_rel, memory_order_relaxed))
			continue;
		*claim = (struct seam_ring_claim) { .slot = i, .word = mine };
		open_ring(&m->geometry, ring, claim);
		return 0;
	}
	/* more rings would help */
	if (m->head && !is_short)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_unclaimed, 1,
					  memory_order_relaxed);
	return -ENOSPC;
}

bool seam_ring_memory_has_free(const struct seam_ring_memory *m)
{
	for (uint32_t i = 0; m->head && i < m->geometry.n_slots; i++)
		/* relaxed: a hint */
		if (seam_ring_word_state(atomic_load_explicit(
				&m->slots[i].word, memory_order_relaxed)) ==
		    SEAM_RING_FREE)
			return true;
	return false;
}

void seam_ring_memory_close(struct seam_ring_memory *m,
			    const struct seam_ring_claim *claim)
{
	uint64_t word = claim->word;
	uint64_t closed = (word & ~UINT64_C(0xff)) | SEAM_RING_CLOSED;

	/*
	 * release: pairs with the acquire in load_word(), owners.c; our last
	 * record comes before it.  A slot that was taken from us stays so.
	 */
	atomic_compare_exchange_strong_explicit(&m->slots[claim->slot].word,
						&word, closed,
						memory_order_release,
						memory_order_relaxed);
}

void seam_ring_memory_lose(struct seam_ring_memory *m)
{
	if (m->head)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&m->head->n_lost, 1,
					  memory_order_relaxed);
}
