/* SPDX-License-Identifier: MIT */
/*
 * events.h - events that the program makes
 *
 * The trampolines of event sleds: patched sleds call them in place of the
 * symbol that the program was linked with, LLVM's runtime's or ours.
 */
#ifndef SEAM_FDR_EVENTS_H
#define SEAM_FDR_EVENTS_H

#include <stddef.h>
#include <stdint.h>

/* events.S: code addresses.  All registers are as before. */
extern const char seam_fdr_custom_event[], seam_fdr_typed_event[];

/* What they call: in handlers, with -mgeneral-regs-only. */
void seam_fdr_record_custom(const void *data, size_t bytes);
void seam_fdr_record_typed(size_t type, const void *data, size_t bytes);

#endif /* SEAM_FDR_EVENTS_H */
