/* SPDX-License-Identifier: MIT */
/* map_rings.c - map all rings of a kind in one size; see sources.h */
#include "record/perf/sources.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Rings, or their AUX buffers, that are mapped in one size. */
struct ring_kind {
	enum seam_ring_use use;
	bool is_aux;
	size_t *bytes;		/* requested, then mapped */
};

/* The ring of @kind that source @i writes to, or NULL. */
static struct seam_source_ring *ring_of(struct seam_sources *s, size_t i,
					const struct ring_kind *kind)
{
	struct seam_source_ring *ring =
		&s->rings.items[s->list.items[i].ring];

	return ring->use == kind->use ? ring : NULL;
}

static int map_ring(struct seam_source_ring *ring, int fd, size_t bytes,
		    struct seam_err *err)
{
	int r = seam_ring_map(&ring->ring, fd, bytes, ring->is_backward, err);

	if (r == 0) {
		ring->fd = fd;
		ring->size_bytes = bytes;
	}
	return r;
}

/* The event that owns the ring has the buffer.  Source: perf_mmap(). */
static int map_aux(const struct seam_sources *s, struct seam_source_ring *ring,
		   const struct seam_event *event, size_t bytes,
		   struct seam_err *err)
{
	int r = seam_ring_aux_map(&ring->aux, &ring->ring, ring->fd, bytes,
				  s->aux_snapshots, err);

	if (r == 0)
		ring->aux_bytes = bytes;
	return r == -EOPNOTSUPP ?
	       seam_err_add(err, r, "'%s' writes no AUX buffer", event->name) : r;
}

static int map_all(struct seam_sources *s, const struct ring_kind *kind,
		   size_t first, struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, kind);
		const struct seam_source *source = &s->list.items[i];

		if (!ring ||
		    (kind->is_aux ? ring->aux.size > 0 : ring->fd >= 0))
			continue;
		r = kind->is_aux ? map_aux(s, ring, &s->events[source->event],
					   *kind->bytes, err) :
		    map_ring(ring, source->fd, *kind->bytes, err);
	}
	return r;
}

static void unmap_all(struct seam_sources *s, const struct ring_kind *kind,
		      size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, kind);

		if (ring && kind->is_aux) {
			seam_ring_aux_fini(&ring->aux);
		} else if (ring) {
			seam_ring_fini(&ring->ring);
			ring->fd = -1;
		}
	}
}

static int map_largest(struct seam_sources *s, const struct ring_kind *kind,
		       size_t first, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *kind->bytes;
	int r;

	for (;; *kind->bytes /= 2) {
		r = map_all(s, kind, first, err);
		if ((r != -EPERM && r != -ENOMEM) || *kind->bytes / 2 < page)
			break;
		unmap_all(s, kind, first);
	}
	if (*kind->bytes < wanted)
		s->left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (r == -EPERM)
		return seam_err_add(err, r, "this user may not lock memory "
			"for one page a ring: see kernel.perf_event_mlock_kb "
			"and 'ulimit -l'");
	return r;
}

static int share_rings(struct seam_sources *s, size_t first,
		       struct seam_err *err)
{
	for (size_t i = first; i < s->list.n; i++) {
		int fd = s->list.items[i].fd;
		const struct seam_source_ring *ring =
			&s->rings.items[s->list.items[i].ring];

		if (fd != ring->fd &&
		    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
			return seam_err_errno(err, "cannot share the ring of "
					      "cpu %d", ring->cpu);
	}
	return 0;
}

int seam_sources_map(struct seam_sources *s, size_t first,
		     struct seam_ring_sizes *sizes, struct seam_err *err)
{
	size_t small[2] = {
		SEAM_SOURCES_SMALL_RING_BYTES, SEAM_SOURCES_SMALL_RING_BYTES,
	};
	/* the small ones first: the samples get what is left */
	const struct ring_kind kinds[] = {
		{ SEAM_RING_OF_SIDEBAND, false, &small[0] },
		{ SEAM_RING_OF_AUX, false, &small[1] },
		{ SEAM_RING_OF_AUX, true, &sizes->aux },
		{ SEAM_RING_OF_SAMPLES, false, &sizes->samples },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SEAM_ARRAY_SIZE(kinds); i++)
		r = map_largest(s, &kinds[i], first, err);
	return r == 0 ? share_rings(s, first, err) : r;
}
