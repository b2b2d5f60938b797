/* SPDX-License-Identifier: MIT */
/*
 * program.h - the instructions of an FDE, run into rows
 *
 * Call frame instructions are a program that builds a table: each row holds
 * from an address up to the next row's.
 *
 * The work is linear in the bytes of the program; nothing that is untrusted
 * sizes a loop or an allocation.
 *
 * Source: DWARF 5, 6.4.2 "Call Frame Instructions" and 7.24; for the GNU
 * extensions LSB Core 5.0, 10.5.2.
 */
#pragma once

#include "unwind/rules.h"
#include "wire/eh_frame.h"

/* Bytes of programs that may be run beyond those of a section: of CIEs. */
enum { SEAM_UNWIND_SPARE_BYTES = 1 << 20 };

/* Called with each row and the address from which it holds.  0 goes on. */
typedef int (*seam_unwind_row_fn)(void *context, uint64_t start,
				  const struct seam_unwind_row *row);

/*
 * Run the program of @fde and call @on_row for every row of it, ascending;
 * rows of no instruction are left out.  Expressions go to @rules.
 *
 * Returns 0; -EBADMSG or -ENOTSUP where the program breaks the format (rows
 * that were handed on before are right); -EOVERFLOW, -ENOMEM; or what @on_row
 * returned.
 */
int seam_unwind_program_rows(const struct seam_eh_frame *frame,
			     const struct seam_eh_fde *fde,
			     struct seam_unwind_rules *rules,
			     seam_unwind_row_fn on_row, void *context);
