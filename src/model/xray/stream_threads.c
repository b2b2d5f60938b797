/* SPDX-License-Identifier: MIT */
/* stream_threads.c - look up by tid and time, or add; see stream_threads.h */
#include "model/xray/stream_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Threads of one tid to look at: a hostile recording may have a million. */
enum { NEARBY = 64 };

static int by_tid(const void *a, const void *b, void *context)
{
	const struct seam_profile *profile = context;
	const struct seam_thread *x =
		&profile->threads.items[*(const uint32_t *)a];
	const struct seam_thread *y =
		&profile->threads.items[*(const uint32_t *)b];

	return SEAM_COMPARE(x->tid, y->tid) ?:
	       SEAM_COMPARE(x->start_ns, y->start_ns);
}

int seam_stream_threads_init(struct seam_stream_threads *threads,
			     struct seam_profile *profile)
{
	size_t n = profile->threads.n;

	*threads = (struct seam_stream_threads) {
		.profile = profile, .n_known = n,
		.known = malloc((n + 1) * sizeof(*threads->known)),
	};
	if (!threads->known)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		threads->known[i] = (uint32_t)i;
	qsort_r(threads->known, n, sizeof(*threads->known), by_tid, profile);
	for (size_t i = 0; i < profile->processes.n; i++) {
		int32_t pid = profile->processes.items[i].pid;

		/* 0 is the idle process, and in a log no pid at all */
		if (pid && seam_pair_map_put(&threads->processes, (uint32_t)pid,
					     false, (uint32_t)i))
			return -ENOMEM;
	}
	return 0;
}

void seam_stream_threads_fini(struct seam_stream_threads *threads)
{
	free(threads->known);
	seam_pair_map_fini(&threads->processes);
	seam_pair_map_fini(&threads->threads);
}

/* The first known thread after those of @tid that started by @ns. */
static size_t find_place(const struct seam_stream_threads *t, int32_t tid,
			 uint64_t ns)
{
	const struct seam_thread *threads = t->profile->threads.items;

	return SEAM_ARRAY_SEARCH(i, t->n_known,
		threads[t->known[i]].tid < tid ||
		(threads[t->known[i]].tid == tid &&
		 threads[t->known[i]].start_ns <= ns));
}

/* How long before the start or after the end of @thread @ns is. */
static uint64_t distance(const struct seam_thread *thread, uint64_t ns)
{
	return ns < thread->start_ns ? thread->start_ns - ns :
	       ns > thread->end_ns ? ns - thread->end_ns : 0;
}

/*
 * The known thread of these ids that existed at @ns, or the closest in time;
 * SEAM_NONE: there is none.  Pid 0: the log does not have it.
 */
static uint32_t find_known(const struct seam_stream_threads *t, int32_t pid,
			   int32_t tid, uint64_t ns)
{
	const struct seam_profile *p = t->profile;
	size_t place = find_place(t, tid, ns);
	size_t from = place > NEARBY ? place - NEARBY : 0;
	uint32_t found = SEAM_NONE;

	for (size_t i = from; i < t->n_known && i < place + NEARBY; i++) {
		const struct seam_thread *thread =
			&p->threads.items[t->known[i]];

		if (thread->tid != tid ||
		    (pid && p->processes.items[thread->process].pid != pid))
			continue;
		if (found == SEAM_NONE || distance(thread, ns) <
		    distance(&p->threads.items[found], ns))
			found = t->known[i];
	}
	return found;
}

/* The last process of these ids, added if there is none. */
static uint32_t find_process(struct seam_stream_threads *t, int32_t pid,
			     bool is_fork)
{
	struct seam_profile *profile = t->profile;
	uint32_t *known = seam_pair_map_find(&t->processes, (uint32_t)pid,
					     is_fork);
	uint32_t name, id = (uint32_t)profile->processes.n;

	if (known)
		return *known;
	name = seam_strings_put(&profile->strings, is_fork ? "forked" : "");
	if (name == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&profile->processes, (struct seam_process) {
		.pid = pid, .name = name, .end_ns = UINT64_MAX,
		.parent = SEAM_NONE }))
		return SEAM_NONE;
	return seam_pair_map_put(&t->processes, (uint32_t)pid, is_fork, id) ?
	       SEAM_NONE : id;
}

static uint32_t add_thread(struct seam_stream_threads *t,
			   const struct seam_trace_stream *stream)
{
	struct seam_profile *profile = t->profile;
	uint32_t process = find_process(t, stream->pid, stream->is_fork);
	uint32_t *known = seam_pair_map_find(&t->threads, process,
					     (uint32_t)stream->tid);
	uint32_t name, id = (uint32_t)profile->threads.n;
	char text[32];

	if (process == SEAM_NONE || known)
		return known ? *known : SEAM_NONE;
	snprintf(text, sizeof(text), "%s %" PRId32, stream->is_fork ?
		 "forked from" : "thread", stream->tid);
	name = seam_strings_put(&profile->strings, text);
	if (name == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&profile->threads, (struct seam_thread) {
		.process = process, .tid = stream->tid, .name = name,
		.end_ns = UINT64_MAX }))
		return SEAM_NONE;
	return seam_pair_map_put(&t->threads, process, (uint32_t)stream->tid,
				 id) ? SEAM_NONE : id;
}

uint32_t seam_stream_thread(struct seam_stream_threads *threads,
			    const struct seam_trace_stream *stream,
			    uint64_t ns)
{
	uint32_t known = stream->is_fork ? SEAM_NONE :
			 find_known(threads, stream->pid, stream->tid, ns);

	return known != SEAM_NONE ? known : add_thread(threads, stream);
}
