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

/* Arguments as given; NULL, 0 or false: not given. */
struct seam_record_args {
	struct seam_option_list events;
	const char *filter;
	const char *frequency;
	uint64_t period;
	bool callchains;
	const char *call_graph;
	bool data_addresses;
	bool switch_events;
	bool namespaces;
	bool cgroups;
	const char *pids;
	const char *tids;
	const char *cpus;
	bool system_wide;
	bool per_thread;
	bool no_inherit;
	const char *compress;
	const char *ring;
	const char *jit_ring;
	const char *watermark;
	uint64_t realtime;
	uint64_t delay_ms;
	bool overwrite;
	const char *aux_snapshots;
	const char *snapshot_every;
	const char *duration;
	const char *max_size;
	bool keep_files;
	const char *output;
};

/* seam_record_command's, in record.c. */
int seam_record_run(const struct seam_command *self, int argc, char **argv);

/*
 * Check @args and convert them to @options, which borrow from @args and
 * @command (NULL-terminated; empty: none).  -EINVAL after a message on stderr.
 * seam_record_args_free() is valid after both.
 */
int seam_record_args_interpret(const struct seam_record_args *args,
			       char **command,
			       struct seam_record_options *options);
void seam_record_args_free(struct seam_record_options *options);

#endif /* SEAM_RECORD_ARGS_H */
