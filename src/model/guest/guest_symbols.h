/* SPDX-License-Identifier: MIT */
/*
 * guest_symbols.h - from the ids of guest records to frames of a profile
 *
 * An id is valid in one table of one process.  All symbol records are added
 * first, in any order; then frames are looked up.  An id without a symbol
 * record is a function of its own, "function 7 of pid 123", and counted.
 *
 * Hostile input: symbols are bounded by the bytes that announce them.
 * Threads: one at a time.
 */
#ifndef SEAM_GUEST_SYMBOLS_H
#define SEAM_GUEST_SYMBOLS_H

#include "model/guest/guest_names.h"
#include "wire/guest/guest_decode.h"

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

#endif /* SEAM_GUEST_SYMBOLS_H */
