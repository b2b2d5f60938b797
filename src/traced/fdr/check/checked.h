/* SPDX-License-Identifier: MIT */
/*
 * checked.h - calls that are recorded under conditions: min=, depth=, args= and
 * triggers
 *
 * The options decide about the trampolines: plain trampolines cost nothing
 * more.  A function with a trigger has checked trampolines; at a later start
 * with triggers, when sleds may have been patched before, all functions have.
 *
 * What trampolines call runs in any thread, in handlers too; the rest is set by
 * one thread before the first sled is patched.
 */
#pragma once

#include "traced/fdr/options.h"
#include "traced/fdr/record/fdr_thread.h"

/*
 * Prepare for @options, and set seam_fdr_used, while no sled is patched.  Takes
 * 1 ms where a TIME is in the options.  0 or -errno.
 */
int seam_fdr_check_init(const struct seam_fdr_options *options);

/*
 * For calls without a sled, of -finstrument-functions: whether @function is
 * checked, and the check.  @frame is the stack pointer of the function
 * (__builtin_dwarf_cfa() in its callee), and @word an Entry or Exit; the
 * arguments are not known.  Under depth= the exit of a function that has
 * allocated stack since its entry is missing.
 */
bool seam_fdr_is_checked(uint32_t function);
void seam_fdr_check_compiled(uint32_t word, uint64_t frame);

/*
 * ---- triggers: a call after which the recorder takes a snapshot ----
 *
 * The thread that hits a trigger increments n_fired and sends a record; the
 * recorder waits as --after says, copies all areas, and stores the trigger's
 * number as n_resumed.  In between a thread of a flight recorder uses at most
 * half of its area; then its calls are counted as lost.  The other half keeps
 * the calls before the trigger, however late the recorder comes.  Triggers that
 * are hit before the copy belong to the same snapshot.
 */

enum {
	/* Functions with larger ids cannot trigger. */
	SEAM_FDR_MAX_TRIGGER_FUNCTION = 1 << 22,
	/* n_resumed: no snapshot follows any more, do not freeze */
	SEAM_FDR_NO_MORE_SNAPSHOTS = -1,
};

/* @trigger, an index in the options, matches @function. */
void seam_fdr_trigger_function(unsigned int trigger, uint32_t function);

/*
 * Set the word in which the recorder counts finished triggers, in the ring of
 * functions of this process; NULL: no recorder, areas never freeze.  Called
 * again in a forked child, whose triggers are numbered from 1.
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

/*
 * ---- what most checked calls need, as one restartable sequence (put.S) ----
 *
 * The plain trampolines' sequence, with arguments, or with a decision at the
 * end of a call.  At the start of a chunk, on another CPU, and where the ticks
 * since the last record have more than 32 bits, both functions do nothing, and
 * the caller records by fdr_record.h.
 */

/* Calls that are shorter are taken back; set before a sled is patched. */
extern uint64_t seam_fdr_min_ticks;

/* Record @word with @n_arguments.  Returns the time; 0: nothing was done. */
uint64_t seam_fdr_put_call(uint32_t word, const uint64_t *arguments,
			   uint64_t n_arguments);

/* No TSC is 1. */
enum { SEAM_FDR_TAKEN_BACK = 1 };

/*
 * Record the exit @word; or where the last record is the entry of the call,
 * with @n_arguments, and younger than seam_fdr_min_ticks, take the entry back.
 * Returns the exit's time, or SEAM_FDR_TAKEN_BACK; 0: nothing was done.
 */
uint64_t seam_fdr_put_end(uint32_t word, uint32_t n_arguments);

_Static_assert(SEAM_FDR_TAKEN_BACK == 1, "put.S returns 1");

/*
 * ---- the end of a short call: neither its entry nor its exit stays ----
 *
 * The thread's last record is the entry, or all records since the entry are of
 * calls that ended in tail calls: these records go with the entry.
 *
 *	E(f)				f ends
 *	E(f) E(g) T(g)			f ends: g called an untraced function
 *	E(g) T(g) E(f)			f ends, to which g went on
 *
 * Taking back is a new cursor, before these records, with a higher count in its
 * upper bits, for a recorder that copies the area (ring/layout.h).  A call that
 * metadata or the start of a chunk divides stays in the log.
 */

/*
 * A call of @function ends: take the call back if it began less than @max_ticks
 * ago.  False: all stays as it is.  From any context.
 */
bool seam_fdr_take_back(uint32_t function, uint64_t max_ticks);
