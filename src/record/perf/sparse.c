/* SPDX-License-Identifier: MIT */
/* sparse.c - fewer samples of a program that its sampler samples; sparse.h */
#include "record/perf/sparse.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	PART = 10,	/* of the frequency */
	/*
	 * A sample without one of the sampler adds ALONE, one with it subtracts
	 * 1; beyond MAX_ALONE the sampler has stopped.  Threads that the sampler
	 * leaves out have less than a ninth of the CPU time then.
	 */
	ALONE = 8,
	MAX_ALONE = 8 * ALONE,
};

/* Whether the events of source @i are those that the sampler supersedes. */
static bool is_replaced(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	const struct seam_event *event = &s->events[source->event];

	return source->fd >= 0 && seam_event_is_cpu_time(event) &&
	       event->attr.freq && event->attr.inherit &&
	       event->leader == SEAM_EVENT_ALONE;
}

/* Open an event like that of source @i, to the same ring. */
static int open_like(struct seam_sources *s, size_t i, bool is_later)
{
	struct seam_source source = s->list.items[i];
	const struct seam_source_ring *ring = &s->rings.items[source.ring];
	struct perf_event_attr attr = s->events[source.event].attr;

	attr.disabled = 1;
	attr.enable_on_exec = is_later;
	attr.remove_on_exec = !is_later;
	if (!is_later)
		attr.sample_freq = (attr.sample_freq + PART - 1) / PART;
	source.fd = (int)syscall(SYS_perf_event_open, &attr, source.tid,
				 ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (source.fd < 0)
		return -errno;
	if (ioctl(source.fd, PERF_EVENT_IOC_ID, &source.id) == 0 &&
	    ioctl(source.fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0 &&
	    SEAM_ARRAY_ADD(&s->list, source))
		return 0;
	close(source.fd);
	return -EIO;
}

/* The sparse sources, whose ids are then in one range; then the later ones. */
static int open_all(struct seam_sparse *sparse)
{
	struct seam_sources *s = sparse->sources;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sparse->first; i++)
		if (is_replaced(s, i))
			r = open_like(s, i, false);
	if (r < 0 || s->list.n == sparse->first)
		return -ENOENT;
	sparse->first_id = s->list.items[sparse->first].id;
	sparse->last_id = s->list.items[s->list.n - 1].id;
	for (size_t i = 0; r == 0 && i < sparse->first; i++)
		if (is_replaced(s, i))
			r = open_like(s, i, true);
	return r < 0 ? r : seam_sources_check_fds(s, NULL);
}

/* Start or stop the sources at the full rate. */
static void switch_replaced(const struct seam_sparse *sparse,
			    unsigned long request)
{
	for (size_t i = 0; i < sparse->first; i++)
		if (is_replaced(sparse->sources, i))
			ioctl(sparse->sources->list.items[i].fd, request, 0);
}

/* Close what seam_sparse_open() opened. */
static void give_up(struct seam_sparse *sparse)
{
	struct seam_sources *s = sparse->sources;

	for (size_t i = sparse->first; i < s->list.n; i++)
		seam_sources_end(s, i);
	sparse->state = SEAM_SPARSE_ENDED;
}

/*
 * Tasks that start before the sources are open do not inherit these; an exec
 * before the events are disabled makes the command sampled twice.
 */
void seam_sparse_see(struct seam_sparse *sparse,
		     const struct seam_perf_sideband *record)
{
	bool is_exec = record->type == PERF_RECORD_COMM &&
		       record->misc & PERF_RECORD_MISC_COMM_EXEC;

	if (record->type == PERF_RECORD_FORK)
		sparse->is_late |= sparse->state <= SEAM_SPARSE_OPEN;
	else if (is_exec)
		sparse->is_late |= sparse->state == SEAM_SPARSE_OPEN;
}

void seam_sparse_sample(struct seam_sparse *sparse, uint64_t id,
			bool is_superseded)
{
	if (sparse->state != SEAM_SPARSE_BEGUN || id < sparse->first_id ||
	    id > sparse->last_id)
		return;
	if (!is_superseded)
		sparse->n_alone += ALONE;
	else if (sparse->n_alone)
		sparse->n_alone--;
}

bool seam_sparse_open(struct seam_sparse *sparse)
{
	if (!sparse->sources || sparse->state != SEAM_SPARSE_NOT_YET ||
	    !sparse->sources->is_sampling)
		return false;
	sparse->first = sparse->sources->list.n;
	if (sparse->is_late || open_all(sparse) ||
	    seam_data_file_add_ids(sparse->file, sparse->sources,
				   sparse->first, NULL)) {
		give_up(sparse);
		return false;
	}
	sparse->state = SEAM_SPARSE_OPEN;
	return true;
}

void seam_sparse_begin(struct seam_sparse *sparse)
{
	struct seam_sources *s = sparse->sources;

	if (sparse->is_late) {
		give_up(sparse);
		return;
	}
	switch_replaced(sparse, PERF_EVENT_IOC_DISABLE);
	for (size_t i = sparse->first; i < s->list.n; i++)
		if (s->list.items[i].id <= sparse->last_id)
			ioctl(s->list.items[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	sparse->state = SEAM_SPARSE_BEGUN;
}

void seam_sparse_check(struct seam_sparse *sparse)
{
	if (sparse->state != SEAM_SPARSE_BEGUN || sparse->n_alone <= MAX_ALONE)
		return;
	give_up(sparse);
	switch_replaced(sparse, PERF_EVENT_IOC_ENABLE);
}
