/* SPDX-License-Identifier: MIT */
/*
 * function_rows.h - the rows of single functions, each compiled once
 *
 * For what is compiled piece by piece: a file's functions when their code is
 * first seen (cfi_rows.h), and JIT code as it is announced.  Rows count from
 * their function's start, so they hold wherever code moves.
 *
 * Ownership: nothing is borrowed.
 * Threads: one adds; then any number looks up.
 * Cost: 0.5 us a piece of code; 20 ns a look-up.
 */
#ifndef SEAM_FUNCTION_ROWS_H
#define SEAM_FUNCTION_ROWS_H

#include "unwind/rules.h"
#include "wire/eh_frame.h"

/* Bytes of programs that may be run beyond those of a section: of CIEs. */
enum { SEAM_UNWIND_SPARE_BYTES = 1 << 20 };

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
	uint64_t bytes_left;		/* of programs that may be run */
};

/*
 * Compile @fde, of section @frame, with its rules in @rules.  The function's
 * index in @functions->list, or -ENOMEM with nothing changed.  One whose
 * information breaks the format, or for which no bytes are left, has the one
 * row SEAM_UNWIND_BAD_CFI.
 */
int64_t seam_unwind_functions_add(struct seam_unwind_functions *functions,
				  const struct seam_eh_frame *frame,
				  const struct seam_eh_fde *fde,
				  struct seam_unwind_rules *rules);

/* The id at @offset of function @i. */
uint16_t seam_unwind_functions_find(
	const struct seam_unwind_functions *functions, uint32_t i,
	uint64_t offset);

void seam_unwind_functions_fini(struct seam_unwind_functions *functions);

/*
 * The unwinding rules that JIT code was announced with: the .eh_frame of an
 * UNWINDING_INFO record of a JITDUMP, for one piece of code.  Which code is at
 * an address at a time, a map of code knows (symbol/jit, record/stacks).
 *
 * V8 announces code that has a frame pointer with an empty .eh_frame: such
 * code has SEAM_UNWIND_NO_CFI, and a walk uses the frame pointer.
 *
 * The bytes are untrusted: rules for other addresses than the code's are
 * refused, as are more than a few functions in one piece of code.
 */
enum {
	SEAM_UNWIND_MAX_OF_CODE = 64,	/* functions in a piece of code */
};

struct seam_unwind_piece {
	uint64_t start;		/* the code's address when it was loaded */
	uint32_t first, n;	/* of .functions */
};

/* Zeroed is valid and empty. */
struct seam_unwind_code_rows {
	struct seam_unwind_rules rules;
	struct seam_unwind_functions functions;
	SEAM_ARRAY(struct seam_unwind_piece) pieces;
};

/*
 * Compile @eh for the code at [@start, @start + @size): its entries, at the
 * address they have while the code is at @start.  The id of its rows, for
 * seam_unwind_code_rows_find(); SEAM_NONE where there are none; -ENOMEM.
 */
int64_t seam_unwind_code_rows_add(struct seam_unwind_code_rows *rows,
				  const struct seam_eh_frame *eh,
				  uint64_t start, uint64_t size);

/* The id, in rows->rules, of the rule at @offset of the code @piece. */
uint16_t seam_unwind_code_rows_find(const struct seam_unwind_code_rows *rows,
				    uint32_t piece, uint64_t offset);

void seam_unwind_code_rows_fini(struct seam_unwind_code_rows *rows);

#endif /* SEAM_FUNCTION_ROWS_H */
