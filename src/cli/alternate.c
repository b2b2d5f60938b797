/* SPDX-License-Identifier: MIT */
/* alternate.c - recordings of two commands; the contract is in alternate.h */
#include "cli/alternate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/progress.h"
#include "cli/command.h"
#include "cli/forward.h"
#include "cli/output_folder.h"

static int make_folder(struct seam_alternate *what, struct seam_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = NULL;

	if (what->keep)
		path = strdup(what->keep);
	else if (asprintf(&path, "%s/seam-diff-XXXXXX", tmp && *tmp ? tmp :
			  "/tmp") < 0)
		path = NULL;
	if (!path)
		return seam_err_no_memory(err);
	if (what->keep ? mkdir(path, 0777) < 0 : !mkdtemp(path)) {
		int rc = seam_err_errno(err, "cannot make the folder '%s'",
					path);

		free(path);
		return rc;
	}
	what->folder = path;
	return 0;
}

/* FOLDER/a-1.seam, ..., FOLDER/b-1.seam, ... */
static int name_recordings(struct seam_alternate *what, struct seam_err *err)
{
	size_t n = 2 * what->n_runs;

	what->paths = calloc(n + 1, sizeof(*what->paths));
	for (size_t i = 0; i < n && what->paths; i++)
		if (asprintf(&what->paths[i], "%s/%c-%zu.seam", what->folder,
			     i < what->n_runs ? 'a' : 'b',
			     i % what->n_runs + 1) < 0) {
			what->paths[i] = NULL;
			return seam_err_no_memory(err);
		}
	return what->paths ? 0 : seam_err_no_memory(err);
}

/* In the child: the recorder and its command. */
static void exec_recorder(const struct seam_alternate *what,
			  char *const *command, const char *path)
{
	size_t n = 0, n_words = 0;
	const char **words;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);	/* should we be killed */
	while (command[n_words])
		n_words++;
	words = calloc(what->n_options + n_words + 8, sizeof(*words));
	if (!words || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return;
	words[n++] = "seam";
	words[n++] = "record";
	words[n++] = "--quiet";
	words[n++] = "-o";
	words[n++] = path;
	for (size_t i = 0; i < what->n_options; i++)
		words[n++] = what->options[i];
	words[n++] = "--";
	memcpy(words + n, command, n_words * sizeof(*words));
	execv("/proc/self/exe", (char *const *)(uintptr_t)words);
}

static int record_one(const struct seam_alternate *what, size_t i,
		      struct seam_err *err)
{
	const char *path = what->paths[i];
	char *const *command = what->commands[i >= what->n_runs];
	int status;
	pid_t pid = seam_forward_fork();
	int r;

	if (pid < 0)
		return seam_err_errno(err, "cannot start a recorder");
	if (pid == 0) {
		exec_recorder(what, command, path);
		_exit(SEAM_EXIT_NOT_FOUND);
	}
	r = seam_forward_wait(&status);
	if (r < 0)
		return seam_err_set(err, r, "cannot wait for a recorder: %s",
				    strerror(-r));
	if (seam_forward_signal())
		return -EINTR;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == SEAM_EXIT_DONE ||
				  WEXITSTATUS(status) == SEAM_EXIT_LOSSY))
		return 0;
	return seam_err_set(err, -ECANCELED, "run %zu of %c, '%s', ended with "
			    "%s %d", i % what->n_runs + 1,
			    i < what->n_runs ? 'A' : 'B', command[0],
			    WIFEXITED(status) ? "status" : "signal",
			    WIFEXITED(status) ? WEXITSTATUS(status) :
			    WTERMSIG(status));
}

int seam_alternate_run(struct seam_alternate *what, struct seam_err *err)
{
	struct seam_progress progress;
	int rc;

	seam_forward_begin();
	rc = make_folder(what, err) ?: name_recordings(what, err);
	if (rc)
		return rc;
	seam_progress_begin(&progress, "recording", 2 * what->n_runs);
	for (size_t i = 0; i < 2 * what->n_runs && !rc; i++) {
		rc = record_one(what, i / 2 + (i % 2 ? what->n_runs : 0), err);
		seam_progress_step(&progress, 1);
	}
	seam_progress_end(&progress);
	return rc;
}

int seam_alternate_end(struct seam_alternate *what)
{
	if (what->folder && !what->keep)
		seam_output_folder_remove(what->folder);
	seam_forward_end();
	return seam_forward_signal();
}

void seam_alternate_fini(struct seam_alternate *what)
{
	for (size_t i = 0; what->paths && i < 2 * what->n_runs; i++)
		free(what->paths[i]);
	free(what->paths);
	free(what->folder);
	*what = (struct seam_alternate) { 0 };
}
