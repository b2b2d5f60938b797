/* SPDX-License-Identifier: MIT */
/*
 * perf_data.h - a perf.data file: events, features, and where the data is
 *
 * Reads what perf has written since 3.2, and other writers: file mode with
 * features after the data, pipe mode with everything as records,
 * the first magic ("PERFFILE"), either byte order, files whose writer was
 * killed before it noted the size of the data.  Records are read through
 * perf_stream.h.
 *
 * Ownership: borrows the file's bytes, owns the tables made of them.
 * Threads: read-only after opening, so any number may read.
 *
 * Source: tools/perf/util/header.c and header.h, Linux 6.1;
 * tools/perf/Documentation/perf.data-file-format.txt.
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/index.h"
#include "wire/perf/perf_file.h"
#include "wire/perf/perf_record.h"

struct seam_perf_data {
	struct seam_bytes bytes;	/* the whole file, borrowed */
	enum seam_endian endian;
	bool is_pipe;
	bool is_cut;			/* shorter than its header requires */
	uint64_t data_begin, data_end;	/* offsets of the records */
	/* The range of the events' attrs and ids; file mode only. */
	uint64_t described_begin, described_end;
	uint64_t n_missing_bytes;	/* of records, by the header's size */
	SEAM_ARRAY(struct seam_perf_event) events;
	struct seam_bytes features[SEAM_PERF_N_FEATURES];

	struct seam_arena arena;	/* names */
	struct seam_index id_index;	/* hash of an id -> position in ids */
	SEAM_ARRAY(struct seam_perf_id { uint64_t id; uint32_t event; }) ids;
};

/* Whether these bytes begin like a perf.data file. */
bool seam_perf_data_is(struct seam_bytes bytes);

/*
 * Read the header and everything that is needed to read records.  Returns 0,
 * or -errno with the reason when no record could be understood: -EBADMSG,
 * -ENODATA, -ENOMEM.  @data is to be freed with seam_perf_data_close() in
 * either case.
 */
int seam_perf_data_open(struct seam_perf_data *data, struct seam_bytes bytes,
			struct seam_err *err);
void seam_perf_data_close(struct seam_perf_data *data);

/*
 * Names from beside the file, in the order of the events.  Not used where the
 * file has its own, which a recorder writes last, or has other events than
 * @n_names.  Without memory a name remains as it was.
 */
void seam_perf_data_name_events(struct seam_perf_data *data,
				const char *const *names, size_t n_names);

/*
 * The event of an id, as a position in events.  An id of 0 and, in a
 * recording of one event, any id mean the first.  SEAM_NONE when unknown.
 */
uint32_t seam_perf_data_event(const struct seam_perf_data *data, uint64_t id);

/* The first id of the first event; 0: none. */
uint64_t seam_perf_data_first_id(const struct seam_perf_data *data);

/*
 * The attr of the event whose trailer ends @payload: by the id in its last
 * word where events record one, else that of the first.
 */
const struct seam_perf_attr *
seam_perf_data_attr_of(const struct seam_perf_data *data,
		       struct seam_bytes payload);

/* A feature that is one string (HOSTNAME, ARCH...), or NULL. */
const char *seam_perf_data_string(const struct seam_perf_data *data,
				  enum seam_perf_feature feature);

/*
 * The words of CMDLINE into @buf as a shell reads them back, cut where they
 * do not fit.  Returns @buf; empty when the file has none.
 */
const char *seam_perf_data_command(const struct seam_perf_data *data,
				   char *buf, size_t cap);

/* One entry of the BUILD_ID feature, or a BUILD_ID record of a pipe. */
struct seam_perf_build_id {
	int32_t pid;			/* -1: a file of the host */
	uint16_t misc;			/* CPU mode in the low 3 bits */
	const uint8_t *build_id;
	size_t build_id_size;
	const char *filename;
};

/* @out borrows the bytes of @record.  0 or -EBADMSG. */
int seam_perf_build_id_read(const struct seam_perf_record *record,
			    enum seam_endian endian,
			    struct seam_perf_build_id *out);

/*
 * Call @take(@context, entry) for each build id that the file lists, until
 * one returns false.  Damage ends the walk.
 */
void seam_perf_data_build_ids(const struct seam_perf_data *data,
			      bool (*take)(void *context,
					   const struct seam_perf_build_id *),
			      void *context);
