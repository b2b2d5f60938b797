/* SPDX-License-Identifier: MIT */
/* map_rings.c - map all rings of a kind in one size; see map_rings.h */
#include "record/perf/map_rings.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * With a read-only mapping the kernel ignores the tail, and overwrites.
 * Source: perf_mmap() of Linux.
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

/* The event that owns the ring has the buffer.  Source: perf_mmap(). */
static int map_aux(struct seam_sources *s, enum seam_ring_use use,
		   size_t bytes, size_t first, struct seam_err *err)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (!ring || ring->aux.size)
			continue;
		r = seam_ring_aux_map(&ring->aux, &ring->ring, ring->fd,
				      bytes, s->aux_snapshots, err);
		if (r == 0)
			ring->aux_bytes = bytes;
		if (r == -EOPNOTSUPP)
			return seam_err_add(err, r, "'%s' writes no AUX area",
					    s->events[s->list.items[i].event]
					    .name);
	}
	return r;
}

static void unmap_aux(struct seam_sources *s, enum seam_ring_use use,
		      size_t first)
{
	for (size_t i = first; i < s->list.n; i++) {
		struct seam_source_ring *ring = ring_of(s, i, use);

		if (ring)
			seam_ring_aux_fini(&ring->aux);
	}
}

/* Rings or AUX buffers that are mapped in one size. */
struct ring_kind {
	enum seam_ring_use use;
	size_t *bytes;		/* requested, then mapped */
	int (*map)(struct seam_sources *s, enum seam_ring_use use,
		   size_t bytes, size_t first, struct seam_err *err);
	void (*unmap)(struct seam_sources *s, enum seam_ring_use use,
		      size_t first);
};

static int map_largest(struct seam_sources *s, const struct ring_kind *kind,
		       size_t first, struct seam_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = *kind->bytes;
	int r;

	for (;; *kind->bytes /= 2) {
		r = kind->map(s, kind->use, *kind->bytes, first, err);
		if ((r != -EPERM && r != -ENOMEM) || *kind->bytes / 2 < page)
			break;
		kind->unmap(s, kind->use, first);
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
			return seam_err_set(err, -errno, "cannot share the "
				"ring of cpu %d: %s", ring->cpu,
				strerror(errno));
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
		{ SEAM_RING_OF_SIDEBAND, &small[0], map_rings, unmap_rings },
		{ SEAM_RING_OF_AUX, &small[1], map_rings, unmap_rings },
		{ SEAM_RING_OF_AUX, &sizes->aux, map_aux, unmap_aux },
		{ SEAM_RING_OF_SAMPLES, &sizes->samples, map_rings,
		  unmap_rings },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SEAM_ARRAY_SIZE(kinds); i++)
		r = map_largest(s, &kinds[i], first, err);
	return r == 0 ? share_rings(s, first, err) : r;
}
