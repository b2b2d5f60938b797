/* SPDX-License-Identifier: MIT */
/*
 * registered.h - names that the program gives: to types of events, and to
 * functions that exist by name alone (seam/fdr.h)
 *
 * They are registered by any thread, but not in a handler; and read anywhere.
 */
#ifndef SEAM_FDR_REGISTERED_H
#define SEAM_FDR_REGISTERED_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SEAM_FDR_MAX_TYPES = 1024,
	SEAM_FDR_MAX_REGISTERED = 65536,
	SEAM_FDR_MAX_NAME = 255,	/* bytes; longer ones are cut */
};

/*
 * The type of that name, which @is_new or was registered before: 1 to
 * SEAM_FDR_MAX_TYPES; 0: there are too many.
 */
uint16_t seam_fdr_type_register(const char *name, bool *is_new);

/* The name of @type; NULL: there is none. */
const char *seam_fdr_type_name(uint16_t type);

/* A new id for @name; 0: there are no more. */
uint32_t seam_fdr_function_register(const char *name);

/* Their number, and the one with index @i. */
uint32_t seam_fdr_registered_count(void);
const char *seam_fdr_registered(uint32_t i, uint32_t *id);

#endif /* SEAM_FDR_REGISTERED_H */
