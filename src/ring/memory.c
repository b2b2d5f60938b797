/* SPDX-License-Identifier: MIT */
/* memory.c - layout and seals; see memory.h */
#include "ring/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u	/* Linux 6.3, linux/memfd.h */
#endif

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	MOST_BYTES = 1 << 30,		/* of data, and of an area */
};

_Static_assert(sizeof(struct seam_ring_slot) == 64, "a cache line each");
_Static_assert(sizeof(struct seam_ring_control) <= SEAM_RING_PAGE, "a page");

static bool is_size(uint64_t bytes)
{
	return bytes >= SEAM_RING_PAGE && bytes <= MOST_BYTES &&
	       (bytes & (bytes - 1)) == 0;
}

bool seam_ring_shape_is_valid(const struct seam_ring_shape *shape)
{
	return shape->n_slots > 0 && shape->n_slots <= SEAM_RING_MOST_SLOTS &&
	       shape->mode <= (SEAM_RING_BACKWARD | SEAM_RING_OVERWRITE) &&
	       is_size(shape->data_bytes) && shape->aux_free_running <= 1 &&
	       (shape->aux_bytes == 0 || is_size(shape->aux_bytes)) &&
	       shape->watermark < shape->data_bytes;
}

static uint64_t rings_at(const struct seam_ring_shape *shape)
{
	uint64_t slots = shape->n_slots * sizeof(struct seam_ring_slot);

	return SEAM_RING_PAGE + ((slots + SEAM_RING_PAGE - 1) &
				 ~(uint64_t)(SEAM_RING_PAGE - 1));
}

static uint64_t ring_bytes(const struct seam_ring_shape *shape)
{
	return SEAM_RING_PAGE + shape->data_bytes + shape->aux_bytes;
}

uint64_t seam_ring_shape_bytes(const struct seam_ring_shape *shape)
{
	return rings_at(shape) + shape->n_slots * ring_bytes(shape);
}

static int map(struct seam_ring_memory *m, int fd,
	       const struct seam_ring_shape *shape, struct seam_err *err)
{
	uint64_t bytes = seam_ring_shape_bytes(shape);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);

	if (p == MAP_FAILED)
		return seam_err_set(err, -errno,
				    "cannot map %ju KiB of rings: %s",
				    (uintmax_t)bytes / 1024, strerror(errno));
	*m = (struct seam_ring_memory) {
		.head = p,
		.slots = (void *)((uint8_t *)p + SEAM_RING_PAGE),
		.rings = (uint8_t *)p + rings_at(shape),
		.shape = *shape,
		.ring_bytes = ring_bytes(shape),
		.bytes = bytes,
	};
	return 0;
}

/* @bytes long, of which the first @present have pages. */
static int make_file(uint64_t bytes, uint64_t present)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("seam-rings", flags | MFD_NOEXEC_SEAL);
	int r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("seam-rings", flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fallocate(fd, 0, 0, (off_t)present) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int seam_ring_memory_create(struct seam_ring_memory *m,
			    const struct seam_ring_shape *shape,
			    struct seam_err *err)
{
	int fd, r;

	*m = (struct seam_ring_memory) { 0 };
	if (!seam_ring_shape_is_valid(shape))
		return seam_err_set(err, -EINVAL, "no rings of such a shape");
	fd = make_file(seam_ring_shape_bytes(shape), rings_at(shape));
	if (fd < 0)
		return seam_err_set(err, fd, "cannot make memory for rings: "
				    "%s", strerror(-fd));
	r = map(m, fd, shape, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	m->head->magic = SEAM_RING_MEMORY_MAGIC;
	m->head->version = SEAM_RING_MEMORY_VERSION;
	m->head->n_slots = shape->n_slots;
	return fd;
}

int seam_ring_memory_map(struct seam_ring_memory *m, int fd,
			 const struct seam_ring_shape *shape,
			 struct seam_err *err)
{
	struct stat st;
	int seals, r;

	*m = (struct seam_ring_memory) { 0 };
	if (!seam_ring_shape_is_valid(shape))
		return seam_err_set(err, -EBADMSG, "no rings of such a shape");
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) ||
	    (uint64_t)st.st_size != seam_ring_shape_bytes(shape))
		return seam_err_set(err, -EBADMSG,
				    "the rings' memory can still be resized, "
				    "or has another size");
	r = map(m, fd, shape, err);
	if (r < 0)
		return r;
	if (m->head->magic == SEAM_RING_MEMORY_MAGIC &&
	    m->head->version == SEAM_RING_MEMORY_VERSION)
		return 0;
	seam_ring_memory_fini(m);
	return seam_err_set(err, -EBADMSG, "the memory holds no rings");
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
