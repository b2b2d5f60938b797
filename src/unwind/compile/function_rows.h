/* SPDX-License-Identifier: MIT */
/*
 * function_rows.h - the rows of single functions, each compiled once
 *
 * For what is compiled piece by piece: a file's functions when their code is
 * first seen (cfi_rows.h), and JIT code as it is announced (code_rows.h).
 * Rows count from their function's start, so they hold wherever code moves.
 */
#ifndef SEAM_FUNCTION_ROWS_H
#define SEAM_FUNCTION_ROWS_H

#include "unwind/rules.h"
#include "wire/eh_frame.h"

/* A function's rows: [first, first + n) of .starts and .ids. */
struct seam_unwind_function {
	uint64_t start;		/* as in its FDE */
	uint32_t size;		/* bytes of code */
	uint32_t first, n;
};

/* Zeroed is valid and empty. */
struct seam_unwind_functions {
	SEAM_ARRAY(struct seam_unwind_function) list;
	SEAM_ARRAY(uint32_t) starts;	/* from the function's start */
	SEAM_ARRAY(uint16_t) ids;	/* of the rules they were compiled to */
	struct seam_unwind_refused refused;
	uint64_t bytes_left;		/* of programs that may be run */
};

/*
 * Compile @fde, of section @frame, with its rules in @rules.  The function's
 * index in @functions->list, or -ENOMEM with nothing changed.  One whose
 * information breaks the format, or for which no bytes are left, has the one
 * row SEAM_UNWIND_BAD_CFI, and is counted.
 */
int64_t seam_unwind_functions_add(struct seam_unwind_functions *functions,
				  const struct seam_eh_frame *frame,
				  const struct seam_eh_fde *fde,
				  struct seam_unwind_rules *rules);

/* The id at @offset of function @i. */
uint16_t seam_unwind_functions_find(
	const struct seam_unwind_functions *functions, uint32_t i,
	uint64_t offset);

/* The memory that it holds, in bytes. */
size_t
seam_unwind_functions_bytes(const struct seam_unwind_functions *functions);

void seam_unwind_functions_fini(struct seam_unwind_functions *functions);

#endif /* SEAM_FUNCTION_ROWS_H */
