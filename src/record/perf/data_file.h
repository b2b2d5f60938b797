/* SPDX-License-Identifier: MIT */
/*
 * data_file.h - the perf.data file of a recording, and what is in it
 *
 * Everything that belongs to one file: descriptor, writer, events with the
 * ids of their records, index of AUXTRACE records, counts and losses.  A
 * recording has one; each snapshot has another, which begins as a copy.
 *
 * Threads: one.
 */
#pragma once

#include "record/perf/sink.h"
#include "record/perf/sources.h"
#include "record/perf/synth.h"
#include "wire/counts.h"
#include "wire/stack_counts.h"
#include "wire/perf/perf_writer.h"

enum {
	SEAM_COMPRESS_DEFAULT_LEVEL = 1,
	SEAM_COMPRESS_MAX_LEVEL = 22,
	/* Uncompressed bytes in one COMPRESSED record, at most. */
	SEAM_COMPRESS_CHUNK_BYTES = 48 * 1024,
};

/* Zeroed is off. */
struct seam_compress {
	int level;		/* of zstd; 0: the file is not compressed */
	void *stream;		/* ZSTD_CStream; NULL: off */
	SEAM_ARRAY(uint8_t) out;	/* the records of the last batch */
	uint64_t n_in, n_out;	/* bytes so far */
};

/* Where in the file an AUXTRACE record is, and its size without AUX data. */
struct seam_auxtrace_entry {
	uint64_t offset, size;
};

/* Zeroed but for the descriptor is valid: no file yet. */
struct seam_data_file {
	int fd;				/* owned; -1: none */
	struct seam_perf_writer writer;
	struct seam_perf_event *events;	/* with their ids; owned */
	size_t n_events;
	struct seam_compress compress;	/* of the rounds; off by default */
	/* Gets all records, and nothing is written; borrowed.  NULL: a file. */
	struct seam_sink *sink;
	SEAM_ARRAY(uint8_t) joined;	/* pieces of a batch, for the sink */
	SEAM_ARRAY(struct seam_auxtrace_entry) auxtraces;
	struct seam_counts losses;
	struct seam_stack_counts stacks;	/* unwound while draining */

	uint64_t n_records;		/* drained, of all kinds */
	struct seam_data_file_counts {	/* of records in the file */
		uint64_t n_samples;
		uint64_t n_kernel_samples;	/* in kernel mode */
		uint64_t first_ns, last_ns;	/* of samples; 0: none */
		uint64_t n_aux_bytes;		/* AUX data */
	} counts;
	struct seam_data_file_event {
		uint64_t n_samples;		/* in the file */
		uint64_t n_lost;
	} *by_event;			/* of each event; owned, as the next */

	/* State at seam_data_file_mark(). */
	uint64_t n_records_before;
	struct seam_data_file_counts before;
	struct seam_data_file_event *by_event_before;
};

/*
 * Begin the empty file @fd, which @file owns from now on, with the events of
 * @sources; compress.level is set.  With a sink there is no file, @fd is -1.
 * 0 or -errno.
 */
int seam_data_file_begin(struct seam_data_file *file, int fd,
			 const struct seam_sources *sources,
			 struct seam_err *err);

/*
 * Make the empty file @fd, which @file owns from now on, a copy of @from.
 * 0 or -errno.
 */
int seam_data_file_copy(struct seam_data_file *file, int fd,
			const struct seam_data_file *from,
			struct seam_err *err);

/* Append the records of @synth, and free it.  0 or -errno. */
int seam_data_file_append(struct seam_data_file *file,
			  struct seam_synth *synth, struct seam_err *err);

/*
 * Append the @n @pieces, which are whole records, compressed if the file is.
 * @ends_round: and FINISHED_ROUND, for which there is room after the pieces.
 * 0 or -errno.
 */
int seam_data_file_add_batch(struct seam_data_file *file, struct iovec *pieces,
			     size_t n, bool ends_round, struct seam_err *err);

/* The ids of @sources from index @first on, for readers.  0 or -errno. */
int seam_data_file_add_ids(struct seam_data_file *file,
			   const struct seam_sources *sources, size_t first,
			   struct seam_err *err);

/* Save the counts; _revert() if records drained since were not written. */
void seam_data_file_mark(struct seam_data_file *file);
void seam_data_file_revert(struct seam_data_file *file);

/*
 * Count the records that @sources lost without a LOST record after them, and
 * append LOST_SAMPLES records for these unless the file @is_closed.  Call it
 * once a file, after the last round.  0 or -errno of the write.
 */
int seam_data_file_write_losses(struct seam_data_file *file,
				const struct seam_sources *sources,
				bool is_closed, struct seam_err *err);

/*
 * Count CPUs that went offline, or came online, while @sources were enabled;
 * after seam_sources_disable().
 */
void seam_data_file_count_cpus(struct seam_data_file *file,
			       const struct seam_sources *sources);

/*
 * Count everything drained so far as not written: another process removed the
 * file, or truncated it (writer.was_cut).
 */
void seam_data_file_lost(struct seam_data_file *file);

void seam_data_file_fini(struct seam_data_file *file);
