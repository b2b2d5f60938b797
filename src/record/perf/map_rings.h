/* SPDX-License-Identifier: MIT */
/*
 * map_rings.h - map the rings and AUX buffers of opened sources
 *
 * Memory that a user may lock is limited, and the kernel cannot always
 * allocate a large buffer: the size is halved until everything of one kind can
 * be mapped.
 */
#ifndef SEAM_MAP_RINGS_H
#define SEAM_MAP_RINGS_H

#include "record/perf/sources.h"

/* Bytes of each ring and AUX buffer, powers of two: requested, then mapped. */
struct seam_ring_sizes {
	size_t samples, aux;
};

/*
 * Map the rings of the sources from index @first on that are not mapped yet,
 * and redirect sources that own no ring to the ring of their CPU or thread.
 * -EPERM: the user may not lock even one page a ring; -EOPNOTSUPP: an event has
 * no AUX buffer, though its aux_kind is set.
 */
int seam_sources_map(struct seam_sources *s, size_t first,
		     struct seam_ring_sizes *sizes, struct seam_err *err);

#endif /* SEAM_MAP_RINGS_H */
