/* SPDX-License-Identifier: MIT */
/*
 * sysprof.h - streams of LuaJIT's sysprof: symbols, then samples and symbols
 *
 * A stream is a symbol table ("ljs") and a profile ("ljp") after it.  The
 * reader hands out one item at a time in the order of the stream, symbols and
 * samples alike, because a later symbol replaces an earlier one of the same
 * address.  Versions ljs 1 to 3 and ljp 1 and 2 are read; a memory profile
 * ("ljm") is refused by its name.  There are no lengths and no checksums:
 * nothing can be read after an unknown byte, so the first error ends the
 * stream, and what was read before it stands.
 *
 * Everything is borrowed from the bytes of the stream, and the frames of a
 * sample from the reader, until the next call.  One reader belongs to one
 * thread.
 *
 * Progress: every call that returns 1 has moved at least one byte.
 * Cost: about 3 ns a frame.
 *
 * Source: LuaJIT RFC "lua: system-wide profiler", as implemented in
 * tarantool/luajit (lj_sysprof.c, lj_symtab.c); doc/formats/sysprof.md.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "wire/line.h"
#include "wire/vmstate.h"
#include "wire/wire.h"

enum {
	SEAM_SYSPROF_PROLOGUE_BYTES = 7,	/* "ljs", version, 3 unused */
	SEAM_SYSPROF_SYMTAB_VERSION = 3,	/* newest that is read */
	SEAM_SYSPROF_VERSION = 2,
	/* No VM has as many: 65,500 slots of a Lua stack, 512 of the host's. */
	SEAM_SYSPROF_MAX_FRAMES = 1 << 20,
};

/* Bytes that begin an entry of the symbol table; bit 7 ends the table. */
enum {
	SEAM_SYSPROF_SYMTAB_LFUNC = 0,
	SEAM_SYSPROF_SYMTAB_CFUNC = 1,	/* version 2: a trace */
	SEAM_SYSPROF_SYMTAB_TRACE = 2,
	SEAM_SYSPROF_FINAL = 0x80,
};

/* Bytes that begin an item of the profile, after the VM states. */
enum {
	SEAM_SYSPROF_EVENT_LFUNC = 10,	/* version 1: a C function */
	SEAM_SYSPROF_EVENT_CFUNC = 11,
	SEAM_SYSPROF_EVENT_TRACE = 12,
	SEAM_SYSPROF_EPILOGUE = 0x80,
};

/* Bytes that begin a Lua frame. */
enum seam_sysprof_frame_kind {
	SEAM_SYSPROF_LFUNC = 1,		/* a function of Lua source */
	SEAM_SYSPROF_CFUNC = 2,		/* a C function */
	SEAM_SYSPROF_FFUNC = 3,		/* a fast function of the VM */
	SEAM_SYSPROF_FRAMES_END = 0x80,
};

enum seam_sysprof_kind {
	SEAM_SYSPROF_SYMTAB,		/* the prologue of the symbol table */
	SEAM_SYSPROF_SYMBOL_LFUNC,
	SEAM_SYSPROF_SYMBOL_CFUNC,
	SEAM_SYSPROF_SYMBOL_TRACE,
	SEAM_SYSPROF_SYMTAB_END,
	SEAM_SYSPROF_PROFILE,		/* the prologue of the profile */
	SEAM_SYSPROF_SAMPLE,
	SEAM_SYSPROF_END,		/* the epilogue */
};

struct seam_sysprof_lfunc {
	uint64_t addr;
	struct seam_bytes chunk;
	uint64_t line;
};

struct seam_sysprof_cfunc {
	uint64_t addr;
	struct seam_bytes name;
};

/* A trace; of a sample in one, the first line of the prototype. */
struct seam_sysprof_trace {
	uint64_t traceno;
	uint64_t addr;
	uint64_t line;
};

extern const struct seam_record seam_sysprof_lfunc_table;
extern const struct seam_record seam_sysprof_cfunc_table;
extern const struct seam_record seam_sysprof_trace_table;
extern const struct seam_record seam_sysprof_trace_sample_table;

/* A frame of a Lua stack. */
struct seam_sysprof_frame {
	uint64_t value;		/* prototype, C function, or ffid */
	uint64_t line;		/* LFUNC: where it is defined */
	enum seam_sysprof_frame_kind kind;
};

struct seam_sysprof_item {
	enum seam_sysprof_kind kind;
	size_t offset;			/* of its first byte */
	bool is_event;			/* a symbol inside the profile */
	unsigned int version;		/* of a prologue */
	struct seam_sysprof_lfunc lfunc;
	struct seam_sysprof_cfunc cfunc;
	struct seam_sysprof_trace trace;	/* also of a TRACE sample */
	/* a sample; frames are leaf first, TRACE has none */
	enum seam_vmstate vmstate;
	const struct seam_sysprof_frame *lua;
	size_t n_lua;
	const uint64_t *host;		/* return addresses */
	size_t n_host;
	size_t host_offset;		/* of the host's stack */
	size_t callers_offset;		/* of its frames after the leaf */
	bool is_skimmed;		/* the frames were not read */
};

/* What seam_sysprof_next() needs; the members are its own, but .skims. */
struct seam_sysprof_reader {
	struct seam_cursor cursor;
	unsigned int symtab_version;
	unsigned int version;		/* of the profile; 0: not reached */
	bool has_trace_addr;		/* version 2: traces have an address */
	bool is_symtab_read;
	/*
	 * The caller's: the frames of a sample, all except the host's leaf, are
	 * passed over without being read or checked, where that is fast;
	 * .is_skimmed of the item says so.  For a caller who has seen the same
	 * bytes.  Cost: half as much.
	 */
	bool skims;
	bool is_done;
	SEAM_ARRAY(struct seam_sysprof_frame) lua;
	SEAM_ARRAY(uint64_t) host;
};

/* Whether @bytes begin as a stream, of any version. */
bool seam_sysprof_is(struct seam_bytes bytes);

/* Begin to read; seam_sysprof_fini() is due. */
void seam_sysprof_begin(struct seam_sysprof_reader *reader,
			struct seam_bytes bytes);

/*
 * The next item.  1; 0 after the epilogue; or -EBADMSG, -ENODATA (cut off),
 * -ENOTSUP (a version, or a memory profile), -ENOMEM, with the byte in @err;
 * after an error 0.  Bytes after the epilogue are those from the cursor's
 * position on.
 */
int seam_sysprof_next(struct seam_sysprof_reader *reader,
		      struct seam_sysprof_item *item, struct seam_err *err);

/* Read the frames of @item, the last that was skimmed.  1 or an error. */
int seam_sysprof_read_frames(struct seam_sysprof_reader *reader,
			     struct seam_sysprof_item *item,
			     struct seam_err *err);

void seam_sysprof_fini(struct seam_sysprof_reader *reader);

/* Bytes that were written.  Zeroed is valid and empty; free(items) ends it. */
struct seam_sysprof_buffer {
	uint8_t *items;
	size_t n, cap;
};

/*
 * Append @item in the newest versions (ljs 3, ljp 2), numbers in the fewest
 * bytes: a stream of these versions that LuaJIT wrote is written as the same
 * bytes.  Not used: .offset, .version, and .is_event of items that are no
 * symbols.  A sample's addresses must not be 0, which would end its stack.
 * 0, or -ENOMEM with the buffer as it was.
 */
int seam_sysprof_write(struct seam_sysprof_buffer *out,
		       const struct seam_sysprof_item *item);

/*
 * Print the items of @bytes to @out, a line each, frames leaf first, as they
 * are in the stream.  0, or the error that ended the stream, of which
 * everything before has been printed.
 */
int seam_sysprof_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, struct seam_err *err);
