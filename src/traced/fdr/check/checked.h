/* SPDX-License-Identifier: MIT */
/*
 * checked.h - calls that are recorded under conditions: min=, depth=, args= and
 * triggers
 *
 * The options decide about the trampolines: plain trampolines cost nothing
 * more.  A function with a trigger has checked trampolines; at a later start
 * with triggers, when sleds may have been patched before, all functions have.
 *
 * What trampolines call runs in any thread, in handlers too; the rest is set by
 * one thread before the first sled is patched.
 */
#ifndef SEAM_FDR_CHECKED_H
#define SEAM_FDR_CHECKED_H

#include "traced/fdr/options.h"

/*
 * Prepare for @options, and set seam_fdr_used, while no sled is patched.  Takes
 * 1 ms where a TIME is in the options.  0 or -errno.
 */
int seam_fdr_check_init(const struct seam_fdr_options *options);

/*
 * For calls without a sled, of -finstrument-functions: whether @function is
 * checked, and the check.  @frame is the stack pointer of the function
 * (__builtin_dwarf_cfa() in its callee), and @word an Entry or Exit; the
 * arguments are not known.  Under depth= the exit of a function that has
 * allocated stack since its entry is missing.
 */
bool seam_fdr_is_checked(uint32_t function);
void seam_fdr_check_compiled(uint32_t word, uint64_t frame);

#endif /* SEAM_FDR_CHECKED_H */
