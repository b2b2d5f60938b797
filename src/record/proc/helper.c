/* SPDX-License-Identifier: MIT */
/*
 * helper.c - jobs go to a process and back through two pipes; see helper.h
 *
 * Pipes of pointers need no lock, which a caller that is killed would not
 * release.  Only the caller's thread changes the helper and its lists.  A
 * pointer is in one pipe at most; the state of a job says what comes next:
 *
 *	TO_RUN	 -> RUNNING	by the process
 *	RUNNING	 -> DONE	by the process, which sends it back
 *	TO_RUN	 -> TO_FREE	by the caller, who gives it up
 *	TO_RUN	 -> WITHHELD	the same; the process sends it back
 *	RUNNING	 -> TO_FREE	by the caller, who gives it up with its process
 *	DONE	 -> TO_FREE	by the caller, after done(), who sends it again
 *	WITHHELD -> TO_FREE	by the caller, when files of its user answer
 */
#include "record/proc/helper.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	STACK_BYTES = 512 * 1024,	/* of the process */
	LENDER_BYTES = STACK_BYTES + 64 * 1024,
};

/* ---- jobs and processes ---- */

enum job_state { TO_RUN, RUNNING, DONE, WITHHELD, TO_FREE };

struct list {
	struct seam_helper_job *first, *last;
};

/* The process writes, the caller reads, but for is_left. */
struct seam_helper_process {
	struct seam_helper *helper;
	pthread_t lender;
	struct seam_helper_job *job;	/* that it is at */
	uint64_t progress_ns;		/* 0: it waits for a job */
	uint64_t limit_ns;
	uid_t user;
	int pidfd;			/* -1: not opened yet */
	bool is_left;			/* the caller: it shall end */
	bool has_ended;
};

struct seam_helper {
	int jobs[2], done[2];		/* pipes of pointers */
	struct list sent;		/* not collected yet, in order */
	size_t n_sent;
	struct list unsent;		/* to be freed: the pipe was full, or */
					/* files of their user hang */
	struct seam_helper_process *process;	/* NULL: none yet */
	struct seam_helper_process *left[SEAM_HELPER_MAX_ALL_STUCK];
	unsigned int n_left;
	/*
	 * Atomic; the caller writes: descriptors stay open, and processes end
	 * after this one, so that its exit does not close them.
	 */
	bool outlives;
};

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)

uid_t seam_helper_user_of(int32_t pid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", pid);
	/* real, effective, saved, of the file system */
	seam_procfs_value(path, "Uid", text, sizeof(text));
	return text[0] < '0' || text[0] > '9' ? SEAM_HELPER_NO_USER :
	       (uid_t)strtoul(text, NULL, 10);
}

static void push(struct list *list, struct seam_helper_job *job)
{
	job->next = NULL;
	if (list->first)
		list->last->next = job;
	else
		list->first = job;
	list->last = job;
}

static struct seam_helper_job *pop(struct list *list)
{
	struct seam_helper_job *job = list->first;

	if (job)
		list->first = job->next;
	return job;
}

/* False: the other side was first. */
static bool changes(struct seam_helper_job *job, int from, int to)
{
	return __atomic_compare_exchange_n(&job->state, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void free_helper(struct seam_helper *helper)
{
	for (int i = 0; i < 2; i++) {
		seam_file_close_fd(helper->jobs[i]);
		seam_file_close_fd(helper->done[i]);
	}
	free(helper);
}

struct seam_helper *seam_helper_new(struct seam_err *err)
{
	struct seam_helper *helper = calloc(1, sizeof(*helper));

	if (!helper) {
		seam_err_no_memory(err);
		return NULL;
	}
	helper->jobs[0] = helper->jobs[1] = -1;
	helper->done[0] = helper->done[1] = -1;
	if (pipe2(helper->jobs, O_CLOEXEC | O_NONBLOCK) == 0 &&
	    pipe2(helper->done, O_CLOEXEC | O_NONBLOCK) == 0)
		return helper;
	seam_err_errno(err, "cannot create a pipe");
	free_helper(helper);
	return NULL;
}

/* ---- a process apart ---- */

static int owner_fd = -1;	/* written once, before the first start */

int seam_helper_owner_fd(void)
{
	return owner_fd;
}

static void close_standard(void)
{
	fflush(NULL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
}

/*
 * This process leaves one behind, which holds its descriptors: at the exit,
 * close standard input, output and error, whose readers wait for their end.
 */
static void leave_behind(void)
{
	static bool is_registered;

	is_registered = is_registered || atexit(close_standard) == 0;
}

static int serve(void *context);

/* Where no process can be made, the thread does the work itself. */
static void *lend(void *context)
{
	_Alignas(16) char stack[STACK_BYTES];
	pid_t pid = clone(serve, stack + sizeof(stack),
			  CLONE_VM | CLONE_FILES | CLONE_FS, context);

	if (pid < 0)
		serve(context);
	while (pid >= 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		continue;
	return NULL;
}

/*
 * Start the process @p with all signals blocked and not real-time.  Its thread
 * ends when it has, and is to be joined or detached.  0 or -errno.
 */
static int start_apart(struct seam_helper_process *p)
{
	struct sched_param normal = { 0 };
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	if (owner_fd < 0)
		owner_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (owner_fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	pthread_attr_setstacksize(&attr, LENDER_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&p->lender, &attr, lend, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* ---- the process ---- */

/* False: the recorder has ended. */
static bool wait_for(int fd, short events)
{
	struct pollfd fds[] = {
		{ .fd = seam_helper_owner_fd(), .events = POLLIN },
		{ .fd = fd, .events = events },
	};

	while (poll(fds, 2, -1) < 0)
		continue;
	return fds[0].revents == 0;
}

static bool take_pointer(int fd, struct seam_helper_job **job)
{
	return read(fd, job, sizeof(*job)) == sizeof(*job);
}

static bool put_pointer(int fd, struct seam_helper_job *job)
{
	return write(fd, &job, sizeof(job)) == sizeof(job);
}

static void send_back(struct seam_helper_process *p,
		      struct seam_helper_job *job)
{
	int fd = p->helper->done[1];

	while (!put_pointer(fd, job) && wait_for(fd, POLLOUT))
		continue;
}

static void run_or_free(struct seam_helper_process *p,
			struct seam_helper_job *job)
{
	p->user = job->user;
	p->limit_ns = job->limit_ns ? job->limit_ns : SEAM_HELPER_LIMIT_NS;
	STORE(p->job, job);
	STORE(p->progress_ns, seam_clock_ns());
	if (changes(job, TO_RUN, RUNNING)) {
		job->process = p;
		job->run(job);
		if (changes(job, RUNNING, DONE))
			send_back(p, job);
		else
			job->free(job);
	} else if (LOAD(job->state) == WITHHELD) {
		send_back(p, job);
	} else {
		job->free(job);
	}
	STORE(p->progress_ns, 0);
}

static int serve(void *context)
{
	struct seam_helper_process *p = context;
	struct seam_helper *helper = p->helper;
	struct seam_helper_job *job;

	STORE(p->pidfd, (int)syscall(SYS_pidfd_open, getpid(), 0));
	while (!LOAD(p->is_left) && wait_for(helper->jobs[0], POLLIN)) {
		if (!take_pointer(helper->jobs[0], &job))
			continue;	/* another process has it */
		if (!job)
			break;
		run_or_free(p, job);
	}
	while (LOAD(helper->outlives) && wait_for(-1, 0))
		continue;
	STORE(p->has_ended, true);
	return 0;
}

/* ---- the caller: processes ---- */

static int start(struct seam_helper *helper)
{
	struct seam_helper_process *p;
	int r;

	if (helper->process)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->helper = helper;
	p->pidfd = -1;
	r = start_apart(p);
	if (r == 0)
		helper->process = p;
	else
		free(p);
	return r;
}

static void free_process(struct seam_helper_process *p)
{
	seam_file_close_fd(p->pidfd);
	free(p);
}

/* The abandoned processes that still hang, of @user; *@n_all: of all users. */
static unsigned int count_left(struct seam_helper *helper, uid_t user)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < helper->n_left;) {
		struct seam_helper_process *p = helper->left[i];

		if (LOAD(p->has_ended)) {
			helper->left[i] = helper->left[--helper->n_left];
			free_process(p);
			continue;
		}
		n += p->user == user;
		i++;
	}
	return n;
}

static bool is_refused(struct seam_helper *helper, uid_t user)
{
	return count_left(helper, user) >= SEAM_HELPER_MAX_STUCK ||
	       helper->n_left >= SEAM_HELPER_MAX_ALL_STUCK;
}

/* The process frees @job; later, if files of its user hang now. */
static void send_to_free(struct seam_helper *helper,
			 struct seam_helper_job *job)
{
	STORE(job->state, TO_FREE);
	if (is_refused(helper, job->user) || start(helper) < 0 ||
	    !put_pointer(helper->jobs[1], job))
		push(&helper->unsent, job);
}

static void free_unsent(struct seam_helper *helper)
{
	struct list unsent = helper->unsent;
	struct seam_helper_job *job;

	helper->unsent.first = NULL;
	while ((job = pop(&unsent)))
		send_to_free(helper, job);
}

/* ---- jobs ---- */

int seam_helper_submit(struct seam_helper *helper, struct seam_helper_job *job)
{
	int r = helper->n_sent >= SEAM_HELPER_MAX_JOBS ||
		is_refused(helper, job->user) ? -EBUSY : start(helper);

	job->state = TO_RUN;
	if (r == 0 && !put_pointer(helper->jobs[1], job))
		r = -EBUSY;
	if (r < 0) {
		send_to_free(helper, job);
		return r;
	}
	push(&helper->sent, job);
	helper->n_sent++;
	return 0;
}

void seam_helper_progress(struct seam_helper_job *job)
{
	if (job->process)
		STORE(job->process->progress_ns, seam_clock_ns());
}

void seam_helper_set_user(struct seam_helper_job *job, uid_t user)
{
	if (job->process)
		job->process->user = user;
	seam_helper_progress(job);
}

/* Take @job from the list of those that were sent. */
static void forget(struct seam_helper *helper, struct seam_helper_job *job)
{
	struct list sent = helper->sent;
	struct seam_helper_job *other;

	/* nearly always it is the first */
	helper->sent.first = NULL;
	while ((other = pop(&sent)) && other != job)
		push(&helper->sent, other);
	while ((other = pop(&sent)))
		push(&helper->sent, other);
	helper->n_sent--;
}

/* Take back what has ended, and call done() unless this @is_last. */
static void take_back(struct seam_helper *helper, bool is_last)
{
	struct seam_helper_job *job;

	while (take_pointer(helper->done[0], &job)) {
		if (LOAD(job->state) == DONE) {
			forget(helper, job);
			if (!is_last)
				job->done(job, job->context);
		}
		send_to_free(helper, job);
	}
}

/* ---- giving up ---- */

static bool give_up_one(struct seam_helper *helper, struct seam_helper_job *job)
{
	void (*given_up)(void *context, uint64_t tag) = job->given_up;
	void *context = job->context;
	uint64_t tag = job->tag;

	if (!changes(job, TO_RUN, is_refused(helper, job->user) ? WITHHELD :
		     TO_FREE) && !changes(job, RUNNING, TO_FREE))
		return false;		/* DONE */
	if (given_up)
		given_up(context, tag);
	return true;
}

/* Give up @only, all jobs of users that are refused, or @all. */
static void give_up(struct seam_helper *helper,
		    const struct seam_helper_job *only, bool all)
{
	struct list sent = helper->sent;
	struct seam_helper_job *job;

	helper->sent.first = NULL;
	while ((job = pop(&sent))) {
		bool is_over = all || job == only ||
			       (LOAD(job->state) == TO_RUN &&
				is_refused(helper, job->user));

		if (is_over && give_up_one(helper, job))
			helper->n_sent--;
		else
			push(&helper->sent, job);
	}
}

/* Abandon the process, and the job that it is at. */
static void abandon_process(struct seam_helper *helper)
{
	struct seam_helper_process *p = helper->process;

	pthread_detach(p->lender);
	STORE(p->is_left, true);
	helper->process = NULL;
	if (helper->n_left < SEAM_HELPER_MAX_ALL_STUCK)
		helper->left[helper->n_left++] = p;
	give_up(helper, LOAD(p->job), false);
	/* it frees what was given up, and runs what is left */
	if (start(helper) < 0)
		give_up(helper, NULL, true);
}

bool seam_helper_collect(struct seam_helper *helper)
{
	const struct seam_helper_process *p;
	uint64_t progress_ns;

	take_back(helper, false);
	p = helper->process;
	progress_ns = p ? LOAD(p->progress_ns) : 0;
	if (progress_ns && seam_clock_ns() - progress_ns > p->limit_ns)
		abandon_process(helper);
	free_unsent(helper);
	return helper->sent.first;
}

void seam_helper_abandon(struct seam_helper *helper)
{
	take_back(helper, false);
	if (helper->process && LOAD(helper->process->progress_ns))
		abandon_process(helper);
	give_up(helper, NULL, true);
	take_back(helper, false);
}

int seam_helper_fd(const struct seam_helper *helper)
{
	return helper->done[0];
}

/* ---- descriptors ---- */

struct close_job {
	struct seam_helper_job job;
	int fd;
};

static void close_and_free(struct seam_helper_job *job)
{
	close(((struct close_job *)job)->fd);
	free(job);
}

void seam_helper_close(struct seam_helper *helper, uid_t user, int fd)
{
	struct close_job *j = fd < 0 || !helper ? NULL : calloc(1, sizeof(*j));

	if (fd >= 0 && !helper)
		close(fd);
	if (!j)
		return;
	j->fd = fd;
	j->job.free = close_and_free;
	j->job.user = user;
	send_to_free(helper, &j->job);
}

/* ---- the end ---- */

/* Give up all jobs.  False: the process may still send one back. */
static bool drop_jobs(struct seam_helper *helper, uint64_t end_ns)
{
	struct pollfd done = { .fd = helper->done[0], .events = POLLIN };

	for (struct seam_helper_job *j = helper->sent.first; j; j = j->next)
		j->given_up = NULL;
	give_up(helper, NULL, true);
	take_back(helper, true);
	while (helper->sent.first && seam_clock_ns() < end_ns) {
		poll(&done, 1, 1);
		take_back(helper, true);
	}
	free_unsent(helper);
	return !helper->sent.first && !helper->unsent.first;
}

/* Whether it has come to its end. */
static bool join(const struct seam_helper_process *p)
{
	uint64_t end_ns = seam_clock_ns() + SEAM_HELPER_LIMIT_NS;
	struct timespec until = {
		.tv_sec = (time_t)(end_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(end_ns % SEAM_NS_PER_S),
	};

	return pthread_clockjoin_np(p->lender, NULL, CLOCK_MONOTONIC,
				    &until) == 0;
}

void seam_helper_free(struct seam_helper *helper)
{
	struct seam_helper_process *p;
	bool is_empty;

	if (!helper)
		return;
	is_empty = drop_jobs(helper, seam_clock_ns() + SEAM_HELPER_LIMIT_NS);
	p = helper->process;
	STORE(helper->outlives, !is_empty ||
	      (count_left(helper, 0), helper->n_left));
	if (p && put_pointer(helper->jobs[1], NULL) && !helper->outlives &&
	    join(p)) {
		free_process(p);
		p = NULL;
	}
	if (p || helper->outlives) {
		/* processes still use it, and hold descriptors */
		STORE(helper->outlives, true);
		/* those that a signal can end; @p holds the descriptors */
		for (unsigned int i = 0; p && i < helper->n_left; i++)
			syscall(SYS_pidfd_send_signal,
				LOAD(helper->left[i]->pidfd), SIGKILL, NULL, 0);
		leave_behind();
		return;
	}
	free_helper(helper);
}
