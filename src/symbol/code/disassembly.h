/* SPDX-License-Identifier: MIT */
/*
 * disassembly.h - machine code as text, an instruction at a time
 *
 * Bytes that cannot be decoded become ".byte 0x12" (or a whole word, where
 * instructions are words), so that a walk over any bytes reaches their end.
 *
 * Decoding is capstone's.  The library has 1.3 MiB of tables that the dynamic
 * linker relocates, so it is loaded when the first code is decoded, and not
 * at each start of the program.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "symbol/elf/module.h"

enum { SEAM_INSTRUCTION_TEXT = 192 };

struct seam_instruction {
	uint64_t addr;
	size_t size;			/* bytes; at least 1 */
	char text[SEAM_INSTRUCTION_TEXT];	/* "mov rax, rbx" */
};

/*
 * Load capstone.  0, or -ENOTSUP with the name of its package.  A process that
 * may open no files can decode only what was loaded before.
 */
int seam_disassembly_load(struct seam_err *err);

/* Code to decode. */
struct seam_code_block {
	struct seam_machine machine;
	struct seam_bytes bytes;
	uint64_t addr;			/* of the first byte */
	/*
	 * Not 0: an instruction begins at that byte, and what is before it
	 * need not begin with one.
	 */
	size_t middle;
};

/* Takes an instruction; 0 to go on. */
typedef int seam_instruction_add(void *context,
				 const struct seam_instruction *instruction);

/*
 * Give all instructions of @code to @add, in order.  0; -ENOTSUP for a machine
 * that capstone does not have, or without capstone; -ENOMEM; or what @add
 * returned.
 */
int seam_disassembly_walk(const struct seam_code_block *code,
			  seam_instruction_add *add, void *context,
			  struct seam_err *err);
