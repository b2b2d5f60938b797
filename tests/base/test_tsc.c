/* SPDX-License-Identifier: MIT */
/* test_tsc.c - the promises of tsc.h; the oracle is the kernel */
#include "base/tsc.h"

#include "unit.h"

/* Whether /proc/cpuinfo lists @flag, which is between two spaces. */
static bool cpu_has(const char *flag)
{
	FILE *in = fopen("/proc/cpuinfo", "r");
	char *line = NULL;
	size_t cap = 0;
	bool has = false;

	assert_non_null(in);
	while (!has && getline(&line, &cap, in) > 0)
		has = strncmp(line, "flags", 5) == 0 && strstr(line, flag);
	free(line);
	fclose(in);
	return has;
}

/* Linux has both from one bit of CPUID, which is what "nonstop" means. */
UNIT_TEST(a_counter_that_the_kernel_trusts_is_constant)
{
	uint32_t flags = SEAM_TSC_CONSTANT | SEAM_TSC_NONSTOP;

	assert_int_equal(seam_tsc_flags(), cpu_has(" nonstop_tsc ") ? flags : 0);
}

UNIT_TEST(a_tie_is_of_one_moment)
{
	struct seam_tsc_tie a = seam_tsc_tie_now(), b = seam_tsc_tie_now();

	assert_true(a.tsc < b.tsc && a.ns <= b.ns);
	/* 3 ticks a ns, for longer than 64 bits have room for their product */
	a = (struct seam_tsc_tie) { 1, 10 };
	b = (struct seam_tsc_tie) { 1 + 300000000000, 10 + 100000000000 };
	assert_int_equal(seam_tsc_hz(&a, &b), 3000000000);
	assert_int_equal(seam_tsc_hz(&b, &a), 0);
	assert_int_equal(seam_tsc_hz(&a, &a), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
