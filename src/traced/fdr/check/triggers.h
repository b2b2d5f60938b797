/* SPDX-License-Identifier: MIT */
/*
 * triggers.h - a call after which the recorder takes a snapshot
 *
 *	thread					recorder
 *	a trigger is met
 *	  n_fired + 1
 *	  record in the thread's ring   -->	waits for so long as --after
 *	another thread begins a chunk		copies all areas
 *	  as long as it has room		n_resumed = number
 *	...			       <--
 *	a chunk begins: any
 *
 * In areas that overwrite themselves a chunk that begins is what takes old
 * records away.  So from a trigger on, until it is copied, a thread uses at
 * most half of its area; then it is frozen, and what it does is counted as
 * lost.  The other half is what led up to the trigger, however late the
 * recorder comes.  In other areas nothing freezes, and the record alone is
 * sent.
 *
 * A trigger that is met before another one is copied is in the same snapshot.
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

/* Function @function is one of @trigger, an index in the options. */
void seam_fdr_trigger_function(unsigned int trigger, uint32_t function);

/*
 * Where the recorder notes how many triggers are done, in the claim that this
 * process has for its functions; NULL: it does not, and nothing freezes.  To be
 * called again in a forked child, whose numbers begin anew.
 */
void seam_fdr_triggers_resume_at(const _Atomic uint32_t *n_resumed);

/* ---- in trampolines ---- */

/* By function id: bit i: trigger i.  NULL: there are none. */
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
