/* SPDX-License-Identifier: MIT */
/*
 * self_images.h - the code that this process has loaded, with its tables
 *
 * Made by the owner's thread, outside of handlers, and published as one
 * object that never changes (self_readers.h).  Refreshed when the loader's
 * counts of loaded and unloaded images have changed; a program counter in
 * code loaded since ends a stack with SEAM_UNWIND_NO_MAPPING.
 *
 *	seam_self_init();			at the start
 *	seam_self_refresh();			now and then; cheap
 *	seam_self_walk(context, &stack);	in handlers (self_walk.h)
 *
 * The tables of unloaded images stay for a while, because programs that
 * unload a library tend to load it again.
 *
 * Threads: one owner at a time; a second thread gets -EBUSY.
 * A forked child has its parent's list, and may refresh it; a vfork child
 * must not.
 */
#pragma once

#include "unwind/compile/table.h"
#include "unwind/in_process/loaded_images.h"

struct seam_self_image {
	uint64_t start, end;		/* of its executable segments */
	uint64_t bias;			/* address minus that in the file */
	uint64_t entry;			/* as loaded; 0: not known */
	const struct seam_unwind_table *table;	/* NULL: no CFI */
};

struct seam_self_images {
	struct seam_self_loads loads;	/* at that time */
	size_t n_pages_bytes;		/* of the mapping that begins here */
	size_t n;
	struct seam_self_image list[];	/* ascending */
};

/* Limits of replaced objects, which stay until handlers have left them. */
enum {
	SEAM_SELF_MAX_SPARE_BYTES = 16 << 20,	/* tables of unloaded images */
	SEAM_SELF_MAX_RETIRED = 256,	/* objects; then a refresh fails */
};

/* Prepare, with all tables.  0, -ENOMEM, or the errno of madvise(). */
int seam_self_init(void);

/*
 * 1: images were loaded or unloaded since, and handlers use the new list from
 * now on; 0: no change.  -ENOMEM; -EBUSY: another thread refreshes, or handlers
 * still use too many replaced objects; -EAGAIN: libraries were unloaded each
 * time that they were listed.
 *
 * Cost: without a change a call of dl_iterate_phdr() that ends at its first
 * image, about 0.1 us; per new image as seam_unwind_table_build().
 */
int seam_self_refresh(void);

/* Bytes of tables in use, and kept. */
size_t seam_self_bytes(void);

/*
 * Free everything.  -EBUSY where handlers may use it: then nothing new is used
 * by any handler, and the call may be repeated.
 */
int seam_self_fini(void);
