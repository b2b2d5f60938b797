/* SPDX-License-Identifier: MIT */
/*
 * perf_registers.h - the user registers of a sample, by architecture
 *
 * A sample has the values of the registers in its event's mask, in the order
 * of the kernel's numbers.  These differ from DWARF's numbers, the columns of
 * call frame information, which all of Seam uses.
 *
 * Source: arch/.../include/uapi/asm/perf_regs.h; System V ABI for AMD64 1.0,
 * figure 3.36.
 */
#ifndef SEAM_PERF_REGISTERS_H
#define SEAM_PERF_REGISTERS_H

#include "wire/perf/perf_sample.h"

enum {
	SEAM_PERF_X86_64_COLUMNS = 17,	/* rax rdx rcx rbx ... r15, rip */
	SEAM_PERF_X86_64_PC = 16,	/* its column */
	SEAM_PERF_X86_64_SP = 7,
};

/*
 * The mask (sample_regs_user) that has all columns of x86-64: 0xff01ff. Flags
 * and segment registers are no part of it.
 */
#define SEAM_PERF_X86_64_MASK UINT64_C(0xff01ff)

/*
 * Set columns[i] for each register in @regs, and bit i of *@known; the others
 * are 0.  False where no stack can be unwound from them: they are of a 32-bit
 * task, or absent, or without program counter and stack pointer; or both of
 * these are 0, as the kernel has them within an exec.
 */
bool seam_perf_registers_x86_64(const struct seam_perf_regs *regs,
				uint64_t columns[SEAM_PERF_X86_64_COLUMNS],
				uint64_t *known);

/*
 * The user's program counter on a machine of architecture @arch, a name as
 * uname has it; NULL: of this machine.  0: not known, or not in @regs.
 */
uint64_t seam_perf_registers_pc(const struct seam_perf_regs *regs,
				const char *arch);

#endif /* SEAM_PERF_REGISTERS_H */
