/* SPDX-License-Identifier: MIT */
/*
 * batch_ids.h - ids of frames and stacks that are equal on all hosts
 *
 * Hashes (seam_hash_stable) of 64 bits over what the rows hold: of n distinct
 * stacks two are equal with a probability of about n^2 / 2^65, 3e-4 of 100
 * million.  Ids are stored: the function may not change.
 */
#pragma once

#include "wire/fleet/batch.h"

/* Of all fields but the id; never 0. */
uint64_t seam_batch_frame_id(const struct seam_batch *batch,
			     const struct seam_batch_frame *frame);

/* Of the ids of @n frames, the outermost first; 0 of the empty stack alone. */
uint64_t seam_batch_stack_id(const uint64_t *frame_ids, size_t n);
