/* SPDX-License-Identifier: MIT */
/*
 * own_folder.h - the folder of a bundle that the program writes
 *
 * Not in a handler.
 */
#ifndef SEAM_FDR_OWN_FOLDER_H
#define SEAM_FDR_OWN_FOLDER_H

#include <stdbool.h>

/*
 * Open the folder @path, made if it is not there; other programs that open it
 * wait until it is closed, for a second at most.  Returns a descriptor; -EEXIST
 * where @path is no folder; or -errno.
 */
int seam_fdr_folder_open(const char *path);

/*
 * Make its folder xray, or empty what is there, if that is a bundle of calls
 * alone: nothing in it but meta.json and files that own_bundle.h has.  With
 * @may_join, one that a running process has a log in is left as it is.
 *
 * Returns 0; 1 if it was left for a log more; -EEXIST for anything else, which
 * is not touched; or -errno.
 */
int seam_fdr_folder_make(int dir, bool may_join);

/* @dir may be less than 0. */
void seam_fdr_folder_close(int dir);

#endif /* SEAM_FDR_OWN_FOLDER_H */
