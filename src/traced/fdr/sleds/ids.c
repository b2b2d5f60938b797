/* SPDX-License-Identifier: MIT */
/* ids.c - see ids.h */
#include "traced/fdr/sleds/ids.h"

#include <stdatomic.h>

#include "wire/xray/xray.h"

static _Atomic uint32_t n_ids;

uint32_t seam_fdr_new_ids(uint32_t n)
{
	/* relaxed, all: a number, by which nothing is ordered */
	uint32_t before = atomic_load_explicit(&n_ids, memory_order_relaxed);

	do {
		if (n > SEAM_XRAY_MAX_FUNCTION - before)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&n_ids, &before,
			before + n, memory_order_relaxed,
			memory_order_relaxed));
	return before + 1;
}
