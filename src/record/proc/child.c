/* SPDX-License-Identifier: MIT */
/* child.c - fork, wait for a byte, exec; see child.h */
#include "record/proc/child.h"

#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_STARTED = 127 };

/* In the child.  Does not return. */
static void wait_and_exec(char **argv, const sigset_t *mask, int go,
			  int failure)
{
	char byte;
	ssize_t n;
	int code;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_NOT_STARTED);	/* the recorder has ended */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	code = errno;
	n = write(failure, &code, sizeof(code));
	(void)n;	/* fails only if the recorder has ended */
	_exit(EXIT_NOT_STARTED);
}

int seam_child_prepare(struct seam_child *child, char **argv,
		       const sigset_t *mask, struct seam_err *err)
{
	int go[2], failure[2];
	pid_t pid;

	*child = (struct seam_child) { .go = -1, .failure = -1 };
	if (pipe2(go, O_CLOEXEC) < 0)
		return seam_err_errno(err, "cannot start the command: pipe");
	if (pipe2(failure, O_CLOEXEC) < 0) {
		int r = seam_err_errno(err, "cannot start the command: pipe");

		close(go[0]);
		close(go[1]);
		return r;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(failure[0]);
		wait_and_exec(argv, mask, go[0], failure[1]);
	}
	close(go[0]);
	close(failure[1]);
	child->go = go[1];
	child->failure = failure[0];
	if (pid < 0) {
		int r = seam_err_errno(err, "cannot fork");

		seam_child_close(child);
		return r;
	}
	child->pid = pid;
	return 0;
}

int seam_child_start(struct seam_child *child, const char *name,
		     struct seam_err *err)
{
	char shown[256];
	int code = 0;
	ssize_t n;

	if (write(child->go, "", 1) != 1)
		return seam_err_errno(err, "cannot start the command");
	/* a successful exec() closes the other end: no bytes */
	do
		n = read(child->failure, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(code) || code <= 0) {
		child->started = true;
		return 0;
	}
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	seam_text_copy(shown, sizeof(shown), name, SEAM_TEXT_TERMINAL);
	return seam_err_set(err, -code, "cannot start '%s': %s", shown,
			    strerror(code));
}

void seam_child_close(struct seam_child *child)
{
	seam_file_close_fd(child->go);
	seam_file_close_fd(child->failure);
	/* a process that was not started exits: its pipe is closed */
	if (child->pid > 0)
		waitpid(child->pid, NULL, child->started ? WNOHANG : 0);
	*child = (struct seam_child) { .go = -1, .failure = -1 };
}
