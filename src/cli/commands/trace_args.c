/* SPDX-License-Identifier: MIT */
/* trace_args.c - check what --trace and its kin say; see trace_args.h */
#include "cli/commands/trace_args.h"

#include <errno.h>

#include "base/text.h"

enum {
	MAX_ARGUMENTS = 6,	/* in registers; System V ABI, 3.2.3 */
	MAX_DEPTH = 256,	/* as many as a program takes */
};

static const char *problem_of(const struct seam_trace_args *args,
			      const struct seam_record_options *out)
{
	const struct seam_trace_options *trace = &out->trace;

	if (!trace->is_used && !out->flight.is_used)
		return args->except.n || args->min || args->depth ||
		       args->n_arguments ?
		       "--no-trace, --trace-min, --trace-depth and "
		       "--trace-args need --trace or --flight-recorder" : NULL;
	if (!out->command)
		return "--trace needs a COMMAND: a process that runs already "
		       "cannot have libseam-fdr.so";
	if (out->pids.n || out->tids.n)
		return "--trace cannot be combined with -p and -t: it is for "
		       "what COMMAND runs";
	if (args->n_arguments > MAX_ARGUMENTS)
		return "--trace-args takes a number from 1 to 6";
	if (args->depth > MAX_DEPTH)
		return "--trace-depth takes a number from 1 to 256";
	return NULL;
}

int seam_trace_args_check(const struct seam_command *self,
			  const struct seam_trace_args *args,
			  struct seam_record_options *out)
{
	struct seam_trace_options *trace = &out->trace;
	const char *problem;

	trace->is_used = args->only.n > 0;
	trace->only = args->only.items;
	trace->n_only = args->only.n;
	trace->except = args->except.items;
	trace->n_except = args->except.n;
	trace->depth = (unsigned int)args->depth;
	trace->n_arguments = (unsigned int)args->n_arguments;
	problem = problem_of(args, out);
	if (!problem && args->min && !seam_text_ns(args->min, &trace->min_ns))
		problem = "--trace-min takes a time such as 5us";
	if (!problem)
		return 0;
	seam_command_misused(self, "%s", problem);
	return -EINVAL;
}
