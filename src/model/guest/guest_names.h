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
#ifndef SEAM_GUEST_NAMES_H
#define SEAM_GUEST_NAMES_H

#include "base/pair_map.h"
#include "model/profile/profile.h"

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

#endif /* SEAM_GUEST_NAMES_H */
