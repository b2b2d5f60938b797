/* SPDX-License-Identifier: MIT */
/* loop.c - epoll over rings, links, pidfds and a signalfd; see loop.h */
#include "record/loop.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/proc/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL	/* Source: linux/pidfd.h of Linux 6.9 */
#endif

/*
 * Signals that end a recording.  A shell without job control starts background
 * jobs with SIGINT and SIGQUIT ignored; like perf we take SIGINT and SIGTERM
 * even so: nobody sends these to a recorder by accident.  Ignored SIGHUP is
 * nohup, and SIGQUIT of the terminal's keys is for the foreground.
 */
static const struct {
	int number;
	bool even_if_ignored;
} ending[] = {
	{ SIGINT, true }, { SIGTERM, true }, { SIGHUP, false },
	{ SIGQUIT, false },
};

/* A second signal of the same sender within this time is ignored. */
enum { REPEAT_NS = 100000000 };

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 &&
	       action.sa_handler == SIG_IGN;
}

static int add(struct seam_loop *loop, int fd, struct seam_err *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return seam_err_errno(err, "cannot wait for events: epoll_ctl");
	return 0;
}

int seam_loop_init(struct seam_loop *loop, struct seam_err *err)
{
	sigset_t set;

	loop->link = -1;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR2);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (ending[i].even_if_ignored ||
		    !is_ignored(ending[i].number))
			sigaddset(&set, ending[i].number);
	sigprocmask(SIG_BLOCK, &set, &loop->old_mask);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0)
		return seam_err_errno(err, "cannot wait for signals");
	return add(loop, loop->signals, err);
}

void seam_loop_take_signals(void)
{
	/* if a parent ignored it, the kernel discards the status of children */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int seam_loop_add_ring(struct seam_loop *loop, int fd, struct seam_err *err)
{
	return add(loop, fd, err);
}

int seam_loop_add_link(struct seam_loop *loop, int fd, struct seam_err *err)
{
	loop->link = fd;
	return add(loop, fd, err);
}

static int open_pidfd(int id, bool is_thread)
{
	int fd = (int)syscall(SYS_pidfd_open, id, is_thread ? PIDFD_THREAD : 0);

	if (fd < 0 && errno == EINVAL && is_thread) {
		int pid = seam_targets_process(id);

		errno = ESRCH;
		fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	}
	return fd;
}

int seam_loop_add_process(struct seam_loop *loop, int id, bool is_thread,
			  struct seam_err *err)
{
	int fd = open_pidfd(id, is_thread);

	/* it has ended since its events were opened */
	if (fd < 0 && errno == ESRCH)
		return 0;
	if (fd < 0)
		return seam_err_errno(err, "cannot watch process %d", id);
	if (!SEAM_ARRAY_ADD(&loop->processes, fd)) {
		close(fd);
		return seam_err_no_memory(err);
	}
	return add(loop, fd, err);
}

/* True: @fd was a pidfd, and its process has ended; it is closed. */
static bool ends_process(struct seam_loop *loop, int fd)
{
	for (size_t i = 0; i < loop->processes.n; i++)
		if (loop->processes.items[i] == fd) {
			close(fd);
			loop->processes.items[i] = loop->processes.items[
				--loop->processes.n];
			return true;
		}
	return false;
}

/*
 * timeout(1) sends a signal to its child and then to its process group: that
 * is one request, and not a second one, which would end the recording at once.
 */
static bool is_repeated(struct seam_loop *loop,
			const struct signalfd_siginfo *info)
{
	uint64_t now_ns = seam_clock_ns();

	if (info->ssi_code == SI_USER &&
	    loop->last_number == (int)info->ssi_signo &&
	    loop->last_pid == info->ssi_pid &&
	    now_ns - loop->last_ns < REPEAT_NS)
		return true;
	/* not of ignored ones: a signal sent again and again gets through */
	loop->last_number = (int)info->ssi_signo;
	loop->last_pid = info->ssi_pid;
	loop->last_ns = now_ns;
	return false;
}

static unsigned int read_signals(struct seam_loop *loop,
				 struct seam_loop_signal *out)
{
	struct signalfd_siginfo info;
	unsigned int found = 0;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGUSR2) {
			found |= info.ssi_signo == SIGCHLD ?
				SEAM_LOOP_CHILD : SEAM_LOOP_SNAPSHOT;
			continue;
		}
		if (is_repeated(loop, &info))
			continue;
		found |= SEAM_LOOP_SIGNAL;
		*out = (struct seam_loop_signal) {
			.number = (int)info.ssi_signo,
			.from_terminal = info.ssi_code == SI_KERNEL,
			.was_ignored = is_ignored((int)info.ssi_signo),
		};
	}
	return found;
}

unsigned int seam_loop_wait(struct seam_loop *loop, int timeout_ms,
			    struct seam_loop_signal *out)
{
	struct epoll_event events[64];
	int n = epoll_wait(loop->epoll, events,
			   sizeof(events) / sizeof(events[0]), timeout_ms);
	unsigned int found = 0;

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == loop->signals) {
			found |= read_signals(loop, out);
			continue;
		}
		if (ends_process(loop, fd)) {
			found |= loop->processes.n ? 0 : SEAM_LOOP_EXITS;
			continue;
		}
		if (fd == loop->link) {
			found |= SEAM_LOOP_LINK;
			continue;
		}
		found |= SEAM_LOOP_RINGS;
		/* the event has ended: epoll would report it forever */
		if (events[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
	}
	return found;
}

unsigned int seam_loop_wait_for(struct seam_loop *loop, int fd,
				int timeout_ms, struct seam_loop_signal *out)
{
	struct pollfd fds[] = {
		{ .fd = loop->signals, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	return poll(fds, 2, timeout_ms) > 0 && fds[0].revents ?
	       read_signals(loop, out) : 0;
}

/*
 * After timeout(1), or ^C pressed twice, a second signal is pending.  It must
 * not kill us before the summary is printed.
 */
static void drop_pending_signals(struct seam_loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info))
		;
}

void seam_loop_fini(struct seam_loop *loop)
{
	seam_file_close_fd(loop->epoll);
	if (loop->signals >= 0) {
		drop_pending_signals(loop);
		close(loop->signals);
	}
	for (size_t i = 0; i < loop->processes.n; i++)
		close(loop->processes.items[i]);
	free(loop->processes.items);
	sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
}
