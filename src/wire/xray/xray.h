/* SPDX-License-Identifier: MIT */
/*
 * xray.h - what all XRay logs have in common: header, events, problems
 *
 * XRay writes two kinds of log: flight data recorder (FDR), buffers of short
 * records by thread, and basic mode, one long record after another.  Both
 * begin with the same 32 bytes.  A reader of either turns bytes into batches
 * of struct seam_xray_event; the model makes calls of these.
 *
 * Source: XRay Flight Data Recorder Trace Format, version 1 (2017-07-20), and
 * the writers of LLVM 5 to 14; doc/formats/xray.md has the whole format.
 */
#pragma once

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"
#include "wire/wire.h"

enum {
	SEAM_XRAY_HEADER_BYTES = 32,
	SEAM_XRAY_FDR_VERSION = 5,	/* the newest of each kind */
	SEAM_XRAY_BASIC_VERSION = 3,
	SEAM_XRAY_MAX_FUNCTION = (1 << 28) - 1,
	/*
	 * The type of a typed event that is none of the program's: its thread
	 * left out records before it.  How many is its payload, 64 bits, little
	 * endian.  It is not counted as a record.
	 */
	SEAM_XRAY_LOST = 0xffff,
};

enum seam_xray_type {
	SEAM_XRAY_BASIC,
	SEAM_XRAY_FDR,
};

struct seam_xray_header {
	uint16_t version;
	uint16_t log_type;	/* enum seam_xray_type; the spec's "type" */
	uint32_t flags;
	uint64_t cycle_frequency;
	uint64_t buffer_size;
	uint64_t reserved;
};

extern const struct seam_record seam_xray_header_record;

/* Kinds of events; the first four are the spec's function actions. */
enum seam_xray_kind {
	SEAM_XRAY_ENTRY,
	SEAM_XRAY_EXIT,
	SEAM_XRAY_TAIL_EXIT,
	SEAM_XRAY_ENTRY_ARGS,
	SEAM_XRAY_ARGUMENT,	/* of the entry before it */
	SEAM_XRAY_CUSTOM,
	SEAM_XRAY_TYPED,
};

/*
 * First bytes of the metadata records of FDR logs, little endian: the kind of
 * the record << 1, | 1.  Source: the format, "Metadata Records"; LLVM's
 * FDRRecords.h for the last three.
 */
enum seam_xray_first_byte {
	SEAM_XRAY_NEW_BUFFER = 0 << 1 | 1,
	SEAM_XRAY_NEW_CPU = 2 << 1 | 1,
	SEAM_XRAY_TSC_WRAP = 3 << 1 | 1,
	SEAM_XRAY_WALL_TIME = 4 << 1 | 1,
	SEAM_XRAY_CUSTOM_EVENT = 5 << 1 | 1,
	SEAM_XRAY_CALL_ARGUMENT = 6 << 1 | 1,
	SEAM_XRAY_EXTENTS = 7 << 1 | 1,
	SEAM_XRAY_TYPED_EVENT = 8 << 1 | 1,
	SEAM_XRAY_PID = 9 << 1 | 1,
};

/* "Entry", "Exit", "Tail_Exit", "Entry_Args"; NULL above. */
const char *seam_xray_action_name(unsigned int action);

struct seam_xray_event {
	uint64_t tsc;		/* ticks; of an argument, its value */
	uint32_t function;	/* id; of an event, its payload's index */
	uint16_t cpu;
	uint8_t kind;		/* enum seam_xray_kind */
};

/* The bytes that a custom or typed event carries, borrowed from the file. */
struct seam_xray_payload {
	struct seam_bytes data;
	uint16_t type;		/* of a typed event */
};

/* Whether it is the mark of lost records; and how many they are. */
bool seam_xray_is_lost(const struct seam_xray_payload *payload);
uint64_t seam_xray_n_lost(const struct seam_xray_payload *payload);

enum {
	SEAM_XRAY_BATCH = 512,
	SEAM_XRAY_PAYLOADS = 64,
};

/* As many events as fit into the L1 cache while they are used. */
struct seam_xray_batch {
	size_t n, n_payloads;
	struct seam_xray_event events[SEAM_XRAY_BATCH];
	struct seam_xray_payload payloads[SEAM_XRAY_PAYLOADS];
};

/* Why the rest of a block could not be read. */
struct seam_xray_problem {
	int code;		/* -EBADMSG, or -ENODATA where the file ends */
	uint64_t offset;	/* of the record, in the file */
	uint64_t lost_bytes;	/* of the block, from there on; where the file
				 * ends, what is missing too */
	char text[96];		/* "NewBuffer may not follow TSCWrap" */
};

enum { SEAM_XRAY_PROBLEMS = 16 };

/* The first few in full, all of them in number.  Zeroed is none. */
struct seam_xray_problems {
	struct seam_xray_problem items[SEAM_XRAY_PROBLEMS];
	size_t n_kept;
	uint64_t n;
	uint64_t lost_bytes;
};

/* Those with the lowest offsets are kept, whatever the order of the calls. */
void seam_xray_problems_add(struct seam_xray_problems *problems,
			    const struct seam_xray_problem *problem);
void seam_xray_problems_merge(struct seam_xray_problems *into,
			      const struct seam_xray_problems *from);

/*
 * Read the header at @offset of @file; its byte order is the one in which
 * version and type make sense.  -ENODATA when the file is too short,
 * -EBADMSG when it is no XRay log, -ENOTSUP for an unknown version or
 * type.
 */
int seam_xray_header_read(struct seam_bytes file, size_t offset,
			  struct seam_xray_header *header,
			  enum seam_endian *endian, struct seam_err *err);
