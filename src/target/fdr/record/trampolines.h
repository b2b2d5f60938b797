/* SPDX-License-Identifier: MIT */
/*
 * trampolines.h - the code that patched sleds call
 *
 * r10d holds the first word of the function record (seam_xray_word()).  Entry
 * and tail sleds call, exit sleds jump to it in place of their return.  All
 * registers but r10 and r11 are as before; with tail sleds r11 too, which may
 * have the address that the tail call goes to, and the flags.  Nothing is
 * stored below the stack pointer, and its alignment is not relied on.
 *
 * Plain ones write the record themselves.  Checked ones call seam_fdr_check()
 * with the registers of the function; it decides.
 */
#ifndef SEAM_FDR_TRAMPOLINES_H
#define SEAM_FDR_TRAMPOLINES_H

#include <stdint.h>

extern const char seam_fdr_entry[], seam_fdr_exit[], seam_fdr_tail[];
extern const char seam_fdr_checked_entry[], seam_fdr_checked_exit[],
	seam_fdr_checked_tail[];

/* At the function's entry or end. */
struct seam_fdr_registers {
	uint64_t rdi, rsi, rdx, rcx, r8, r9, rax, r11;
	uint64_t return_address_slot;	/* the stack pointer at the entry */
};

/* checked.c.  Built with -mgeneral-regs-only, as all that it calls. */
void seam_fdr_check(uint32_t word, const struct seam_fdr_registers *registers);

/*
 * Call @f(@argument) with all vector and x87 registers, and errno, saved: it
 * may call libc.  Returns what @f does.  Cost: 0.1 us, and 3 KiB of stack.
 */
uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument);

/* Find out how, before the first trampoline runs. */
void seam_fdr_call_saved_init(void);

#endif /* SEAM_FDR_TRAMPOLINES_H */
