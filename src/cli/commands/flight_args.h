/* SPDX-License-Identifier: MIT */
/* flight_args.h - options of 'seam record' for the flight recorder of calls */
#ifndef SEAM_FLIGHT_ARGS_H
#define SEAM_FLIGHT_ARGS_H

#include "cli/command.h"
#include "record/record.h"

/* NULL or 0: not given. */
struct seam_flight_args {
	const char *size;		/* "" where it has no value */
	struct seam_option_list triggers;
	uint64_t after_ms;
	uint64_t max_snapshots;
};

/*
 * Complete @out->flight, which borrows from @args, and what it implies.
 * -EINVAL after a message for a misuse of @self.
 */
int seam_flight_args_check(const struct seam_command *self,
			   const struct seam_flight_args *args,
			   struct seam_record_options *out);

#endif /* SEAM_FLIGHT_ARGS_H */
