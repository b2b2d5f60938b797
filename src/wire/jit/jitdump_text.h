/* SPDX-License-Identifier: MIT */
/*
 * jitdump_text.h - every record of a jitdump or a perf map, a line each
 *
 * For people who write such files and for scripts that check them: fields
 * have the names of the specification, nothing is joined or left out.
 * Records that the reader passes over because they contradict themselves
 * are shown too, as damaged.
 */
#ifndef SEAM_JITDUMP_TEXT_H
#define SEAM_JITDUMP_TEXT_H

#include "base/base.h"
#include "base/err.h"

enum seam_jitdump_text_form {
	SEAM_JIT_DUMP_TEXT,
	SEAM_JIT_DUMP_TEXT_CODE,	/* code and tables as hex */
	SEAM_JIT_DUMP_JSON,		/* an object a line, hex too */
};

/* Whether these bytes begin like a jitdump, in either byte order. */
bool seam_jitdump_text_is(struct seam_bytes bytes);

/*
 * Whether @path and @bytes look like a perf map: the name is perf-PID.map, or
 * the first line is of a map's form.
 */
bool seam_jitdump_text_is_map(const char *path, struct seam_bytes bytes);

/*
 * The jitdump @bytes to @out.  The header comes first; notes on what is not
 * as specified come last:
 *
 *	{"offset":0,"type":"header","magic":N,...}
 *	{"offset":40,"type":"JIT_CODE_LOAD","id":0,...,"code":"31c0c3"}
 *	{"type":"note","text":"loads whose two addresses differ","count":1}
 *
 * Entries of DEBUG_INFO and the header of the frame table in UNWINDING_INFO
 * are decoded; "cut":true beside entries: fewer than nr_entry; "stepped":true:
 * their names are damaged.  A record that contradicts itself has
 * "damaged":true and its bytes as "data"; such records and such entries
 * count in *@n_damaged.
 *
 * Returns 0; -ENODATA when the last record is cut; or as
 * seam_jitdump_begin().
 */
int seam_jitdump_text(FILE *out, struct seam_bytes bytes,
		  enum seam_jitdump_text_form form, uint64_t *n_damaged,
		  struct seam_err *err);

/*
 * The perf map @bytes: start, size and name of each line.  Lines that cannot
 * be read count in *@n_damaged.  0.
 */
int seam_jitdump_text_map(FILE *out, struct seam_bytes bytes,
		      enum seam_jitdump_text_form form, uint64_t *n_damaged);

#endif /* SEAM_JITDUMP_TEXT_H */
