/* SPDX-License-Identifier: MIT */
/* loop.c - epoll over perf events, a signalfd and a pidfd; see loop.h */
#include "record/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void add_unless_ignored(sigset_t *set, int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) == 0 &&
	    action.sa_handler != SIG_IGN)
		sigaddset(set, number);
}

static int add(struct seam_loop *loop, int fd, struct seam_err *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return seam_err_set(err, -errno, "epoll_ctl: %s",
				    strerror(errno));
	return 0;
}

int seam_loop_init(struct seam_loop *loop, struct seam_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		add_unless_ignored(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, &loop->old_mask);
	loop->process = -1;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0)
		return seam_err_set(err, -errno, "cannot wait for signals: %s",
				    strerror(errno));
	return add(loop, loop->signals, err);
}

void seam_loop_take_signals(void)
{
	/* left ignored, as some parents do, it keeps the status from us */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int seam_loop_add_ring(struct seam_loop *loop, int fd, struct seam_err *err)
{
	return add(loop, fd, err);
}

int seam_loop_add_process(struct seam_loop *loop, int pid,
			  struct seam_err *err)
{
	loop->process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (loop->process < 0)
		return seam_err_set(err, -errno, "cannot watch process %d: %s",
				    pid, strerror(errno));
	return add(loop, loop->process, err);
}

static unsigned int read_signals(struct seam_loop *loop,
				 struct seam_loop_signal *out)
{
	struct signalfd_siginfo info;
	unsigned int news = 0;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			news |= SEAM_LOOP_CHILD;
			continue;
		}
		news |= SEAM_LOOP_SIGNAL;
		*out = (struct seam_loop_signal) {
			.number = (int)info.ssi_signo,
			.from_terminal = info.ssi_code == SI_KERNEL,
		};
	}
	return news;
}

unsigned int seam_loop_wait(struct seam_loop *loop, int timeout_ms,
			    struct seam_loop_signal *out)
{
	struct epoll_event events[64];
	int n = epoll_wait(loop->epoll, events,
			   sizeof(events) / sizeof(events[0]), timeout_ms);
	unsigned int news = 0;

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == loop->signals) {
			news |= read_signals(loop, out);
			continue;
		}
		if (fd == loop->process)
			news |= SEAM_LOOP_GONE;
		else
			news |= SEAM_LOOP_RINGS;
		/* Told once; it would be told for ever. */
		if (fd == loop->process ||
		    events[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
	}
	return news;
}

void seam_loop_fini(struct seam_loop *loop)
{
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->signals >= 0)
		close(loop->signals);
	if (loop->process >= 0)
		close(loop->process);
	sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
}
