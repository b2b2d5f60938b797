/* SPDX-License-Identifier: MIT */
/* own_names.h - xray/PID.yaml and xray/PID.events; see own_bundle.h */
#ifndef SEAM_FDR_OWN_NAMES_H
#define SEAM_FDR_OWN_NAMES_H

enum { SEAM_FDR_FEW_FUNCTIONS = 16384 };

/*
 * Write the functions that were seen as a YAML instrumentation map of LLVM's,
 * and the registered types of events, one a line: its number and its name as
 * a string of JSON.  No file where there is nothing.  0 or -errno.
 */
int seam_fdr_names_write_functions(const char *path);
int seam_fdr_names_write_types(const char *path);

/*
 * Write all functions with sleds, for a program that may be killed, if they
 * are few: SEAM_FDR_FEW_FUNCTIONS.
 */
int seam_fdr_names_write_few(const char *path);

#endif /* SEAM_FDR_OWN_NAMES_H */
