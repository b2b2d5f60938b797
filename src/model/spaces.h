/* SPDX-License-Identifier: MIT */
/*
 * spaces.h - what was mapped where, and when
 *
 * A process maps, maps over, execs and forks; a sample's address means what
 * was there at the sample's time.  So a mapping is a rectangle, addresses by
 * times, and an address space a set of rectangles that do not overlap.  The
 * answer to a look-up comes with the time span in which it stays the same,
 * which lets a caller keep it for all samples in that span.
 *
 * Feed changes in time order, space by space in the order of their creation
 * (a parent before its children), then seal, then ask.
 *
 * Ownership: the set owns its rectangles.  Threads: one fills; after
 * seam_spaces_seal() any number ask.
 */
#ifndef SEAM_SPACES_H
#define SEAM_SPACES_H

#include "base/array.h"

struct seam_area {
	uint64_t begin, end;		/* addresses */
	uint64_t from_ns, to_ns;	/* times: [from, to) */
	uint32_t mapping;		/* the caller's number of what is here */
	uint64_t begin_pos;		/* how far begin is into that mapping */
};

struct seam_space {
	SEAM_ARRAY(struct seam_area) areas;	/* sealed: by (begin, from) */
	SEAM_ARRAY(uint32_t) live;		/* areas now true, by begin */
	uint64_t *reach;	/* sealed: highest end of areas [0, i] */
};

struct seam_spaces {
	SEAM_ARRAY(struct seam_space) items;
};

/* A new, empty space; its number, or SEAM_NONE when memory ran out. */
uint32_t seam_spaces_add(struct seam_spaces *spaces);

/*
 * From @time on, @mapping is at [begin, end) of @space.  What was there ends,
 * and what it covered in part is cut.  0 or -ENOMEM.
 */
int seam_spaces_map(struct seam_spaces *spaces, uint32_t space,
		    uint64_t time_ns, uint64_t begin, uint64_t end,
		    uint32_t mapping);

/* From @time on nothing is at [begin, end) of @space.  0 or -ENOMEM. */
int seam_spaces_unmap(struct seam_spaces *spaces, uint32_t space,
		      uint64_t time_ns, uint64_t begin, uint64_t end);

/* From @time on the space is empty (exec). */
void seam_spaces_clear(struct seam_spaces *spaces, uint32_t space,
		       uint64_t time_ns);

/* From @time on, @child holds what @parent holds at that time (fork). */
int seam_spaces_copy(struct seam_spaces *spaces, uint32_t child,
		     uint32_t parent, uint64_t time_ns);

/* No change comes after this.  0 or -ENOMEM. */
int seam_spaces_seal(struct seam_spaces *spaces);

/*
 * The area at @addr at @time, or NULL when nothing is mapped there.  When
 * NULL, *@from and *@to say from when to when nothing is.
 * Cost: O(log n), and more where many areas of other times overlap.
 */
const struct seam_area *seam_spaces_find(const struct seam_spaces *spaces,
					 uint32_t space, uint64_t addr,
					 uint64_t time_ns, uint64_t *from_ns,
					 uint64_t *to_ns);

void seam_spaces_fini(struct seam_spaces *spaces);

#endif /* SEAM_SPACES_H */
