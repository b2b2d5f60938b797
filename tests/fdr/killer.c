/* SPDX-License-Identifier: MIT */
/*
 * killer.c - run N programs, one after the other, each for a random time
 *
 * usage: killer N SEED LOG PROGRAM
 *
 * Runs "PROGRAM LOG INDEX NS"; see killed.c.
 */
#include "killed.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_NS = 1000 * 1000 };

static void run_one(char **argv, int i)
{
	char index[16], ns[16];
	pid_t child;
	int status;

	snprintf(index, sizeof(index), "%d", i);
	snprintf(ns, sizeof(ns), "%ld", 1 + random() % MAX_NS);
	child = fork();
	if (child == 0) {
		execl(argv[4], argv[4], argv[3], index, ns, NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		exit(1);
}

int main(int argc, char **argv)
{
	int n = argc == 5 ? atoi(argv[1]) : 0;
	int fd;

	if (n <= 0 || (fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC,
				 0600)) < 0 ||
	    ftruncate(fd, n * (off_t)sizeof(struct killed_program)))
		return 2;
	srandom((unsigned int)atoi(argv[2]));
	for (int i = 0; i < n; i++)
		run_one(argv, i);
	return 0;
}
