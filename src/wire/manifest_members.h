/* SPDX-License-Identifier: MIT */
/*
 * manifest_members.h - the members of meta.json: what is written is read back
 *
 * For manifest.c, which writes them and has the tables, and manifest_read.c.
 */
#ifndef SEAM_MANIFEST_MEMBERS_H
#define SEAM_MANIFEST_MEMBERS_H

#include "wire/manifest.h"

#define SEAM_META_FAMILY "seam.bundle/"
#define SEAM_META_SCHEMA SEAM_META_FAMILY "1"

enum seam_meta_type {
	SEAM_META_TEXT,	/* const char * */
	SEAM_META_FLAG,	/* bool */
	SEAM_META_COUNT,	/* uint64_t */
	SEAM_META_ADDR,	/* uint64_t, as a string of hex digits */
	SEAM_META_CLOCK,	/* bool: whether it is the kernel's own */
	SEAM_META_HEX,	/* uint8_t [SEAM_MANIFEST_BUILD_ID], a size_t */
	SEAM_META_STRINGS,	/* const char *const *, a size_t */
};

struct seam_meta_member {
	const char *section;	/* NULL: a member of the manifest itself */
	const char *name;
	enum seam_meta_type type;
	size_t offset;
	size_t n_offset;	/* of the size or number */
};

/* A uint64_t of a struct. */
struct seam_meta_number {
	const char *name;
	size_t offset;
};

/*
 * All that is written and read back beside the counts (counts.h), in the order
 * of the file; each table ends with a name of NULL.  Successive rows of one
 * section are one object.
 */
extern const struct seam_meta_member seam_meta_members[];

/* Numbers of "stacks" besides its tables: of struct seam_stack_counts. */
extern const struct seam_meta_number seam_meta_stacks[];

/* Numbers of struct seam_manifest_trigger, omitted where they are 0. */
extern const struct seam_meta_number seam_meta_triggers[];

#endif /* SEAM_MANIFEST_MEMBERS_H */
