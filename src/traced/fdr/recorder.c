/* SPDX-License-Identifier: MIT */
/* recorder.c - find, start and stop our recorder; see recorder.h */
#include "traced/fdr/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/high_fd.h"
#include "ring/producer/producer.h"
#include "traced/fdr/record/source.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/trace_service.h"

enum {
	START_MS = 10000,
	END_MS = 60000,
	STACK_BYTES = 64 << 10,		/* of each of the two processes */
};

static struct {
	pid_t starter;			/* 0: no recorder */
	struct seam_ring_wakeup control;	/* the program may close this */
	char path[PATH_MAX];
} recorder;

/* ---- where the program is ---- */

/* Only root, @owner or the user can have put the file there. */
static bool is_program(const char *path, uid_t owner)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       !(st.st_mode & S_IWOTH) && access(path, X_OK) == 0 &&
	       (!st.st_uid || st.st_uid == owner || st.st_uid == geteuid());
}

static bool find_beside(const char *file, char program[PATH_MAX])
{
	static const char *const places[] = {
		/* beside it; installed, in lib or lib/MACHINE; built */
		"seam", "../bin/seam", "../../bin/seam", "../../../seam",
	};
	char library[PATH_MAX], path[PATH_MAX + 32];
	struct stat st;

	if (!realpath(file, library) || stat(library, &st))
		return false;
	*strrchr(library, '/') = '\0';
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", library, places[i]);
		if (is_program(path, st.st_uid) && realpath(path, program))
			return true;
	}
	return false;
}

/* Only absolute folders of PATH: the current folder may be anybody's. */
static bool find_in_path(char program[PATH_MAX])
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t n = strcspn(at, ":");

		if (*at == '/' && n + sizeof("/seam") <= PATH_MAX) {
			snprintf(program, PATH_MAX, "%.*s/seam", (int)n, at);
			if (access(program, X_OK) == 0)
				return true;
		}
		at += n + (at[n] == ':');
	}
	return false;
}

int seam_fdr_recorder_find(const char *library, char program[PATH_MAX],
			   struct seam_err *err)
{
	if (find_beside(library, program) || find_in_path(program))
		return 0;
	return seam_err_set(err, -ENOENT, "'seam', which writes the bundle, is "
			    "not beside libseam-fdr or in PATH");
}

/* ---- its environment ---- */

static bool is_inherited(const char *variable)
{
	static const char *const left_out[] = {
		"LD_PRELOAD=", "LD_AUDIT=", SEAM_TRACE_VARIABLE "=",
		SEAM_LINK_VARIABLE "=",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(left_out); i++)
		if (!strncmp(variable, left_out[i], strlen(left_out[i])))
			return false;
	return true;
}

/* An array to free; NULL: no memory. */
static char **make_environment(void)
{
	size_t n = 0, used = 0;
	char **made;

	while (environ && environ[n])
		n++;
	made = calloc(n + 1, sizeof(*made));
	for (size_t i = 0; made && i < n; i++)
		if (is_inherited(environ[i]))
			made[used++] = environ[i];
	return made;
}

/* ---- its process ---- */

struct recorder_start {
	const char *program;
	char *const *argv, *const *environment;
	int control, null;		/* for descriptors 3; 0, 1 and 2 */
	uint8_t *stacks;		/* of the two processes */
	int error;			/* of clone() or execve() */
};

/* In memory that is shared with the program: system calls alone. */
static int execute(void *context)
{
	struct recorder_start *start = context;

	seam_fdr_syscall4(SYS_setsid, 0, 0, 0, 0);
	seam_fdr_syscall4(SYS_dup2, start->control, SEAM_TRACE_RECORDER_FD, 0,
			  0);
	for (int fd = 0; fd < SEAM_TRACE_RECORDER_FD; fd++)
		seam_fdr_syscall4(SYS_dup2, start->null, fd, 0, 0);
	/* before Linux 5.9 the recorder closes them */
	seam_fdr_syscall4(SYS_close_range, SEAM_TRACE_RECORDER_FD + 1, UINT_MAX,
			  0, 0);
	start->error = (int)seam_fdr_syscall4(SYS_execve, (long)start->program,
					      (long)start->argv,
					      (long)start->environment, 0);
	seam_fdr_syscall4(SYS_exit, 127, 0, 0, 0);
	return 0;
}

/* The parent of the recorder's process, which ends at once. */
static int detach(void *context)
{
	struct recorder_start *start = context;

	if (clone(execute, start->stacks + 2 * STACK_BYTES,
		  CLONE_VM | CLONE_VFORK, start) < 0)
		start->error = -errno;
	seam_fdr_syscall4(SYS_exit, 0, 0, 0, 0);
	return 0;
}

/*
 * Without an exit signal: the program gets no SIGCHLD, and its wait() does not
 * find the process.
 */
static int run(struct recorder_start *start)
{
	uint64_t blocked;
	pid_t pid;

	start->stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start->stacks == MAP_FAILED)
		return -errno;
	/* a handler must not run in a child that has our memory */
	blocked = seam_fdr_block();
	pid = clone(detach, start->stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK,
		    start);
	if (pid < 0)
		start->error = -errno;
	else
		while (waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
			;
	seam_fdr_unblock(blocked);
	munmap(start->stacks, 2 * STACK_BYTES);
	return start->error;
}

static int run_program(const char *program, const struct seam_tsc_tie *since,
		       int control)
{
	static char name[] = SEAM_TRACE_RECORDER;
	char tie[48];
	char *argv[] = { name, recorder.path, since ? tie : NULL, NULL };
	char **environment = make_environment();
	struct recorder_start start = {
		.program = program, .argv = argv, .environment = environment,
		.control = control,
		.null = seam_high_fd(open("/dev/null", O_RDWR | O_CLOEXEC)),
	};
	int r = environment ? -EMFILE : -ENOMEM;

	if (since)
		snprintf(tie, sizeof(tie), "%" PRIu64 ":%" PRIu64, since->tsc,
			 since->ns);
	/* dup2() of a number to itself would leave CLOEXEC */
	if (environment && control > SEAM_TRACE_RECORDER_FD &&
	    start.null > SEAM_TRACE_RECORDER_FD)
		r = run(&start);

	if (start.null >= 0)
		close(start.null);
	free(environment);
	return r;
}

/* ---- requests and replies ---- */

/* 0; -ETIMEDOUT; -EPIPE: the recorder has ended. */
static int receive(int fd, int timeout_ms, struct seam_trace_reply *reply)
{
	uint64_t end = seam_clock_ns() + (uint64_t)timeout_ms * SEAM_NS_PER_MS;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		uint64_t now = seam_clock_ns();

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end - now) / SEAM_NS_PER_MS) + 1) <= 0)
			continue;
		n = recv(fd, reply, sizeof(*reply), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(*reply))
			break;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return -EPIPE;
	}
	reply->text[sizeof(reply->text) - 1] = '\0';
	return 0;
}

static int send_request(enum seam_trace_request_kind kind, pid_t parent)
{
	const struct seam_trace_request request = {
		.kind = kind, .pid = getpid(), .parent = parent,
	};

	if (!seam_ring_wakeup_is_intact(&recorder.control))
		return -EBADF;
	return send(recorder.control.fd, &request, sizeof(request),
		    MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -EPIPE : 0;
}

static int request(enum seam_trace_request_kind kind)
{
	struct seam_trace_reply reply;
	int r = send_request(kind, 0);

	r = r ?: receive(recorder.control.fd, END_MS, &reply);
	return r ?: reply.code;
}

static void forget(void)
{
	if (seam_ring_wakeup_is_intact(&recorder.control))
		close(recorder.control.fd);
	recorder.starter = 0;
	recorder.path[0] = '\0';
}

/* ---- start and stop ---- */

int seam_fdr_recorder_start(const char *path, const char *library,
			    const struct seam_tsc_tie *since,
			    char address[SEAM_LINK_ADDRESS_BYTES],
			    struct seam_err *err)
{
	struct seam_trace_reply reply;
	char program[PATH_MAX];
	int control[2], r;

	r = seam_fdr_recorder_find(library, program, err);
	if (r)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
		return seam_err_errno(err, "cannot start a recorder");
	snprintf(recorder.path, sizeof(recorder.path), "%s", path);
	control[0] = seam_high_fd(control[0]);
	control[1] = seam_high_fd(control[1]);
	seam_ring_wakeup_init(&recorder.control, control[0]);
	recorder.starter = getpid();
	r = run_program(program, since, control[1]);
	close(control[1]);
	r = r ? r : receive(control[0], START_MS, &reply);
	if (r)
		seam_err_set(err, r, "cannot start '%.300s': %s", program,
			     r == -EPIPE ? "it ended" : strerror(-r));
	else if (reply.code < 0)
		r = seam_err_set(err, reply.code, "%s", reply.text);
	else
		snprintf(address, SEAM_LINK_ADDRESS_BYTES, "%.*s",
			 SEAM_LINK_ADDRESS_BYTES - 1, reply.text);
	if (r)
		forget();
	return r;
}

int seam_fdr_recorder_stop(void)
{
	int state, r = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (recorder.starter == getpid())
		r = request(SEAM_TRACE_STOP);
	seam_fdr_link_leave();
	forget();
	pthread_setcancelstate(state, &state);
	return r;
}

void seam_fdr_recorder_exit(void)
{
	if (recorder.starter != getpid())
		return;
	(void)request(SEAM_TRACE_EXIT);
}

void seam_fdr_recorder_forked(pid_t parent)
{
	if (recorder.starter)
		(void)send_request(SEAM_TRACE_FORKED, parent);
}

const char *seam_fdr_recorder_path(void)
{
	return recorder.path;
}
