/* SPDX-License-Identifier: MIT */
/* memory.c - make memories, sealed; see memory.h */
#include "ring/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u	/* Linux 6.3, linux/memfd.h */
#endif

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
	    fcntl(fd, F_ADD_SEALS, SEAM_RING_SEALS) == 0)
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
	fd = make_file(seam_ring_shape_bytes(shape),
		       seam_ring_shape_rings_at(shape));
	if (fd < 0)
		return seam_err_set(err, fd, "cannot make memory for rings: "
				    "%s", strerror(-fd));
	r = seam_ring_memory_attach(m, fd, shape);
	if (r < 0) {
		close(fd);
		return seam_err_set(err, r, "cannot map %ju KiB of rings: %s",
				    (uintmax_t)seam_ring_shape_bytes(shape) /
				    1024, strerror(-r));
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
	int r = seam_ring_memory_adopt(m, fd, shape);

	if (r == -EBADMSG)
		return seam_err_set(err, r, "the memory holds no rings, can "
				    "still be resized, or has another size");
	return r < 0 ? seam_err_set(err, r, "cannot map rings: %s",
				    strerror(-r)) : 0;
}
