/* SPDX-License-Identifier: MIT */
/*
 * stray_exits.h - find stray exits by looking ahead
 *
 * An exit of a function without an open call either ends a call that began
 * before the log, and then all open calls have ended too, or it is stray: an
 * exit of an open call follows.  One pass over the rest of the thread, from its
 * first such exit on, decides that for all of them.  The pass ends no call at
 * such an exit: a call with an exit of its own later was open all the time, and
 * a call without one changes no result.
 *
 * The exit of a call under the top one ends the calls above, as an exception
 * does; but it is stray where the top call's own exit comes next.  Only a few
 * records are read to decide that.
 */
#ifndef SEAM_STRAY_EXITS_H
#define SEAM_STRAY_EXITS_H

#include "model/xray/calls.h"

/*
 * For struct seam_calls with a reader.  Cost of find(): about 10 ns for each
 * record left in the stream, and 24 bytes for each exit of no open call; of
 * next(): the decoding of at most 64 records.
 */
extern const struct seam_calls_ahead seam_stray_exits;

#endif /* SEAM_STRAY_EXITS_H */
