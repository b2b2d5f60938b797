/* SPDX-License-Identifier: MIT */
/* batch_parts.h - what loaders of samples and of calls of batches share */
#pragma once

#include "base/hash.h"
#include "model/fleet/batch_folder.h"
#include "model/profile/profile.h"

/* A frame or stack of the batch, by its id. */
struct seam_batch_known {
	uint64_t id;
	uint32_t is;			/* of the profile, or of a table */
};

struct seam_batch_ids {
	SEAM_ARRAY(struct seam_batch_known) items;
	struct seam_index index;
};

static inline uint32_t
seam_batch_ids_find(const struct seam_batch_ids *ids, uint64_t id)
{
	uint32_t k = SEAM_INDEX_FIND(&ids->index, seam_hash_u64(id), i,
				     ids->items.items[i].id == id);

	return k == SEAM_NONE ? k : ids->items.items[k].is;
}

static inline bool
seam_batch_ids_add(struct seam_batch_ids *ids, uint64_t id, uint32_t is)
{
	return is != SEAM_NONE && SEAM_INDEX_APPEND(&ids->index,
		seam_hash_u64(id), &ids->items,
		(struct seam_batch_known) { id, is }) != SEAM_NONE;
}

static inline void
seam_batch_ids_fini(struct seam_batch_ids *ids)
{
	free(ids->items.items);
	seam_index_fini(&ids->index);
	*ids = (struct seam_batch_ids) { 0 };
}

typedef int seam_load_batch_add(void *context, const struct seam_batch *batch,
				struct seam_err *err);

/*
 * @add each batch of the folder that can be read; others are losses of
 * @profile. 0, -errno of @add, or -ENODATA: there is none.
 */
int seam_load_batch_each(const struct seam_batch_folder *folder,
			 struct seam_profile *profile,
			 seam_load_batch_add *add, void *context,
			 struct seam_err *err);

/* Add the batch's losses.  0 or -ENOMEM. */
int seam_load_batch_losses(struct seam_profile *profile,
			   const struct seam_batch *batch);
