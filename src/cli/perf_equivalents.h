/* SPDX-License-Identifier: MIT */
/*
 * perf_equivalents.h - hints for commands and options of perf
 */
#ifndef SEAM_PERF_EQUIVALENTS_H
#define SEAM_PERF_EQUIVALENTS_H

/* What to use in place of perf's command @name; NULL: not known. */
const char *seam_perf_equivalent_command(const char *name);

/*
 * What to use in place of @option ("-F", "--fields") of perf's command
 * @command; NULL: not known.  For an option that has a number in Seam only,
 * the meaning of the number.
 */
const char *seam_perf_equivalent_option(const char *command,
					const char *option);

#endif /* SEAM_PERF_EQUIVALENTS_H */
