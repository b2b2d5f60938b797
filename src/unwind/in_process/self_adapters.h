/* SPDX-License-Identifier: MIT */
/* self_adapters.h - the adapters in use; added and removed by self_walk.h */
#ifndef SEAM_SELF_ADAPTERS_H
#define SEAM_SELF_ADAPTERS_H

#include "unwind/walk/walk.h"

/*
 * The adapter that has the code at @pc, or NULL; whether an image has it.  In
 * a handler.
 */
const struct seam_unwind_adapter *seam_self_find_adapter(uint64_t pc,
							 bool is_in_image);

#endif /* SEAM_SELF_ADAPTERS_H */
