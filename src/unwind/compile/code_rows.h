/* SPDX-License-Identifier: MIT */
/*
 * code_rows.h - the unwinding rules that JIT code was announced with
 *
 * An UNWINDING_INFO record of a JITDUMP has an .eh_frame for one piece of
 * code.  It is compiled when the code is loaded; which code is at an address
 * at a time, a map of code knows (symbol/jit), and the id that is given here
 * is kept with it.  Rules count from the code's start, so they hold after the
 * code was moved.
 *
 * V8 announces code that has a frame pointer with an empty .eh_frame: such
 * code has SEAM_UNWIND_NO_CFI, and a walk uses the frame pointer.
 *
 * The bytes are untrusted: rules for other addresses than the code's are
 * refused, as are more than a few functions in one piece of code.
 *
 * Ownership: nothing is borrowed.
 * Threads: one adds; then any number looks up.
 * Cost: 0.5 us a piece of code; 20 ns a look-up.
 */
#ifndef SEAM_CODE_ROWS_H
#define SEAM_CODE_ROWS_H

#include "unwind/compile/function_rows.h"

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
	uint64_t n_elsewhere;	/* functions that are not in their code */
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

#endif /* SEAM_CODE_ROWS_H */
