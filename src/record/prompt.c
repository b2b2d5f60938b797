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

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.policy != 0 /* SCHED_OTHER */)
		return;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
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
