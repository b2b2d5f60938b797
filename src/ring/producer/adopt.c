/* SPDX-License-Identifier: MIT */
/*
 * adopt.c - the layout of a memory of rings, and how a program maps one
 *
 * Separate from ring_memory.c because it runs in the traced program, without
 * error texts and heap.  See ring_memory.h.
 */
#include "ring/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MAX_BYTES = 1 << 30 };		/* of data, and of an AUX buffer */

_Static_assert(sizeof(struct seam_ring_slot) == 64, "a cache line each");
_Static_assert(sizeof(struct seam_ring_control) <= SEAM_RING_PAGE, "a page");

static bool is_size(uint64_t bytes)
{
	return bytes >= SEAM_RING_PAGE && bytes <= MAX_BYTES &&
	       (bytes & (bytes - 1)) == 0;
}

bool seam_ring_geometry_is_valid(const struct seam_ring_geometry *geometry)
{
	return geometry->n_slots > 0 &&
	       geometry->n_slots <= SEAM_RING_MAX_SLOTS &&
	       (geometry->mode == SEAM_RING_FORWARD ||
		geometry->mode == (SEAM_RING_BACKWARD | SEAM_RING_OVERWRITE)) &&
	       is_size(geometry->data_bytes) &&
	       geometry->aux_free_running <= 1 &&
	       (geometry->aux_bytes == 0 || is_size(geometry->aux_bytes)) &&
	       geometry->watermark < geometry->data_bytes;
}

uint64_t seam_ring_memory_rings_at(const struct seam_ring_geometry *geometry)
{
	uint64_t slots = geometry->n_slots * sizeof(struct seam_ring_slot);

	return SEAM_RING_PAGE + ((slots + SEAM_RING_PAGE - 1) &
				 ~(uint64_t)(SEAM_RING_PAGE - 1));
}

static uint64_t ring_bytes(const struct seam_ring_geometry *geometry)
{
	return SEAM_RING_PAGE + geometry->data_bytes + geometry->aux_bytes;
}

uint64_t seam_ring_memory_bytes(const struct seam_ring_geometry *geometry)
{
	return seam_ring_memory_rings_at(geometry) +
	       geometry->n_slots * ring_bytes(geometry);
}

int seam_ring_memory_attach(struct seam_ring_memory *m, int fd,
			    const struct seam_ring_geometry *geometry)
{
	uint64_t bytes = seam_ring_memory_bytes(geometry);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);

	*m = (struct seam_ring_memory) { 0 };
	if (p == MAP_FAILED)
		return -errno;
	*m = (struct seam_ring_memory) {
		.head = p,
		.slots = (void *)((uint8_t *)p + SEAM_RING_PAGE),
		.rings = (uint8_t *)p + seam_ring_memory_rings_at(geometry),
		.geometry = *geometry,
		.ring_bytes = ring_bytes(geometry),
		.bytes = bytes,
	};
	return 0;
}

int seam_ring_memory_adopt(struct seam_ring_memory *m, int fd,
			   const struct seam_ring_geometry *geometry)
{
	struct stat st;
	int seals, r;

	*m = (struct seam_ring_memory) { 0 };
	if (!seam_ring_geometry_is_valid(geometry))
		return -EBADMSG;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEAM_RING_SEALS) != SEAM_RING_SEALS ||
	    fstat(fd, &st) ||
	    (uint64_t)st.st_size != seam_ring_memory_bytes(geometry))
		return -EBADMSG;
	r = seam_ring_memory_attach(m, fd, geometry);
	if (r < 0)
		return r;
	if (m->head->magic == SEAM_RING_MEMORY_MAGIC &&
	    m->head->version == SEAM_RING_MEMORY_VERSION)
		return 0;
	seam_ring_memory_fini(m);
	return -EBADMSG;
}

void seam_ring_memory_fini(struct seam_ring_memory *m)
{
	if (m->head)
		munmap(m->head, m->bytes);
	*m = (struct seam_ring_memory) { 0 };
}

struct seam_ring_control *seam_ring_memory_control(
		const struct seam_ring_memory *m, uint32_t slot)
{
	return (void *)(m->rings + slot * m->ring_bytes);
}
