/* SPDX-License-Identifier: MIT */
/*
 * bundle.h - create, replace and remove the folder of a recording
 *
 * Each recording has a new folder, mode 0700, made as .seam-PID-XXXXXX; all
 * access goes through its descriptor, no link is followed, and files are made
 * with O_EXCL, so another user who can write to the parent folder cannot
 * redirect us.  seam_bundle_place() gives it the user's name when it holds a
 * recording; until then an older recording of that name is unchanged.
 *
 * A file is written as NAME.part, and seam_bundle_publish() renames it when it
 * is complete ("data": when perf can open it).
 *
 * Only a recording is ever renamed or removed: a folder of this user's with a
 * manifest written by Seam and only files that a recording may have.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

/* Name of a file in elf/ or jit/ until it is complete. */
#define SEAM_BUNDLE_PART "kept.part"

struct seam_bundle {
	int dir;		/* of the bundle; -1: none */
	bool placed;		/* renamed to path */
	bool moved;		/* an older recording is PATH.old now */
	bool moved_old;		/* and the former PATH.old is PATH.older */
	char path[4096];	/* as the user gave it */
	char made[4096 + 32];	/* its path until then */
};

/* Where a bundle is after it was written. */
enum seam_bundle_place {
	SEAM_BUNDLE_IN_PLACE,
	SEAM_BUNDLE_MOVED,
	SEAM_BUNDLE_REMOVED,
};

/*
 * Create the folder that will be renamed to @path.  -EEXIST: @path exists and
 * is not a recording, for the reason in the message; or another -errno.  An
 * existing recording is not changed.
 */
int seam_bundle_create(struct seam_bundle *bundle, const char *path,
		       struct seam_err *err);

/*
 * Rename it to its path.  An existing recording is renamed to PATH.old, and an
 * existing PATH.old to PATH.older until seam_bundle_settle(), so that a command
 * that cannot be started costs neither.  On an error all have their former
 * names.
 */
int seam_bundle_place(struct seam_bundle *bundle, struct seam_err *err);

/* The recording is valid: remove PATH.older. */
void seam_bundle_settle(struct seam_bundle *bundle);

/* Create @name.part, mode 0600.  Returns a descriptor or -errno. */
int seam_bundle_file(const struct seam_bundle *bundle, const char *name,
		     struct seam_err *err);

/* Rename @name.part to @name. */
int seam_bundle_publish(const struct seam_bundle *bundle, const char *name,
			struct seam_err *err);

/* Remove @name.part. */
void seam_bundle_drop(const struct seam_bundle *bundle, const char *name);

/* Open, or create, the folder @name inside.  Returns a descriptor or -errno. */
int seam_bundle_folder(const struct seam_bundle *bundle, const char *name,
		       struct seam_err *err);

/*
 * Copy at most @max_bytes of @from, a file of this recorder, to a new file @name
 * in @folder, mode 0600.  0 or -errno, and then no file is left.
 */
int seam_bundle_copy(int from, int folder, const char *name,
		     uint64_t max_bytes, struct seam_err *err);

/*
 * The sum of the sizes of all files in it and in its folders; files that
 * cannot be read count as 0.
 */
uint64_t seam_bundle_bytes(const struct seam_bundle *bundle);

/*
 * Find where it is now: a later recording of the same name renames it, and a
 * user may move or remove it.  @where gets its path, if it was moved.
 */
enum seam_bundle_place seam_bundle_find(const struct seam_bundle *bundle,
					char *where, size_t cap);

/* Remove a recording that failed, and give older ones their names back. */
void seam_bundle_remove(struct seam_bundle *bundle);

/* Close its descriptor; the files stay. */
void seam_bundle_close(struct seam_bundle *bundle);
