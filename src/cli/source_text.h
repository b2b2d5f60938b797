/* SPDX-License-Identifier: MIT */
/*
 * source_text.h - lines of source files, for annotate
 *
 * Names of files come from debug information and from VMs.  They are not
 * trusted: only regular files of at most 16 MiB are read, in --symfs first, and
 * a name that is a symbolic link is not followed.
 */
#ifndef SEAM_SOURCE_TEXT_H
#define SEAM_SOURCE_TEXT_H

#include "base/array.h"
#include "base/file.h"
#include "cli/command.h"

struct seam_source_file {
	char *path;
	struct seam_file file;		/* empty: not found */
	SEAM_ARRAY(uint32_t) starts;	/* of lines */
};

/* Zeroed is valid and empty. */
struct seam_source_text {
	const struct seam_option_list *symfs;	/* borrowed; NULL: none */
	SEAM_ARRAY(struct seam_source_file) files;
	char line[512];			/* the last one returned */
};

/* Line @line (from 1) of @path, cut at 511 bytes; NULL: there is none. */
const char *seam_source_text_line(void *sources, const char *path,
				  uint32_t line);

void seam_source_text_fini(struct seam_source_text *sources);

#endif /* SEAM_SOURCE_TEXT_H */
