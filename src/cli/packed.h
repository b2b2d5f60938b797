/* SPDX-License-Identifier: MIT */
/*
 * packed.h - open a recording that 'seam pack' made: NAME.seam.zst
 *
 * The archive is unpacked into a folder of this user's below $TMPDIR
 * (/var/tmp), which is removed when the program ends, however it ends: by a
 * process that waits for that.
 *
 * An archive may be anybody's.  A process without rights reads it
 * (symbol/sandbox/sandbox.h) and sends names and bytes; this process writes
 * them to new files.  A name is NAME/FILE or NAME/FOLDER/FILE, of a regular
 * file, no part begins with a dot, and NAME is the same in all.  An archive
 * with any other entry is refused, as is one of more than SEAM_PACKED_FILES
 * files, or of bytes out of proportion to its size.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

#define SEAM_PACKED_ENDING ".seam.zst"

enum {
	SEAM_PACKED_FILES = 20000,
	SEAM_PACKED_RATIO = 200,	/* bytes unpacked of a packed one, */
	SEAM_PACKED_BYTES = 256 << 20,	/* and these */
};

/* Whether @path is called as such an archive. */
bool seam_packed_is(const char *path);

/*
 * Unpack @path: the path of the folder NAME.seam in @folder, for free().  0, or
 * -errno with the reason and nothing left behind.
 */
int seam_packed_open(const char *path, char **folder, struct seam_err *err);
