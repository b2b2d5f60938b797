/* SPDX-License-Identifier: MIT */
/*
 * events.h - events that the program makes, and names of their types
 *
 * The trampolines of event sleds: patched sleds call them in place of the
 * symbol that the program was linked with, LLVM's runtime's or ours.
 */
#ifndef SEAM_FDR_EVENTS_H
#define SEAM_FDR_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEAM_FDR_MAX_TYPES = 1024,
};

/* events.S: code addresses.  All registers are as before. */
extern const char seam_fdr_custom_event[], seam_fdr_typed_event[];

/* What they call: in handlers, with -mgeneral-regs-only. */
void seam_fdr_record_custom(const void *data, size_t bytes);
void seam_fdr_record_typed(size_t type, const void *data, size_t bytes);

/*
 * The type of that name, which @is_new or was registered before: 1 to
 * SEAM_FDR_MAX_TYPES; 0: there are too many.  Not in a handler.
 */
uint16_t seam_fdr_type_register(const char *name, bool *is_new);

/* The name of @type; NULL: there is none. */
const char *seam_fdr_type_name(uint16_t type);

#endif /* SEAM_FDR_EVENTS_H */
