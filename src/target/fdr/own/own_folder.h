/* SPDX-License-Identifier: MIT */
/*
 * own_folder.h - the folder of a bundle that the program writes
 *
 * Not in a handler.
 */
#ifndef SEAM_FDR_OWN_FOLDER_H
#define SEAM_FDR_OWN_FOLDER_H

/*
 * Make @path and its folder xray, or empty what is there, if that is a bundle
 * of calls alone: nothing in it but meta.json and files that own_bundle.h has.
 * Returns 0; -EEXIST for anything else, which is left as it is; or -errno.
 */
int seam_fdr_folder_make(const char *path);

#endif /* SEAM_FDR_OWN_FOLDER_H */
