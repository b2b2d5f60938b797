/* SPDX-License-Identifier: MIT */
/* stopped_parent.c - by a descriptor, which no other process can have */
#include "stopped_parent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 10000 };

static void send_signal(int parent, int signal)
{
	syscall(SYS_pidfd_send_signal, parent, signal, NULL, 0);
}

/* Source: proc_pid_stat(5); the name may have any character, the state none. */
static bool is_stopped(pid_t pid)
{
	char path[64], text[256];
	const char *end = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fgets(text, sizeof(text), file))
		end = strrchr(text, ')');
	fclose(file);
	return end && strncmp(end, ") T", 3) == 0;
}

bool stop_parent(struct stopped_parent *stopped)
{
	pid_t pid = getppid();
	int parent = (int)syscall(SYS_pidfd_open, pid, 0), fds[2];
	bool has_stopped = false;

	if (parent < 0 || getppid() != pid || pipe2(fds, O_CLOEXEC))
		return false;
	stopped->child = fork();
	if (stopped->child == 0) {
		struct pollfd end = { .fd = fds[0], .events = POLLIN };

		close(fds[1]);
		poll(&end, 1, LIMIT_MS);
		send_signal(parent, SIGCONT);
		_exit(0);
	}
	close(fds[0]);
	stopped->pipe = fds[1];
	if (stopped->child > 0)
		send_signal(parent, SIGSTOP);
	for (int i = 0; i < LIMIT_MS && !has_stopped; i++) {
		has_stopped = is_stopped(pid);
		usleep(1000);
	}
	close(parent);
	return has_stopped;
}

void continue_parent(struct stopped_parent *stopped)
{
	close(stopped->pipe);
	waitpid(stopped->child, NULL, 0);
}
