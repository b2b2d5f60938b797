/* SPDX-License-Identifier: MIT */
/*
 * source_threads.c - find, stop and end a thread's sources; see sources.h
 *
 * Thousands of threads may start and end during a recording, so the time of
 * these functions does not depend on the number of ended ones.
 */
#include "record/perf/sources.h"

#include "base/hash.h"

#include <sys/ioctl.h>
#include <unistd.h>

struct seam_source_thread *seam_sources_thread(const struct seam_sources *s,
					       int tid)
{
	/* ids are reused; at most one thread of an id is running */
	uint32_t i = SEAM_INDEX_FIND(&s->by_tid, seam_hash_u64((uint32_t)tid),
				     k, s->threads.items[k].tid == tid &&
				     !s->threads.items[k].has_ended);

	return i == SEAM_NONE ? NULL : &s->threads.items[i];
}

void seam_sources_stop_thread(struct seam_sources *s, int tid)
{
	const struct seam_source_thread *thread = seam_sources_thread(s, tid);

	for (size_t i = 0; thread && i < thread->n_sources; i++) {
		int fd = s->list.items[thread->first_source + i].fd;

		if (fd >= 0)
			ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

void seam_sources_end(struct seam_sources *s, size_t i)
{
	struct seam_source *source = &s->list.items[i];
	struct seam_source_ring *ring = &s->rings.items[source->ring];

	if (source->fd < 0)
		return;
	source->n_lost = seam_sources_lost(s, i);
	if (ring->fd == source->fd) {
		seam_ring_aux_fini(&ring->aux);
		seam_ring_fini(&ring->ring);
		ring->fd = -1;
	}
	close(source->fd);
	source->fd = -1;
}

/* Remove @n rings from index @first on from the mapped ones. */
static void remove_live(struct seam_sources *s, uint32_t first, uint32_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->live.n; i++)
		if (s->live.items[i] - first >= n)
			s->live.items[kept++] = s->live.items[i];
	s->live.n = kept;
}

void seam_sources_end_thread(struct seam_sources *s, int tid)
{
	struct seam_source_thread *thread = seam_sources_thread(s, tid);

	if (!thread)
		return;
	for (size_t i = 0; i < thread->n_sources; i++)
		seam_sources_end(s, thread->first_source + i);
	remove_live(s, thread->first_ring, thread->n_rings);
	thread->has_ended = true;
}
