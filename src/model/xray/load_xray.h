/* SPDX-License-Identifier: MIT */
/*
 * load_xray.h - an XRay log into a profile: its exact call tree
 *
 * A stack of a thread becomes one sample of the event "xray", whose weight
 * is the time that the thread spent in it and whose count the calls that had
 * it, measured, not sampled: a report's self and total are exact.  What was
 * repaired is a note, what could not be read a loss.
 */
#ifndef SEAM_LOAD_XRAY_H
#define SEAM_LOAD_XRAY_H

#include "model/profile/profile.h"
#include "model/xray/trace.h"
#include "symbol/symbols.h"

/* Whether @bytes begin as an XRay log of a kind that is read. */
bool seam_load_xray_is(struct seam_bytes bytes);

/*
 * For bytes that begin as nothing that is read: whether they are an XRay log
 * all the same, whose version or type is not known; then @err says so.
 */
bool seam_load_xray_refuses(struct seam_bytes bytes, struct seam_err *err);

/*
 * Fill @profile with what lies in the range of @trace: calls that begin in
 * it, times as far as they are in it.  @map is the instrumented program or
 * its map as YAML; NULL for none, and functions are numbers.  @symbols, where
 * not NULL, adds files and lines.
 */
int seam_load_xray(struct seam_profile *profile,
		   const struct seam_trace *trace, const char *map,
		   struct seam_symbols *symbols, struct seam_err *err);

#endif /* SEAM_LOAD_XRAY_H */
