/* SPDX-License-Identifier: MIT */
/* bundle_size.c - the sum of the sizes of a bundle's files; see bundle.h */
#include "record/bundle/bundle.h"

#include <fts.h>
#include <sys/stat.h>

uint64_t seam_bundle_bytes(const struct seam_bundle *bundle)
{
	char path[64];
	char *const paths[] = { path, NULL };
	uint64_t sum = 0;
	FTSENT *e;
	FTS *tree;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", bundle->dir);
	tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while (tree && (e = fts_read(tree)))
		if (e->fts_info == FTS_F && S_ISREG(e->fts_statp->st_mode))
			sum += (uint64_t)e->fts_statp->st_size;
	if (tree)
		fts_close(tree);
	return sum;
}
