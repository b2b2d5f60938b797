/* SPDX-License-Identifier: MIT */
/*
 * cpu_mask.h - the CPUs that a thread may run on, however many there are
 *
 * cpu_set_t has 1024 bits; a kernel for more CPUs refuses to fill it.
 */
#ifndef SEAM_CPU_MASK_H
#define SEAM_CPU_MASK_H

#include "base/base.h"

#include <sched.h>

/* Zeroed is valid and empty. */
struct seam_cpu_mask {
	cpu_set_t *set;
	size_t bytes;		/* of @set, for CPU_*_S() */
};

/* The affinity mask of the calling thread.  0 or -errno. */
int seam_cpu_mask_get(struct seam_cpu_mask *mask);

/* Pin the calling thread to @cpu.  0 or -errno. */
int seam_cpu_mask_set_one(int cpu);

void seam_cpu_mask_fini(struct seam_cpu_mask *mask);

#endif /* SEAM_CPU_MASK_H */
