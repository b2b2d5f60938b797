/* SPDX-License-Identifier: MIT */
/* test_jit_blocks.c - the memory of a stream's queue */

#include "traced/jit/writer.h"
#include "unit.h"

static bool has_pattern(const struct seam_writer_block *block, uint8_t byte)
{
	for (uint32_t i = 0; i < block->size; i++)
		if (block->bytes[i] != byte)
			return false;
	return true;
}

static size_t n_chunks(const struct seam_writer_memory *m)
{
	size_t n = 0;

	for (const void *const *chunk = (const void *)m->chunks; chunk;
	     chunk = *chunk)
		n++;
	return n;
}

/* Sizes of 1 to 50,000 bytes: those above 16 KiB are mappings of their own. */
static void blocks_do_not_overlap_and_are_used_again(void **state)
{
	enum { N = 64, N_STEPS = 20000 };
	struct seam_writer_block *blocks[N] = { NULL };
	struct seam_writer_memory m = { 0 };
	size_t n_half = 0;
	uint32_t seed = 1;

	for (uint32_t step = 0; step < N_STEPS; step++) {
		uint32_t i = (seed = seed * 1664525 + 1013904223) >> 26;
		size_t size = (seed >> 8 & 7) ? 1 + seed % 1000 :
			      1 + seed % 50000;

		if (blocks[i]) {
			assert_true(has_pattern(blocks[i], (uint8_t)i));
			seam_writer_free(&m, blocks[i]);
		}
		blocks[i] = seam_writer_alloc(&m, size);
		assert_non_null(blocks[i]);
		blocks[i]->size = (uint32_t)size;
		memset(blocks[i]->bytes, (int)i, size);
		n_half = step == N_STEPS / 2 ? n_chunks(&m) : n_half;
	}
	/* What half of the steps needed is nearly enough for all. */
	assert_true(n_chunks(&m) < 2 * n_half);
	for (int i = 0; i < N; i++)
		if (blocks[i])
			seam_writer_free(&m, blocks[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_do_not_overlap_and_are_used_again),
	};

	return cmocka_run_group_tests_name("jit_blocks", tests, NULL, NULL);
}
