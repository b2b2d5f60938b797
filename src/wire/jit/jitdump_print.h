/* SPDX-License-Identifier: MIT */
/*
 * jitdump_print.h - every record of a jitdump, a line each
 *
 * Fields have the names of the specification; nothing is joined or left out.
 * Records that the reader skips are printed too, as damaged.
 */
#ifndef SEAM_JITDUMP_PRINT_H
#define SEAM_JITDUMP_PRINT_H

#include "wire/jit/jitdump.h"
#include "wire/line.h"

/*
 * Print the jitdump @bytes to @out.  The header comes first; notes on
 * deviations from the specification come last:
 *
 *	{"offset":0,"type":"header","magic":N,...}
 *	{"offset":40,"type":"JIT_CODE_LOAD","id":0,...,"code":"31c0c3"}
 *	{"type":"note","text":"loads whose two addresses differ","count":1}
 *
 * Entries of DEBUG_INFO and the header of the frame table in UNWINDING_INFO
 * are decoded; "cut":true beside entries: fewer than nr_entry; "stepped":true:
 * their names are damaged.  A record that contradicts itself has
 * "damaged":true and its bytes as "data"; such records and such entries
 * count in *@n_damaged.
 *
 * Returns 0; -ENODATA when the last record is cut; or as
 * seam_jitdump_begin().
 */
int seam_jitdump_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, uint64_t *n_damaged,
		       struct seam_err *err);

#endif /* SEAM_JITDUMP_PRINT_H */
