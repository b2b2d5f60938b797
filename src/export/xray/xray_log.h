/* SPDX-License-Identifier: MIT */
/*
 * xray_log.h - any XRay logs as one FDR log of version 5
 *
 * Each thread's records, in order, in at most 16 blocks: llvm-xray reorders
 * more than that.
 */
#ifndef SEAM_XRAY_LOG_H
#define SEAM_XRAY_LOG_H

#include "model/xray/trace.h"

/*
 * Write all of @trace.  -ENOTSUP when the clocks of its logs have different
 * frequencies; else as seam_trace_json().
 */
int seam_xray_log(FILE *out, const struct seam_trace *trace,
		  struct seam_xray_problems *problems, struct seam_err *err);

#endif /* SEAM_XRAY_LOG_H */
