/* SPDX-License-Identifier: MIT */
/*
 * fdr_record.h - record what is not a plain call: the way through C
 *
 * All functions may be called from signal handlers, at any instruction of the
 * program, and are built with -mgeneral-regs-only: vector registers stay as
 * they are.  A record without room is counted as lost.
 */
#pragma once

#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/trampolines.h"
#include "wire/xray/xray_chunk.h"

/*
 * A function record, @word as seam_xray_word() makes it, and a CallArgument
 * for each of @arguments, at most SEAM_XRAY_MAX_ARGUMENTS.
 */
void seam_fdr_record(uint32_t word, const uint64_t *arguments,
		     unsigned int n_arguments);

/*
 * SEAM_XRAY_CUSTOM, or SEAM_XRAY_TYPED with @type.  Of @bytes at @data at most
 * SEAM_XRAY_MAX_PAYLOAD are recorded.
 */
void seam_fdr_event(enum seam_xray_kind kind, uint16_t type, const void *data,
		    size_t bytes);

/*
 * Whether the thread of @state may begin a chunk at position @at: not between
 * a trigger and its copy.  Defined in check/checked.c.
 */
bool seam_fdr_may_begin_chunk(struct seam_fdr_state *state, uint64_t at);

/*
 * ---- a function record without a sled, by the way of sleds ----
 *
 * The plain trampoline of entries writes the word in r10d, also of an exit, and
 * changes no other register but r11.  Files with such calls are compiled with
 * -mno-red-zone.  Any thread, in handlers too.
 */

static inline void seam_fdr_record_plain(uint32_t word)
{
	register uint32_t r10 __asm__("r10") = word;

	__asm__ volatile("call seam_fdr_entry"
			 : "+r" (r10) : : "r11", "cc", "memory");
}

/*
 * ---- the last step of each record that a trampoline does not write ----
 *
 * A restartable sequence (fdr_thread.h has the reason).  Where rseq is refused
 * nothing restarts, and the caller blocks signals.
 */

/*
 * At the cursor, store @n_words of @words, then @bytes of @payload; and set
 * the cursor to @end, with the state {@tsc, @state_cpu}.  All is within one
 * chunk.  From the cursor to @end are an odd number of words, except from the
 * start of a chunk, and where the state stays as it is.
 */
struct seam_fdr_put {
	struct seam_fdr_state *state;	/* of the area */
	uint64_t cursor, end;
	const uint64_t *words;
	uint64_t n_words;
	const void *payload;
	uint64_t bytes;			/* of the payload */
	uint64_t padding;		/* zeroes after it */
	uint64_t tsc;
	uint32_t cpu;			/* where the caller runs */
	uint32_t state_cpu;
	/* where @end goes back: not 0: the area is copied; NULL: never */
	const _Atomic uint32_t *held;
};

/*
 * False: the thread was interrupted or has moved since the caller looked at
 * the cursor and the CPU, or the area is held.  Nothing has changed but memory
 * after the cursor, and the caller builds its record again.
 */
bool seam_fdr_commit(const struct seam_fdr_put *put);
