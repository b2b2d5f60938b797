/* SPDX-License-Identifier: MIT */
/*
 * ring_memory.h - the rings of one service of a program, in one sealed memfd
 *
 * The recorder makes the memory (link/owners.h) and passes it to the program
 * once, at load.  From then on threads and forked children claim rings in the
 * existing mapping (producer/claim.h): chroot, setuid and closefrom do not cut
 * them off.
 *
 *	0		head	magic; counts of threads without a ring
 *	4096		slots	64 bytes each: the thread of each ring
 *	rings_at	ring 0	control page | data | AUX buffer
 *	+ ring_bytes	ring 1	...
 *
 * A slot's word is its state, its generation and its thread.  A program
 * changes it by compare-and-swap:
 *
 *	absent --recorder--> free --thread--> claimed --thread--> closed
 *	                      ^                  |                  |
 *	                      +---recorder-------+------------------+
 *	                       owner is dead           ring is empty
 *
 * Seals forbid shrinking, growing and further seals.  Pages are allocated
 * before a slot is free, so a full cgroup fails the recorder and never the
 * program.  No seal forbids a hole (FALLOC_FL_PUNCH_HOLE): it reads as zeros,
 * which are invalid data like any other, and is filled at the next access.
 */
#pragma once

#include "base/err.h"
#include "ring/layout.h"

#include <fcntl.h>

enum {
	SEAM_RING_MEMORY_VERSION = 1,
	SEAM_RING_PAGE = 4096,		/* of the layout, on any machine */
	SEAM_RING_MAX_SLOTS = 4096,
	/* No process can resize or unseal it.  Source: fcntl(2) */
	SEAM_RING_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};

#define SEAM_RING_MEMORY_MAGIC UINT64_C(0x676e69726d616573)	/* "seamring" */

/* Sizes: the same for each ring of a memory. */
struct seam_ring_geometry {
	uint32_t n_slots;	/* 1 to SEAM_RING_MAX_SLOTS */
	uint32_t aux_free_running;	/* 0 or 1 */
	uint64_t data_bytes;	/* power of two, a page to 1 GiB */
	uint64_t aux_bytes;	/* the same, or 0: no AUX buffer */
	uint64_t watermark;	/* bytes between wakeups; 0: half */
};

enum seam_ring_slot_state {
	SEAM_RING_ABSENT,	/* no pages yet */
	SEAM_RING_FREE,
	SEAM_RING_CLAIMED,
	SEAM_RING_CLOSED,	/* by its thread: no further record */
};

/* A program can write anything here: see link/owners.h. */
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
	_Atomic uint64_t n_lost;	/* records of those, or items */
	uint8_t unused[32];
};

/*
 * One side's view.  Bounds are private and never read back.  The recorder maps
 * all of it; a program, whose addresses may be limited, maps the head and the
 * slots, and rings as its threads claim them, some at a time: a window.
 */
struct seam_ring_memory {
	struct seam_ring_memory_head *head;	/* NULL: no memory */
	struct seam_ring_slot *slots;
	uint8_t *rings;		/* NULL: they are in windows */
	/* any thread of the program sets one, once; NULL: not mapped so far */
	uint8_t *_Atomic *windows;
	uint32_t rings_per_window;
	struct seam_ring_geometry geometry;
	uint64_t ring_bytes;	/* from ring to ring */
	uint64_t bytes;		/* mapped at head */
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

/* Whether all sizes are within the limits of this file. */
bool seam_ring_geometry_is_valid(const struct seam_ring_geometry *geometry);

/* Bytes of a memory of valid geometry; the offset of its first ring. */
uint64_t seam_ring_memory_bytes(const struct seam_ring_geometry *geometry);
uint64_t seam_ring_memory_rings_at(const struct seam_ring_geometry *geometry);

/* Map @fd, of a valid @geometry, without a check of its content. */
int seam_ring_memory_attach(struct seam_ring_memory *m, int fd,
			    const struct seam_ring_geometry *geometry);

/*
 * Map the head and slots of the memory @fd of @geometry, which another process
 * passed: -EBADMSG unless it is sealed and has the right size and head.  @fd
 * may be closed afterwards.
 */
int seam_ring_memory_adopt(struct seam_ring_memory *m, int fd,
			   const struct seam_ring_geometry *geometry);

/* Valid on a zeroed struct. */
void seam_ring_memory_fini(struct seam_ring_memory *m);

/*
 * The program's: give the memory up, and have zeroes at its addresses, for
 * threads that keep them.  @m stays valid: no ring of it can be claimed.
 */
void seam_ring_memory_abandon(struct seam_ring_memory *m);

/* Where the program's addresses are limited, windows take less of them. */
enum { SEAM_RING_LIMIT_SHARE = 8 };

/*
 * The control page of ring @slot, which is below n_slots.  In a program NULL
 * where its window cannot be mapped, or all would take more than one
 * SEAM_RING_LIMIT_SHARE-th of RLIMIT_AS.  No window is locked by mlockall(2).
 * Safe in a signal handler; errno may change.
 */
struct seam_ring_control *seam_ring_memory_control(
		const struct seam_ring_memory *m, uint32_t slot);
