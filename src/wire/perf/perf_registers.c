/* SPDX-License-Identifier: MIT */
/* perf_registers.c - the kernel's numbers of registers; see perf_registers.h */
#include "wire/perf/perf_registers.h"

#include <linux/perf_event.h>

#if defined(__x86_64__)
#define OWN_ARCH "x86_64"
#elif defined(__aarch64__)
#define OWN_ARCH "aarch64"
#else
#define OWN_ARCH ""
#endif

/* The value of the kernel's register @number, which is in the mask. */
static uint64_t value_of(const struct seam_perf_regs *regs, unsigned int number)
{
	uint64_t below = regs->mask & ((UINT64_C(1) << number) - 1);
	size_t i = (size_t)__builtin_popcountll(below);

	return i < regs->values.n ? seam_perf_u64(&regs->values, i) : 0;
}

bool seam_perf_registers_x86_64(const struct seam_perf_regs *regs,
				uint64_t columns[SEAM_PERF_X86_64_COLUMNS],
				uint64_t *known)
{
	/* the kernel's number of each column */
	static const uint8_t numbers[SEAM_PERF_X86_64_COLUMNS] = {
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
	};
	const uint64_t needed = UINT64_C(1) << SEAM_PERF_X86_64_PC |
				UINT64_C(1) << SEAM_PERF_X86_64_SP;

	*known = 0;
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++) {
		bool has = regs->abi == PERF_SAMPLE_REGS_ABI_64 &&
			   regs->mask >> numbers[i] & 1;

		columns[i] = has ? value_of(regs, numbers[i]) : 0;
		*known |= (uint64_t)has << i;
	}
	return (*known & needed) == needed &&
	       (columns[SEAM_PERF_X86_64_PC] || columns[SEAM_PERF_X86_64_SP]);
}

/*
 * The kernel's number of the program counter, or -1.  A file without an
 * architecture, because its writer was killed, counts as one of this machine,
 * as in perf.
 */
static int pc_number(const char *arch)
{
	static const struct { const char *begin; int number; } machines[] = {
		{ "x86_64", 8 }, { "i386", 8 }, { "i486", 8 }, { "i586", 8 },
		{ "i686", 8 }, { "aarch64", 32 }, { "arm", 15 },
		{ "riscv", 0 }, { "loongarch", 0 }, { "ppc", 32 },
		{ "s390", 33 }, { "mips", 0 },
	};

	if (!arch)
		arch = OWN_ARCH;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(machines); i++)
		if (strncmp(arch, machines[i].begin,
			    strlen(machines[i].begin)) == 0)
			return machines[i].number;
	return -1;
}

uint64_t seam_perf_registers_pc(const struct seam_perf_regs *regs,
				const char *arch)
{
	int number = regs->abi ? pc_number(arch) : -1;

	return number >= 0 && regs->mask >> number & 1 ?
	       value_of(regs, (unsigned int)number) : 0;
}
