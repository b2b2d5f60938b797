/* SPDX-License-Identifier: MIT */
/*
 * guest_names.h - functions of a guest program, named in one way everywhere
 *
 * A function of the program that a VM interprets is identified by its chunk
 * (the source that it was compiled from) and the line of its definition.  It is
 * called "chunk.lua:12", or "fib chunk.lua:12" where its own name is known;
 * line 0 is the chunk itself.  Its layer is guest, its module the chunk.
 *
 * A chunk's name is shown as Lua shows it: without the '@' of a file or the '='
 * of a given name; a source text is [string "first line..."], with a number
 * where another text begins alike, so that they stay distinct.
 *
 * Threads: one at a time.  Cost: a look-up in a hash table for each call.
 *
 * Source: Lua 5.1 manual, lua_load() and lua_Debug.source, short_src.
 */
#pragma once

#include "base/pair_map.h"
#include "model/profile/profile.h"
#include "wire/guest/guest_decode.h"

struct seam_guest_chunk {
	uint32_t source;	/* string of sources: the whole name */
	uint32_t shown;		/* string of the profile */
	uint32_t module;
	bool is_file;
};

/* Zeroed but for the profile is valid and empty. */
struct seam_guest_names {
	struct seam_profile *profile;
	struct seam_strings sources;
	SEAM_ARRAY(struct seam_guest_chunk) chunks;
	struct seam_pair_map by_source;	/* (source, 0) to chunk */
	struct seam_pair_map n_alike;	/* (shown, 0) to how many texts */
};

void seam_guest_names_fini(struct seam_guest_names *names);

/*
 * The id of the chunk with this name, as the VM has it; a NUL ends it.
 * SEAM_NONE when memory ran out.
 */
uint32_t seam_guest_chunk(struct seam_guest_names *names,
			  struct seam_bytes name);

/*
 * The profile's function that is defined in @line of @chunk.  @own is its own
 * name; NULL or "": not known.  SEAM_NONE when memory ran out.
 */
uint32_t seam_guest_function(struct seam_guest_names *names, uint32_t chunk,
			     uint64_t line, const char *own);

/*
 * A function that is built into the VM, or that has a made-up name
 * (not @is_named).  Its module is "[vm]".
 */
uint32_t seam_guest_builtin(struct seam_guest_names *names, const char *name,
			    bool is_named);

/*
 * Trace @number, which the VM compiled from @line of @chunk on; @chunk may be
 * SEAM_NONE, not known.  "TRACE [3] started at app.lua:12", of layer jit.
 */
uint32_t seam_guest_trace(struct seam_guest_names *names, uint64_t number,
			  uint32_t chunk, uint64_t line);

/*
 * From the ids of guest records to frames of a profile.
 *
 * An id is valid in one table of one process.  All symbol records are added
 * first, in any order; then frames are looked up.  An id without a symbol
 * record is a function of its own, "function 7 of pid 123", and counted.
 *
 * Hostile input: symbols are bounded by the bytes that announce them.
 */

/* An id and what is known about it. */
struct seam_guest_known {
	int32_t pid;
	uint32_t table, id;
	uint32_t start;		/* of a trace: an id */
	uint32_t line;
	uint32_t chunk;		/* of names; SEAM_NONE: not known */
	uint32_t name;		/* string of the profile: its own name */
	uint32_t function;	/* of the profile; SEAM_NONE: not made yet */
	uint64_t address;
	uint8_t kind;		/* enum seam_guest_frame_kind */
	bool is_announced;	/* false: no symbol record has it */
};

/* Zeroed but for names.profile is valid and empty. */
struct seam_guest_symbols {
	struct seam_guest_names names;
	SEAM_ARRAY(struct seam_guest_known) known;
	struct seam_pair_map by_id;	/* (pid and table, id) to known */
	struct seam_pair_map frames;	/* (known, place) to frame */
	uint64_t n_nameless;	/* ids that are used, but not announced */
};

void seam_guest_symbols_fini(struct seam_guest_symbols *symbols);

/*
 * Add the symbol record @raw of process @pid.  Of several with one id, the
 * first that has a name counts, else the first.  To be called before the first
 * frame is looked up.  0; an error of seam_guest_read_symbol(); -ENOMEM.
 */
int seam_guest_symbols_add(struct seam_guest_symbols *symbols, int32_t pid,
			   struct seam_bytes raw, struct seam_err *err);

/* The frame of the profile for @frame; SEAM_NONE when memory ran out. */
uint32_t seam_guest_symbols_frame(struct seam_guest_symbols *symbols,
				  int32_t pid, uint32_t table,
				  struct seam_guest_frame frame);

/*
 * The address of a frame that is a C function, to be looked up as all host
 * addresses are; 0: the frame is of another kind, or its address is not known.
 */
uint64_t seam_guest_symbols_code(struct seam_guest_symbols *symbols,
				 int32_t pid, uint32_t table,
				 struct seam_guest_frame frame);
