/* SPDX-License-Identifier: MIT */
/*
 * test_code_rows.c - the rules that JIT code was announced with
 *
 * With a corpus ($SEAM_CORPUS): each UNWINDING_INFO record of real runtimes,
 * of CPython's and V8's, becomes rules that hold for its code and lead to the
 * return address at its first instruction.
 */
#include "unwind/compile/cfi_rows.h"

#include "jit_corpus.h"
#include "unwind/walk/walk.h"
#include "wire/jit/jitdump.h"
#include "unit.h"

enum { CODE = 0x7f0010000000, SIZE = 24 };

/*
 * A CIE, CFA = rsp + 8, and an FDE, both as CPython has them: addresses of
 * 4 bytes relative to where they are; the function at -SIZE from the section.
 */
static size_t put_entries(uint8_t *to, int64_t function, uint32_t size)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	};
	/* +4: CFA = rsp + 16, rbp at CFA - 16; +3: CFA = rbp + 16 */
	static const uint8_t program[] = {
		0, 0x44, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0, 0,
	};
	uint8_t *at = to + sizeof(cie);
	uint32_t words[4] = {
		(uint32_t)(12 + sizeof(program)), sizeof(cie) + 4,
		(uint32_t)(function - (int64_t)sizeof(cie) - 8), size,
	};

	memcpy(to, cie, sizeof(cie));
	memcpy(at, words, sizeof(words));
	memcpy(at + sizeof(words), program, sizeof(program));
	return sizeof(cie) + sizeof(words) + sizeof(program);
}

static struct seam_eh_frame frame_of(const uint8_t *entries, size_t size)
{
	return (struct seam_eh_frame) {
		.entries = { entries, size }, .entries_addr = CODE + SIZE,
		.address_bytes = 8,
	};
}

UNIT_TEST(rules_hold_for_the_code_wherever_it_is)
{
	struct seam_unwind_code_rows rows = { 0 };
	uint8_t entries[128];
	struct seam_eh_frame eh = frame_of(entries,
		put_entries(entries, -SIZE, SIZE));
	int64_t id = seam_unwind_code_rows_add(&rows, &eh, CODE, SIZE);
	const struct seam_unwind_rule *rules;
	uint16_t first, second, third;

	assert_int_equal(id, 0);
	/* a second piece with the same rules at another place */
	eh.entries_addr += 4096;
	assert_int_equal(seam_unwind_code_rows_add(&rows, &eh, CODE + 4096,
						   SIZE), 1);
	rules = rows.rules.rules.items;
	for (uint32_t piece = 0; piece < 2; piece++) {
		first = seam_unwind_code_rows_find(&rows, piece, 0);
		second = seam_unwind_code_rows_find(&rows, piece, 4);
		third = seam_unwind_code_rows_find(&rows, piece, SIZE - 1);
		assert_int_equal(rules[first].cfa_value, 8);
		assert_int_equal(rules[second].cfa_value, 16);
		assert_int_equal(rules[third].cfa_column, SEAM_X86_64_RBP);
		assert_int_equal(seam_unwind_code_rows_find(&rows, piece, SIZE),
				 SEAM_UNWIND_NO_CFI);
	}
	assert_int_equal(rows.rules.rules.n, 2 + 3);
	assert_int_equal(seam_unwind_code_rows_find(&rows, SEAM_NONE, 0),
			 SEAM_UNWIND_NO_CFI);
	assert_int_equal(seam_unwind_code_rows_find(&rows, 2, 0),
			 SEAM_UNWIND_NO_CFI);
	seam_unwind_code_rows_fini(&rows);
}

UNIT_TEST(rules_for_other_code_are_refused)
{
	struct seam_unwind_code_rows rows = { 0 };
	uint8_t entries[128];
	struct seam_eh_frame eh;

	eh = frame_of(entries, put_entries(entries, -SIZE - 1, SIZE));
	assert_int_equal(seam_unwind_code_rows_add(&rows, &eh, CODE, SIZE),
			 SEAM_NONE);
	eh = frame_of(entries, put_entries(entries, 0, SIZE));
	assert_int_equal(seam_unwind_code_rows_add(&rows, &eh, CODE, SIZE),
			 SEAM_NONE);
	/* without entries, as V8 announces code with a frame pointer */
	eh = frame_of(entries, 0);
	assert_int_equal(seam_unwind_code_rows_add(&rows, &eh, CODE, SIZE),
			 SEAM_NONE);
	/* entries cut anywhere have fewer rules, or bad ones */
	for (size_t n = put_entries(entries, -SIZE, SIZE); n-- > 0; ) {
		int64_t id;

		eh = frame_of(entries, n);
		id = seam_unwind_code_rows_add(&rows, &eh, CODE, SIZE);
		assert_int_equal(id, SEAM_NONE);
	}
	seam_unwind_code_rows_fini(&rows);
}

/* --- a walk that passes through --- */

struct world {
	struct seam_unwind_code_rows rows;
	uint32_t piece;
};

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	struct world *world = context;

	code->rules = &world->rows.rules;
	code->id = seam_unwind_code_rows_find(&world->rows, world->piece,
					      addr - CODE);
	return addr >= CODE && addr < CODE + SIZE;
}

static size_t no_code(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	(void)addr;
	(void)bytes;
	return 0;
}

UNIT_TEST(a_walk_prefers_them_to_the_frame_pointer)
{
	const uint64_t stack_addr = 0x1000;
	/* rbp of the caller; return addresses, the last out of the code */
	uint64_t words[] = { 0x1010, CODE + 2, CODE + 10, 7 };
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)words, .stack_addr = stack_addr,
		.stack_bytes = sizeof(words),
	};
	struct seam_unwind_registers regs = {
		.value = { [SEAM_X86_64_RSP] = stack_addr,
			   [SEAM_X86_64_RBP] = 0x5000,
			   [SEAM_X86_64_RIP] = CODE + 4 },
		.known = UINT64_MAX,
	};
	struct seam_unwind_frame frames[8];
	struct seam_unwind_stack stack = { .frames = frames, .max = 8 };
	struct world world = { .piece = 0 };
	uint8_t entries[128];
	struct seam_eh_frame eh = frame_of(entries,
		put_entries(entries, -SIZE, SIZE));
	const struct seam_unwind_space space = {
		.find = find, .code_before = no_code, .context = &world,
	};

	assert_int_equal(seam_unwind_code_rows_add(&world.rows, &eh, CODE,
						   SIZE), 0);
	seam_unwind_walk(&space, &memory, &regs, &stack);
	assert_int_equal(stack.n, 3);
	assert_int_equal(frames[1].pc, CODE + 2);
	assert_int_equal(frames[1].sp, stack_addr + 16);
	assert_int_equal(frames[1].quality, SEAM_UNWIND_BY_CFI);
	assert_int_equal(frames[2].pc, CODE + 10);
	assert_int_equal(frames[2].quality, SEAM_UNWIND_BY_CFI);
	/* there the CFA is rbp + 16, and rbp was restored: 0x1010 */
	assert_int_equal(stack.end_pc, 7);
	assert_int_equal(stack.end, SEAM_UNWIND_NO_MAPPING);
	seam_unwind_code_rows_fini(&world.rows);
}

/* --- real runtimes --- */

/* What was announced before @load, which V8 and CPython have last. */
static bool add(struct seam_unwind_code_rows *rows,
		const struct seam_jitdump_load *load, struct seam_bytes entries)
{
	const struct seam_eh_frame eh = {
		.entries = entries, .address_bytes = 8,
		.entries_addr = load->code_addr +
				((load->code_size + 7) & ~UINT64_C(7)),
	};
	int64_t id = seam_unwind_code_rows_add(rows, &eh, load->code_addr,
					       load->code_size);
	const struct seam_unwind_rule *rule;
	uint16_t first;

	if (id == SEAM_NONE)
		return false;
	assert_true(id >= 0);
	first = seam_unwind_code_rows_find(rows, (uint32_t)id, 0);
	assert_true(first > SEAM_UNWIND_BAD_CFI);
	/* before its first instruction the return address is on top */
	rule = &rows->rules.rules.items[first];
	assert_int_equal(rule->cfa_column, SEAM_X86_64_RSP);
	assert_int_equal(rule->cfa_value, 8);
	/* V8 has tables of its own after its instructions */
	for (uint64_t i = 0; i < load->code_size; i++) {
		uint16_t rule_id = seam_unwind_code_rows_find(
			rows, (uint32_t)id, i);

		assert_int_not_equal(rule_id, SEAM_UNWIND_BAD_CFI);
		assert_true(first != SEAM_UNWIND_NO_CFI ||
			    rule_id == SEAM_UNWIND_NO_CFI);
		first = rule_id;
	}
	return true;
}

static void check_dump(const struct jit_corpus_dump *dump,
		       struct seam_bytes bytes)
{
	struct seam_unwind_code_rows rows = { 0 };
	struct seam_jitdump_reader reader;
	struct seam_jitdump_record record;
	struct seam_bytes entries = { NULL, 0 };
	size_t n_with = 0, n_loads = 0;

	assert_int_equal(seam_jitdump_begin(&reader, bytes, NULL), 0);
	while (seam_jitdump_next(&reader, &record)) {
		if (record.id == SEAM_JITDUMP_UNWINDING_INFO) {
			entries = record.unwinding_info.unwinding_data;
			entries.size -= record.unwinding_info.eh_frame_hdr_size;
		} else if (record.id == SEAM_JITDUMP_LOAD) {
			n_loads++;
			n_with += entries.size && add(&rows, &record.load,
						      entries);
			entries.size = 0;
		}
	}
	print_message("# %s: %zu of %zu have rules, %zu different\n",
		      dump->name, n_with, n_loads, rows.rules.rules.n);
	if (strncmp(dump->name, "cpython", 7) == 0)
		assert_int_equal(n_with, n_loads);
	seam_unwind_code_rows_fini(&rows);
}

UNIT_TEST(each_record_of_the_corpus_has_rules_for_its_code)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(jit_corpus_dumps); i++) {
		struct seam_file file;

		if (!jit_corpus_dumps[i].n_unwinding ||
		    !jit_corpus_read(jit_corpus_dumps[i].name, &file))
			continue;
		check_dump(&jit_corpus_dumps[i], file.bytes);
		seam_file_close(&file);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
