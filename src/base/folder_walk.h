/* SPDX-License-Identifier: MIT */
/*
 * folder_walk.h - what is below a folder
 *
 * No symbolic link is followed.  The C library's fts_open(3) does the same, but
 * reads address 0 where there is no memory (glibc 2.36).
 */
#pragma once

#include <sys/stat.h>

/* One entry; valid while the function that visits it runs. */
struct seam_walk_entry {
	int folder;		/* that it is in: for openat() */
	const char *name;	/* there */
	const char *path;	/* below the first folder: "xray/1.xray" */
	unsigned int depth;	/* 1: in the first folder */
	struct stat st;
};

/* What a visit returns; any other value ends the walk, which returns it. */
enum { SEAM_WALK_ON = 0, SEAM_WALK_SKIP = 1 /* what is below a folder */ };

typedef int seam_walk_visit(void *context, const struct seam_walk_entry *entry);

/*
 * Visit each entry below folder @dir, a folder before what is in it; folders
 * deeper than @max_depth are visited and not entered.  What disappears
 * meanwhile is left out, as is a path longer than PATH_MAX.  Returns what a
 * visit returned that ended the walk; else the first -errno of what cannot be
 * read, after all the rest; else 0.  Uses a descriptor for each level.
 */
int seam_walk(int dir, unsigned int max_depth, seam_walk_visit *visit,
	      void *context);
