/* SPDX-License-Identifier: MIT */
/*
 * images.h - the functions with sleds of all images that are loaded
 *
 *	seam_fdr_images_with(&images, work, context);
 *		work() runs while the loader can load and unload nothing; before
 *		it, the list is brought up to date
 *
 * An id, once given, is that function's for good: an image that is unloaded
 * stays in the list, and when the same file is loaded again it has its ids
 * back.  The executable's XRay functions come first, from 1 on, so a map of the
 * file has the same numbers; then come the functions of other images as they
 * are loaded, and after an image's XRay functions the functions of its other
 * lists.
 *
 * Where a list is, is in the section table of the file; strip leaves it there.
 * An image whose file cannot be opened, is another one by now, or has no
 * section table, has no functions here: see n_unknown.
 *
 * Not in a handler.  Threads: one at a time, and no fork meanwhile.
 */
#pragma once

#include "traced/elf/image_file.h"
#include "traced/fdr/sleds/ids.h"
#include "traced/fdr/sleds/patch.h"
#include "unwind/in_process/loaded_images.h"
#include "wire/xray/xray_functions.h"

struct seam_fdr_list {
	enum seam_fdr_list_kind kind;
	uint32_t number;		/* as it is announced; from 1 */
	struct seam_fdr_functions functions;
	bool is_selected;
	/* to the recorder: the image itself, then so many functions */
	size_t n_announced;
};

struct seam_fdr_image {
	char *file;			/* the path to open */
	char *path;			/* as it is announced; NULL: no calls */
	uint64_t bias;
	uint8_t build_id[SEAM_XRAY_BUILD_ID_BYTES];
	uint8_t build_id_bytes;
	ElfW(Phdr) *headers;		/* a copy */
	size_t n_headers;
	struct seam_fdr_code code;
	struct seam_fdr_list lists[SEAM_FDR_N_LISTS];
	size_t n_lists;			/* lists that have functions */
	bool is_loaded, is_seen;
	bool records_itself;		/* it calls seam/fdr.h and the like */
	/* of -finstrument-functions: names were read; as it is announced */
	bool has_read_names, is_announced;
	uint32_t number;		/* in announcements; 0: none yet */
	bool is_noted;			/* what was refused was reported */
};

/* Whether no exit of the list's functions is recorded. */
static inline bool
seam_fdr_list_has_entries_only(const struct seam_fdr_list *list)
{
	return list->kind != SEAM_FDR_LIST_XRAY;
}

/* Zeroed is valid and empty. */
struct seam_fdr_images {
	SEAM_ARRAY(struct seam_fdr_image *) list;
	struct seam_self_loads loads;	/* of the loader, at the last time */
	uint32_t n_lists;
	size_t n_unknown;		/* images whose file was unusable */
	/* the list stays as it is: dl_iterate_phdr() is not called any more */
	bool is_final;
};

/*
 * Find what was loaded and unloaded since the last time, and call @work, which
 * may be NULL.  @has_changed says whether anything was; what was unloaded and
 * loaded again has its sleds as the compiler left them.  Where the list is
 * final, code must not be touched: it may be unloaded.  0; -ENOMEM; or what
 * @work returns.
 */
int seam_fdr_images_with(struct seam_fdr_images *images,
			 int (*work)(struct seam_fdr_images *images,
				     bool has_changed, void *context),
			 void *context);

/* Open its file; as seam_image_file_open(). */
static inline int seam_fdr_image_open(const struct seam_fdr_image *image,
				      struct seam_image_file *file)
{
	return seam_image_file_open(file, image->file, image->headers,
				    image->n_headers);
}
