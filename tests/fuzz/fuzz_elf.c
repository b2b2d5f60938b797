/* SPDX-License-Identifier: MIT */
/*
 * fuzz_elf.c - the input is the file of a module
 *
 * Oracle: probe.h.  Answers are the same twice, have the promised form, and
 * there are none outside the file; and all of it ends in time.
 *
 * Seeds: the program of test_damage.c, built by gcc and clang with DWARF 3
 * to 5, compressed, and stripped; that of test_name_tables.c, stripped.
 */
#include "fuzz.h"
#include "../symbol/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	probe_image(data, size);
	return 0;
}
