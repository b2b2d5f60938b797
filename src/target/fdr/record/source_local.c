/* SPDX-License-Identifier: MIT */
/* source_local.c - areas in private memory, without a recorder */
#include "target/fdr/record/source_local.h"

#include "wire/xray/xray_chunk.h"

#include <errno.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

uint64_t seam_fdr_local_bytes = 64 * SEAM_XRAY_CHUNK_BYTES;
bool seam_fdr_local_free_running;
_Atomic(struct seam_fdr_local_area *) seam_fdr_local_areas;
_Atomic uint64_t seam_fdr_local_n_lost;

static int claim(uint32_t tid, struct seam_fdr_area *out)
{
	struct seam_fdr_local_area *area;
	void *p = mmap(NULL, PAGE + seam_fdr_local_bytes,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOSPC;
	area = p;
	area->tid = tid;
	area->size = seam_fdr_local_bytes;
	*out = (struct seam_fdr_area) {
		.bytes = (uint8_t *)p + PAGE, .size = area->size,
		.cursor = &area->cursor, .reserved = &area->reserved,
		.tail = seam_fdr_local_free_running ? NULL : &area->tail,
		.n_lost = &area->n_lost,
	};
	/* release: pairs with the reader's acquire; the area is whole */
	area->next = atomic_load_explicit(&seam_fdr_local_areas,
					  memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
			&seam_fdr_local_areas, &area->next, area,
			memory_order_release, memory_order_relaxed))
		;
	return 0;
}

static void close_area(struct seam_fdr_area *area)
{
	(void)area;
}

static void lose(void)
{
	/* relaxed: a count */
	atomic_fetch_add_explicit(&seam_fdr_local_n_lost, 1,
				  memory_order_relaxed);
}

const struct seam_fdr_source seam_fdr_source_local = {
	.claim = claim, .close = close_area, .lose = lose,
};
