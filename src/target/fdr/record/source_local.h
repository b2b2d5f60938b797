/* SPDX-License-Identifier: MIT */
/* source_local.h - the areas of source_local.c, newest first */
#ifndef SEAM_FDR_SOURCE_LOCAL_H
#define SEAM_FDR_SOURCE_LOCAL_H

#include "target/fdr/record/source.h"

struct seam_fdr_local_area {
	_Atomic uint64_t cursor, reserved, tail, n_lost;
	struct seam_fdr_local_area *next;
	uint64_t size;
	uint32_t tid;
};

/* Before the first claim: bytes of each area, and its mode. */
extern uint64_t seam_fdr_local_bytes;
extern bool seam_fdr_local_free_running;

extern _Atomic(struct seam_fdr_local_area *) seam_fdr_local_areas;
extern _Atomic uint64_t seam_fdr_local_n_lost;

/* The bytes of @area. */
static inline const uint8_t *
seam_fdr_local_bytes_of(const struct seam_fdr_local_area *area)
{
	return (const uint8_t *)area + 4096;
}

#endif /* SEAM_FDR_SOURCE_LOCAL_H */
