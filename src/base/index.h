/* SPDX-License-Identifier: MIT */
/*
 * index.h - from a hash to the id of an element that is stored elsewhere
 *
 * The table holds (hash, id) pairs only; the elements stay in the caller's
 * array, and the caller compares them.  That makes one small hash table
 * serve strings, frames, stacks and addresses alike:
 *
 *	uint32_t id = SEAM_INDEX_INTERN(&index, hash, &a, i,
 *		a.items[i].key == key, (struct element) { .key = key });
 *
 * Open addressing with linear probes, at most half full.  32 bits of the
 * hash are stored with the id: growth needs no other hash, and an
 * element is compared only when they are equal.
 */
#pragma once

#include "base/array.h"

struct seam_index_slot {
	uint32_t hash;		/* folded to 32 bits */
	uint32_t id;		/* SEAM_NONE when free */
};

/* Zeroed is a valid, empty index. */
struct seam_index {
	struct seam_index_slot *slots;
	size_t n;		/* ids held */
	size_t mask;		/* slots - 1 */
};

struct seam_index_probe {
	size_t at;
	uint32_t hash;
};

static inline uint32_t seam_index_tag(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

/* Ids have 32 bits, so 32 bits of hash spread them well enough. */
static inline size_t seam_index_start(const struct seam_index *index,
				      uint32_t tag)
{
	return tag & index->mask;
}

static inline struct seam_index_probe
seam_index_probe(const struct seam_index *index, uint64_t hash)
{
	uint32_t tag = seam_index_tag(hash);

	return (struct seam_index_probe) {
		.at = seam_index_start(index, tag), .hash = tag,
	};
}

/* The next id that may match, or SEAM_NONE.  Ends: half the slots are free. */
static inline uint32_t seam_index_next(const struct seam_index *index,
				       struct seam_index_probe *probe)
{
	if (!index->slots)
		return SEAM_NONE;
	for (;;) {
		struct seam_index_slot slot = index->slots[probe->at];

		if (slot.id == SEAM_NONE)
			return SEAM_NONE;
		probe->at = (probe->at + 1) & index->mask;
		if (slot.hash == probe->hash)
			return slot.id;
	}
}

/* Add an id.  0, or -ENOMEM with the index unchanged. */
int seam_index_add(struct seam_index *index, uint64_t hash, uint32_t id);

/* The id @i for which @is_equal, an expression of @i, is true; SEAM_NONE. */
#define SEAM_INDEX_FIND(index, hash, i, is_equal)			\
	({								\
		const struct seam_index *index_ = (index);		\
		struct seam_index_probe probe_ =			\
			seam_index_probe(index_, hash);			\
		uint32_t i;						\
									\
		while ((i = seam_index_next(index_, &probe_)) !=	\
		       SEAM_NONE && !(is_equal))			\
			;						\
		i;							\
	})

/*
 * Append a value to array @a, and its id to the index: the id, or SEAM_NONE
 * with both unchanged when memory ran out or there are 2^32 - 1.
 */
#define SEAM_INDEX_APPEND(index, hash, a, ...)				\
	({								\
		uint32_t id_ = (a)->n < SEAM_NONE ? (uint32_t)(a)->n :	\
			       SEAM_NONE;				\
									\
		if (id_ != SEAM_NONE &&					\
		    (!SEAM_ARRAY_ADD(a, __VA_ARGS__) ||			\
		     (seam_index_add(index, hash, id_) && (a)->n--)))	\
			id_ = SEAM_NONE;				\
		id_;							\
	})

/* The id of the equal element as above; of @value, appended, if none is. */
#define SEAM_INDEX_INTERN(index, hash, a, i, is_equal, ...)		\
	({								\
		uint64_t hash_ = (hash);				\
		uint32_t found_ = SEAM_INDEX_FIND(index, hash_, i, is_equal); \
									\
		if (found_ == SEAM_NONE)				\
			found_ = SEAM_INDEX_APPEND(index, hash_, a,	\
						   __VA_ARGS__);	\
		found_;							\
	})

void seam_index_fini(struct seam_index *index);
