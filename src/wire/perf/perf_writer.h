/* SPDX-License-Identifier: MIT */
/*
 * perf_writer.h - write a perf.data file that is valid at every moment
 *
 *	header | ids of each event | attrs | formats | data ... | features
 *
 * The header's data.size is rewritten after each batch of whole records, so a
 * recorder that is killed at any point leaves a file that ends with its last
 * batch.  The features (host, command line, event names) come last; their bits
 * in the header are set when all of them are there.
 *
 * perf opens no file with tracepoints without their formats, which are a feature,
 * and the table of features is after the data.  So the formats are before the
 * first record, and a table of that one feature is after each batch: the batch is
 * written from its 17th byte on, then its first 16 bytes replace the table before
 * it, and the header is updated.  Only a kill between these last two calls leaves
 * an invalid table.
 *
 * Everything is in the byte order of this machine, as perf does it.
 *
 * Source: tools/perf/util/header.c and Documentation/perf.data-file-format
 * of Linux 6.1.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "wire/perf/perf_file.h"

#include <sys/uio.h>

enum {
	/*
	 * Bytes of an attr in the file.  perf refuses files whose attrs are
	 * larger than its own; that of 6.1 has 128 (PERF_ATTR_SIZE_VER7).
	 */
	SEAM_PERF_WRITER_ATTR_BYTES = 128,
};

/* -- features ----------------------------------------------------------- */

/*
 * A feature is a numbered section after the data: host, command line, events.
 * A builder holds their payloads one after the other; each call adds one, in
 * ascending order of bits, which is the order of their sections in the file.  A
 * failed allocation is remembered and reported once, by the writer.
 */

/* Zeroed is valid and empty. */
struct seam_perf_features {
	SEAM_ARRAY(uint8_t) bytes;	/* all payloads */
	size_t start[SEAM_PERF_N_FEATURES];	/* of each, in bytes */
	uint64_t bits[SEAM_PERF_N_FEATURES / 64];
	int last;			/* the bit that was added last */
	bool no_memory;
};

void seam_perf_features_fini(struct seam_perf_features *f);

/* A feature that is one string.  NULL or "" adds nothing. */
void seam_perf_features_string(struct seam_perf_features *f,
			       enum seam_perf_feature bit, const char *text);

/* A feature that is one number or several: @size bytes of u32 or u64. */
void seam_perf_features_data(struct seam_perf_features *f,
			     enum seam_perf_feature bit, const void *data,
			     size_t size);

/* The build id of the kernel, which perf calls @name. */
void seam_perf_features_build_id(struct seam_perf_features *f,
				 const char *name, struct seam_bytes id);

/* @n strings with their count before them. */
void seam_perf_features_cmdline(struct seam_perf_features *f,
				const char *const *words, size_t n);

/* The events with their names. */
void seam_perf_features_events(struct seam_perf_features *f,
			       const struct seam_perf_event *events,
			       size_t n);

/* The kernel's name of a PMU, by its number in attr.type. */
struct seam_perf_pmu {
	uint32_t type;
	char name[64];
};

void seam_perf_features_pmus(struct seam_perf_features *f,
			     const struct seam_perf_pmu *pmus, size_t n);

/* Event @leader and the @n_members - 1 after it are a group. */
struct seam_perf_group {
	uint32_t leader, n_members;
};

void seam_perf_features_groups(struct seam_perf_features *f,
			       const struct seam_perf_group *groups, size_t n);

/*
 * The index of @n AUXTRACE records: for each, two numbers in @pairs, its offset
 * in the file and its size with the data after it.
 */
void seam_perf_features_auxtrace(struct seam_perf_features *f,
				 const uint64_t *pairs, size_t n);

/* @clock was at @clock_ns when the wall clock was at @wall_ns. */
void seam_perf_features_clock(struct seam_perf_features *f, uint32_t clock,
			      uint64_t wall_ns, uint64_t clock_ns);

/* -- the file ----------------------------------------------------------- */

/* Its members may be read. */
struct seam_perf_writer {
	int fd;
	const char *name;	/* of the file, for messages; borrowed */
	uint64_t data_offset;		/* bytes from the file's start */
	uint64_t data_bytes;		/* whole records that are in the file */
	struct seam_perf_event *events;	/* borrowed */
	size_t n_events;
	uint64_t formats_offset, formats_bytes;	/* of tracepoints; 0: none */
	bool was_cut;		/* another process made the file shorter */
};

/*
 * Write the header and @events at the start of the empty file @fd, which
 * stays the caller's, as @events do.  0 or -errno.
 */
int seam_perf_writer_begin(struct seam_perf_writer *w, int fd,
			   const char *name,
			   struct seam_perf_event *events, size_t n_events,
			   struct seam_err *err);

/*
 * Write the formats of the file's tracepoints (the feature TRACING_DATA),
 * before the first record.  No bytes add nothing.
 */
int seam_perf_writer_formats(struct seam_perf_writer *w,
			     struct seam_bytes formats, struct seam_err *err);

/*
 * Add @id to event @event: later records may carry it.  -ENOSPC when
 * the event has no room for more.
 */
int seam_perf_writer_add_id(struct seam_perf_writer *w, size_t event,
			    uint64_t id, struct seam_err *err);

/*
 * Append whole records that lie in @n pieces; @pieces is used up.  On an
 * error nothing of the batch belongs to the file, which ends where it did.
 * -EIO with was_cut: the file has become shorter than what was written.
 */
int seam_perf_writer_append(struct seam_perf_writer *w, struct iovec *pieces,
			    size_t n, struct seam_err *err);

/* The end of the file: of its data and the table of features after it. */
uint64_t seam_perf_writer_end(const struct seam_perf_writer *w);

/*
 * End the file with its features and the formats.  On an error the file is as
 * valid as it was before, and cut after the data.
 */
int seam_perf_writer_finish(struct seam_perf_writer *w,
			    const struct seam_perf_features *features,
			    struct seam_err *err);
