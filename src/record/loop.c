/* SPDX-License-Identifier: MIT */
/* loop.c - epoll over rings, links, pidfds and a signalfd; CPU; see loop.h */
#include "record/loop.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/proc/procfs.h"

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

int seam_loop_add_fd(struct seam_loop *loop, int fd, struct seam_err *err)
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
		if (ending[i].even_if_ignored || !is_ignored(ending[i].number))
			sigaddset(&set, ending[i].number);
	sigprocmask(SIG_BLOCK, &set, &loop->old_mask);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0)
		return seam_err_errno(err, "cannot wait for signals");
	return seam_loop_add_fd(loop, loop->signals, err);
}

void seam_loop_take_signals(void)
{
	/* if a parent ignored it, the kernel discards the status of children */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int seam_loop_add_process(struct seam_loop *loop, int id, bool is_thread,
			  struct seam_err *err)
{
	int fd = (int)syscall(SYS_pidfd_open, id, is_thread ? PIDFD_THREAD : 0);

	if (fd < 0 && errno == EINVAL && is_thread) {
		int pid = seam_targets_process(id);

		errno = ESRCH;
		fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	}
	/* it has ended since its events were opened */
	if (fd < 0 && errno == ESRCH)
		return 0;
	if (fd < 0)
		return seam_err_errno(err, "cannot watch process %d", id);
	if (!SEAM_ARRAY_ADD(&loop->processes, fd)) {
		close(fd);
		return seam_err_no_memory(err);
	}
	return seam_loop_add_fd(loop, fd, err);
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
		size_t k;

		if (fd == loop->signals) {
			found |= read_signals(loop, out);
			continue;
		}
		if (fd == loop->link) {
			found |= SEAM_LOOP_LINK;
			continue;
		}
		for (k = 0; k < loop->processes.n; k++)
			if (loop->processes.items[k] == fd)
				break;
		if (k < loop->processes.n) {
			/* a pidfd: its process has ended */
			close(fd);
			loop->processes.items[k] =
				loop->processes.items[--loop->processes.n];
			found |= loop->processes.n ? 0 : SEAM_LOOP_EXITS;
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

void seam_loop_fini(struct seam_loop *loop)
{
	struct seam_loop_signal last;

	seam_file_close_fd(loop->epoll);
	/*
	 * After timeout(1), or ^C pressed twice, a second signal is pending.
	 * It must not kill us before the summary is printed.
	 */
	if (loop->signals >= 0)
		read_signals(loop, &last);
	seam_file_close_fd(loop->signals);
	for (size_t i = 0; i < loop->processes.n; i++)
		close(loop->processes.items[i]);
	free(loop->processes.items);
	sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
}

/* ---- where and when the recorder runs ---- */

/* The minimum of the kernel. */
#define SLICE_NS UINT64_C(100000)

/* About 28 times the weight of nice 0; the maximum is -20. */
enum { NICE = -15 };

/* Source: struct sched_attr of linux/sched/types.h, version 0. */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int set_realtime(int priority, struct seam_err *err)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
			       &param) == 0)
		return 0;
	return seam_err_set(err, -errno, "cannot set real-time priority %d: "
			    "%s%s", priority, strerror(errno), errno == EPERM ?
			    " (it needs CAP_SYS_NICE)" : "");
}

int seam_sched_request(int realtime, struct seam_err *err)
{
	struct attr attr;
	int32_t nice_now;

	if (realtime)
		return set_realtime(realtime, err);
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.policy != 0 /* SCHED_OTHER */)
		return 0;
	nice_now = attr.nice;
	attr.runtime = SLICE_NS;
	attr.nice = nice_now < NICE ? nice_now : NICE;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return 0;
	/* without the privilege: the slice alone */
	attr.nice = nice_now;
	syscall(SYS_sched_setattr, 0, &attr, 0);
	return 0;
}

void seam_sched_move(struct seam_sched *sched, int cpu)
{
	const size_t bytes = sizeof(sched->usual);
	cpu_set_t one[SEAM_ARRAY_SIZE(sched->usual)];

	if (cpu < 0 && sched->is_moved)
		sched_setaffinity(0, bytes, sched->usual);
	sched->is_moved &= cpu >= 0;
	if (cpu < 0 || (sched->is_moved && sched->cpu == cpu))
		return;
	/* the user may have changed it since the last move */
	if (!sched->is_moved && sched_getaffinity(0, bytes, sched->usual) < 0)
		return;
	if (!CPU_ISSET_S((size_t)cpu, bytes, sched->usual))
		return;
	CPU_ZERO_S(bytes, one);
	CPU_SET_S((size_t)cpu, bytes, one);
	sched->is_moved |= sched_setaffinity(0, bytes, one) == 0;
	sched->cpu = cpu;
}
