/* SPDX-License-Identifier: MIT */
/* sched.c - slice, nice value, real-time priority, CPU; see sched.h */
#include "record/sched.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The minimum of the kernel. */
#define SLICE_NS UINT64_C(100000)

/* About 28 times the weight of nice 0; the maximum is -20. */
enum { NICE = -15 };

/* Source: struct sched_attr of linux/sched/types.h, version 0. */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void seam_sched_request(void)
{
	struct attr attr;
	int32_t nice_now;

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.policy != 0 /* SCHED_OTHER */)
		return;
	nice_now = attr.nice;
	attr.runtime = SLICE_NS;
	attr.nice = nice_now < NICE ? nice_now : NICE;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return;
	/* without the privilege: the slice alone */
	attr.nice = nice_now;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void move_back(struct seam_sched *sched)
{
	if (sched->is_moved)
		sched_setaffinity(0, sizeof(sched->usual), sched->usual);
	sched->is_moved = false;
}

void seam_sched_move(struct seam_sched *sched, int cpu)
{
	const size_t bytes = sizeof(sched->usual);
	cpu_set_t one[SEAM_ARRAY_SIZE(sched->usual)];

	if (cpu < 0)
		move_back(sched);
	if (cpu < 0 || (sched->is_moved && sched->cpu == cpu))
		return;
	/* the user may have changed it since the last move */
	if (!sched->is_moved && sched_getaffinity(0, bytes, sched->usual) < 0)
		return;
	if (!CPU_ISSET_S((size_t)cpu, bytes, sched->usual))
		return;
	CPU_ZERO_S(bytes, one);
	CPU_SET_S((size_t)cpu, bytes, one);
	sched->is_moved |= sched_setaffinity(0, bytes, one) == 0;
	sched->cpu = cpu;
}

int seam_sched_realtime(int priority, struct seam_err *err)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK,
			       &param) == 0)
		return 0;
	return seam_err_set(err, -errno, "cannot set real-time priority %d: "
			    "%s%s", priority, strerror(errno), errno == EPERM ?
			    " (it needs CAP_SYS_NICE)" : "");
}
