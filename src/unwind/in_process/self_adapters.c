/* SPDX-License-Identifier: MIT */
/* self_adapters.c - virtual machines in this process; see self_walk.h */
#include "unwind/in_process/self_adapters.h"

#include <errno.h>

#include "unwind/in_process/self_readers.h"
#include "unwind/in_process/self_walk.h"

/*
 * Who adds or removes writes, handlers read.  All sequentially consistent,
 * as self_readers.h says for the images.
 */
static _Atomic(const struct seam_self_adapter *)
	adapters[SEAM_SELF_MAX_ADAPTERS];

const struct seam_unwind_adapter *seam_self_find_adapter(uint64_t pc,
							 bool is_in_image)
{
	for (size_t i = 0; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *a = atomic_load(&adapters[i]);

		if (a && a->has_code(a->adapter.context, pc, is_in_image))
			return &a->adapter;
	}
	return NULL;
}

int seam_self_add_adapter(const struct seam_self_adapter *adapter)
{
	for (size_t i = 0; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *none = NULL;

		if (atomic_compare_exchange_strong(&adapters[i], &none,
						   adapter))
			return 0;
	}
	return -ENOSPC;
}

int seam_self_remove_adapter(const struct seam_self_adapter *adapter)
{
	for (size_t i = 0; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *same = adapter;

		atomic_compare_exchange_strong(&adapters[i], &same, NULL);
	}
	return seam_self_unused(seam_self_retire()) ? 0 : -EBUSY;
}
