/* SPDX-License-Identifier: MIT */
/* trace_args.h - options of 'seam record' for the calls of programs */
#ifndef SEAM_TRACE_ARGS_H
#define SEAM_TRACE_ARGS_H

#include "cli/command.h"
#include "record/record.h"

/* NULL or 0: not given. */
struct seam_trace_args {
	struct seam_option_list only;	/* "" where it has no value */
	struct seam_option_list except;
	const char *min;
	uint64_t depth, n_arguments;
};

/*
 * Complete @out->trace, which borrows from @args.  -EINVAL after a message for
 * a misuse of @self.
 */
int seam_trace_args_check(const struct seam_command *self,
			  const struct seam_trace_args *args,
			  struct seam_record_options *out);

#endif /* SEAM_TRACE_ARGS_H */
