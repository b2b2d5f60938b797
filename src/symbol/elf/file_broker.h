/* SPDX-License-Identifier: MIT */
/*
 * file_broker.h - opens files on behalf of a sandboxed process
 *
 * The search for files (find_elf.h) runs in the sandboxed process, because it
 * has to parse them to identify them.  There it opens them by a request to the
 * parent, which checks what it opens (symbolizer.c).
 */
#ifndef SEAM_FILE_BROKER_H
#define SEAM_FILE_BROKER_H

#include "base/base.h"
#include "base/err.h"

struct seam_file_broker {
	/* As seam_elf_open_fd() and seam_debuginfod_open(). */
	int (*open)(const char *path, struct seam_err *err);
	int (*download)(bool debug, const uint8_t *id, size_t id_size,
			struct seam_err *err);
};

/* NULL: this process opens files itself. */
extern const struct seam_file_broker *seam_file_broker;

#endif /* SEAM_FILE_BROKER_H */
