/* SPDX-License-Identifier: MIT */
/* variants.h - no variants while a test lets allocations fail */
#ifndef SEAM_TESTS_VARIANTS_H
#define SEAM_TESTS_VARIANTS_H

#include <stdbool.h>

extern bool variants_off;

#endif /* SEAM_TESTS_VARIANTS_H */
