/* SPDX-License-Identifier: MIT */
/* map_rings.c - all of a kind, smaller where need be; see map_rings.h */
#include "record/perf/map_rings.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * A mapping that cannot be written is what makes the kernel overwrite: no
 * reader can keep it from that.  Source: perf_mmap() of Linux.
 */
static int map_backward(struct seam_ring *ring, int fd, size_t bytes,
			struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + bytes, PROT_READ, MAP_SHARED, fd, 0);

	*ring = (struct seam_ring) { 0 };
	if (p == MAP_FAILED)
		return seam_err_set(err, -errno, "cannot map a ring of %zu "
				    "KiB: %s", bytes / 1024, strerror(errno));
	*ring = (struct seam_ring) {
		.control = p, .data = (const uint8_t *)p + page,
		.size = bytes, .mapped_bytes = page + bytes,
	};
	return 0;
}

/* The ring of @use that source @i writes to, or NULL. */
static struct seam_source_ring *ring_of(struct seam_sources *s, size_t i,
					enum seam_ring_use use)
{
	struct seam_source_ring *ring =
		&s->rings.items[s->list.items[i].ring];

	return ring->use == use ? ring : NULL;
}

static int map_ring(struct seam_source_ring *ring, int fd, size_t bytes,
		    struct seam_err *err)
{
	int r = ring->is_backward ?
		map_backward(&ring->ring, fd, bytes, err) :
		seam_ring_map(&ring->ring, fd, bytes, err);

	if (r == 0) {
		ring->fd = fd;
		ring->size_bytes = bytes;
	}
	return r;
}

static int map_rings(struct seam_sources *s, enum seam_ring_use use,
		     size_t bytes, size_t first, struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (ring && ring->fd < 0)
			r = map_ring(ring, s->list.items[i].fd, bytes, err);
	}
	return r;
}

static void unmap_rings(struct seam_sources *s, enum seam_ring_use use,
			size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (!ring)
			continue;
		seam_ring_fini(&ring->ring);
		ring->fd = -1;
	}
}

/* An area is that of the event that owns its ring.  Source: perf_mmap(). */
static int map_areas(struct seam_sources *s, enum seam_ring_use use,
		     size_t bytes, size_t first, struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (!ring || ring->aux.size)
			continue;
		r = seam_ring_aux_map(&ring->aux, &ring->ring, ring->fd,
				      bytes, s->free_running, err);
		if (r == 0)
			ring->area_bytes = bytes;
		if (r == -EOPNOTSUPP)
			return seam_err_add(err, r, "'%s' writes no AUX area",
					    s->events[s->list.items[i].event]
					    .name);
	}
	return r;
}

static void unmap_areas(struct seam_sources *s, enum seam_ring_use use,
			size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (ring)
			seam_ring_aux_fini(&ring->aux);
	}
}

/* What is mapped together, all in one size. */
struct ring_kind {
	enum seam_ring_use use;
	int (*map)(struct seam_sources *s, enum seam_ring_use use,
		   size_t bytes, size_t first, struct seam_err *err);
	void (*unmap)(struct seam_sources *s, enum seam_ring_use use,
		      size_t first);
};

static int map_what_fits(struct seam_sources *s, struct ring_kind kind,
			 size_t *bytes, size_t first, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *bytes;
	int r;

	for (;; *bytes /= 2) {
		r = kind.map(s, kind.use, *bytes, first, err);
		if ((r != -EPERM && r != -ENOMEM) || *bytes / 2 < page)
			break;
		kind.unmap(s, kind.use, first);
	}
	if (*bytes < wanted)
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
			return seam_err_set(err, -errno, "cannot share the "
				"ring of cpu %d: %s", ring->cpu,
				strerror(errno));
	}
	return 0;
}

int seam_sources_map(struct seam_sources *s, size_t first,
		     struct seam_ring_sizes *sizes, struct seam_err *err)
{
	const struct ring_kind rings[] = {
		{ SEAM_RING_OF_SIDEBAND, map_rings, unmap_rings },
		{ SEAM_RING_OF_AREA, map_rings, unmap_rings },
		{ SEAM_RING_OF_SAMPLES, map_rings, unmap_rings },
	};
	const struct ring_kind areas = {
		SEAM_RING_OF_AREA, map_areas, unmap_areas,
	};
	size_t side_bytes[] = {
		SEAM_SOURCES_SIDE_BYTES, SEAM_SOURCES_SIDE_BYTES,
	};
	int r = map_what_fits(s, rings[0], &side_bytes[0], first, err);

	if (r == 0)
		r = map_what_fits(s, rings[1], &side_bytes[1], first, err);
	if (r == 0)
		r = map_what_fits(s, areas, &sizes->area, first, err);
	if (r == 0)
		r = map_what_fits(s, rings[2], &sizes->samples, first, err);
	return r == 0 ? share_rings(s, first, err) : r;
}
