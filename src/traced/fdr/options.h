/* SPDX-License-Identifier: MIT */
/*
 * options.h - what to record, by the text that seam/fdr.h and seam-fdr(3)
 * explain
 *
 *	SEAM_TRACE='functions=handle_*,parse;min=5us;trigger=handle_x>10ms'
 *
 * A backslash in front of ',' or ';' makes it part of a name.  after= is the
 * recorder's, of no effect in the program.
 */
#pragma once

#include <limits.h>

#include "base/array.h"
#include "base/err.h"
#include "wire/xray/trigger_text.h"

enum { SEAM_FDR_MAX_OPTIONS_BYTES = 64 << 10 };

struct seam_fdr_globs {
	SEAM_ARRAY(struct seam_fdr_glob {
		const char *text;
		bool has_matched;	/* set where names are read */
	}) list;
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
	const char *out;		/* NULL: none */
	char *text;			/* what the pointers above point into */
};

/*
 * Parse @text, in the form above; "" gives the defaults.  0, -ENOMEM or
 * -EINVAL.  After a failure @options has the defaults.
 */
int seam_fdr_options_parse(struct seam_fdr_options *options, const char *text,
			   struct seam_err *err);

void seam_fdr_options_fini(struct seam_fdr_options *options);

/*
 * The absolute path of the bundle @out, without a slash at its end and with
 * room for the names of its files; NULL: NAME-PID.seam in the current folder.
 * 0; -EINVAL; -ENAMETOOLONG; or -errno of getcwd(3).
 */
int seam_fdr_bundle_path(const char *out, char path[PATH_MAX]);
