/* SPDX-License-Identifier: MIT */
/*
 * call_waits.h - how much of the time of calls their thread had no CPU
 *
 * A call's time is that of the clock: its thread may have been blocked in it,
 * or preempted.  The waits of the thread (--off-cpu) divide the time, and that
 * of self as well: the rest ran.
 */
#pragma once

#include "model/profile/profile.h"
#include "model/profile/waits.h"
#include "model/xray/account.h"

/* Borrowed; threads and waits of one recording. */
struct seam_thread_waits {
	const struct seam_profile *profile;	/* its threads */
	const struct seam_waits *waits;		/* sorted; empty: not recorded */
};

/* The open calls of a thread, by their depth; zeroed is valid. */
struct seam_open_waits {
	struct seam_wait_cursor cursor;
	SEAM_ARRAY(struct seam_open_wait {
		struct seam_off_time before;	/* the call began */
		struct seam_off_time callees;	/* in calls that it made */
	}) open;
};

/* Begin stream @stream of @trace: a thread without waits has none. */
void seam_open_waits_begin(struct seam_open_waits *open,
			   const struct seam_thread_waits *waits,
			   const struct seam_trace *trace, uint32_t stream);
void seam_open_waits_fini(struct seam_open_waits *open);

/* A sink's begin(): false when memory ran out. */
bool seam_open_waits_enter(struct seam_open_waits *open,
			   const struct seam_calls *calls);

/* A sink's end(): the waits in the call, and those in its self time. */
struct seam_off_time seam_open_waits_leave(struct seam_open_waits *open,
					   const struct seam_calls *calls,
					   uint64_t end_ns,
					   struct seam_off_time *self);

/*
 * Set the waits of all rows of @account, which is of @trace and borrows @waits.
 * 0 or -ENOMEM.  Cost: a pass over all calls.
 */
int seam_account_add_waits(struct seam_account *account,
			   const struct seam_trace *trace,
			   const struct seam_thread_waits *waits);
