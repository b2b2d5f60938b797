/* SPDX-License-Identifier: MIT */
/*
 * agent_options.h - options of 'seam agent', of its command line and its file
 *
 * The file has lines "key = value" with the names of the options; a line of '#'
 * is a comment.  Options of the command line have precedence, and labels of
 * both count.  The file is read again on SIGHUP.
 */
#pragma once

#include "cli/recorded.h"
#include "fleet/store.h"

#include <limits.h>

struct seam_agent_options {
	struct seam_record_options record;
	struct seam_target_args targets;
	struct seam_option_list events, labels;
	const char *service, *host, *spool, *config;
	struct seam_fleet_place place;
	const char *window, *frequency, *off_cpu_min;
	uint64_t spool_max, max_memory;
	double max_cpu;			/* per cent of a CPU; 0: no limit */
	bool status, json;

	/* made of these */
	uint64_t window_ns, off_cpu_ns;
	char host_name[256];
	char folder[PATH_MAX];		/* of the spool */
	char *text;			/* of the file; owned */
	char **words;			/* of both; owned */
};

/*
 * Read the command line, and the file that it names.  0, or the exit status
 * after a message.  To be freed in either case.
 */
int seam_agent_options_read(struct seam_agent_options *options,
			    const struct seam_command *self, int argc,
			    char **argv);
void seam_agent_options_fini(struct seam_agent_options *options);

/* The table, for the command. */
enum { SEAM_AGENT_N_OPTIONS = 27 };
extern const struct seam_option seam_agent_option_table[SEAM_AGENT_N_OPTIONS];
