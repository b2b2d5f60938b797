/* SPDX-License-Identifier: MIT */
/*
 * xray_index.h - the blocks of an XRay log: where they are, of which thread
 *
 * One pass over the preambles of all blocks, which touches a page of each
 * block.  Afterwards the blocks can be read in any order and by any thread.
 *
 * A block's end is given by its extents, if the file ends there or another
 * block begins there.  Otherwise the extents are wrong (a writer counted them
 * too short, the length is damaged, the file was cut), and the block ends where
 * the next one begins, or with the file: then the remaining length is
 * missing_bytes of the block.  Several logs in one file are sections.
 */
#pragma once

#include "wire/xray/xray_fdr.h"

enum { SEAM_XRAY_BASIC_BYTES = 32 };

struct seam_xray_basic_call {
	uint16_t record_type;	/* 0 */
	uint8_t cpu;
	uint8_t action;
	int32_t function_id;
	uint64_t tsc;
	uint32_t thread_id;
	uint32_t process_id;
};

struct seam_xray_basic_argument {
	uint16_t record_type;	/* 1 */
	uint8_t cpu;
	uint8_t action;
	int32_t function_id;
	uint32_t thread_id;
	uint32_t process_id;
	uint64_t argument;
};

extern const struct seam_record seam_xray_basic_call_record;
extern const struct seam_record seam_xray_basic_argument_record;

struct seam_xray_basic_record {
	uint64_t offset;
	bool is_argument;
	union {
		struct seam_xray_basic_call call;
		struct seam_xray_basic_argument argument;
	};
};

/*
 * The record at @offset of @file.  -ENODATA when fewer than 32 bytes are
 * left; -EBADMSG when it is none.
 */
int seam_xray_basic_read(struct seam_bytes file, size_t offset,
			 enum seam_endian endian,
			 struct seam_xray_basic_record *record);

/*
 * Records in the byte order of this machine, as numbers: of a function record
 * bit 0 is 0, bits 1 to 3 are the action, bits 4 to 31 the function, the others
 * the delta.  The caller finds the end of the run: the first record that is no
 * Entry and no Exit.
 */
struct seam_xray_run {
	const uint8_t *records;		/* borrowed from the file */
	size_t n;			/* as many as the block has room for */
	uint64_t tsc;			/* of what came before */
};

/*
 * The next events of the block that @reader is in, into @batch.  Returns 0
 * with batch->n > 0; 0 with batch->n == 0 at the end of the block; or a
 * negative errno as seam_xray_next(), when batch->n events before the
 * problem stand.  Cost: about 1 ns a function record.
 */
int seam_xray_decode(struct seam_xray_reader *reader,
		     struct seam_xray_batch *batch);

/*
 * The run at @reader's position; false when there is none, as in logs of the
 * other byte order.
 */
bool seam_xray_run(struct seam_xray_reader *reader, struct seam_xray_run *run);

/*
 * Continue after the first @n > 0 records of @run, all of them Entry or Exit.
 */
void seam_xray_run_take(struct seam_xray_reader *reader,
			const struct seam_xray_run *run, size_t n,
			uint64_t tsc);

static inline uint64_t seam_xray_run_record(const struct seam_xray_run *run,
					    size_t i)
{
	uint64_t record;

	memcpy(&record, run->records + SEAM_XRAY_FUNCTION_BYTES * i,
	       sizeof(record));
	return record;
}

/* One log: a header and the blocks up to the next header. */
struct seam_xray_section {
	uint64_t offset;		/* of its header */
	struct seam_xray_header header;
	struct seam_xray_format format;
};

/* One buffer of one thread; in basic mode, a run of its records. */
struct seam_xray_block {
	uint64_t begin, end;		/* in the file, preamble included */
	uint64_t wall_ns;		/* CLOCK_MONOTONIC; 0 in basic mode */
	uint64_t first_tsc;
	uint64_t missing_bytes;		/* of one that is cut, if known */
	int32_t pid;			/* 0 where the version has none */
	int32_t tid;
	uint32_t section;
	bool cut;			/* the log ends before the block does */
	bool is_empty;			/* a preamble and nothing else */
};

/* Zeroed is valid and empty.  Borrows the file until the end. */
struct seam_xray_index {
	struct seam_bytes file;
	SEAM_ARRAY(struct seam_xray_section) sections;
	SEAM_ARRAY(struct seam_xray_block) blocks;	/* in file order */
	struct seam_xray_problems problems;
	uint64_t missing_bytes;		/* lost ones that the file lacks */
	uint64_t n_extents;		/* blocks whose extents were wrong */
};

/*
 * Find the sections and blocks of @file.  Returns 0, also where parts of it
 * could not be read (index->problems); -EBADMSG, -ENODATA or -ENOTSUP when
 * it does not begin as an XRay log; or -ENOMEM.
 * Cost: O(blocks), and O(bytes) where extents are wrong.
 */
int seam_xray_index_build(struct seam_xray_index *index,
			  struct seam_bytes file, struct seam_err *err);
void seam_xray_index_fini(struct seam_xray_index *index);

/* A block being decoded, of either kind of log. */
struct seam_xray_block_reader {
	const struct seam_xray_index *index;
	const struct seam_xray_block *block;
	size_t offset;				/* basic mode */
	struct seam_xray_reader fdr;
};

void seam_xray_block_open(struct seam_xray_block_reader *reader,
			  const struct seam_xray_index *index,
			  const struct seam_xray_block *block);

/* As seam_xray_decode(). */
int seam_xray_block_next(struct seam_xray_block_reader *reader,
			 struct seam_xray_batch *batch);
