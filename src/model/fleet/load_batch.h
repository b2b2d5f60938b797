/* SPDX-License-Identifier: MIT */
/*
 * load_batch.h - batches of a fleet as a recording
 *
 * Of a file (wire/fleet/batch_file.h), or of all files of a folder.  A process
 * is one of an origin, pid and name; a sample stands for those of a window, and
 * has the time at which that begins.  A profile has what batches have: no order
 * of samples in a window, no CPUs, no reasons of waits.
 *
 * Histograms of calls become an account, without edges and single calls.
 */
#pragma once

#include "model/profile/profile.h"
#include "model/xray/account.h"
#include "symbol/xray/xray_map.h"

/*
 * Add the batch file @bytes, or those of @folder, to an empty @profile.  A file
 * of a folder that is damaged is a loss; none that is whole is an error.  0 or
 * -errno.
 */
int seam_load_batch(struct seam_profile *profile, struct seam_bytes bytes,
		    struct seam_err *err);
int seam_load_batch_folder(struct seam_profile *profile, const char *folder,
			   struct seam_err *err);

/* Whether @path is a batch file, or a folder of batches. */
bool seam_load_batch_is(const char *path);

/*
 * The calls of @path, which is of that kind, as an account and the names of its
 * functions; losses are added to @profile, which is empty.  All three are to be
 * freed, also after an error.  0 or -errno.
 */
int seam_load_batch_calls(struct seam_account *account,
			  struct seam_xray_map *names,
			  struct seam_profile *profile, const char *path,
			  struct seam_err *err);
