/* SPDX-License-Identifier: MIT */
/*
 * map_rings.h - the rings and AUX areas of opened sources into memory
 *
 * What a user may lock is limited, and the kernel finds no large area at
 * once: everything is mapped with half the size as often as that takes.
 */
#ifndef SEAM_MAP_RINGS_H
#define SEAM_MAP_RINGS_H

#include "record/perf/sources.h"

/* Bytes of each, powers of two: wanted, and afterwards had. */
struct seam_ring_sizes {
	size_t samples, area;
};

/*
 * Map what sources from number @first on write to and is not mapped, and
 * let those that own no ring write to the one of their place.  -EPERM: the
 * user may not lock even one page a ring; -EOPNOTSUPP: an event that is
 * said to have an area has none.
 */
int seam_sources_map(struct seam_sources *s, size_t first,
		     struct seam_ring_sizes *sizes, struct seam_err *err);

#endif /* SEAM_MAP_RINGS_H */
