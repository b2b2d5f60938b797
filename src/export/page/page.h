/* SPDX-License-Identifier: MIT */
/*
 * page.h - a recording as one HTML page, to be looked at in a browser
 *
 * The page is viewer/page.html, with a payload for each recording
 * (payload.h).  It needs no network and no other file.
 */
#pragma once

#include "base/file.h"
#include "export/exporter.h"
#include "model/profile/waits.h"
#include "wire/manifest.h"

/* Of a recording, what is not in its selected profile. */
struct seam_page_part {
	const struct seam_selected *selected;
	const char *file;		/* its name */
	const struct seam_manifest *manifest;	/* zeroed: none */
	/* When its threads waited, for calls (seam_load_waits()); or NULL. */
	const struct seam_profile *wait_threads;
	const struct seam_waits *waits;		/* sorted; empty: not known */
	/* of machine code; NULL: it is left out */
	const struct seam_symbols_options *symbols;
	/* Read a source file.  0 or -errno; NULL: sources are left out. */
	int (*source)(void *context, const char *path, struct seam_file *file);
	void *context;
};

enum {
	SEAM_PAGE_PARTS = 2,
	SEAM_PAGE_ROWS = 2000000,	/* of samples, and of calls */
};

struct seam_page {
	struct seam_page_part parts[SEAM_PAGE_PARTS];
	size_t n_parts;		/* two are compared */
	uint64_t max_rows;	/* of samples, and of calls */
};

/*
 * seam_write_page() (exporter.h) writes export->picture, a struct seam_page;
 * where that is NULL, one of export->selected alone.  It calls export->say
 * about what was added up or left out.  -EFBIG: too many distinct stacks;
 * others as seam_parts_init().
 *
 * Cost: about 1 us a sample and 0.3 us a call; memory: at most 200 MB beside
 * the profile.
 */
