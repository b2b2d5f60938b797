/* SPDX-License-Identifier: MIT */
/*
 * load_xray.h - XRay logs into a profile: their exact call tree
 *
 * A stack of a thread becomes one sample of the event "xray".  Its weight is
 * the time that the thread spent in this stack, and its count the number of
 * calls with it; both are measured, so that a report's self and total are
 * exact.  Its time is that of the first such call.  Each stream becomes a track
 * of its thread's timeline, which has every call at its time.  Repairs are
 * notes, unreadable parts are losses.
 */
#pragma once

#include "model/profile/profile.h"
#include "model/xray/trace.h"
#include "symbol/symbols.h"

/* Whether @bytes begin as an XRay log of a kind that is read. */
bool seam_load_xray_is(struct seam_bytes bytes);

/*
 * Whether @bytes, which begin as no file that is read, are an XRay log of an
 * unknown version or type; @err has the reason then.
 */
bool seam_load_xray_refuses(struct seam_bytes bytes, struct seam_err *err);

/*
 * Add to @profile what lies in the range of @trace: calls that begin in it,
 * times as far as they are in it.  @trace must stay open as long as timelines
 * of @profile are read.  @map is the instrumented program or its map as YAML;
 * NULL for the maps beside the logs (call_names.h), without which functions are
 * numbers.  @symbols reads maps and binaries, and adds files and lines where
 * @map is the program; it may be NULL where there are no maps.  0, -ENOMEM, or
 * the reason why @map cannot be read.
 */
int seam_load_xray(struct seam_profile *profile, struct seam_trace *trace,
		   const char *map, struct seam_symbols *symbols,
		   struct seam_err *err);
