/* SPDX-License-Identifier: MIT */
/*
 * recorded.h - common options and steps of commands that record
 *
 * What is recorded is declared once, as in reading.h, and spliced into the
 * tables of 'seam record' and 'seam top'.
 */
#pragma once

#include "cli/command.h"
#include "record/record.h"

/* NULL: not given.  -a is in the recorder's options. */
struct seam_target_args {
	const char *pids, *tids, *cpus, *cgroup, *user;
};

#define SEAM_PID_OPTION(type, member)					\
	SEAM_OPTION(type, member.pids, STRING, 'p', "pid", "PID",	\
		    "running processes, with their children",		\
		    .detail = "Several with commas. It ends with the last " \
		    "of them or with Ctrl-C. With a COMMAND, such as "	\
		    "'sleep 10', it ends when COMMAND does; COMMAND itself " \
		    "is left out.")

#define SEAM_TARGET_OPTIONS(type, member, options)			\
	SEAM_PID_OPTION(type, member),					\
	SEAM_OPTION(type, member.user, STRING, 'u', "uid", "USER",	\
		    "running processes of a user, with their children",	\
		    .detail = "A name or a number. Those whose effective " \
		    "user id it is at the start. Where the kernel does not permit " \
		    "one of them, a message has how many are left out."), \
	SEAM_OPTION(type, options.system_wide, FLAG, 'a', "all-cpus", NULL, \
		    "the whole system; with a COMMAND, until it ends"),	\
	SEAM_OPTION(type, member.cgroup, STRING, 'G', "cgroup", "CGROUP", \
		    "with -a: only threads of this cgroup and those below it", \
		    .detail = "A path as in /proc/PID/cgroup, such as "	\
		    "/system.slice/nginx.service: of the hierarchy of cgroup " \
		    "v1 with the controller perf_event, or else of cgroup2."), \
	SEAM_OPTION(type, member.cpus, STRING, 'C', "cpu", "CPUS",	\
		    "only on these CPUs, such as 0,2-3",		\
		    .detail = "Without a COMMAND or processes: everything " \
		    "that runs on these CPUs. With one of them: only those " \
		    "processes, while they run there. perf record samples " \
		    "everything on the CPUs until COMMAND ends; that is -a " \
		    "-C CPUS here.")

/*
 * Check @args, and set what is recorded in @out, whose command, system_wide are
 * set; lists are to be freed by seam_targets_fini().  0, or SEAM_EXIT_USAGE
 * after a message.
 */
int seam_targets_read(const struct seam_command *self,
		      const struct seam_target_args *args,
		      struct seam_record_options *out);
void seam_targets_fini(struct seam_record_options *options);

/*
 * The exit status of a command that recorded @what: that of COMMAND if there is
 * one, as a shell has it.  If a signal ended the recording before, as if the
 * signal had ended COMMAND; 126 or 127 if it could not be started.  In place of
 * 0, LOSSY where @is_lossy.
 */
int seam_recorded_status(const struct seam_record_options *what,
			 const struct seam_command_end *end, bool is_lossy);
