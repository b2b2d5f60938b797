/* SPDX-License-Identifier: MIT */
/* copy_folder.h - copy the files of a bundle into another */
#ifndef SEAM_COPY_FOLDER_H
#define SEAM_COPY_FOLDER_H

#include "cli/output_folder.h"

/*
 * Copy the regular files of folder @from and of its subfolders to @to, except
 * the file @but at the top.  Links are neither followed nor copied.  0 or
 * -errno.
 */
int seam_copy_folder(const char *from, struct seam_output_folder *to,
		     const char *but, struct seam_err *err);

#endif /* SEAM_COPY_FOLDER_H */
