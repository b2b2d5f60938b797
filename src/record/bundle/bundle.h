/* SPDX-License-Identifier: MIT */
/*
 * bundle.h - the folder that a recording is, as its writer sees it
 *
 * A bundle is made anew for each recording, mode 0700, and never reused.
 * All access goes through its descriptor, which is checked to be of a folder
 * of ours; links are never followed, and files are created exclusively.  So
 * nobody who can write beside the bundle can lead us elsewhere.
 *
 * It is made as a folder .seam-PID-N in the same folder and gets its name when
 * it holds a recording, by seam_bundle_place(): until then nothing that was
 * there has changed, and whatever fails leaves the recording before it in its
 * place.
 *
 * A file is written under NAME.part and gets its name when it is whole (for
 * "data": when it opens in perf), by seam_bundle_publish().
 *
 * Only a recording is ever moved or removed: a folder of this user's that has
 * a manifest of Seam's and holds nothing that no recording holds.
 */
#ifndef SEAM_BUNDLE_H
#define SEAM_BUNDLE_H

#include "base/base.h"
#include "base/err.h"

/* A file of elf/ or jit/ has this name until it is whole. */
#define SEAM_BUNDLE_PART "kept.part"

struct seam_bundle {
	int dir;		/* of the bundle; -1: none */
	bool placed;		/* it has its name */
	bool moved;		/* there is one before it, now PATH.old */
	bool moved_old;		/* and one before that, now PATH.older */
	char path[4096];	/* as the user named it, for messages */
	char made[4096 + 32];	/* its name until it is placed */
};

/* What became of a bundle's place while it was written. */
enum seam_bundle_place {
	SEAM_BUNDLE_IN_PLACE,
	SEAM_BUNDLE_MOVED,
	SEAM_BUNDLE_REMOVED,
};

/*
 * Make the folder that will be @path.  What is there must be nothing or a
 * recording: else -EEXIST with what tells them apart, or the -errno that kept
 * us from looking.  Nothing that was there changes.
 */
int seam_bundle_create(struct seam_bundle *bundle, const char *path,
		       struct seam_err *err);

/*
 * Give it its name.  A recording of that name becomes PATH.old, and one that
 * had that name PATH.older, until seam_bundle_settle().  On an error they are
 * where they were.
 */
int seam_bundle_place(struct seam_bundle *bundle, struct seam_err *err);

/* The recording has come to something: PATH.older is removed. */
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

/*
 * Where it is now: a later recording of that name moves it aside, and anybody
 * may move or remove it.  @where gets its path, if it was moved.
 */
enum seam_bundle_place seam_bundle_find(const struct seam_bundle *bundle,
					char *where, size_t cap);

/* Remove a recording that came to nothing; those before are back then. */
void seam_bundle_remove(struct seam_bundle *bundle);

/* The files stay. */
void seam_bundle_close(struct seam_bundle *bundle);

#endif /* SEAM_BUNDLE_H */
