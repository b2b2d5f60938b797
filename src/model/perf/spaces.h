/* SPDX-License-Identifier: MIT */
/*
 * spaces.h - what was mapped in an address space, at a time
 *
 * The address of a sample means what was mapped there at the sample's time.  A
 * look-up also returns the time span in which its result holds, so that a
 * caller can reuse it for all samples in that span.
 *
 * What a process maps between two execs is a branch, a list of VMAs by time;
 * each covers those before it, and an unmap is a VMA without a mapping.  A fork
 * is a branch that begins after a VMA of its parent's; branches connected by
 * forks are a tree.  Sealing numbers all VMAs so that those of a branch are
 * consecutive, and so are those that come after a VMA, in its branch and in the
 * branches forked from there: up to its last number.  Of the VMAs that cover an
 * address and whose numbers include the one of a point in time, that with the
 * highest number is mapped there then.  They are found by a segment tree over
 * the sorted bounds of VMAs, whose nodes have marks: from this number on, that
 * VMA is the innermost.
 *
 * Cost: a change is an append, a fork or an exec a branch: nothing is copied.
 * Sealing takes O(n log n), a look-up O(log n) nodes, most of them empty.
 *
 * Add changes in the order of time, a parent's before its child is forked, then
 * seal, then look up.  Threads: one fills; after seam_spaces_seal() any number
 * look up.
 */
#pragma once

#include "base/array.h"

struct seam_vma {
	uint64_t begin, end;		/* addresses */
	uint64_t from_ns;
	uint32_t mapping;		/* the caller's number of it;
					 * SEAM_NONE: unmapped */
	uint32_t last;			/* number; before sealing: its branch */
};

struct seam_branch {
	uint64_t from_ns;
	uint32_t n_vmas;
	uint32_t parent;		/* branch; SEAM_NONE: a root */
	uint32_t fork;			/* vmas that the parent had then */
	uint32_t first;			/* number; its vmas follow */
	uint32_t tree;
	uint32_t child, next;		/* while numbering: forks */
	uint32_t n_open;		/* likewise: vmas without a last */
};

/* The branches of a process, one more an exec. */
struct seam_space {
	SEAM_ARRAY(uint32_t) branches;	/* by from_ns */
};

/* Branches connected by forks: their numbers, and parts of the arrays. */
struct seam_vma_tree {
	uint32_t first, end;		/* numbers */
	size_t bounds, nodes, marks;
	uint32_t n_bounds;
};

/* From number from on, vma is the innermost; 0: none. */
struct seam_vma_mark {
	uint32_t from, vma;
};

struct seam_spaces {
	SEAM_ARRAY(struct seam_space) items;
	SEAM_ARRAY(struct seam_branch) branches;
	SEAM_ARRAY(struct seam_vma) vmas;	/* by time; sealed: number */

	/* sealed; marks of node i are [nodes[i], nodes[i + 1]) */
	SEAM_ARRAY(struct seam_vma_tree) trees;
	SEAM_ARRAY(uint64_t) bounds;
	SEAM_ARRAY(uint32_t) nodes;
	SEAM_ARRAY(struct seam_vma_mark) marks;
};

/* A new, empty space; its number, or SEAM_NONE when memory ran out. */
uint32_t seam_spaces_add(struct seam_spaces *spaces);

/*
 * From @time_ns on, @mapping is at [@begin, @end) of @space; SEAM_NONE: nothing
 * is.  It covers what was there before, or a part of that.  0 or -ENOMEM.
 */
int seam_spaces_map(struct seam_spaces *spaces, uint32_t space,
		    uint64_t time_ns, uint64_t begin, uint64_t end,
		    uint32_t mapping);

/* From @time_ns on the space is empty (exec).  0 or -ENOMEM. */
int seam_spaces_clear(struct seam_spaces *spaces, uint32_t space,
		      uint64_t time_ns);

/*
 * From @time_ns on, @child, which is new, holds what @parent holds at that time
 * (fork).  0 or -ENOMEM.
 */
int seam_spaces_copy(struct seam_spaces *spaces, uint32_t child,
		     uint32_t parent, uint64_t time_ns);

/* No change comes after this.  0 or -ENOMEM. */
int seam_spaces_seal(struct seam_spaces *spaces);

/*
 * The vma at @addr at @time_ns, or NULL when nothing is mapped there.  The
 * result holds from *@from_ns to *@to_ns.
 */
const struct seam_vma *seam_spaces_find(const struct seam_spaces *spaces,
					uint32_t space, uint64_t addr,
					uint64_t time_ns, uint64_t *from_ns,
					uint64_t *to_ns);

void seam_spaces_fini(struct seam_spaces *spaces);
