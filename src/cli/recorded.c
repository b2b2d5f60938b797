/* SPDX-License-Identifier: MIT */
/* recorded.c - targets of a recording, and its exit status; see recorded.h */
#include "cli/recorded.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "record/proc/procfs.h"

/* Why the targets cannot be combined; NULL: they can. */
static const char *contradiction(const struct seam_target_args *a,
				 const struct seam_record_options *o)
{
	bool has_processes = a->pids || a->tids || a->user;

	if (!o->command && !has_processes && !a->cpus && !o->system_wide)
		return "nothing is selected: give a COMMAND, processes (-p) or "
		       "the whole system (-a)";
	if (o->system_wide && has_processes)
		return "-a cannot be combined with -p, -t and --uid";
	if (a->user && (a->pids || a->tids))
		return "--uid cannot be combined with -p and -t";
	if (a->cgroup && !o->system_wide)
		return "-G selects from the whole system: it needs -a";
	return NULL;
}

static int refuse(const struct seam_command *self, const char *text,
		  const char *value)
{
	return seam_command_misused(self, "%s: '%s'", text, value);
}

static int read_user(const struct seam_command *self, const char *text,
		     struct seam_record_options *out)
{
	const struct passwd *user = getpwnam(text);
	const char *end = text + strlen(text);
	uint64_t number;

	out->by_user = true;
	if (user)
		out->user = user->pw_uid;
	else if (seam_text_number(text, end, 10, &number) == end &&
		 number < UINT32_MAX)
		out->user = (uid_t)number;
	else
		return refuse(self, "--uid takes the name or the number of a "
			      "user", text);
	return 0;
}

int seam_targets_read(const struct seam_command *self,
		      const struct seam_target_args *args,
		      struct seam_record_options *out)
{
	const char *problem = contradiction(args, out);

	if (problem)
		return seam_command_misused(self, "%s", problem);
	if (args->pids && seam_targets_parse(&out->pids, args->pids) < 0)
		return refuse(self, "-p takes process ids", args->pids);
	if (args->tids && seam_targets_parse(&out->tids, args->tids) < 0)
		return refuse(self, "-t takes thread ids", args->tids);
	if (args->cpus && (seam_procfs_list(&out->cpus, args->cpus) < 0 ||
			   !out->cpus.n))
		return refuse(self, "-C takes CPUs such as 0,2-3", args->cpus);
	out->cgroup = args->cgroup;
	return args->user ? read_user(self, args->user, out) : 0;
}

void seam_targets_fini(struct seam_record_options *options)
{
	free(options->pids.items);
	free(options->tids.items);
	free(options->cpus.items);
}

int seam_recorded_status(const struct seam_record_options *what,
			 const struct seam_command_end *end, bool is_lossy)
{
	int status = SEAM_EXIT_DONE;

	if (end->start_error)
		return end->start_error == -ENOENT ? SEAM_EXIT_NOT_FOUND :
		       SEAM_EXIT_CANNOT_START;
	if (what->command && !end->has_ended && !end->was_stopped)
		status = SEAM_EXIT_SIGNAL + end->signal;
	else if (end->has_ended && !end->was_stopped)
		status = WIFSIGNALED(end->wait_status) ?
			 SEAM_EXIT_SIGNAL + WTERMSIG(end->wait_status) :
			 WEXITSTATUS(end->wait_status);
	return status == SEAM_EXIT_DONE && is_lossy ? SEAM_EXIT_LOSSY : status;
}
