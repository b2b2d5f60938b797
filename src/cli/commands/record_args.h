/* SPDX-License-Identifier: MIT */
/*
 * record_args.h - the options of 'seam record', and their values
 *
 * record_args.c has the table and texts of the command (command.h), record.c
 * runs it.
 */
#ifndef SEAM_RECORD_ARGS_H
#define SEAM_RECORD_ARGS_H

#include "cli/command.h"
#include "record/record.h"

/* The calls of programs.  NULL or 0: not given. */
struct seam_trace_args {
	struct seam_option_list only;	/* "" where it has no value */
	struct seam_option_list except;
	const char *min;
	uint64_t depth, n_arguments;
};

/* The flight recorder of calls.  NULL or 0: not given. */
struct seam_flight_args {
	const char *size;		/* "" where it has no value */
	struct seam_option_list triggers;
	uint64_t after_ms;
	uint64_t max_snapshots;
};

/* The parser fills both parts; NULL, 0 or false: not given. */
struct seam_record_args {
	struct seam_record_options record;	/* values that need no check */
	struct seam_option_list events;
	const char *frequency;
	const char *call_graph, *layers;
	const char *pids, *tids, *cpus;
	const char *compress;
	const char *ring, *jit_ring;
	uint64_t realtime;
	const char *aux_snapshots;
	const char *snapshot_every, *duration;
	struct seam_trace_args trace;
	struct seam_flight_args flight;
};

/* seam_record_command's, in record.c. */
int seam_record_run(const struct seam_command *self, int argc, char **argv);

/*
 * Check @args, and complete @args->record, which borrows from @args and from
 * @command (NULL-terminated; empty: none), and has lists of pids, tids and CPUs
 * for the caller to free.  0, or SEAM_EXIT_USAGE after a message on stderr.
 */
int seam_record_args_check(struct seam_record_args *args, char **command);

#endif /* SEAM_RECORD_ARGS_H */
