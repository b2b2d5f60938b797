/* SPDX-License-Identifier: MIT */
/*
 * triggers.h - a call after which the recorder takes a snapshot
 *
 * The thread that meets a trigger counts n_fired up and sends a record; the
 * recorder waits as --after says, copies all areas, and stores the trigger's
 * number as n_resumed.  In between a thread of a flight recorder uses at most
 * half of its area; then its calls are counted as lost.  The other half has
 * what led up to the trigger, however late the recorder comes.  Triggers that
 * are met before the copy are in the same snapshot.
 */
#ifndef SEAM_FDR_TRIGGERS_H
#define SEAM_FDR_TRIGGERS_H

#include "traced/fdr/options.h"
#include "traced/fdr/record/fdr_thread.h"

#include <stdatomic.h>

enum {
	/* Functions with larger ids cannot trigger. */
	SEAM_FDR_MAX_TRIGGER_FUNCTION = 1 << 22,
	/* n_resumed: no snapshot follows any more, do not freeze */
	SEAM_FDR_NO_MORE_SNAPSHOTS = -1,
};

/*
 * Of the process, before a sled is patched.  0 or -errno.
 */
int seam_fdr_triggers_init(const struct seam_fdr_options *options,
			   uint64_t ticks_per_s);

/* @ns as ticks, at most INT64_MAX. */
uint64_t seam_fdr_ticks_of(uint64_t ns, uint64_t ticks_per_s);

/* @trigger, an index in the options, matches @function. */
void seam_fdr_trigger_function(unsigned int trigger, uint32_t function);

/*
 * Where the recorder notes how many triggers are done: in the ring of functions
 * of this process; NULL: nowhere, and nothing freezes.  To be called again in a
 * forked child, whose numbers begin anew.
 */
void seam_fdr_triggers_resume_at(const _Atomic uint32_t *n_resumed);

/* ---- in trampolines ---- */

/* By function id: bit i: trigger i.  NULL: no triggers. */
extern _Atomic uint16_t *seam_fdr_trigger_functions
	__attribute__((visibility("hidden")));

static inline unsigned int seam_fdr_triggers_of(uint32_t function)
{
	if (!seam_fdr_trigger_functions ||
	    function >= SEAM_FDR_MAX_TRIGGER_FUNCTION)
		return 0;
	/* relaxed: set before the function's sleds are patched */
	return atomic_load_explicit(&seam_fdr_trigger_functions[function],
				    memory_order_relaxed);
}

/* A call of @function, with @triggers, began at @tsc. */
void seam_fdr_triggers_enter(unsigned int triggers, uint32_t function,
			     uint64_t frame, uint64_t tsc);
void seam_fdr_triggers_leave(unsigned int triggers, uint32_t function,
			     uint64_t frame, uint64_t tsc);

#endif /* SEAM_FDR_TRIGGERS_H */
