/* SPDX-License-Identifier: MIT */
/*
 * vmlinux_code.h - the code of a kernel from its vmlinux file
 *
 * The paths are listed by a process that can read folders (kernel_code.h); the
 * files are opened and parsed in a sandbox, if there is one (symbolizer.h).
 */
#ifndef SEAM_VMLINUX_CODE_H
#define SEAM_VMLINUX_CODE_H

#include "base/err.h"
#include "symbol/elf/module.h"

struct seam_vmlinux_query {
	const struct seam_kernel *kernel;	/* has build id, text_addr */
	const char *const *paths;		/* to try, in this order */
	size_t n_paths;
	uint64_t addr;				/* of the recorded kernel */
	size_t size;
};

struct seam_vmlinux_answer {
	struct seam_machine machine;
	bool is_found;			/* of the file, perhaps not the code */
	char other[256];		/* why a file was not used; "" */
};

/* Calls seam_vmlinux_code(), in this process or in a sandbox. */
struct seam_vmlinux_reader {
	int (*read)(void *context, const struct seam_vmlinux_query *query,
		    uint8_t *buf, struct seam_vmlinux_answer *out,
		    struct seam_err *err);
	void *context;
};

/*
 * Read the code into @buf.  0; -ENOENT when no file is of that kernel, or the
 * file does not have the address; -ENODATA when it is cut.
 */
int seam_vmlinux_code(const struct seam_vmlinux_query *query, uint8_t *buf,
		      struct seam_vmlinux_answer *out, struct seam_err *err);

#endif /* SEAM_VMLINUX_CODE_H */
