/* SPDX-License-Identifier: MIT */
/*
 * embedded.h - symbol tables that are part of a recording
 *
 * simpleperf stores the symbols of the files that have samples, by path
 * (wire/perf/simpleperf.h).  They are those of the recorded files, wherever the
 * recording is read.
 *
 * Ownership: the set owns tables and names.  Threads: one at a time.
 */
#ifndef SEAM_EMBEDDED_H
#define SEAM_EMBEDDED_H

#include "base/arena.h"
#include "base/strings.h"
#include "symbol/elf/symtab.h"
#include "wire/perf/perf_data.h"

/* Zeroed is valid and empty. */
struct seam_embedded {
	SEAM_ARRAY(struct seam_embedded_file) files;	/* by path */
	struct seam_arena arena;			/* names */
};

/* An address, in each of the forms that a table may have. */
struct seam_embedded_query {
	uint32_t path;		/* string: of the mapped file */
	uint64_t addr;		/* in memory */
	uint64_t start_addr;	/* of the mapping */
	uint64_t pgoff;		/* of the mapping, bytes */
	bool is_jit;		/* code without a file: addr is looked up */
};

/*
 * Read the tables of @data; paths become ids of @strings.  Damaged ones are
 * skipped.  0 or -ENOMEM.  Cost: a sort of all symbols.
 */
int seam_embedded_read(struct seam_embedded *embedded,
		       const struct seam_perf_data *data,
		       struct seam_strings *strings);
void seam_embedded_fini(struct seam_embedded *embedded);

/*
 * The function at an address, demangled, or NULL.  It lives as long as the
 * set.  O(log n).
 */
const char *seam_embedded_find(struct seam_embedded *embedded,
			       const struct seam_embedded_query *query);

/*
 * Whether the table of @path has addresses in memory: then equal offsets in the
 * file may be different functions.
 */
bool seam_embedded_by_addr(const struct seam_embedded *embedded, uint32_t path);

#endif /* SEAM_EMBEDDED_H */
