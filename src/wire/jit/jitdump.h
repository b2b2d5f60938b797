/* SPDX-License-Identifier: MIT */
/*
 * jitdump.h - JITDUMP files: code that a just-in-time compiler announced
 *
 * The reader hands out one record at a time, in the order of the file, and
 * borrows everything from the bytes: names, code, tables.  Few real files
 * follow the specification in everything, so only a missing magic number or an unknown
 * version is an error; deviations are counted by kind in n_notes.
 *
 * Progress: every call of seam_jitdump_next() that returns true has moved at
 * least 16 bytes.
 *
 * Source: JITDUMP specification version 2 (Linux,
 * tools/perf/Documentation/jitdump-specification.txt).
 */
#pragma once

#include "base/err.h"
#include "wire/line.h"
#include "wire/wire.h"

enum {
	SEAM_JITDUMP_MAGIC = 0x4a695444,	/* "JiTD" */
	SEAM_JITDUMP_VERSION = 1,
	SEAM_JITDUMP_HEADER_BYTES = 40,
	SEAM_JITDUMP_PREFIX_BYTES = 16,
	SEAM_JITDUMP_ARCH_TIMESTAMP = 1,	/* header flag */
};

enum seam_jitdump_id {
	SEAM_JITDUMP_LOAD,
	SEAM_JITDUMP_MOVE,
	SEAM_JITDUMP_DEBUG_INFO,
	SEAM_JITDUMP_CLOSE,
	SEAM_JITDUMP_UNWINDING_INFO,
	SEAM_JITDUMP_UNKNOWN,			/* any other id */
	SEAM_JITDUMP_N_IDS,
};

/* Deviations from the specification: read all the same, or skipped. */
enum seam_jitdump_note {
	SEAM_JITDUMP_ODD_VERSION,
	SEAM_JITDUMP_ODD_HEADER_SIZE,
	SEAM_JITDUMP_ODD_FLAGS,
	SEAM_JITDUMP_NO_MACHINE,
	SEAM_JITDUMP_ODD_ADDRESS,
	SEAM_JITDUMP_NO_NAME,
	SEAM_JITDUMP_UNKNOWN_RECORD,
	SEAM_JITDUMP_BAD_RECORD,
	SEAM_JITDUMP_BAD_TAIL,
	SEAM_JITDUMP_N_NOTES,
};

struct seam_jitdump_header {
	uint32_t magic;
	uint32_t version;
	uint32_t total_size;
	uint32_t elf_mach;
	uint32_t pad1;
	uint32_t pid;
	uint64_t timestamp;
	uint64_t flags;
};

/* Every record begins with it; CLOSE has no more. */
struct seam_jitdump_prefix {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
};

struct seam_jitdump_load {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
	uint32_t pid;
	uint32_t tid;
	uint64_t vma;
	uint64_t code_addr;
	uint64_t code_size;
	uint64_t code_index;
	const char *name;
	struct seam_bytes code;
};

struct seam_jitdump_move {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
	uint32_t pid;
	uint32_t tid;
	uint64_t vma;
	uint64_t old_code_addr;
	uint64_t new_code_addr;
	uint64_t code_size;
	uint64_t code_index;
};

struct seam_jitdump_debug_info {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
	uint64_t code_addr;
	uint64_t nr_entry;
	struct seam_bytes entries;	/* walk them with seam_jitdump_line() */
};

struct seam_jitdump_debug_entry {
	uint64_t code_addr;
	uint32_t line;
	uint32_t discrim;
	const char *name;
};

struct seam_jitdump_unwinding_info {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
	uint64_t unwind_data_size;
	uint64_t eh_frame_hdr_size;
	uint64_t mapped_size;
	struct seam_bytes unwinding_data;
};

extern const struct seam_record seam_jitdump_header_table;
extern const struct seam_record seam_jitdump_prefix_table;
extern const struct seam_record seam_jitdump_load_table;
extern const struct seam_record seam_jitdump_move_table;
extern const struct seam_record seam_jitdump_debug_info_table;
extern const struct seam_record seam_jitdump_debug_entry_table;
extern const struct seam_record seam_jitdump_unwinding_info_table;

struct seam_jitdump_record {
	enum seam_jitdump_id id;
	size_t pos;			/* in the file */
	union {				/* by id; all begin with the prefix */
		struct seam_jitdump_prefix prefix;
		struct seam_jitdump_load load;
		struct seam_jitdump_move move;
		struct seam_jitdump_debug_info debug_info;
		struct seam_jitdump_unwinding_info unwinding_info;
	};
};

struct seam_jitdump_reader {
	struct seam_cursor cursor;
	struct seam_jitdump_header header;
	enum seam_endian endian;
	uint64_t n_records[SEAM_JITDUMP_N_IDS];	/* read, by id */
	uint64_t n_notes[SEAM_JITDUMP_N_NOTES];	/* occurrences, by kind */
	size_t tail_bytes;			/* left unread at the end */
};

/* Whether these bytes begin like a jitdump, in either byte order. */
bool seam_jitdump_is(struct seam_bytes bytes);

/*
 * Read the header of the file that is @bytes, which must stay as they are for
 * as long as the records are used.
 *
 * Returns 0; -ENODATA when there is no whole header; -EBADMSG when the magic
 * number is missing; -ENOTSUP for a version above 2.
 */
int seam_jitdump_begin(struct seam_jitdump_reader *reader,
		       struct seam_bytes bytes, struct seam_err *err);

/*
 * The next record that can be used.  Records that contradict themselves are
 * counted and skipped; one that was cut off ends the file.  False at
 * the end.
 *
 * A load's code is the last code_size bytes of its record, wherever its name
 * ends.  A load without a name has the name "".
 */
bool seam_jitdump_next(struct seam_jitdump_reader *reader,
		       struct seam_jitdump_record *record);

/*
 * The .eh_frame in @info, *@pos bytes after its beginning; it is for the next
 * load.  Addresses in it are relative: it counts as mapped
 * seam_jitdump_aligned(code_size) + *@pos bytes after the start of the code.
 *
 * The specification has .eh_frame_hdr first; V8, CPython and perf have it last.
 * Whichever end has one is it, the last if both.  V8 writes a header alone for
 * code that has a frame pointer: size 0.
 */
struct seam_bytes
seam_jitdump_eh_frame(const struct seam_jitdump_unwinding_info *info,
		      size_t *pos);

static inline uint64_t seam_jitdump_aligned(uint64_t code_size)
{
	return (code_size + 7) & ~UINT64_C(7);
}

/* A note in words: "records of an unknown type". */
const char *seam_jitdump_note_text(enum seam_jitdump_note note);

/* The record's table, for dumps. */
const struct seam_record *seam_jitdump_table(enum seam_jitdump_id id);

/*
 * The entries of one DEBUG_INFO record, one after the other.
 *
 * V8 overwrites the first bytes of its file names, zeros included, so that
 * the next entry cannot be found after the name's end.  Where a walk by names
 * does not end with the record, but one by equal steps does, entries are found
 * by steps and is_stepped is set: addresses and lines are right, names are not.
 */
struct seam_jitdump_lines {
	struct seam_cursor cursor;
	uint64_t left;			/* entries, by nr_entry */
	size_t step;			/* bytes an entry, 0: by its name */
	const char *name;		/* of the entry before */
	bool is_stepped;
	bool is_cut;			/* fewer entries than nr_entry */
};

struct seam_jitdump_lines
seam_jitdump_lines_make(const struct seam_jitdump_debug_info *info,
			enum seam_endian endian);

/*
 * The next entry, false at the end.  The name "\xff" means the name of
 * the entry before, and is replaced by it.
 */
bool seam_jitdump_line(struct seam_jitdump_lines *lines,
		       struct seam_jitdump_debug_entry *entry);

/* -- records of service "jit" ------------------------------------------- */

/*
 * A group is the JITDUMP records that belong together: the header of a dump; a
 * load with the debug and unwinding information before it; a move; a close.
 * It can be larger than a ring's record, so it is split into chunks, one in
 * each SAMPLE record, whose payload is
 *
 *	flags:u32 size:u32 bytes[size] padding
 *
 * Chunks of a group are consecutive, from a FIRST to a LAST one; a group
 * without its LAST, because the writer died, is dropped.
 */
#define SEAM_JIT_SERVICE "jit"	/* in HELLO */

enum {
	SEAM_JIT_CHUNK_FIRST = 1,
	SEAM_JIT_CHUNK_LAST = 2,
	/* A larger group is neither written nor accepted. */
	SEAM_JIT_MAX_GROUP = 64 << 20,
};

struct seam_jit_chunk {
	uint32_t flags;
	uint32_t size;
};

/*
 * Print the jitdump @bytes to @out, a record a line: fields have the names of
 * the specification; records that seam_jitdump_next() skips are printed as
 * damaged.  The header comes first; notes on deviations from the specification
 * come last:
 *
 *	{"offset":0,"type":"header","magic":N,...}
 *	{"offset":40,"type":"JIT_CODE_LOAD","id":0,...,"code":"31c0c3"}
 *	{"type":"note","text":"loads whose two addresses differ","count":1}
 *
 * Entries of DEBUG_INFO are decoded; "cut":true beside entries: fewer than
 * nr_entry; "stepped":true: their names are damaged.  A record that
 * contradicts itself has "damaged":true and its bytes as "data"; such records
 * and such entries count in *@n_damaged.
 *
 * Returns 0; -ENODATA when the last record is cut; or as
 * seam_jitdump_begin().
 */
int seam_jitdump_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, uint64_t *n_damaged,
		       struct seam_err *err);
