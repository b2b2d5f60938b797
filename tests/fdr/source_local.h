/* SPDX-License-Identifier: MIT */
/*
 * source_local.h - areas in private memory, which a test reads afterwards
 *
 * seam_fdr_thread_init(&source_local) makes threads use them.
 */
#ifndef SOURCE_LOCAL_H
#define SOURCE_LOCAL_H

#include <errno.h>
#include <sys/mman.h>

#include "traced/fdr/record/source.h"
#include "wire/xray/xray_chunk.h"

enum { LOCAL_HEAD_BYTES = 4096 };	/* a page before the area's bytes */

struct local_area {
	_Atomic uint64_t cursor, reserved, tail, n_lost;
	struct local_area *next;
	uint64_t size;
	uint32_t tid;
};

/* Before the first claim: bytes of each area, and its mode. */
static uint64_t local_bytes = 64 * SEAM_XRAY_CHUNK_BYTES;
static bool local_free_running;

static _Atomic(struct local_area *) local_areas;	/* newest first */

/* The bytes of @area. */
static inline const uint8_t *local_bytes_of(const struct local_area *area)
{
	return (const uint8_t *)area + LOCAL_HEAD_BYTES;
}

static int local_claim(uint32_t tid, struct seam_fdr_area *out)
{
	struct local_area *area;
	void *p = mmap(NULL, LOCAL_HEAD_BYTES + local_bytes,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOSPC;
	area = p;
	area->tid = tid;
	area->size = local_bytes;
	*out = (struct seam_fdr_area) {
		.bytes = (uint8_t *)p + LOCAL_HEAD_BYTES, .size = area->size,
		.cursor = &area->cursor, .reserved = &area->reserved,
		.tail = local_free_running ? NULL : &area->tail,
		.n_lost = &area->n_lost,
	};
	/* release: pairs with the reader's acquire; the area is whole */
	area->next = atomic_load_explicit(&local_areas, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
			&local_areas, &area->next, area,
			memory_order_release, memory_order_relaxed))
		;
	return 0;
}

static void local_close(struct seam_fdr_area *area)
{
	(void)area;
}

static const struct seam_fdr_source source_local = {
	.claim = local_claim, .close = local_close,
};

#endif /* SOURCE_LOCAL_H */
