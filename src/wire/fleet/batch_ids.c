/* SPDX-License-Identifier: MIT */
/* batch_ids.c - stable hashes of a frame's fields; see batch_ids.h */
#include "wire/fleet/batch_ids.h"

#include "base/hash.h"

uint64_t seam_batch_frame_id(const struct seam_batch *batch,
			     const struct seam_batch_frame *frame)
{
	const uint32_t texts[] = {
		frame->function, frame->file, frame->module, frame->build_id,
	};
	const uint64_t numbers[] = {
		frame->layer, frame->is_named, frame->is_inlined, frame->line,
		frame->offset,
	};
	uint64_t hash = seam_hash_stable(numbers, sizeof(numbers), 0);

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(texts); i++) {
		const char *text = seam_strings_get(&batch->strings, texts[i]);

		hash = seam_hash_stable(text, strlen(text), hash);
	}
	return hash ? hash : 1;
}

uint64_t seam_batch_stack_id(const uint64_t *frame_ids, size_t n)
{
	uint64_t hash = seam_hash_stable(frame_ids, n * sizeof(*frame_ids), 0);

	return n == 0 ? 0 : hash ? hash : 1;
}
