/* SPDX-License-Identifier: MIT */
/* own_names.h - xray/PID.yaml and xray/PID.events; see own_bundle.h */
#ifndef SEAM_FDR_OWN_NAMES_H
#define SEAM_FDR_OWN_NAMES_H

/*
 * Write the functions that have ids as a YAML instrumentation map of LLVM's,
 * and the registered types of events, one a line: its number and its name as
 * a string of JSON.  No file where there is nothing.  0 or -errno.
 */
int seam_fdr_names_write_functions(const char *path);
int seam_fdr_names_write_types(const char *path);

#endif /* SEAM_FDR_OWN_NAMES_H */
