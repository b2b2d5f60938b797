/* SPDX-License-Identifier: MIT */
/*
 * plain_record.h - a function record without a sled, by the way of sleds
 *
 * The plain trampoline of entries writes the word that it finds in r10d, so an
 * exit's too, and changes no other register but r11.  Files that use it are
 * compiled with -mno-red-zone, because it is called.  Any thread, in handlers
 * too.
 */
#ifndef SEAM_FDR_PLAIN_RECORD_H
#define SEAM_FDR_PLAIN_RECORD_H

#include "traced/fdr/record/trampolines.h"

static inline void seam_fdr_record_plain(uint32_t word)
{
	register uint32_t r10 __asm__("r10") = word;

	__asm__ volatile("call seam_fdr_entry"
			 : "+r" (r10) : : "r11", "cc", "memory");
}

#endif /* SEAM_FDR_PLAIN_RECORD_H */
