/* SPDX-License-Identifier: MIT */
/* cpu_mask.c - masks of the size that the kernel needs; see cpu_mask.h */
#include "base/cpu_mask.h"

#include <errno.h>

enum {
	USUAL_CPUS = CPU_SETSIZE,
	MAX_CPUS = 1 << 16,
};

static int reserve(struct seam_cpu_mask *mask, size_t n_cpus)
{
	*mask = (struct seam_cpu_mask) {
		.set = CPU_ALLOC(n_cpus), .bytes = CPU_ALLOC_SIZE(n_cpus),
	};
	if (!mask->set)
		return -ENOMEM;
	CPU_ZERO_S(mask->bytes, mask->set);
	return 0;
}

int seam_cpu_mask_get(struct seam_cpu_mask *mask)
{
	int r = -EINVAL;

	/* EINVAL: the kernel has more.  Source: sched_getaffinity(2). */
	for (size_t n = USUAL_CPUS; r == -EINVAL && n <= MAX_CPUS; n *= 2) {
		r = reserve(mask, n);
		if (r == 0 && sched_getaffinity(0, mask->bytes, mask->set) < 0)
			r = -errno;
		if (r < 0)
			seam_cpu_mask_fini(mask);
	}
	return r;
}

int seam_cpu_mask_set_one(int cpu)
{
	struct seam_cpu_mask one;
	int r;

	if (cpu < 0 || cpu >= MAX_CPUS)
		return -EINVAL;
	r = reserve(&one, (size_t)cpu + 1);
	if (r < 0)
		return r;
	CPU_SET_S((size_t)cpu, one.bytes, one.set);
	if (sched_setaffinity(0, one.bytes, one.set) < 0)
		r = -errno;
	seam_cpu_mask_fini(&one);
	return r;
}

void seam_cpu_mask_fini(struct seam_cpu_mask *mask)
{
	CPU_FREE(mask->set);
	*mask = (struct seam_cpu_mask) { 0 };
}
