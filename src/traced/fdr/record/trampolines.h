/* SPDX-License-Identifier: MIT */
/*
 * trampolines.h - the code that patched sleds call
 *
 * r10d holds the first word of the function record (seam_xray_word()).  Entry
 * and tail sleds call a trampoline; exit sleds jump to a trampoline in place of
 * their return.  All registers but r10 and r11 are as before; with tail sleds
 * the flags too, and r11, which may have the address of the tail call.  Nothing
 * is stored below the stack pointer, and its alignment is not relied on.  Any
 * thread runs trampolines, at any time, in handlers too.
 *
 * Plain trampolines write the record themselves.  Checked trampolines call
 * seam_fdr_check_entry() or seam_fdr_check_end(), which decide.  What a sled
 * calls never changes, because a thread may be inside the sled: each calls the
 * jump of its kind, seam_fdr_sled_*, to the trampoline in seam_fdr_used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const char seam_fdr_entry[], seam_fdr_exit[], seam_fdr_tail[];
extern const char seam_fdr_checked_entry[], seam_fdr_checked_exit[],
	seam_fdr_checked_tail[];

/*
 * At the entry of gcc's functions: the word is in r11d, and r10 stays too: in a
 * nested function r10 has the variables of the outer function.
 */
extern const char seam_fdr_entry_only[], seam_fdr_checked_entry_only[];

extern const char seam_fdr_sled_entry[], seam_fdr_sled_exit[],
	seam_fdr_sled_tail[], seam_fdr_sled_entry_only[];

/*
 * Event sleds call these in place of the symbol that the program was linked
 * with, LLVM's runtime's or ours; all registers are as before.
 */
extern const char seam_fdr_custom_event[], seam_fdr_typed_event[];
void seam_fdr_record_custom(const void *data, size_t bytes);
void seam_fdr_record_typed(size_t type, const void *data, size_t bytes);

struct seam_fdr_trampolines {
	const char *entry, *exit, *tail, *entry_only;
};

/* Of the process; set before the first sled is patched, by checked.c. */
extern struct seam_fdr_trampolines seam_fdr_used
	__attribute__((visibility("hidden")));

/*
 * checked.c.  Built with -mgeneral-regs-only, as all that they call.  @frame:
 * where the return address of the function is, which is its stack pointer at
 * the entry; @arguments: the six integer registers of arguments.
 */
void seam_fdr_check_entry(uint32_t word, uint64_t frame,
			  const uint64_t *arguments);
void seam_fdr_check_end(uint32_t word, uint64_t frame);
