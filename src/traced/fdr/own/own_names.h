/* SPDX-License-Identifier: MIT */
/*
 * own_names.h - xray/PID.yaml and xray/PID.events; see own_bundle.h
 *
 * Not in handlers: uses malloc, and reads the symbols of all images.
 */
#ifndef SEAM_FDR_OWN_NAMES_H
#define SEAM_FDR_OWN_NAMES_H

/*
 * Write the functions that were seen (wire/xray/xray_map_write.h), and the
 * types of events that were registered (wire/xray/event_names.h).  No file
 * where there is none.  0 or -errno.
 */
int seam_fdr_names_write_functions(const char *path);
int seam_fdr_names_write_types(const char *path);

enum { SEAM_FDR_FEW_FUNCTIONS = 16384 };

/*
 * Write all functions with sleds, for a program that may be killed; nothing
 * where they are more than SEAM_FDR_FEW_FUNCTIONS.
 */
int seam_fdr_names_write_few(const char *path);

#endif /* SEAM_FDR_OWN_NAMES_H */
