/* SPDX-License-Identifier: MIT */
/*
 * select.h - which functions are recorded
 *
 * By GLOBs of names: those of the symbol table, and for people (base/demangle):
 * without the parameters of a C++ function, or with them where the GLOB has a
 * parenthesis.
 *
 * Not in a handler: uses malloc, and reads the symbols of files.  Threads: one
 * at a time.
 */
#ifndef SEAM_FDR_SELECT_H
#define SEAM_FDR_SELECT_H

#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

/*
 * Set which functions of @list are wanted by @options, and call @on_trigger
 * with each id whose name matches a trigger; such functions are wanted too.
 * Without GLOBs no names are needed.  0; or the failure of
 * seam_fdr_names_each(): then no function is wanted.
 */
int seam_fdr_select(const struct seam_fdr_options *options,
		    const struct seam_fdr_image *image,
		    struct seam_fdr_list *list,
		    void (*on_trigger)(unsigned int trigger, uint32_t id));

/* Whether names are needed for that at all. */
bool seam_fdr_needs_names(const struct seam_fdr_options *options);

#endif /* SEAM_FDR_SELECT_H */
