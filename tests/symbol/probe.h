/* SPDX-License-Identifier: MIT */
/*
 * probe.h - what must hold for any bytes that call themselves an ELF file
 *
 * Used by the damage tests and by the fuzz target.
 */
#ifndef SEAM_TEST_PROBE_H
#define SEAM_TEST_PROBE_H

#include "base/base.h"

/*
 * Resolve addresses all over a file of @size bytes at @image, twice, and
 * abort() when the answers differ or are not of the form that symbols.h
 * promises.  Returns how many addresses had a name.
 */
size_t probe_image(const uint8_t *image, size_t size);

#endif /* SEAM_TEST_PROBE_H */
