/* SPDX-License-Identifier: MIT */
/* check_default.c - without conditions a checked call is recorded as a plain */
#include "target/fdr/fdr_record.h"
#include "target/fdr/trampolines.h"

__attribute__((weak))
void seam_fdr_check(uint32_t word, const struct seam_fdr_registers *registers)
{
	(void)registers;
	seam_fdr_record(word, NULL, 0);
}
