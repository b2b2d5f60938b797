/* SPDX-License-Identifier: MIT */
/*
 * bundle.h - the folder that a recording is, as its writer sees it
 *
 * A bundle is made anew for each recording, mode 0700, and never reused.
 * All access goes through its descriptor, which is checked to be of a folder
 * of ours; links are never followed, and files are created exclusively.  So
 * nobody who can write beside the bundle can lead us elsewhere.
 *
 * A file is written under NAME.part and gets its name when it is whole (for
 * "data": when it opens in perf), by seam_bundle_publish().
 */
#ifndef SEAM_BUNDLE_H
#define SEAM_BUNDLE_H

#include "base/base.h"
#include "base/err.h"

struct seam_bundle {
	int dir;		/* of the bundle; -1: none */
	bool moved;		/* there is one before it, now PATH.old */
	bool moved_old;		/* and one before that, now PATH.older */
	char path[4096];	/* as the user named it, for messages */
};

/*
 * Make the folder @path.  A recording of that name becomes @path.old, and one
 * that had that name @path.older, until seam_bundle_settle().  Anything else
 * that is in the way is left alone: -EEXIST.  On an error nothing has changed.
 */
int seam_bundle_create(struct seam_bundle *bundle, const char *path,
		       struct seam_err *err);

/* The recording has come to something: @path.older is removed. */
void seam_bundle_settle(struct seam_bundle *bundle);

/* Create @name.part, mode 0600.  Returns a descriptor or -errno. */
int seam_bundle_file(const struct seam_bundle *bundle, const char *name,
		     struct seam_err *err);

/* @name.part becomes @name, in one step. */
int seam_bundle_publish(const struct seam_bundle *bundle, const char *name,
			struct seam_err *err);

/* Take @name.part away again. */
void seam_bundle_drop(const struct seam_bundle *bundle, const char *name);

/* Open the folder @name inside, made if it is not there: fd or -errno. */
int seam_bundle_folder(const struct seam_bundle *bundle, const char *name,
		       struct seam_err *err);

/*
 * The sizes of the files in it added up, those of folders in it included;
 * what cannot be read counts as nothing.
 */
uint64_t seam_bundle_bytes(const struct seam_bundle *bundle);

/* False: a later recording of that name has moved this one aside. */
bool seam_bundle_has_its_name(const struct seam_bundle *bundle);

/* Remove a recording that came to nothing; those before are back then. */
void seam_bundle_remove(struct seam_bundle *bundle);

/* The files stay. */
void seam_bundle_close(struct seam_bundle *bundle);

#endif /* SEAM_BUNDLE_H */
