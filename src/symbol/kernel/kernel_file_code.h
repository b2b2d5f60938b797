/* SPDX-License-Identifier: MIT */
/*
 * kernel_file_code.h - the code of a kernel out of its vmlinux file
 *
 * Places are listed where folders can be read; files are opened and parsed
 * where nothing else can be done (remote.h).
 */
#ifndef SEAM_KERNEL_FILE_CODE_H
#define SEAM_KERNEL_FILE_CODE_H

#include "symbol/symbols.h"

struct seam_kernel_file_query {
	const struct seam_kernel *kernel;	/* has build id, text_addr */
	const char *const *paths;		/* to try, in this order */
	size_t n_paths;
	uint64_t addr;				/* of the recorded kernel */
	size_t size;
};

struct seam_kernel_file_answer {
	struct seam_machine machine;
	bool is_found;			/* the file was, if not the code */
	char other[256];		/* a file of another kernel; "" */
};

/*
 * Read the code into @buf.  0; -ENOENT when no file is of that kernel, or the
 * file does not have the address; -ENODATA when it is cut.
 */
int seam_kernel_file_code(const struct seam_kernel_file_query *query,
			  uint8_t *buf, struct seam_kernel_file_answer *out,
			  struct seam_err *err);

#endif /* SEAM_KERNEL_FILE_CODE_H */
