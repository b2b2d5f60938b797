/* SPDX-License-Identifier: MIT */
/*
 * xray_log.h - any XRay logs as one FDR log of version 5
 *
 * Each thread's records, in order, joined into at most 16 blocks: more than
 * that llvm-xray puts into a wrong order.
 */
#ifndef SEAM_XRAY_LOG_H
#define SEAM_XRAY_LOG_H

#include "model/xray/trace.h"

/*
 * Write all of @trace.  -ENOTSUP when its logs count different ticks; else
 * as seam_trace_json().
 */
int seam_xray_log(FILE *out, const struct seam_trace *trace,
		  struct seam_xray_problems *problems, struct seam_err *err);

#endif /* SEAM_XRAY_LOG_H */
