/* SPDX-License-Identifier: MIT */
/*
 * ids.h - numbers of functions, each used once in the life of a process
 *
 * The functions of the executable's XRay sleds come first (images.h), so that
 * llvm-xray gives them the same numbers.
 */
#pragma once

#include <stdint.h>

/*
 * @n ids in a row that no function has; the first of them, or 0 where there are
 * none left.  From any context.
 */
uint32_t seam_fdr_new_ids(uint32_t n);
