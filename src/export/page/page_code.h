/* SPDX-License-Identifier: MIT */
/*
 * page_code.h - source files and machine code of a page
 *
 * Both are bounded: the page is opened in a browser, and sent to others.
 */
#pragma once

#include "base/json.h"
#include "export/page/page.h"
#include "export/profile/parts.h"
#include "model/annotate/annotation.h"

enum {
	SEAM_PAGE_CODE_FUNCTIONS = 40,	/* with the most samples at them */
	SEAM_PAGE_CODE_INSTRUCTIONS = 100000,	/* of all */
	SEAM_PAGE_SOURCE_BYTES = 2 << 20,	/* of a file */
	SEAM_PAGE_SOURCES_BYTES = 32 << 20,	/* of all */
};

/*
 * Read the machine code of the hottest functions.  Zeroed is valid and without
 * any; seam_annotation_fini() is due in any case.  0 or -ENOMEM.
 */
int seam_page_code_read(struct seam_annotation *code,
			const struct seam_parts *parts,
			const struct seam_symbols_options *symbols,
			struct seam_err *err);

/* The member "code" of the head. */
void seam_page_code_put(const struct seam_annotation *code,
			struct seam_json *json);

/*
 * The member "sources" of the head: those of @files that @part->source finds
 * and that are texts of a programming language, by their names.  Returns how
 * many.
 */
size_t seam_page_sources_put(const struct seam_page_part *part,
			     const struct seam_strings *files,
			     struct seam_json *json);

/* Addresses of the kernel become negative: doubles are exact near 0. */
int64_t seam_page_address(uint64_t addr);
