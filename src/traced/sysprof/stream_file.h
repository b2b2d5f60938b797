/* SPDX-License-Identifier: MIT */
/*
 * stream_file.h - the file that the Lua API writes
 *
 * The buffer is 8 MiB, as in the original: of address space, because samples
 * are written when there are 256 KiB of them, so that little is lost in a
 * crash.  The symbols at the start are written with the first samples.
 */
#ifndef SEAM_SYSPROF_STREAM_FILE_H
#define SEAM_SYSPROF_STREAM_FILE_H

#include "traced/sysprof/profiler.h"

/*
 * Fill in @opt's buffer and context, and @output, for a file at @path, which
 * is made or emptied when the profiler starts.  on_stop frees it all.  0;
 * -ENOMEM.
 */
int seam_sysprof_stream_file(const char *path, struct luam_sysprof_options *opt,
			     struct seam_sysprof_output *output);

#endif /* SEAM_SYSPROF_STREAM_FILE_H */
