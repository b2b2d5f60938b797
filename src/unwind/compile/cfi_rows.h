/* SPDX-License-Identifier: MIT */
/*
 * cfi_rows.h - unwinding rules, compiled function by function: of a file when
 * code is first seen, of JIT code as it is announced
 *
 * A function is compiled when one of its addresses is looked up for the first
 * time, found by the table of contents (.eh_frame_hdr); a small cache in front
 * holds the ids of addresses.  What has no table of contents, or none that can
 * be searched, is compiled as a whole when the rows are made; so is
 * .debug_frame, which is for addresses without .eh_frame.
 *
 * The sections are untrusted.  A function is compiled once, and all of them
 * together cost no more than the bytes of a section: a table of contents whose
 * entries overlap has its later functions refused, as SEAM_UNWIND_BAD_CFI.
 *
 * Ownership: the bytes of the sections are borrowed until _fini().
 * Threads: one at a time; a look-up may allocate.
 * Cost: 10 ns for an address in the cache, 0.2 us for one of a known function,
 * 0.3 to 1 us for a new function; 0.5 us a piece of JIT code, 20 ns a look-up.
 */
#pragma once

#include "unwind/compile/table.h"

/* A function's rows: [first, first + n) of .starts and .ids. */
struct seam_unwind_function {
	uint64_t start;		/* as in its FDE */
	uint32_t size;		/* bytes of code */
	uint32_t first, n;
};

/* Zeroed is valid and empty.  Rows hold wherever code moves. */
struct seam_unwind_functions {
	SEAM_ARRAY(struct seam_unwind_function) list;
	SEAM_ARRAY(uint32_t) starts;	/* from the function's start */
	SEAM_ARRAY(uint16_t) ids;	/* of the rules they were compiled to */
	uint64_t bytes_left;		/* of programs that may be run */
};

struct seam_unwind_cached {
	uint64_t addr;
	uint32_t id_and_1;		/* 0: a free slot */
};

/* Zeroed is valid and empty. */
struct seam_unwind_rows {
	struct seam_unwind_rules rules;		/* of all ids */
	struct seam_eh_frame searched;		/* with a table of contents */
	struct seam_eh_fde fde;			/* the last one, with its CIE */
	struct seam_unwind_functions functions;
	struct seam_index index;	/* of functions, by their start */

	struct seam_unwind_table whole, debug;

	struct seam_unwind_cached *cache;	/* by address, no chains */
	size_t n_cache, n_misses;
};

/*
 * @eh and @debug are .eh_frame and .debug_frame of a file; NULL or without
 * entries: it has none.  0, -ENOMEM, or -ENOTSUP as seam_unwind_table_build();
 * on failure @rows is empty.
 */
int seam_unwind_rows_init(struct seam_unwind_rows *rows,
			  const struct seam_eh_frame *eh,
			  const struct seam_eh_frame *debug);

/*
 * The id, in rows->rules, of the rule at @addr, an address as the file has it.
 * Without memory it is SEAM_UNWIND_BAD_CFI, until there is some.
 */
uint16_t seam_unwind_rows_find(struct seam_unwind_rows *rows, uint64_t addr);

/* The function at @addr, [*@start, *@end); false: not known. */
bool seam_unwind_rows_function(struct seam_unwind_rows *rows, uint64_t addr,
			       uint64_t *start, uint64_t *end);

void seam_unwind_rows_fini(struct seam_unwind_rows *rows);

/* ---- JIT code ---- */

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
