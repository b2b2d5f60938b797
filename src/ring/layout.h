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
#ifndef SEAM_RING_LAYOUT_H
#define SEAM_RING_LAYOUT_H

#include "base/base.h"

#include <linux/perf_event.h>
#include <stdatomic.h>

/* Offsets of positions count from the ring's birth and never go back. */
struct seam_ring_control {
	uint8_t producers_own[1024];	/* clock data and self-monitoring */
	_Atomic uint64_t data_head;	/* producer writes, consumer reads */
	_Atomic uint64_t data_tail;	/* consumer writes, producer reads */
	uint64_t data_offset;		/* of the data, from the control page */
	uint64_t data_size;		/* bytes, a power of two */
	_Atomic uint64_t aux_head;	/* the same four for the AUX area */
	_Atomic uint64_t aux_tail;
	uint64_t aux_offset;		/* the consumer sets these two, */
	uint64_t aux_size;		/* before it maps the area */
};

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

/* Every record begins so.  Source: struct perf_event_header, same file. */
struct seam_ring_header {
	uint32_t type;		/* enum perf_event_type */
	uint16_t misc;		/* PERF_RECORD_MISC_* */
	uint16_t size;		/* bytes, header included */
};

_Static_assert(sizeof(struct seam_ring_header) ==
	       sizeof(struct perf_event_header), "a header has 8 bytes");

#endif /* SEAM_RING_LAYOUT_H */
