/* SPDX-License-Identifier: MIT */
/*
 * perf_equivalents.h - what users of perf type, and what does it here
 *
 * A command or an option of perf that Seam does not have is answered in one
 * line that says what to use instead.
 */
#ifndef SEAM_PERF_EQUIVALENTS_H
#define SEAM_PERF_EQUIVALENTS_H

/* What to use in place of command @name of perf; NULL: it has none. */
const char *seam_perf_equivalent_command(const char *name);

/*
 * What to use in place of @option ("-F", "--fields") of perf's command
 * @command; NULL: it has none that is known.  For an option that Seam has
 * with a number and perf without, what it takes here.
 */
const char *seam_perf_equivalent_option(const char *command, const char *option);

#endif /* SEAM_PERF_EQUIVALENTS_H */
