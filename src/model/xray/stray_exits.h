/* SPDX-License-Identifier: MIT */
/*
 * stray_exits.h - what comes later tells which exits are stray
 *
 * An exit of a function of which no call is open is either the end of a call
 * that began before the log, and then all that is open has ended too, or it
 * means nothing.  Where any call that is open there has an exit of its own
 * still to come, the exit was stray.  One pass over the rest of the thread,
 * from its first such exit on, answers that for all of them.  It ends no call
 * at such an exit: a call that has an exit of its own later was open all the
 * time, and one that has none changes no answer.
 *
 * The exit of a call under the top one ends the calls above, as an exception
 * does; but where the top call's own exit is the next one, it was stray.  For
 * that, a few records are looked at.
 */
#ifndef SEAM_STRAY_EXITS_H
#define SEAM_STRAY_EXITS_H

#include "model/xray/calls.h"

/*
 * For struct seam_calls whose reader is one of a trace.  Cost of find(): about
 * 10 ns a record of the stream that is left, and 24 bytes for each exit of no
 * open call; of next(): the decoding of at most 64 records.
 */
extern const struct seam_calls_ahead seam_stray_exits;

#endif /* SEAM_STRAY_EXITS_H */
