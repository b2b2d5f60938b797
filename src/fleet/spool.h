/* SPDX-License-Identifier: MIT */
/*
 * spool.h - a folder of files that wait to be sent, in order, of limited size
 *
 * One process writes files, another takes them, oldest first; both may be
 * killed at any moment.  A file is complete or not there.
 *
 *	N.batch		waits; N counts up, also over restarts
 *	N.gone		a note in place of a file that was dropped or refused: what
 *			was in it, as the caller has written it
 *	N.gone-M	the same, once file M has what is in the note
 *	N.part		being written
 *
 * Where a file does not fit, older ones are dropped, except the oldest: the
 * taker may have sent that one, and its outcome may be unknown.  Notes stay
 * until a later file has them: no note is lost, and none is used twice.
 *
 * Names are opened relative to the folder; links are not followed.
 *
 * Threads: one a struct.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"

enum {
	SEAM_SPOOL_MAX_FILE = 256 << 20,	/* bytes; larger ones are refused */
};

/* A file of the folder, open and locked.  Zeroed: with lock -1. */
struct seam_spool_item {
	int folder;		/* borrowed */
	int lock;		/* its descriptor; -1: none */
	uint64_t number;
	uint64_t size_bytes;
};

struct seam_spool_file {
	uint64_t number, n_bytes;
};

/* The end that writes. */
struct seam_spool {
	int folder, lock;
	uint64_t next;			/* number */
	uint64_t max_bytes, n_bytes;	/* of files, in blocks of 4 KiB */
	SEAM_ARRAY(struct seam_spool_file) files;	/* some may be sent */
	SEAM_ARRAY(uint64_t) notes;	/* that the next file will have */
};

/*
 * Open folder @path, which is made, mode 0700, with those above it.  A
 * descriptor, or -errno.
 */
int seam_spool_folder(const char *path, struct seam_err *err);

/*
 * Be the one that writes to the folder @path; what a killed one has left is
 * put in order.  -EBUSY: another process is.  0 or -errno.
 */
int seam_spool_open(struct seam_spool *spool, const char *path,
		    uint64_t max_bytes, struct seam_err *err);

/* Valid on a struct of which an open has failed. */
void seam_spool_close(struct seam_spool *spool);

/* What is in a file, as a note: bytes that the caller frees, or -errno. */
typedef int seam_spool_note(void *context, struct seam_bytes file,
			    struct seam_bytes *note);

/*
 * Call @take with each note of a file that is gone; the next
 * seam_spool_put() has them in its file.  0, or -errno of @take or of a file.
 */
int seam_spool_notes(struct seam_spool *spool,
		     int (*take)(void *context, struct seam_bytes note),
		     void *context, struct seam_err *err);

/*
 * Write @file; then drop files, of which @make_note writes notes, until there
 * is no more than may be.  0 or -errno: it was not written, and notes stay for
 * the next.
 */
int seam_spool_put(struct seam_spool *spool, struct seam_bytes file,
		   seam_spool_note *make_note, void *context,
		   struct seam_err *err);

/*
 * The oldest file of @folder.  0; -ENOENT: none waits; or -errno.  -EAGAIN:
 * another process has it.
 */
int seam_spool_take(struct seam_spool_item *item, int folder,
		    struct seam_err *err);

/* It was sent; or it never will be, and @note says what was in it. */
int seam_spool_sent(struct seam_spool_item *item, struct seam_err *err);
int seam_spool_refused(struct seam_spool_item *item, struct seam_bytes note,
		       struct seam_err *err);

/* It stays.  Valid after the two above. */
void seam_spool_release(struct seam_spool_item *item);

/* How many files wait, and their bytes; notes that wait.  0 or -errno. */
int seam_spool_count(int folder, uint64_t *n_files, uint64_t *n_bytes,
		     uint64_t *n_notes);

/*
 * Lock the file @name of @folder, which is made.  A descriptor; -EAGAIN:
 * another process has it.
 */
int seam_spool_lock(int folder, const char *name, struct seam_err *err);
