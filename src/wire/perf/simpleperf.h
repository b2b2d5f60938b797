/* SPDX-License-Identifier: MIT */
/*
 * simpleperf.h - the symbols that simpleperf puts into its recordings
 *
 * Android's simpleperf records on a phone and is read elsewhere, so the files
 * that were hit are features of the perf.data: each with its path, its type
 * and its symbols.  FILE has them as plain fields, FILE2 as protobuf
 * messages; both are a row of (u32 size, entry).
 *
 * Everything is borrowed from the section.  Progress: every call moves by at
 * least one byte or is the last.
 *
 * Source: system/extras/simpleperf of Android 15, record_file_format.h,
 * record_file.proto, record_file_reader.cpp; dso.cpp for what addresses mean.
 */
#pragma once

#include "base/base.h"
#include "base/cursor.h"

enum seam_simpleperf_feature {
	SEAM_SIMPLEPERF_FILE = 128,
	SEAM_SIMPLEPERF_META_INFO = 129,
	SEAM_SIMPLEPERF_FILE2 = 132,
};

enum seam_simpleperf_type {
	SEAM_SIMPLEPERF_KERNEL,
	SEAM_SIMPLEPERF_KERNEL_MODULE,
	SEAM_SIMPLEPERF_ELF,
	SEAM_SIMPLEPERF_DEX,
	SEAM_SIMPLEPERF_SYMBOL_MAP,	/* of a JIT: "/dev/ashmem/dalvik.." */
	SEAM_SIMPLEPERF_UNKNOWN,
};

struct seam_simpleperf_file {
	struct seam_bytes path;		/* without a NUL */
	uint32_t type;			/* enum seam_simpleperf_type */
	uint64_t min_vaddr;		/* first address of its code */
	/*
	 * Where that is: an offset in the file, of a kernel module from where
	 * it is mapped.  UINT64_MAX where not recorded: at the mapping's start.
	 */
	uint64_t offset;
	struct seam_cursor symbols;	/* for seam_simpleperf_symbol() */
	uint32_t n_symbols;		/* of FILE: how many are left */
	bool is_proto;
};

struct seam_simpleperf_symbol {
	uint64_t vaddr;			/* as in the file */
	uint32_t size;			/* bytes */
	struct seam_bytes name;		/* without a NUL */
};

/* A cursor over the section @bytes of FILE (or FILE2: @is_proto). */
struct seam_simpleperf_reader {
	struct seam_cursor c;
	bool is_proto;
};

struct seam_simpleperf_reader
seam_simpleperf_begin(struct seam_bytes bytes, enum seam_endian endian,
		      bool is_proto);

/* The next entry; false at the end, or where the section is damaged. */
bool seam_simpleperf_next(struct seam_simpleperf_reader *reader,
			  struct seam_simpleperf_file *file);

/* The next symbol of @file; false at the end, or where it is damaged. */
bool seam_simpleperf_symbol(struct seam_simpleperf_file *file,
			    struct seam_simpleperf_symbol *symbol);

/*
 * The lines "name,type,config" of section META_INFO: one for each event, in the
 * order of the file.  NULL where it has none.
 */
const char *seam_simpleperf_event_lines(struct seam_bytes meta_info);

/*
 * Take a line from *@lines.  The name in it; empty where the line is not that
 * of an event of @type and @config.
 */
struct seam_bytes seam_simpleperf_event_name(const char **lines, uint32_t type,
					     uint64_t config);
