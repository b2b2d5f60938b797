/* SPDX-License-Identifier: MIT */
/*
 * fdr_record.h - record what is not a plain call: the way through C
 *
 * All functions may be called from signal handlers, at any instruction of the
 * program, and are built with -mgeneral-regs-only: vector registers stay as
 * they are.  A record without room is counted as lost.
 */
#ifndef SEAM_FDR_RECORD_H
#define SEAM_FDR_RECORD_H

#include <stdbool.h>

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

struct seam_fdr_state;

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

#endif /* SEAM_FDR_RECORD_H */
