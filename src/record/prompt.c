/* SPDX-License-Identifier: MIT */
/* prompt.c - a short slice, or real time; see prompt.h */
#include "record/prompt.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The shortest that the kernel grants. */
#define SLICE_NS UINT64_C(100000)

/* Twenty times the weight of others, below the most important. */
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

void seam_prompt_request(void)
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
	/* without the right to that, the slice alone */
	attr.nice = nice_now;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

void seam_prompt_move(struct seam_prompt *p, int cpu)
{
	cpu_set_t one;

	if (cpu < 0 && p->is_moved) {
		sched_setaffinity(0, sizeof(p->usual), &p->usual);
		p->is_moved = false;
	}
	if (cpu < 0 || cpu >= CPU_SETSIZE || (p->is_moved && p->cpu == cpu))
		return;
	if (!p->is_moved &&
	    sched_getaffinity(0, sizeof(p->usual), &p->usual) < 0)
		return;
	if (!CPU_ISSET((size_t)cpu, &p->usual))
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	p->is_moved = sched_setaffinity(0, sizeof(one), &one) == 0 ||
		      p->is_moved;
	p->cpu = cpu;
}

int seam_prompt_realtime(int priority, struct seam_err *err)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0)
		return 0;
	return seam_err_set(err, -errno, "no real-time priority %d: %s%s",
			    priority, strerror(errno), errno == EPERM ?
			    " (it needs CAP_SYS_NICE)" : "");
}
