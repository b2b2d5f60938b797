/* SPDX-License-Identifier: MIT */
/*
 * test_cfi_rows.c - functions compiled when they are first seen have the rules of
 * the whole table; of hostile sections they are refused, at a bounded cost
 */
#include "unwind/compile/cfi_rows.h"

#include "unwind/compile/program.h"

#include <errno.h>

#include "elf_frames.h"
#include "made_frames.h"
#include "no_memory.h"
#include "unit.h"

static const char libc_path[] = "/lib/x86_64-linux-gnu/libc.so.6";

/* Whether the rules of two ids say the same. */
static bool is_same(const struct seam_unwind_rules *a, uint16_t id_a,
		    const struct seam_unwind_rules *b, uint16_t id_b)
{
	const struct seam_unwind_rule *one, *other;

	if (id_a <= SEAM_UNWIND_BAD_CFI || id_b <= SEAM_UNWIND_BAD_CFI)
		return id_a == id_b;
	one = &a->rules.items[id_a];
	other = &b->rules.items[id_b];
	for (size_t i = 0; i < one->n_saved && i < other->n_saved; i++) {
		const struct seam_unwind_saved *x =
			&a->saved.items[one->first_saved + i];
		const struct seam_unwind_saved *y =
			&b->saved.items[other->first_saved + i];

		if (x->column != y->column || x->how != y->how ||
		    (x->how < SEAM_UNWIND_AT_EXPRESSION &&
		     x->value != y->value))
			return false;
	}
	return one->cfa_how == other->cfa_how &&
	       one->cfa_column == other->cfa_column &&
	       (one->cfa_how == SEAM_UNWIND_CFA_EXPRESSION ||
		one->cfa_value == other->cfa_value) &&
	       one->n_saved == other->n_saved &&
	       one->is_signal_frame == other->is_signal_frame;
}

/* Each address at which a row of the table starts, and the one before. */
static void compare(struct seam_unwind_rows *rows,
		    const struct seam_unwind_table *table)
{
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < table->n; i++) {
			uint64_t addr = table->base_addr + table->starts[i];

			assert_true(is_same(&table->rules, table->ids[i],
					    &rows->rules,
					    seam_unwind_rows_find(rows, addr)));
			addr--;
			assert_true(is_same(&table->rules,
				seam_unwind_table_find(table, addr),
				&rows->rules,
				seam_unwind_rows_find(rows, addr)));
		}
	}
}

/* With the table of contents, and without: then all is compiled. */
UNIT_TEST(rows_are_those_of_the_whole_table)
{
	struct seam_unwind_table table;
	struct seam_unwind_rows rows;
	struct seam_cfi_file file;

	assert_true(open_frames(&file, libc_path));
	assert_int_equal(seam_unwind_table_build(&table, &file.eh, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(seam_unwind_rows_init(&rows, &file.eh,
						       NULL), 0);
		assert_int_equal(rows.whole.n, i ? table.n : 0);
		compare(&rows, &table);
		assert_true(i || rows.functions.list.n > 1000);
		seam_unwind_rows_fini(&rows);
		file.eh.header.size = 0;
	}
	seam_unwind_table_fini(&table);
	seam_cfi_file_close(&file);
}

UNIT_TEST(an_empty_one_has_no_rules)
{
	struct seam_unwind_rows rows = { 0 };

	assert_int_equal(seam_unwind_rows_find(&rows, 0), SEAM_UNWIND_NO_CFI);
	seam_unwind_rows_fini(&rows);
	assert_int_equal(seam_unwind_rows_init(&rows, NULL, NULL), 0);
	assert_int_equal(seam_unwind_rows_find(&rows, UINT64_MAX),
			 SEAM_UNWIND_NO_CFI);
	assert_int_equal(seam_unwind_rows_find(&rows, UINT64_MAX),
			 SEAM_UNWIND_NO_CFI);
	seam_unwind_rows_fini(&rows);
}

/* --- sections made here --- */

UNIT_TEST(a_bad_function_is_refused_and_its_neighbours_are_not)
{
	static struct made made;
	struct seam_unwind_rows rows;

	put_cie(&made);
	FDE(&made, CODE, 16, "\x41\x0e\x10");
	FDE(&made, CODE + 16, 16, "\x41\x0e\x10\x0b");	/* restore_state */
	FDE(&made, CODE + 32, 16, "\x41\x2d");		/* of another machine */
	/* CFA = rsp + 2^35 */
	FDE(&made, CODE + 48, 16, "\x0e\x80\x80\x80\x80\x80\x01");
	FDE(&made, CODE + 64, 16, "\x41\x0e\x10");
	put_row(&made, CODE + 80, 1 << 20);		/* out of the section */
	assert_int_equal(seam_unwind_rows_init(&rows, finish(&made), NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 96; i++) {
			uint16_t id = seam_unwind_rows_find(&rows, CODE + i);

			if (i < 16 || (i >= 64 && i < 80))
				assert_true(id > SEAM_UNWIND_BAD_CFI);
			else
				assert_int_equal(id, SEAM_UNWIND_BAD_CFI);
		}
	}
	seam_unwind_rows_fini(&rows);
}

UNIT_TEST(debug_frame_is_for_what_eh_frame_has_not)
{
	static struct made made, other;
	struct seam_unwind_rows rows;
	uint16_t first, last;

	put_cie(&made);
	FDE(&made, CODE, 16, "\x0e\x10");
	FDE(&made, CODE + 32, 16, "\x0b");
	put_cie(&other);
	FDE(&other, CODE, 16, "\x0e\x20");
	FDE(&other, CODE + 16, 16, "\x0e\x18");
	FDE(&other, CODE + 32, 16, "\x0e\x28");
	finish(&other);
	other.frame.header.size = 0;
	assert_int_equal(seam_unwind_rows_init(&rows, finish(&made),
					       &other.frame), 0);
	first = seam_unwind_rows_find(&rows, CODE);
	assert_int_equal(rows.rules.rules.items[first].cfa_value, 16);
	last = seam_unwind_rows_find(&rows, CODE + 16);
	assert_int_equal(rows.rules.rules.items[last].cfa_value, 24);
	last = seam_unwind_rows_find(&rows, CODE + 32);
	assert_int_equal(rows.rules.rules.items[last].cfa_value, 40);
	assert_int_equal(seam_unwind_rows_find(&rows, CODE + 48),
			 SEAM_UNWIND_NO_CFI);
	seam_unwind_rows_fini(&rows);
}

/*
 * A table of contents whose 8,000 functions are one program of 256 KiB, each
 * from another place on: all that is compiled has the size of the section.
 */
UNIT_TEST(overlapping_functions_cost_no_more_than_the_section)
{
	static struct made made;
	struct seam_unwind_rows rows;
	size_t n_refused = 0;

	put_cie(&made);
	while (made.n + 64 * 1024 < sizeof(made.entries)) {
		/* FDEs that begin inside each other's programs */
		uint8_t *at = made.entries + made.n;
		uint64_t start = CODE + 16 * (uint64_t)made.n_rows;

		put32(at, 64 * 1024);
		put32(at + 4, made.n + 4);
		put32(at + 8, start);
		put32(at + 12, 1 << 30);
		put_row(&made, start, made.n);
		made.n += 32;
	}
	made.n = sizeof(made.entries);
	assert_true(made.n_rows > 6000);
	assert_int_equal(seam_unwind_rows_init(&rows, finish(&made), NULL), 0);
	for (uint64_t i = 0; i < made.n_rows; i++)
		n_refused += seam_unwind_rows_find(&rows, CODE + 16 * i) ==
			     SEAM_UNWIND_BAD_CFI;
	assert_true(n_refused > 6000 - 100);
	assert_true(rows.functions.starts.n < 1 << 20);
	seam_unwind_rows_fini(&rows);
}

/* A CIE of 1,000 instructions, and 8,000 functions that run it. */
UNIT_TEST(a_large_cie_is_not_run_for_ever)
{
	struct seam_unwind_table table;
	static struct made made;
	size_t n_refused = 0;
	enum { MORE = 992 };

	put_cie(&made);
	/* the same instruction again and again: DW_CFA_same_value rbx */
	put32(made.entries, 20 + MORE);
	for (size_t i = 0; i < MORE; i += 2) {
		made.entries[made.n++] = 0x08;
		made.entries[made.n++] = 3;
	}
	for (uint64_t i = 0; i < 8000; i++)
		put_fde(&made, CODE + 16 * i, 16, "\x41\x0e\x10", 3);
	finish(&made);
	made.frame.header.size = 0;
	assert_int_equal(seam_unwind_table_build(&table, &made.frame, NULL), 0);
	for (uint64_t i = 0; i < 8000; i++)
		n_refused += seam_unwind_table_find(&table, CODE + 16 * i) ==
			     SEAM_UNWIND_BAD_CFI;
	assert_in_range(n_refused, 6000, 7999);
	assert_true(seam_unwind_table_find(&table, CODE) > SEAM_UNWIND_BAD_CFI);
	assert_int_equal(seam_unwind_table_find(&table, CODE + 16 * 7999),
			 SEAM_UNWIND_BAD_CFI);
	seam_unwind_table_fini(&table);
}

/* Few functions, far apart: the blocks of a table are large then. */
UNIT_TEST(functions_4_gib_apart_are_found)
{
	static const uint64_t starts[] = { 0, 0xfffff000, 100, 1U << 31 };
	struct seam_unwind_table table;
	static struct made made;

	for (size_t n = 1; n <= SEAM_ARRAY_SIZE(starts); n++) {
		put_cie(&made);
		for (size_t i = 0; i < n; i++)
			put_fde(&made, starts[i], 16, "\x41\x0e\x10", 3);
		finish(&made);
		made.frame.address_bytes = 4;
		made.frame.header.size = 0;
		assert_int_equal(seam_unwind_table_build(&table, &made.frame,
							 NULL), 0);
		for (size_t i = 0; i < n; i++) {
			uint64_t at = (uint32_t)starts[i];

			assert_true(seam_unwind_table_find(&table, at) >
				    SEAM_UNWIND_BAD_CFI);
			assert_true(seam_unwind_table_find(&table, at + 15) >
				    SEAM_UNWIND_BAD_CFI);
			assert_int_equal(seam_unwind_table_find(&table,
								at + 16),
					 SEAM_UNWIND_NO_CFI);
		}
		seam_unwind_table_fini(&table);
	}
}

UNIT_TEST(no_more_rules_than_ids_and_no_more_expressions)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP,
	};
	struct seam_unwind_rules rules = { 0 };
	static uint8_t expression[60000];
	int r = 0, n = 0;

	for (; r >= 0; row.cfa_value++)
		r = seam_unwind_rules_intern(&rules, &row);
	assert_int_equal(r, -EOVERFLOW);
	assert_int_equal(rules.rules.n, SEAM_UNWIND_MAX_RULES);
	/* one that is there is still found */
	row.cfa_value = 8;
	assert_true(seam_unwind_rules_intern(&rules, &row) > 1);
	for (r = 0; r >= 0; n++) {
		memcpy(expression, &n, sizeof(n));
		r = seam_unwind_rules_expression(&rules, (struct seam_bytes) {
			expression, sizeof(expression) });
	}
	assert_int_equal(r, -EOVERFLOW);
	assert_true(rules.expressions.n <= SEAM_UNWIND_MAX_EXPRESSIONS + 1024);
	seam_unwind_rules_fini(&rules);
}

/* A look-up without memory is answered, and answered right when there is. */
UNIT_TEST(without_memory_a_function_is_tried_again)
{
	static struct made made;

	put_cie(&made);
	FDE(&made, CODE, 16, "\x41\x0e\x10\x41\x0e\x18");
	finish(&made);
	for (long n = 1; ; n++) {
		struct seam_unwind_rows rows;
		uint16_t id;

		until_failure = n;
		assert_int_equal(seam_unwind_rows_init(&rows, &made.frame,
						       NULL), 0);
		id = seam_unwind_rows_find(&rows, CODE + 2);
		if (id == SEAM_UNWIND_BAD_CFI)
			id = seam_unwind_rows_find(&rows, CODE + 2);
		assert_int_equal(rows.rules.rules.items[id].cfa_value, 24);
		seam_unwind_rows_fini(&rows);
		if (until_failure > 0)
			break;
	}
	until_failure = 0;
}

UNIT_MAIN("cfi_rows", NULL, NULL)
