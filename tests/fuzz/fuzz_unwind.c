/* SPDX-License-Identifier: MIT */
/*
 * fuzz_unwind.c - any bytes as call frame information, compiled and followed
 *
 * The input is a section; half of it, by its first byte, is also the stack
 * that steps read.  Oracle: an entry read makes progress; rows of an FDE
 * ascend within its code; a step leaves the
 * registers as they were or raises the stack pointer, signal frames apart;
 * rules point into their pools.
 */
#include "fuzz.h"
#include "unwind/compile/program.h"
#include "unwind/compile/table.h"
#include "unwind/step/step.h"

enum { SECTION_ADDR = 0x1000, STACK_ADDR = 0x100000, MAX_STEPS = 64 };

struct one_fde {
	const struct seam_eh_fde *fde;
	struct seam_unwind_rules *rules;
	uint64_t last;
	size_t n;
};

static int check_row(void *context, uint64_t start,
		     const struct seam_unwind_row *row)
{
	struct one_fde *one = context;

	if (one->n++ && start <= one->last)
		abort();
	one->last = start;
	if (start < one->fde->start || start >= one->fde->end)
		abort();
	return seam_unwind_rules_intern(one->rules, row) < 0;
}

static void check_entries(const struct seam_eh_frame *frame)
{
	struct seam_unwind_rules rules = { 0 };
	struct seam_eh_fde fde = { 0 };
	size_t offset = 0, next;
	int r;

	while ((r = seam_eh_frame_entry(frame, offset, &fde, &next)) >= 0) {
		struct one_fde one = { &fde, &rules, 0, 0 };

		if (next <= offset)
			abort();
		offset = next;
		if (r == 1)
			seam_unwind_program_rows(frame, &fde, &rules,
						 check_row, &one);
	}
	seam_unwind_rules_fini(&rules);
}

static void check_rules(const struct seam_unwind_table *table)
{
	const struct seam_unwind_rules *rules = &table->rules;

	for (size_t i = 0; i < table->n; i++)
		if ((table->ids[i] > SEAM_UNWIND_BAD_CFI &&
		     table->ids[i] >= rules->rules.n) ||
		    (i && table->starts[i] <= table->starts[i - 1]) ||
		    seam_unwind_table_find(table, table->base_addr +
					   table->starts[i]) != table->ids[i])
			abort();
	for (size_t i = 0; i < rules->rules.n; i++)
		if ((size_t)rules->rules.items[i].first_saved +
		    rules->rules.items[i].n_saved > rules->saved.n)
			abort();
}

/* Whether the return address, and nothing else, was saved on the stack. */
static bool saves_return_address_only(const struct seam_unwind_rules *rules,
				      const struct seam_unwind_rule *rule)
{
	const struct seam_unwind_saved *saved =
		&rules->saved.items[rule->first_saved];

	return !rule->is_signal_frame && rule->n_saved == 1 &&
	       saved->column == SEAM_X86_64_RIP &&
	       saved->how == SEAM_UNWIND_AT_CFA;
}

static void check_steps(const struct seam_unwind_table *table,
			const uint8_t *stack, size_t size)
{
	const struct seam_unwind_memory memory = {
		.stack = stack, .stack_addr = STACK_ADDR, .stack_bytes = size,
	};
	struct seam_unwind_registers regs = { .known = 0x1ffff };

	for (int i = 0; i < SEAM_X86_64_COLUMNS; i++)
		regs.value[i] = STACK_ADDR + 8 * (uint64_t)i;
	for (int i = 0; i < MAX_STEPS && table->n; i++) {
		uint16_t id = table->ids[(size_t)i % table->n];
		uint64_t sp = regs.value[SEAM_X86_64_RSP];
		struct seam_unwind_registers before = regs;
		enum seam_unwind_end end = seam_unwind_step(
			&table->rules, id, &memory, &regs);

		before.cfa = regs.cfa;
		if (end != SEAM_UNWIND_CALLER &&
		    memcmp(&before, &regs, sizeof(regs)) != 0)
			abort();
		if (end == SEAM_UNWIND_CALLER &&
		    saves_return_address_only(
			    &table->rules, &table->rules.rules.items[id]) &&
		    regs.value[SEAM_X86_64_RSP] <= sp)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_eh_frame frame = {
		.entries_addr = SECTION_ADDR, .address_bytes = 8,
	};
	struct seam_unwind_table table;

	if (size < 2)
		return 0;
	frame.is_debug_frame = data[0] & 1;
	frame.address_bytes = data[0] & 2 ? 4 : 8;
	frame.entries = (struct seam_bytes) { data + 1, size - 1 };
	check_entries(&frame);
	if (seam_unwind_table_build(&table, &frame, NULL) < 0)
		return 0;
	check_rules(&table);
	check_steps(&table, data + size / 2, size - size / 2);
	seam_unwind_table_fini(&table);
	return 0;
}
