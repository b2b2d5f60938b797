/* SPDX-License-Identifier: MIT */
/*
 * module_name.h - what a mapped file is called inside "[libc.so.6+0x1234]"
 *
 * The name that an address without a symbol gets has it, and annotate finds
 * the file again by it: both ask here.
 */
#ifndef SEAM_MODULE_NAME_H
#define SEAM_MODULE_NAME_H

#include "base/base.h"

/* Bytes of the longest; of a file's name too, but paths come from files. */
enum { SEAM_MODULE_NAME_MOST = 255 };

/*
 * "/usr/lib/libc.so.6" is libc.so.6, "[vdso]" is vdso, "//anon" is anon.
 * Returns the first of @*size bytes inside @path.
 */
const char *seam_module_name(const char *path, size_t *size);

#endif /* SEAM_MODULE_NAME_H */
