/* SPDX-License-Identifier: MIT */
/*
 * options.h - what to record, as the environment says it
 *
 *	SEAM_TRACE='functions=handle_*,parse;min=5us;trigger=handle_x>10ms'
 *
 *	functions=GLOB,...	record these only; default: all
 *	except=GLOB,...		but not these
 *	min=TIME		forget calls that are shorter
 *	depth=N			forget calls below N others of this thread, at
 *				most 256
 *	args=N			with the first N integer arguments, at most 6
 *	flight=1		overwrite the oldest instead of stopping
 *	trigger=T,...		FUNCTION>TIME, calls:FUNCTION; functions are
 *				GLOBs; with flight=1
 *	after=TIME		the recorder's, of no effect in the program
 *	out=DIR			the bundle, without 'seam record'
 *	start=0			not before the program itself starts it
 *
 * GLOBs are those of fnmatch(3), of whole names, as the symbol table has them
 * or demangled.  A backslash in front of ',' or ';' makes it part of a name.  A
 * TIME has a unit: ns, us, ms or s.
 */
#ifndef SEAM_FDR_OPTIONS_H
#define SEAM_FDR_OPTIONS_H

#include <limits.h>

#include "base/array.h"
#include "wire/xray/trigger_text.h"

enum {
	SEAM_FDR_MAX_OPTIONS_BYTES = 64 << 10,
};

struct seam_fdr_globs {
	SEAM_ARRAY(const char *) list;
};

struct seam_fdr_options {
	struct seam_fdr_globs functions, except;
	uint64_t min_ns;		/* 0: all calls */
	uint32_t depth;			/* 0: no limit */
	uint32_t n_arguments;
	bool is_flight;
	bool is_started;		/* by the constructor */
	struct seam_trigger triggers[SEAM_TRIGGER_MAX];
	uint32_t n_triggers;
	uint64_t after_ns;
	const char *out;		/* NULL: none */
	char *text;			/* what the pointers above point into */
};

/*
 * Parse @text, in the form above; "" gives the defaults.  0; -ENOMEM; -EINVAL,
 * with the cause in @why.  The struct is valid, and holds the defaults, after a
 * failure.
 */
int seam_fdr_options_parse(struct seam_fdr_options *options, const char *text,
			   char *why, size_t why_bytes);

void seam_fdr_options_fini(struct seam_fdr_options *options);

/*
 * The absolute path of the bundle @out, without a slash at its end and with
 * room for the names of its files; NULL: NAME-PID.seam in the current folder.
 * 0; -EINVAL; -ENAMETOOLONG; or -errno of getcwd(3).
 */
int seam_fdr_bundle_path(const char *out, char path[PATH_MAX]);

#endif /* SEAM_FDR_OPTIONS_H */
