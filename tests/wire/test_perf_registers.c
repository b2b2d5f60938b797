/* SPDX-License-Identifier: MIT */
/* test_perf_registers.c - the kernel's registers get DWARF's numbers */
#include "wire/perf/perf_registers.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The kernel's order: value 100 + number, where the mask has it. */
static struct seam_perf_regs made(uint64_t *values, uint64_t abi,
				  uint64_t mask)
{
	struct seam_perf_regs regs = {
		.abi = abi, .mask = mask,
		.values.data = (const uint8_t *)values,
	};

	for (unsigned int i = 0; i < 64; i++)
		if (mask >> i & 1)
			values[regs.values.n++] = 100 + i;
	return regs;
}

static void each_register_gets_its_column(void **state)
{
	/* AX DX CX BX SI DI BP SP R8..R15 IP, by the kernel's numbers */
	static const uint8_t numbers[] = {
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
	};
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 2, SEAM_PERF_X86_64_MASK);

	(void)state;
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 0x1ffff);
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++)
		assert_int_equal(columns[i], 100 + numbers[i]);
	assert_int_equal(seam_perf_registers_pc(&regs, "x86_64"), 108);
	/* flags and segments between them change nothing */
	regs = made(values, 2, 0xffffff);
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++)
		assert_int_equal(columns[i], 100 + numbers[i]);
}

static void what_is_not_in_the_mask_is_not_known(void **state)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	/* BP, SP, IP */
	struct seam_perf_regs regs = made(values, 2, 0x1c0);

	(void)state;
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 1 << 6 | 1 << 7 | 1 << 16);
	assert_int_equal(columns[6], 106);
	assert_int_equal(columns[7], 107);
	assert_int_equal(columns[16], 108);
	assert_int_equal(columns[3], 0);
	/* without stack pointer or program counter there is no frame */
	regs = made(values, 2, 0x140);
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	regs = made(values, 2, 0xc0);
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
}

static void tasks_of_32_bits_and_registers_of_0_are_refused(void **state)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 1, SEAM_PERF_X86_64_MASK);

	(void)state;
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(known, 0);
	regs.abi = 0;
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(seam_perf_registers_pc(&regs, "x86_64"), 0);
	/* within an exec all are 0 */
	regs = made(values, 2, SEAM_PERF_X86_64_MASK);
	memset(values, 0, sizeof(values));
	assert_false(seam_perf_registers_x86_64(&regs, columns, &known));
}

/* A mask that has more bits than there are values reads none beyond them. */
static void values_that_are_missing_are_0(void **state)
{
	uint64_t values[64], columns[SEAM_PERF_X86_64_COLUMNS], known;
	struct seam_perf_regs regs = made(values, 2, SEAM_PERF_X86_64_MASK);

	(void)state;
	regs.values.n = 8;
	assert_true(seam_perf_registers_x86_64(&regs, columns, &known));
	assert_int_equal(columns[SEAM_PERF_X86_64_SP], 107);
	assert_int_equal(columns[SEAM_PERF_X86_64_PC], 0);
}

static void the_program_counter_of_other_machines(void **state)
{
	uint64_t values[64];
	struct seam_perf_regs regs = made(values, 2, (UINT64_C(1) << 33) - 1);

	(void)state;
	assert_int_equal(seam_perf_registers_pc(&regs, "aarch64"), 132);
	assert_int_equal(seam_perf_registers_pc(&regs, "armv7l"), 115);
	assert_int_equal(seam_perf_registers_pc(&regs, "riscv64"), 100);
	assert_int_equal(seam_perf_registers_pc(&regs, "s390x"), 0);
	assert_int_equal(seam_perf_registers_pc(&regs, "vax"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_register_gets_its_column),
		cmocka_unit_test(what_is_not_in_the_mask_is_not_known),
		cmocka_unit_test(tasks_of_32_bits_and_registers_of_0_are_refused),
		cmocka_unit_test(values_that_are_missing_are_0),
		cmocka_unit_test(the_program_counter_of_other_machines),
	};

	return cmocka_run_group_tests_name("perf_registers", tests, NULL, NULL);
}
