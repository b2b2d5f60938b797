/* SPDX-License-Identifier: MIT */
/* registered.h - functions that exist by name alone: seam/fdr.h */
#ifndef SEAM_FDR_REGISTERED_H
#define SEAM_FDR_REGISTERED_H

#include <stdint.h>

enum {
	SEAM_FDR_MAX_REGISTERED = 65536,
	SEAM_FDR_MAX_NAME = 255,	/* bytes; longer ones are cut */
};

/* A new id for @name; 0: there are no more.  Not in a handler. */
uint32_t seam_fdr_function_register(const char *name);

/* Their number, and the one with index @i. */
uint32_t seam_fdr_registered_count(void);
const char *seam_fdr_registered(uint32_t i, uint32_t *id);

#endif /* SEAM_FDR_REGISTERED_H */
