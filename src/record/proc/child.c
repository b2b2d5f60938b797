/* SPDX-License-Identifier: MIT */
/* child.c - fork, wait for a byte, exec; see child.h */
#include "record/proc/child.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_STARTED = 127 };

/* In the child.  Does not return. */
static void wait_and_exec(char **argv, const sigset_t *mask, int parent)
{
	char byte;
	ssize_t n;
	int code;

	do
		n = read(parent, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_NOT_STARTED);	/* the recorder has ended */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	code = errno;
	/* fails only if the recorder has ended */
	(void)!send(parent, &code, sizeof(code), MSG_NOSIGNAL);
	_exit(EXIT_NOT_STARTED);
}

int seam_child_prepare(struct seam_child *child, char **argv,
		       const sigset_t *mask,
		       void (*set_environment)(void *context), void *context,
		       struct seam_err *err)
{
	int ends[2], r = 0;

	*child = (struct seam_child) { .socket = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return seam_err_errno(err, "cannot start the command: "
				      "socketpair");
	child->pid = fork();
	if (child->pid == 0) {
		close(ends[0]);
		set_environment(context);
		wait_and_exec(argv, mask, ends[1]);
	}
	if (child->pid < 0)
		r = seam_err_errno(err, "cannot fork");
	close(ends[1]);
	child->socket = ends[0];
	if (r < 0) {
		child->pid = 0;
		seam_child_close(child);
	}
	return r;
}

int seam_child_start(struct seam_child *child, const char *name,
		     struct seam_err *err)
{
	int code = 0;
	ssize_t n;

	if (send(child->socket, "", 1, MSG_NOSIGNAL) != 1)
		return seam_err_errno(err, "cannot start the command");
	/* a successful exec() closes the other end: no bytes */
	do
		n = read(child->socket, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(code) || code <= 0) {
		child->started = true;
		return 0;
	}
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return seam_err_set(err, -code, "cannot start '%s': %s", name,
			    strerror(code));
}

void seam_child_close(struct seam_child *child)
{
	seam_file_close_fd(child->socket);
	/* a process that was not started exits: its socket is closed */
	if (child->pid > 0)
		waitpid(child->pid, NULL, child->started ? WNOHANG : 0);
	*child = (struct seam_child) { .socket = -1 };
}
