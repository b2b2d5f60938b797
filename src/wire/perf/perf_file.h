/* SPDX-License-Identifier: MIT */
/*
 * perf_file.h - the parts of perf.data, for its reader and its writer
 *
 *	header | ids of each event | attrs | data ... | features
 *
 * Offsets are in bytes from the start of the file.  All numbers have the byte
 * order of the machine that wrote it.
 *
 * Source: tools/perf/util/header.h and Documentation/perf.data-file-format of
 * Linux 6.1.
 */
#pragma once

#include "wire/perf/perf_attr.h"
#include "wire/perf/perf_sample.h"

/* The magic, as bytes of a little-endian machine. */
#define SEAM_PERF_FILE_MAGIC "PERFILE2"

enum {
	SEAM_PERF_FILE_HEADER_BYTES = 104,
	/* Size of the oldest header: without feature bits. */
	SEAM_PERF_FILE_HEADER_MIN_BYTES = 72,
};

/* Feature bits that Seam reads or writes; Source: header.h, HEADER_*. */
enum seam_perf_feature {
	SEAM_PERF_FEATURE_TRACING_DATA = 1,
	SEAM_PERF_FEATURE_BUILD_ID = 2,
	SEAM_PERF_FEATURE_HOSTNAME = 3,
	SEAM_PERF_FEATURE_OSRELEASE = 4,
	SEAM_PERF_FEATURE_VERSION = 5,
	SEAM_PERF_FEATURE_ARCH = 6,
	SEAM_PERF_FEATURE_NRCPUS = 7,
	SEAM_PERF_FEATURE_CPUDESC = 8,
	SEAM_PERF_FEATURE_CPUID = 9,
	SEAM_PERF_FEATURE_TOTAL_MEM = 10,
	SEAM_PERF_FEATURE_CMDLINE = 11,
	SEAM_PERF_FEATURE_EVENT_DESC = 12,
	SEAM_PERF_FEATURE_PMU_MAPPINGS = 16,
	SEAM_PERF_FEATURE_GROUP_DESC = 17,
	SEAM_PERF_FEATURE_AUXTRACE = 18,
	SEAM_PERF_FEATURE_SAMPLE_TIME = 21,
	SEAM_PERF_FEATURE_CLOCKID = 23,
	SEAM_PERF_FEATURE_DIR_FORMAT = 24,
	SEAM_PERF_FEATURE_COMPRESSED = 27,
	SEAM_PERF_FEATURE_CLOCK_DATA = 29,
	SEAM_PERF_N_FEATURES = 256,
};

/* A part of the file. */
struct seam_perf_file_section {
	uint64_t offset;
	uint64_t size;			/* bytes */
};

/* All members are u64, so C lays them out as the file does. */
struct seam_perf_file_header {
	uint64_t magic;
	uint64_t size;			/* of the header; 16: pipe mode */
	uint64_t attr_size;		/* of an attr and its ids' section */
	struct seam_perf_file_section attrs;
	struct seam_perf_file_section data;	/* size 0: it was killed */
	struct seam_perf_file_section event_types;	/* unused */
	uint64_t features[SEAM_PERF_N_FEATURES / 64];	/* a bit each */
};

_Static_assert(sizeof(struct seam_perf_file_header) ==
	       SEAM_PERF_FILE_HEADER_BYTES, "the header has 104 bytes");

/* An event of a recording; perf calls it evsel. */
struct seam_perf_event {
	struct seam_perf_attr attr;
	const char *name;		/* "cpu-clock:u" */
	/*
	 * For the writer: ids that its records carry, and the room for ids, in
	 * memory and in the file; less than n_ids: room for those.
	 */
	uint64_t *ids;
	size_t n_ids, max_ids;
	/* For the reader: where the fields of its samples are. */
	struct seam_perf_layout layout;
};
