/* SPDX-License-Identifier: MIT */
/*
 * sleds.h - the places in an image's code that its compiler left for us
 *
 * Compilers list them in sections that are loaded with the program, and they
 * are read there, because the loader has relocated them:
 *
 *	xray_instr_map			clang -fxray-instrument
 *	__patchable_function_entries	-fpatchable-function-entry
 *	__mcount_loc			-mfentry -mnop-mcount -mrecord-mcount
 *
 * Calls of -mfentry are in no list: they are where functions begin, which the
 * header of .eh_frame says.
 *
 * A list may be damaged, or hostile.  A sled is accepted only where all of it
 * is in a readable and executable segment of the image, overlaps no other, and
 * has the bytes that a compiler puts there, or that we have put there.
 *
 * The functions of a list are numbered from 0 in its order; as in llvm-xray a
 * new function begins where the address of the function changes.  So functions
 * are counted also where their sleds are refused.
 *
 * Not in a handler: uses malloc.  Threads: one at a time, while the image stays
 * loaded.
 *
 * Source: LLVM 14, X86MCInstLower.cpp, and compiler-rt's
 * xray_interface_internal.h (the map); GCC 12 manual, "Instrumentation
 * Options".
 */
#pragma once

#include <sys/mman.h>

#include "base/array.h"

/* ---- an image's code in memory; addresses are of this process ---- */

enum { SEAM_FDR_MAX_SLOTS = 4 };

/* As the program headers say. */
struct seam_fdr_segment {
	uint64_t start, end;
	int rights;			/* PROT_READ and so on */
};

/* Zeroed is valid and empty. */
struct seam_fdr_code {
	SEAM_ARRAY(struct seam_fdr_segment) segments;
	uint64_t eh_frame_header;	/* 0: none */
	/* pointers that the loader sets to __fentry__, and its address */
	uint64_t fentry_slots[SEAM_FDR_MAX_SLOTS];
	size_t n_fentry_slots;
	uint64_t fentry;		/* 0: none */
};

/* The segment with all of [@start, @start + @bytes) and @rights; or NULL. */
const struct seam_fdr_segment *
seam_fdr_code_segment(const struct seam_fdr_code *code, uint64_t start,
		      uint64_t bytes, int rights);

/* ---- sleds ---- */

/* The first six as in the instrumentation map. */
enum seam_fdr_sled_kind {
	SEAM_FDR_SLED_ENTRY,
	SEAM_FDR_SLED_EXIT,
	SEAM_FDR_SLED_TAIL,
	SEAM_FDR_SLED_ENTRY_ARGS,
	SEAM_FDR_SLED_CUSTOM,
	SEAM_FDR_SLED_TYPED,
	/* room for a call of the function's own stub */
	SEAM_FDR_SLED_CALL,
	SEAM_FDR_N_SLED_KINDS,
};

struct seam_fdr_sled_traits {
	uint8_t bytes;		/* of the sled; 0: as many as there are nops */
	uint8_t event_call;	/* an event's: where its call is; else 0 */
	uint8_t action;		/* enum seam_xray_kind, of a function record */
	bool has_word;		/* the sled sets r10d and makes a call */
	bool has_stub;		/* the function's own, which sets r11d */
};

extern const struct seam_fdr_sled_traits
	seam_fdr_sled_traits[SEAM_FDR_N_SLED_KINDS];

enum { SEAM_FDR_MAX_CALL_BYTES = 16 };

struct seam_fdr_sled {
	uint64_t address;
	uint32_t function;	/* in the list */
	uint8_t kind;		/* enum seam_fdr_sled_kind */
	uint8_t bytes;
	uint8_t original[8];	/* its first bytes, from the compiler */
	/* of several instructions: a thread may be between them */
	bool is_divided;
};

enum seam_fdr_list_kind {
	SEAM_FDR_LIST_XRAY,
	SEAM_FDR_LIST_PATCHABLE,
	SEAM_FDR_LIST_MCOUNT,
	SEAM_FDR_LIST_FENTRY,	/* no section: the functions' beginnings */
	SEAM_FDR_N_LISTS,
};

/* Zeroed is valid and empty. */
struct seam_fdr_sleds {
	/* ascending by address */
	SEAM_ARRAY(struct seam_fdr_sled) list;
	SEAM_ARRAY(uint64_t) functions;		/* their addresses */
	size_t n_refused;
};

/*
 * Read the list of @kind that is loaded at @start, @bytes of it, all in a
 * readable segment of @code; a FENTRY list has neither.  0 or -ENOMEM.
 */
int seam_fdr_sleds_read(struct seam_fdr_sleds *sleds,
			enum seam_fdr_list_kind kind,
			const struct seam_fdr_code *code, uint64_t start,
			uint64_t bytes);

/*
 * Whether the bytes at @sled are still, or again, the bytes of a sled that is
 * not in use: it jumps over itself, or is a nop, or calls __fentry__.
 */
bool seam_fdr_sled_is_free(const struct seam_fdr_code *code,
			   const struct seam_fdr_sled *sled);

void seam_fdr_sleds_fini(struct seam_fdr_sleds *sleds);
