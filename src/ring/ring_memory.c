/* SPDX-License-Identifier: MIT */
/* ring_memory.c - make sealed memories for rings; see ring_memory.h */
#include "ring/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u	/* Linux 6.3, linux/memfd.h */
#endif

/* A memfd of @bytes, of which the first @present have pages. */
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
			    const struct seam_ring_geometry *geometry,
			    struct seam_err *err)
{
	int fd, r;

	*m = (struct seam_ring_memory) { 0 };
	if (!seam_ring_geometry_is_valid(geometry))
		return seam_err_set(err, -EINVAL,
				    "invalid sizes of rings");
	fd = make_file(seam_ring_memory_bytes(geometry),
		       seam_ring_memory_rings_at(geometry));
	if (fd < 0)
		return seam_err_set(err, fd, "cannot make memory for rings: "
				    "%s", strerror(-fd));
	r = seam_ring_memory_attach(m, fd, geometry);
	if (r < 0) {
		close(fd);
		return seam_err_set(
			err, r, "cannot map %ju KiB of rings: %s",
			(uintmax_t)seam_ring_memory_bytes(geometry) / 1024,
			strerror(-r));
	}
	m->head->magic = SEAM_RING_MEMORY_MAGIC;
	m->head->version = SEAM_RING_MEMORY_VERSION;
	m->head->n_slots = geometry->n_slots;
	return fd;
}
