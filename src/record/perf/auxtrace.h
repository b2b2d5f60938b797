/* SPDX-License-Identifier: MIT */
/*
 * auxtrace.h - AUX areas into the file
 *
 * A ring that has an AUX area tells in AUX records what comes to stand where
 * in it; the bytes themselves go into the file as PERF_RECORD_AUXTRACE, and
 * an index of these is a feature of the file.  Normal mode drains the area
 * as rings are drained; snapshot mode copies its newest bytes when asked.
 *
 * Source: auxtrace_mmap__read() in tools/perf/util/auxtrace.c of Linux 6.1.
 */
#ifndef SEAM_AUXTRACE_H
#define SEAM_AUXTRACE_H

#include "record/perf/sources.h"
#include "wire/perf/perf_writer.h"

/* Where in the file a record is, and its bytes without those of the area. */
struct seam_auxtrace_entry {
	uint64_t offset, size;
};

/* Zeroed is valid and off. */
struct seam_auxtrace {
	struct seam_perf_writer *writer;	/* borrowed */
	SEAM_ARRAY(struct seam_auxtrace_entry) index;
	uint64_t n_bytes;		/* of the areas, in the file */
	uint64_t most_bytes;		/* of a snapshot of one area; 0: all */
	/* AUX records by what they say; a record may say several things. */
	uint64_t n_records, n_truncated, n_overwrite, n_partial, n_collision;
};

/* Count AUX record @record, which is in one piece.  Returns its flags. */
uint64_t seam_auxtrace_see(struct seam_auxtrace *trace,
		       const struct seam_ring_header *record);

/*
 * Normal mode: append what the area of @ring, number @idx of the rings,
 * holds, and give it back to the writer.  Up to 7 bytes stay until there
 * are 8, unless it is the @last call.  Returns the bytes or -errno.
 */
ssize_t seam_auxtrace_drain(struct seam_auxtrace *trace,
			    struct seam_source_ring *ring, uint32_t idx,
			    bool last, struct seam_err *err);

/*
 * Snapshot mode: append the newest bytes of the area, most_bytes at most.  @own: its writer is
 * in user space and need not have stopped; the kernel's must have.
 */
ssize_t seam_auxtrace_snapshot(struct seam_auxtrace *trace,
			       struct seam_source_ring *ring, uint32_t idx,
			       bool own, struct seam_err *err);

void seam_auxtrace_fini(struct seam_auxtrace *trace);

#endif /* SEAM_AUXTRACE_H */
