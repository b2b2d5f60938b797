/* SPDX-License-Identifier: MIT */
/*
 * xray_yaml.h - an XRay log as YAML for llvm-xray
 *
 * Records of all threads in the order of their TSC, with the TSCs of the log.
 * The header has version 1: llvm-xray writes YAML of newer versions, but does
 * not read it.
 */
#ifndef SEAM_XRAY_YAML_H
#define SEAM_XRAY_YAML_H

#include "model/xray/call_names.h"

/* As seam_trace_json(). */
int seam_xray_yaml(FILE *out, const struct seam_trace *trace,
		   const struct seam_xray_map *names,
		   struct seam_xray_problems *problems, struct seam_err *err);

#endif /* SEAM_XRAY_YAML_H */
