/* SPDX-License-Identifier: MIT */
/* pager.c - a child that shows standard output; see pager.h */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command.h"

/* Set before anything is piped to the pager: the SIGPIPE handler reads it. */
static struct {
	pid_t pid;		/* 0: no pager runs */
	int status;		/* exit status if the user quits early */
	int saved[2];		/* duplicates of 1 and 2 */
} pager = { .saved = { -1, -1 } };

/* The pager's command line, or NULL. */
static const char *choose(void)
{
	const char *term = getenv("TERM"), *name = getenv("SEAM_PAGER");
	char word[PATH_MAX], path[PATH_MAX];

	if (!seam_command_pages() || !isatty(STDOUT_FILENO) || !term ||
	    strcmp(term, "dumb") == 0)
		return NULL;
	if (!name)
		name = getenv("PAGER");
	if (!name)
		return seam_file_find_program("less", path) ? "less" : NULL;
	if (!*name || strcmp(name, "cat") == 0)
		return NULL;
	/* Check a plain name; the shell resolves anything else. */
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " "), name);
	if (name[strcspn(name, "$`'\"\\|&;()<>=~*?")] ||
	    seam_file_find_program(word, path))
		return name;
	seam_command_say("cannot run the pager '%s': not found", name);
	return NULL;
}

static void run(const char *command, const int ends[2])
{
	dup2(ends[0], STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Save @fd, and replace it by the pipe. */
static void redirect(int fd, int to)
{
	pager.saved[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (pager.saved[fd - 1] >= 0)
		dup2(to, fd);
}

void seam_pager_start(int status)
{
	seam_pager_start_as(pager.pid ? NULL : choose(), status);
}

void seam_pager_start_as(const char *command, int status)
{
	int ends[2];
	pid_t pid;

	if (!command || pager.pid || pipe2(ends, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run(command, ends);
	close(ends[0]);
	if (pid > 0) {
		pager.status = status;
		pager.pid = pid;
		redirect(STDOUT_FILENO, ends[1]);
		if (isatty(STDERR_FILENO))
			redirect(STDERR_FILENO, ends[1]);
		/* the keys of these signals are for the pager */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	close(ends[1]);
}

/* Close the pipe, which is the end of file for the pager; wait for it. */
static void end(void)
{
	for (int i = 0; i < 2; i++) {
		if (pager.saved[i] >= 0)
			dup2(pager.saved[i], i + 1);
	}
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager.pid = 0;
}

void seam_pager_finish(void)
{
	if (!pager.pid)
		return;
	fflush(stdout);
	fflush(stderr);
	end();
}

bool seam_pager_runs(void)
{
	return pager.pid != 0;
}

int seam_pager_left(void)
{
	end();
	return pager.status;
}
