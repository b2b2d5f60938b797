/* SPDX-License-Identifier: MIT */
/*
 * xray_decode.h - a block to batches of events, fast
 *
 * Function records come by the hundred million, so they are read by a loop
 * of a few instructions over a range whose bounds were checked once.  All
 * other records go through seam_xray_next(), which is also the oracle that
 * tests hold this loop against.
 */
#ifndef SEAM_XRAY_DECODE_H
#define SEAM_XRAY_DECODE_H

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
 * The events of the run [@*offset, @end), which
 * seam_xray_index_build() has checked, as seam_xray_decode(); moves *@offset.
 */
void seam_xray_basic_decode(struct seam_bytes file, size_t *offset, size_t end,
			    enum seam_endian endian,
			    struct seam_xray_batch *batch);

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
 * Make batches short where there can be runs, so that a rare record of another
 * kind does not cost the run after it.
 */
void seam_xray_short_batches(struct seam_xray_reader *reader);

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

#endif /* SEAM_XRAY_DECODE_H */
