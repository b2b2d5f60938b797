/* SPDX-License-Identifier: MIT */
/*
 * layout.h - where things are in a ring
 *
 * One control page, then 2^n pages of data.  The kernel's rings and those
 * of producers in user space have this one layout, so one consumer drains
 * both.  Records lie in the data back to back, each begins at a multiple of
 * 8 and may run over the end and on from the start; a record's header is 8
 * bytes and therefore never split.
 *
 * Source: struct perf_event_mmap_page, include/uapi/linux/perf_event.h; the
 * offsets are checked against it below.
 */
#pragma once

#include "base/base.h"

#include <linux/perf_event.h>
#include <stdatomic.h>

/* Why a producer in user space could not deliver a record. */
enum seam_ring_loss {
	SEAM_RING_LOST_FULL,	/* the consumer was too slow */
	SEAM_RING_LOST_BIG,	/* exceeds 64 KiB, or the ring */
	SEAM_RING_LOST_NESTED,	/* too many writers inside one another */
	SEAM_RING_LOST_PAUSED,	/* the consumer had stopped the output */
	SEAM_RING_N_LOSSES,
};

enum { SEAM_RING_N_SKIPPED = 4 };	/* causes of a service */

/*
 * State of a producer in user space.  It lies in the ring itself, 256 bytes
 * that the kernel leaves reserved, so that the producer's signal handlers find
 * it, and the recorder after the producer's death.
 *
 * The owner of the ring writes all of it but the three at 576.  The
 * consumer trusts none of it: head and aux_head can only make it accept fewer
 * bytes, and counts are shown as the producer's own.
 */
struct seam_ring_state {
	/* 512: changed by each record */
	_Atomic uint64_t head;		/* reserved up to here */
	_Atomic uint64_t wakeup_head;	/* head at the last wakeup */
	_Atomic uint32_t nest;		/* writers inside one another */
	uint8_t unused_0[44];
	/* 576: the consumer writes, the producer reads */
	_Atomic uint32_t paused;	/* not 0: refuse records */
	_Atomic uint32_t n_resumed;	/* the service's own: requests done */
	_Atomic uint32_t aux_held;	/* not 0: take no AUX bytes back */
	uint8_t unused_1[20];
	/* 608: counts, which never go back */
	_Atomic uint64_t n_begun;	/* records for which there was room */
	_Atomic uint64_t n_lost[SEAM_RING_N_LOSSES];
	_Atomic uint64_t n_lost_unreported;	/* in no LOST record so far */
	_Atomic uint64_t n_wakeups;
	/* items produced, by services whose items are not records */
	_Atomic uint64_t n_offered;
	/* of these, not in a record, by causes of the service's own */
	_Atomic uint64_t n_skipped[SEAM_RING_N_SKIPPED];
	/* 704: the AUX buffer */
	_Atomic uint64_t aux_head;	/* reserved up to here */
	uint8_t unused_3[56];
};

/*
 * A program may take back the newest bytes of its AUX buffer.  The head that it
 * stores then has a higher count above the position, in the same word: a reader
 * that finds the count unchanged after a copy has copied what was there.
 */
#define SEAM_RING_AUX_REWOUND	(UINT64_C(1) << 56)	/* +1; modulo 256 */
#define SEAM_RING_AUX_POSITION	(SEAM_RING_AUX_REWOUND - 1)

/* Positions are free-running, from 0 in a new ring. */
struct seam_ring_control {
	uint8_t of_kernel[512];		/* clock data and self-monitoring */
	struct seam_ring_state program;	/* of producers in user space */
	uint8_t unused[256];
	_Atomic uint64_t data_head;	/* producer writes, consumer reads */
	_Atomic uint64_t data_tail;	/* consumer writes, producer reads */
	uint64_t data_offset;		/* of the data, from the control page */
	uint64_t data_size;		/* bytes, a power of two */
	_Atomic uint64_t aux_head;	/* the same four for the AUX buffer */
	_Atomic uint64_t aux_tail;
	uint64_t aux_offset;		/* the consumer sets these two, */
	uint64_t aux_size;		/* before it maps the buffer */
};

_Static_assert(sizeof(struct seam_ring_state) == 256, "a part of the page");
_Static_assert(offsetof(struct seam_ring_control, program.paused) == 576, "");
_Static_assert(offsetof(struct seam_ring_control, program.n_resumed) == 580,
	       "");
_Static_assert(offsetof(struct seam_ring_control, program.aux_held) == 584, "");
_Static_assert(offsetof(struct seam_ring_control, program.n_begun) == 608, "");
_Static_assert(offsetof(struct seam_ring_control, program.n_offered) == 664,
	       "");
_Static_assert(offsetof(struct seam_ring_control, program.n_skipped) == 672,
	       "");
_Static_assert(offsetof(struct seam_ring_control, program.aux_head) == 704, "");
_Static_assert(offsetof(struct perf_event_mmap_page, __reserved) <= 512,
	       "the kernel's page has grown into our bytes");

#define SEAM_RING_SAME_PLACE(member)					\
	_Static_assert(offsetof(struct seam_ring_control, member) ==	\
		       offsetof(struct perf_event_mmap_page, member),	\
		       #member " is elsewhere in the kernel's page")

SEAM_RING_SAME_PLACE(data_head);
SEAM_RING_SAME_PLACE(data_tail);
SEAM_RING_SAME_PLACE(data_offset);
SEAM_RING_SAME_PLACE(data_size);
SEAM_RING_SAME_PLACE(aux_head);
SEAM_RING_SAME_PLACE(aux_tail);
SEAM_RING_SAME_PLACE(aux_offset);
SEAM_RING_SAME_PLACE(aux_size);
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "both sides need plain atomics");

/* The header of a record.  Source: struct perf_event_header, same file. */
struct seam_ring_header {
	uint32_t type;		/* enum perf_event_type */
	uint16_t misc;		/* PERF_RECORD_MISC_* */
	uint16_t size;		/* bytes, header included; n * 8 */
};

_Static_assert(sizeof(struct seam_ring_header) ==
	       sizeof(struct perf_event_header), "a header has 8 bytes");

enum {
	/* A size has 16 bits, and is a multiple of 8. */
	SEAM_RING_MAX_RECORD = UINT16_MAX - 7,
};

/*
 * A point where tests stop or kill a thread: between any two steps that
 * another processor can see.  Empty outside of the tests.
 */
#ifdef SEAM_RING_TEST_POINTS
void seam_ring_test_point(void);
#else
static inline void seam_ring_test_point(void) { }
#endif
