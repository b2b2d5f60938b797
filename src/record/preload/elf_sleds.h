/* SPDX-License-Identifier: MIT */
/*
 * elf_sleds.h - whether the calls of a program can be recorded (--trace)
 *
 * Reads the file of COMMAND as elf_needs.h does: sizes are libelf's to check.
 */
#ifndef SEAM_ELF_SLEDS_H
#define SEAM_ELF_SLEDS_H

#include "base/base.h"

enum seam_elf_sleds {
	SEAM_SLEDS_NOT_READ,	/* no ELF file for x86-64, or not readable */
	SEAM_SLEDS_THERE,
	SEAM_SLEDS_NONE,	/* no function of the file itself */
	SEAM_SLEDS_STATIC,	/* no library can be loaded into it */
};

enum seam_elf_sleds seam_elf_sleds_read(const char *path);

#endif /* SEAM_ELF_SLEDS_H */
