/* SPDX-License-Identifier: MIT */
/*
 * checked.h - calls that are recorded under conditions
 *
 *	min	a call that ends sooner is taken back, with its exit
 *	depth	a call below so many recorded ones is not recorded
 *	args	an entry has the first integer arguments with it
 *	trigger	some functions are of interest to triggers.h
 *
 * What is asked for decides about the trampolines: the plain ones cost nothing
 * more.  Those of a function with a trigger are the checked ones; at a later
 * start, when it may have been patched before, those of all functions are.
 * Cost of entry and exit, of two rdtsc (bench/fdr): plain 1.01, min 1.01, args
 * 1.01 to 1.04, depth 1.01, a trigger 1.02, all of them 1.22.
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
 * For calls without a sled, of -finstrument-functions: whether there is a check
 * for @function, and that check.  @frame is the stack pointer of the function
 * (__builtin_dwarf_cfa() in what it calls), and @word an Entry or Exit; nothing
 * is known of its arguments.  The exit of a function that has allocated stack
 * since its entry is missing under depth=.
 */
bool seam_fdr_is_checked(uint32_t function);
void seam_fdr_check_compiled(uint32_t word, uint64_t frame);

#endif /* SEAM_FDR_CHECKED_H */
