/* SPDX-License-Identifier: MIT */
/*
 * xray_fdr.h - FDR logs, versions 1 to 5: records, grammar, reader
 *
 * A log is a header and blocks; a block is what one thread wrote into one
 * buffer.  Inside a block, function records of 8 bytes and metadata records
 * of 16 follow each other without alignment, and which may follow which is a
 * grammar: one table with a row for each legal pair.
 *
 * seam_xray_next() reads every record through its table.  It serves dumps,
 * conversions and tests; seam_xray_decode() is the fast way through function
 * records and must agree with it.
 *
 * Bytes after the fields of a metadata record are the writer's stack, not
 * zero, and are ignored.
 */
#pragma once

#include "wire/xray/xray.h"

enum {
	SEAM_XRAY_FUNCTION_BYTES = 8,
	SEAM_XRAY_METADATA_BYTES = 16,
};

/* The record that was read last, and so what the reader may accept next. */
enum seam_xray_state {
	SEAM_XRAY_AT_START,
	SEAM_XRAY_AT_EXTENTS,
	SEAM_XRAY_AT_BUFFER,
	SEAM_XRAY_AT_WALL,
	SEAM_XRAY_AT_PID,
	SEAM_XRAY_AT_CPU,
	SEAM_XRAY_AT_WRAP,
	SEAM_XRAY_AT_ENTRY,	/* a function record: Entry, Entry_Args */
	SEAM_XRAY_AT_EXIT,	/* a function record: Exit, Tail_Exit */
	SEAM_XRAY_AT_ARGUMENT,
	SEAM_XRAY_AT_CUSTOM,
	SEAM_XRAY_AT_TYPED,
	SEAM_XRAY_AT_END_OF_BUFFER,
	SEAM_XRAY_AT_END,	/* no more bytes in the block */
	SEAM_XRAY_N_STATES,
};

/* A legal pair: in these versions, @to may follow @from. */
struct seam_xray_pair {
	uint8_t from, to;	/* enum seam_xray_state */
	uint8_t first_version, last_version;
};

extern const struct seam_xray_pair seam_xray_pairs[];
extern const size_t seam_xray_n_pairs;

/* The record's name in the spec; "start of block", "end of block". */
const char *seam_xray_state_name(enum seam_xray_state state);

struct seam_xray_buffer { int32_t thread_id; };
struct seam_xray_wall { int64_t seconds; int32_t microseconds; };
struct seam_xray_cpu { uint16_t cpu_id; uint64_t absolute_tsc; };
struct seam_xray_wrap { uint64_t absolute_tsc; };
struct seam_xray_argument { uint64_t argument; };
struct seam_xray_extents { uint64_t size; };
struct seam_xray_pid { int32_t pid; };

struct seam_xray_function {
	uint32_t word;		/* function_id, action and a 0, packed */
	uint32_t tsc_delta;
};

/* Fields that a version does not have stay 0. */
struct seam_xray_marker {
	int32_t event_size;
	uint64_t absolute_tsc;	/* before version 5 */
	int32_t tsc_delta;	/* version 5 */
	uint16_t cpu_id;	/* custom events of version 4 */
	uint16_t event_type;	/* typed events */
};

struct seam_xray_record {
	uint64_t offset;	/* of its first byte, in the file */
	enum seam_xray_state state;	/* what it is */
	uint64_t tsc;		/* where the record has a time */
	uint32_t function;	/* id, of a function record */
	uint8_t action;		/* enum seam_xray_kind, likewise */
	struct seam_bytes data;	/* after an event marker, borrowed */
	union {
		struct seam_xray_buffer buffer;
		struct seam_xray_wall wall;
		struct seam_xray_cpu cpu;
		struct seam_xray_wrap wrap;
		struct seam_xray_argument argument;
		struct seam_xray_extents extents;
		struct seam_xray_pid pid;
		struct seam_xray_function function_record;
		struct seam_xray_marker marker;
	};
};

/* One section's version and byte order, and its grammar. */
struct seam_xray_format {
	uint16_t version;
	enum seam_endian endian;
	uint16_t next[SEAM_XRAY_N_STATES];	/* bit 1 << to, by from */
};

void seam_xray_format_init(struct seam_xray_format *format, uint16_t version,
			   enum seam_endian endian);

static inline bool seam_xray_may_follow(const struct seam_xray_format *format,
					enum seam_xray_state from,
					enum seam_xray_state to)
{
	return format->next[from] >> to & 1;
}

/* The table of the record @state in @version; NULL when it has none. */
const struct seam_record *seam_xray_record_table(enum seam_xray_state state,
						 unsigned int version);

/* The first byte of the metadata record @state. */
uint8_t seam_xray_marker(const struct seam_xray_format *format,
			 enum seam_xray_state state);

struct seam_xray_reader {
	const struct seam_xray_format *format;	/* borrowed */
	struct seam_cursor c;		/* over [0, end of block) of the file */
	enum seam_xray_state state;
	uint64_t tsc;			/* base of the next delta */
	uint16_t cpu;
	bool cut;			/* the file ends inside the block */
	uint64_t missing_bytes;		/* of the block, where that is known */
	uint16_t max_batch;		/* events of a batch, at most */
	struct seam_xray_problem problem;
};

/*
 * Read the block at [@begin, @end) of @file, both within it.  @cut: the
 * block should be longer, so its end is -ENODATA and no fault of the grammar.
 * A caller that knows by how much sets reader->missing_bytes: these count as
 * lost, also after a record with which a block may end.
 */
void seam_xray_reader_init(struct seam_xray_reader *reader,
			   const struct seam_xray_format *format,
			   struct seam_bytes file, size_t begin, size_t end,
			   bool cut);

/*
 * The next record.  Returns 1 with @record set; 0 at the end of the block;
 * or a negative errno with reader->problem set, and then the reader stays
 * at the record that it could not take.
 * Progress: each 1 has moved the reader by 8 bytes or more.
 */
int seam_xray_next(struct seam_xray_reader *reader,
		   struct seam_xray_record *record);

/*
 * Encode @record, of record->state, at @buf: fields by its table, data after
 * a marker, zeroes where the format reserves bytes.  A function record is
 * made of its function, action and function_record.tsc_delta; event_size is
 * data.size.  Returns the size, which may exceed @cap, as snprintf() does.
 */
size_t seam_xray_record_write(const struct seam_xray_format *format,
			      const struct seam_xray_record *record,
			      uint8_t *buf, size_t cap);
