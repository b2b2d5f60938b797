/* SPDX-License-Identifier: MIT */
/*
 * xray_basic.h - basic ("naive") mode logs, versions 1 to 3
 *
 * Records of 32 bytes, each with its thread and an absolute TSC.  Threads
 * write whole buffers, so records of one thread come in runs, in order.  An
 * argument is a record of its own that follows the entry it belongs to.
 *
 * Source: LLVM 14's writer (version 3); versions 1 and 2 lack tail exits and
 * process ids.
 */
#ifndef SEAM_XRAY_BASIC_H
#define SEAM_XRAY_BASIC_H

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

#endif /* SEAM_XRAY_BASIC_H */
