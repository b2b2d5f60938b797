/* SPDX-License-Identifier: MIT */
/* helper.c - a queue, and a thread that is replaced if it hangs; helper.h */
#include "record/proc/helper.h"

#include "base/clock.h"
#include "record/proc/procfs.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STACK_BYTES = 512 * 1024 };

struct list {
	struct seam_helper_job *first, *last;
};

/*
 * All of it under @lock.  Abandoned threads still refer to it, so it has a
 * count of users, and the last one frees it.
 */
struct seam_helper {
	pthread_mutex_t lock;
	pthread_cond_t work;		/* a job is queued, or is_over */
	struct list queue, done;
	size_t n_queued;
	struct seam_helper_job *running;
	bool has_thread;
	bool is_over;
	bool wakes;			/* signal @fd when a job ends */
	/* of each abandoned thread that still runs */
	uid_t stuck[SEAM_HELPER_MAX_ALL_STUCK];
	unsigned int n_stuck;
	unsigned int n_users;		/* threads and the caller */
	int fd;
};

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

struct seam_helper *seam_helper_new(struct seam_err *err)
{
	struct seam_helper *helper = calloc(1, sizeof(*helper));

	if (!helper) {
		seam_err_no_memory(err);
		return NULL;
	}
	helper->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (helper->fd < 0) {
		seam_err_errno(err, "cannot create an eventfd");
		free(helper);
		return NULL;
	}
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->work, NULL);
	helper->n_users = 1;
	return helper;
}

/* With the lock, which this releases; the last user frees the helper. */
static void leave(struct seam_helper *helper)
{
	bool is_last = --helper->n_users == 0;

	pthread_mutex_unlock(&helper->lock);
	if (!is_last)
		return;
	close(helper->fd);
	pthread_mutex_destroy(&helper->lock);
	pthread_cond_destroy(&helper->work);
	free(helper);
}

/* ---- threads that hang ---- */

/* With the lock. */
static bool is_refused(const struct seam_helper *helper, uid_t user)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < helper->n_stuck; i++)
		n += helper->stuck[i] == user;
	return n >= SEAM_HELPER_MAX_STUCK ||
	       helper->n_stuck >= SEAM_HELPER_MAX_ALL_STUCK;
}

/* With the lock. */
static void add_stuck(struct seam_helper *helper, uid_t user)
{
	if (helper->n_stuck < SEAM_HELPER_MAX_ALL_STUCK)
		helper->stuck[helper->n_stuck++] = user;
}

/* With the lock: a thread of @user has come back. */
static void remove_stuck(struct seam_helper *helper, uid_t user)
{
	for (unsigned int i = 0; i < helper->n_stuck; i++) {
		if (helper->stuck[i] != user)
			continue;
		helper->stuck[i] = helper->stuck[--helper->n_stuck];
		return;
	}
}

/* ---- the thread ---- */

/* With the lock: wait for the next job; NULL: is_over. */
static struct seam_helper_job *take(struct seam_helper *helper)
{
	struct seam_helper_job *job;

	while (!helper->queue.first && !helper->is_over)
		pthread_cond_wait(&helper->work, &helper->lock);
	job = helper->is_over ? NULL : pop(&helper->queue);
	if (!job)
		return NULL;
	helper->n_queued--;
	helper->running = job;
	__atomic_store_n(&job->progress_ns, seam_clock_ns(), __ATOMIC_RELAXED);
	return job;
}

/* With the lock.  False: the job was given up; this thread must end. */
static bool put(struct seam_helper *helper, struct seam_helper_job *job)
{
	static const uint64_t one = 1;

	if (job->is_stuck) {
		remove_stuck(helper, job->user);
		job->free(job);
		return false;
	}
	helper->running = NULL;
	push(&helper->done, job);
	if (helper->wakes && write(helper->fd, &one, sizeof(one)) < 0)
		return true;	/* the counter is full: readable already */
	return true;
}

static void *serve(void *context)
{
	struct seam_helper *helper = context;
	struct seam_helper_job *job;

	pthread_mutex_lock(&helper->lock);
	while ((job = take(helper))) {
		pthread_mutex_unlock(&helper->lock);
		job->run(job);
		pthread_mutex_lock(&helper->lock);
		if (!put(helper, job))
			break;
	}
	leave(helper);
	return NULL;
}

/* With the lock.  The thread is detached and has all signals blocked. */
static int start(struct seam_helper *helper)
{
	struct sched_param normal = { 0 };
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (helper->has_thread)
		return 0;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &normal);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	helper->n_users++;
	r = pthread_create(&thread, &attr, serve, helper);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	helper->has_thread = r == 0;
	helper->n_users -= r != 0;
	return -r;
}

int seam_helper_submit(struct seam_helper *helper,
		       struct seam_helper_job *job)
{
	int r;

	pthread_mutex_lock(&helper->lock);
	r = helper->n_queued >= SEAM_HELPER_MAX_JOBS ||
	    is_refused(helper, job->user) ? -EBUSY : start(helper);
	if (r == 0) {
		push(&helper->queue, job);
		helper->n_queued++;
		pthread_cond_signal(&helper->work);
	}
	pthread_mutex_unlock(&helper->lock);
	if (r < 0)
		job->free(job);
	return r;
}

void seam_helper_progress(struct seam_helper_job *job)
{
	/* relaxed: no other data depends on it */
	__atomic_store_n(&job->progress_ns, seam_clock_ns(), __ATOMIC_RELAXED);
}

static bool is_overdue(const struct seam_helper_job *job)
{
	uint64_t limit_ns = job->limit_ns ? job->limit_ns :
			    SEAM_HELPER_LIMIT_NS;

	return seam_clock_ns() - __atomic_load_n(&job->progress_ns,
						 __ATOMIC_RELAXED) > limit_ns;
}

/* With the lock: abandon the running job and its thread. */
static void give_up_running(struct seam_helper *helper)
{
	struct seam_helper_job *job = helper->running;

	job->is_stuck = true;
	helper->running = NULL;
	helper->has_thread = false;
	add_stuck(helper, job->user);
	if (job->given_up)
		job->given_up(job->context, job->tag);
}

/* With the lock: give up the jobs that no thread will run, or @all. */
static void give_up_queue(struct seam_helper *helper, bool all)
{
	struct list queue = helper->queue;
	struct seam_helper_job *job;

	helper->queue.first = NULL;
	while ((job = pop(&queue))) {
		if (!all && !is_refused(helper, job->user)) {
			push(&helper->queue, job);
			continue;
		}
		helper->n_queued--;
		if (job->given_up)
			job->given_up(job->context, job->tag);
		job->free(job);
	}
}

bool seam_helper_collect(struct seam_helper *helper)
{
	struct seam_helper_job *job;
	struct list done;
	uint64_t count;
	bool busy;

	pthread_mutex_lock(&helper->lock);
	if (helper->running && is_overdue(helper->running)) {
		give_up_running(helper);
		give_up_queue(helper, false);
		if (helper->queue.first && start(helper) < 0)
			give_up_queue(helper, true);
	}
	done = helper->done;
	helper->done.first = NULL;
	if (helper->wakes && read(helper->fd, &count, sizeof(count)) < 0)
		count = 0;	/* no job has ended since */
	pthread_mutex_unlock(&helper->lock);
	while ((job = pop(&done))) {
		job->done(job, job->context);
		job->free(job);
	}
	pthread_mutex_lock(&helper->lock);
	busy = helper->running || helper->queue.first || helper->done.first;
	pthread_mutex_unlock(&helper->lock);
	return busy;
}

void seam_helper_abandon(struct seam_helper *helper)
{
	pthread_mutex_lock(&helper->lock);
	if (helper->running)
		give_up_running(helper);
	give_up_queue(helper, true);
	pthread_mutex_unlock(&helper->lock);
	seam_helper_collect(helper);
}

int seam_helper_fd(struct seam_helper *helper, bool wanted)
{
	pthread_mutex_lock(&helper->lock);
	helper->wakes = wanted;
	pthread_mutex_unlock(&helper->lock);
	return helper->fd;
}

void seam_helper_free(struct seam_helper *helper)
{
	struct seam_helper_job *job;

	if (!helper)
		return;
	pthread_mutex_lock(&helper->lock);
	if (helper->running)
		helper->running->is_stuck = true;
	while ((job = pop(&helper->queue)))
		job->free(job);
	while ((job = pop(&helper->done)))
		job->free(job);
	helper->is_over = true;
	pthread_cond_broadcast(&helper->work);
	leave(helper);
}
