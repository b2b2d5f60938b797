/* SPDX-License-Identifier: MIT */
/*
 * checked.h - calls that are recorded under conditions
 *
 *	min	a call that ends sooner is taken back, with its exit
 *	depth	a call below so many recorded ones is not recorded
 *	args	an entry has the first integer arguments with it
 *	trigger	some functions are of interest to triggers.h
 *
 * What a function needs decides about its trampolines: the plain ones cost
 * nothing more.  Cost of an entry and an exit through the checked ones: as
 * plain, within 3 % (bench/fdr): it all happens while rdtsc takes its time.
 */
#ifndef SEAM_FDR_CHECKED_H
#define SEAM_FDR_CHECKED_H

#include "target/fdr/options.h"

/*
 * Prepare for @options, before the first sled is patched.  Takes 1 ms where a
 * TIME is in the options.  0 or -errno.
 */
int seam_fdr_check_init(const struct seam_fdr_options *options);

struct seam_fdr_trampolines { const char *entry, *exit, *tail; };

/*
 * Those that @function is patched to.  Triggers of the function come first:
 * seam_fdr_trigger_function().
 */
struct seam_fdr_trampolines seam_fdr_trampolines(uint32_t function);

#endif /* SEAM_FDR_CHECKED_H */
