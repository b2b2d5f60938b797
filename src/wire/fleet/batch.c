/* SPDX-License-Identifier: MIT */
/* batch.c - free a batch, and find an equal origin; see batch.h */
#include "wire/fleet/batch.h"

#include <stdlib.h>

#include "base/hash.h"

static bool is_equal(const struct seam_batch *batch,
		     const struct seam_batch_origin *a,
		     const struct seam_batch_origin *b)
{
	if (a->service != b->service || a->host != b->host ||
	    a->recording != b->recording || a->n_labels != b->n_labels)
		return false;
	for (size_t i = 0; i < a->n_labels; i++)
		if (batch->labels.items[a->labels + i] !=
		    batch->labels.items[b->labels + i])
			return false;
	return true;
}

static uint64_t hash_of(const struct seam_batch *batch,
			const struct seam_batch_origin *origin)
{
	uint64_t hash = seam_hash_add(origin->service, origin->host);

	hash = seam_hash_add(hash, origin->recording);
	for (size_t i = 0; i < origin->n_labels; i++)
		hash = seam_hash_add(hash,
				     batch->labels.items[origin->labels + i]);
	return hash;
}

uint32_t seam_batch_origin(struct seam_batch *batch,
			   const struct seam_batch_origin *origin)
{
	return SEAM_INDEX_INTERN(&batch->origin_index, hash_of(batch, origin),
				 &batch->origins, i,
				 is_equal(batch, &batch->origins.items[i],
					  origin), *origin);
}

void seam_batch_fini(struct seam_batch *batch)
{
	seam_strings_fini(&batch->strings);
	seam_index_fini(&batch->origin_index);
	free(batch->origins.items);
	free(batch->labels.items);
	free(batch->frames.items);
	free(batch->stacks.items);
	free(batch->frame_ids.items);
	free(batch->samples.items);
	free(batch->calls.items);
	free(batch->buckets.items);
	free(batch->losses.items);
	*batch = (struct seam_batch) { 0 };
}
