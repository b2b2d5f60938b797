/* SPDX-License-Identifier: MIT */
/*
 * memory.h - the rings of one traced program, in one sealed memfd
 *
 * The recorder makes the memory and passes it to the program once, at load.
 * From then on threads and forked children claim rings in what they have
 * mapped already: no descriptor, no path and no permission is needed, so
 * chroot, setuid and closefrom do not cut them off.
 *
 *	0		head	what this is; counts of who found no ring
 *	4096		slots	64 bytes each: who has which ring
 *	rings_at	ring 0	control page | data | AUX area
 *	+ ring_bytes	ring 1	...
 *
 * A slot's word is its state, its generation and its thread, and changes by
 * compare-and-swap only:
 *
 *	absent --recorder--> free --thread--> claimed --thread--> closed
 *	                      ^                  |                  |
 *	                      +---recorder-------+------------------+
 *	                       owner is gone           ring is empty
 *
 * Shrinking, growing and further seals are sealed off, so neither side can
 * take addresses away from the other; pages are allocated before a slot is
 * free, so a cgroup that is full fails the recorder and never the program.
 * All of them are charged to the recorder, used or not, until it lets go of
 * the memory; link_server.h says how many it keeps ready.
 * What no seal forbids is a hole (FALLOC_FL_PUNCH_HOLE), for a program that
 * keeps the descriptor: it is zeros, which are garbage like any other, and
 * whoever touches it next pays for the page.  A memfd has no limit of its
 * own that this could run into, so that is no fault either.
 *
 * This file is what both sides share, and what the program does.  The
 * recorder's half is owners.h.
 */
#ifndef SEAM_RING_MEMORY_H
#define SEAM_RING_MEMORY_H

#include "base/err.h"
#include "ring/producer/aux_producer.h"

#include <fcntl.h>

enum {
	SEAM_RING_MEMORY_VERSION = 1,
	SEAM_RING_PAGE = 4096,		/* of the layout, on any machine */
	SEAM_RING_MOST_SLOTS = 4096,
	/* Nobody resizes it, or unseals it.  Source: fcntl(2) */
	SEAM_RING_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};

#define SEAM_RING_MEMORY_MAGIC UINT64_C(0x676e69726d616573)	/* "seamring" */

/* Sizes and mode: the same for every ring of a memory. */
struct seam_ring_shape {
	uint32_t n_slots;	/* 1 to SEAM_RING_MOST_SLOTS */
	uint32_t mode;		/* enum seam_ring_mode */
	uint64_t data_bytes;	/* power of two, a page to 1 GiB */
	uint64_t aux_bytes;	/* the same, or 0: no area */
	uint32_t aux_free_running;	/* 0 or 1 */
	uint32_t watermark;	/* bytes from bell to bell; 0: half */
};

enum seam_ring_slot_state {
	SEAM_RING_ABSENT,	/* no pages yet */
	SEAM_RING_FREE,
	SEAM_RING_CLAIMED,
	SEAM_RING_CLOSED,	/* by its thread, which writes no more */
};

/* Programs write it, and claim what they like: see owners.h. */
struct seam_ring_slot {
	_Atomic uint64_t word;	/* state 8, generation 24, tid 32 bits */
	uint8_t unused[56];
};

struct seam_ring_memory_head {
	uint64_t magic;
	uint32_t version;
	uint32_t n_slots;
	/* any thread of the program adds; the recorder reads */
	_Atomic uint64_t n_unclaimed;	/* threads that found no ring */
	_Atomic uint64_t n_lost;	/* records, for want of a ring */
	uint8_t unused[32];
};

/* Either side's view.  Bounds are its own and never read back. */
struct seam_ring_memory {
	struct seam_ring_memory_head *head;	/* NULL: no memory */
	struct seam_ring_slot *slots;
	uint8_t *rings;
	struct seam_ring_shape shape;
	uint64_t ring_bytes;	/* from ring to ring */
	uint64_t bytes;		/* of it all */
};

/*
 * What a thread has claimed.  A forked child must not write by its parent's
 * claim: it claims a ring of its own.
 */
struct seam_ring_claim {
	uint32_t slot;
	uint64_t word;		/* of the slot; it is lost when this is not */
	struct seam_ring_producer ring;
	struct seam_ring_aux_producer aux;	/* size 0: no area */
};

static inline enum seam_ring_slot_state seam_ring_word_state(uint64_t word)
{
	return (enum seam_ring_slot_state)(word & 0xff);
}

static inline uint32_t seam_ring_word_tid(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static inline uint64_t seam_ring_word(enum seam_ring_slot_state state,
				      uint32_t generation, uint32_t tid)
{
	return (uint64_t)tid << 32 | (generation & 0xffffff) << 8 |
	       (uint64_t)state;
}

/* Whether the numbers are ones that this file allows. */
bool seam_ring_shape_is_valid(const struct seam_ring_shape *shape);

/* Bytes of a memory of valid shape, and those before its first ring. */
uint64_t seam_ring_shape_bytes(const struct seam_ring_shape *shape);
uint64_t seam_ring_shape_rings_at(const struct seam_ring_shape *shape);

/* Map @fd, of a valid @shape, without a look at what is in it. */
int seam_ring_memory_attach(struct seam_ring_memory *m, int fd,
			    const struct seam_ring_shape *shape);

/*
 * Make a memory, all slots absent.  Returns its descriptor, the caller's;
 * -ENOMEM, -EINVAL for a shape that is not valid.
 */
int seam_ring_memory_create(struct seam_ring_memory *m,
			    const struct seam_ring_shape *shape,
			    struct seam_err *err);

/*
 * Map the memory @fd of @shape, which came from somebody else: -EBADMSG
 * unless it is sealed and has the size and the head that it should.  @fd
 * may be closed afterwards.
 */
int seam_ring_memory_map(struct seam_ring_memory *m, int fd,
			 const struct seam_ring_shape *shape,
			 struct seam_err *err);

/* The same without words, for the traced program. */
int seam_ring_memory_adopt(struct seam_ring_memory *m, int fd,
			   const struct seam_ring_shape *shape);

/* Valid on a zeroed struct. */
void seam_ring_memory_fini(struct seam_ring_memory *m);

/* The control page of ring @slot, which is below n_slots. */
struct seam_ring_control *seam_ring_memory_control(
		const struct seam_ring_memory *m, uint32_t slot);

/*
 * Claim a ring for thread @tid, the caller.  Returns 0, or -ENOSPC when all
 * are taken, which is counted.  Safe in a signal handler, as are the next
 * two; at most n_slots steps.
 */
int seam_ring_memory_claim(struct seam_ring_memory *m, uint32_t tid,
			   struct seam_ring_claim *claim);

/* The thread writes no more.  What it wrote will be read. */
void seam_ring_memory_close(struct seam_ring_memory *m,
			    const struct seam_ring_claim *claim);

/* A record that a thread without a ring could not write. */
void seam_ring_memory_lose(struct seam_ring_memory *m);

/* Whether the ring is still the claimer's, and not taken from it. */
static inline bool seam_ring_memory_is_held(const struct seam_ring_memory *m,
					    const struct seam_ring_claim *c)
{
	/* relaxed: a hint; who is too late writes what nobody reads */
	return atomic_load_explicit(&m->slots[c->slot].word,
				    memory_order_relaxed) == c->word;
}

#endif /* SEAM_RING_MEMORY_H */
