/* SPDX-License-Identifier: MIT */
/*
 * test_cfi_rows.c - functions compiled when they are first seen have the rules
 * of the whole table; of hostile sections they are refused, at a bounded cost
 *
 * Each thing that can be wrong in call frame information is refused, with its
 * reason; what is the largest that is right is not.
 */
#include "unwind/compile/cfi_rows.h"

#include "unwind/compile/program.h"

#include "elf_frames.h"
#include "made_frames.h"
#include "no_memory.h"
#include "unit.h"

static struct made made;

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
	static struct made other;
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

/* ---- what is refused ---- */

#define TEXT(text) (text), sizeof(text) - 1

enum reason { RIGHT, BROKEN, UNSUPPORTED, TOO_LARGE };

/* --- programs --- */

static int ignore_row(void *context, uint64_t start,
		      const struct seam_unwind_row *row)
{
	(void)context;
	(void)start;
	(void)row;
	return 0;
}

/* The reason why the only function, 32 bytes from @start on, is refused. */
static enum reason reason_at(uint64_t start)
{
	struct seam_unwind_rows rows;
	struct seam_eh_fde fde = { 0 };
	size_t n_bad = 0;
	int r;

	assert_int_equal(seam_unwind_rows_init(&rows, finish(&made), NULL), 0);
	for (uint64_t i = 0; i < 32; i++)
		n_bad += seam_unwind_rows_find(&rows, start + i) <=
			 SEAM_UNWIND_BAD_CFI;
	assert_int_equal(seam_eh_frame_find(&made.frame, start, &fde), 1);
	r = seam_unwind_program_rows(&made.frame, &fde, &rows.rules, ignore_row,
				     NULL);
	/* all of its rows are refused with it */
	assert_int_equal(n_bad, r == 0 ? 0 : 32);
	seam_unwind_rows_fini(&rows);
	return r == 0 ? RIGHT : r == -EBADMSG ? BROKEN : r == -ENOTSUP ?
	       UNSUPPORTED : TOO_LARGE;
}

/* Of a function with the program @text, in a CIE with @factors and program. */
static enum reason reason_of(const char *text, size_t size)
{
	put_cie(&made);
	put_row(&made, CODE, put_fde(&made, CODE, 32, text, size));
	return reason_at(CODE);
}

#define SIXTEEN(op) op op op op op op op op op op op op op op op op

UNIT_TEST(a_program_that_is_wrong_is_refused_with_its_reason)
{
	static const struct {
		const char *text;
		size_t size;
		enum reason reason;
	} programs[] = {
		{ TEXT("\x41\x0e\x10\x44\x0e\x18"), RIGHT },
		/* several right rows, then the wrong instruction */
		{ TEXT("\x41\x0e\x10\x44\x0e\x18\x44\x0e\x20\x44\x0b"),
		  BROKEN },
		/* remember_state: 16 times */
		{ TEXT(SIXTEEN("\x0a")), RIGHT },
		{ TEXT(SIXTEEN("\x0a") "\x0a"), UNSUPPORTED },
		{ TEXT(SIXTEEN("\x0a") SIXTEEN("\x0b")), RIGHT },
		{ TEXT("\x0a\x0b\x0b"), BROKEN },
		/* def_cfa, def_cfa_register: columns up to 32 */
		{ TEXT("\x0c\x20\x08"), RIGHT },
		{ TEXT("\x0c\x21\x08"), BROKEN },
		{ TEXT("\x0d\x20"), RIGHT },
		{ TEXT("\x0d\x21"), BROKEN },
		/* def_cfa_expression, then another offset */
		{ TEXT("\x0f\x02\x77\x08"), RIGHT },
		{ TEXT("\x0f\x02\x77\x08\x0e\x10"), BROKEN },
		/* ... that is longer than the program */
		{ TEXT("\x0f\x03\x77\x08"), BROKEN },
		/* register: in another; a rule for none that is of interest */
		{ TEXT("\x09\x03\x20"), RIGHT },
		{ TEXT("\x09\x03\x21"), BROKEN },
		{ TEXT("\x05\x60\x01"), RIGHT },
		/* set_loc: forward, back */
		{ TEXT("\x01\x10\x10\x00\x00\x0e\x10"), RIGHT },
		{ TEXT("\x48\x01\x04\x10\x00\x00\x0e\x10"), BROKEN },
		/* an operand, half of one, is missing */
		{ TEXT("\x41\x0e"), BROKEN },
		{ TEXT("\x03\x01"), BROKEN },
		/* def_cfa_offset: 2^31 - 1, 2^31 */
		{ TEXT("\x0e\xff\xff\xff\xff\x07"), RIGHT },
		{ TEXT("\x0e\x80\x80\x80\x80\x08"), TOO_LARGE },
		/* no instruction has this number; one of arm64 */
		{ TEXT("\x3f"), UNSUPPORTED },
		{ TEXT("\x2d"), UNSUPPORTED },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(programs); i++)
		if (reason_of(programs[i].text, programs[i].size) !=
		    programs[i].reason)
			fail_msg("program %zu", i);
}

/*
 * A CIE whose factors and program are @rest, after the return register; they
 * begin with the size of the augmentation, 1, and its byte.
 */
static void put_cie_with(const char *factors, size_t n_factors,
			 const char *program, size_t n_program)
{
	static const uint8_t head[] = { 0, 0, 0, 0, 1, 'z', 'R', 0 };
	static const uint8_t middle[] = { 16, 1, 0x0b };
	uint8_t *at = made.entries + 4;

	memset(&made, 0, sizeof(made));
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	memcpy(at, factors, n_factors);
	at += n_factors;
	memcpy(at, middle, sizeof(middle));
	at += sizeof(middle);
	memcpy(at, program, n_program);
	at += n_program;
	made.n = (size_t)(at - made.entries);
	put32(made.entries, made.n - 4);
}

/* code_alignment_factor 1, data_alignment_factor -8 */
#define FACTORS TEXT("\x01\x78")
#define CFA_IS_RSP_8 "\x0c\x07\x08\x90\x01"

UNIT_TEST(a_program_of_a_cie_that_is_wrong_refuses_its_functions)
{
	put_cie_with(FACTORS, TEXT(CFA_IS_RSP_8));
	FDE(&made, CODE, 32, "\x41\x0e\x10");
	assert_int_equal(reason_at(CODE), RIGHT);
	/* it has no addresses to advance to, and no rules to go back to */
	put_cie_with(FACTORS, TEXT(CFA_IS_RSP_8 "\x41\x0e\x10"));
	FDE(&made, CODE, 32, "\x41\x0e\x10");
	assert_int_equal(reason_at(CODE), BROKEN);
	put_cie_with(FACTORS, TEXT(CFA_IS_RSP_8 "\xc3"));
	FDE(&made, CODE, 32, "\x41\x0e\x10");
	assert_int_equal(reason_at(CODE), BROKEN);
}

/* Products and sums that do not fit, and would be harmless numbers. */
UNIT_TEST(what_does_not_fit_64_bits_is_refused)
{
	static const char code_2_63[] =
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x78";
	static const char data_2_62[] =
		"\x01\x80\x80\x80\x80\x80\x80\x80\x80\xc0\x00";

	/* advance by 2 * 2^63 = 0 */
	put_cie_with(TEXT(code_2_63), TEXT(CFA_IS_RSP_8));
	FDE(&made, CODE, 32, "\x42\x0e\x10");
	assert_int_equal(reason_at(CODE), BROKEN);
	/* rbx at CFA + 4 * 2^62 = 0 */
	put_cie_with(TEXT(data_2_62), TEXT("\x0c\x07\x08"));
	FDE(&made, CODE, 32, "\x83\x04");
	assert_int_equal(reason_at(CODE), TOO_LARGE);
	/* from 2^64 - 64 on by 65 */
	put_cie(&made);
	FDE(&made, -UINT64_C(64), 32, "\x02\x41\x0e\x10");
	assert_int_equal(reason_at(-UINT64_C(64)), BROKEN);
}

/* --- functions among others --- */

static void check_order(const struct seam_unwind_table *table)
{
	for (size_t i = 1; i < table->n; i++)
		assert_true(table->starts[i] > table->starts[i - 1]);
}

UNIT_TEST(a_refused_function_leaves_no_row_in_a_whole_table)
{
	struct seam_unwind_table table;

	put_cie(&made);
	put_fde(&made, CODE, 32, TEXT("\x44\x0e\x10\x44\x0e\x18\x44\x0b"));
	put_fde(&made, CODE + 32, 32, TEXT("\x44\x0e\x10"));
	finish(&made);
	made.frame.header.size = 0;
	assert_int_equal(seam_unwind_table_build(&table, &made.frame, NULL), 0);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(seam_unwind_table_find(&table, CODE + i) ==
				 SEAM_UNWIND_BAD_CFI, i < 32);
	check_order(&table);
	seam_unwind_table_fini(&table);
}

/* The second begins in the middle of the first, whose later rows it hides. */
UNIT_TEST(rows_of_overlapping_functions_stay_in_order)
{
	struct seam_unwind_table table;

	put_cie(&made);
	put_fde(&made, CODE, 64, TEXT("\x48\x0e\x10\x60\x0e\x18"));
	put_fde(&made, CODE + 16, 16, TEXT("\x44\x0e\x20"));
	finish(&made);
	made.frame.header.size = 0;
	assert_int_equal(seam_unwind_table_build(&table, &made.frame, NULL), 0);
	for (uint64_t i = 0; i < 64; i++) {
		uint16_t id = seam_unwind_table_find(&table, CODE + i);
		int32_t cfa = i < 8 ? 8 : i < 16 ? 16 : i < 20 ? 8 : 32;

		if (i < 32)
			assert_int_equal(table.rules.rules.items[id].cfa_value,
					 cfa);
		else
			assert_int_equal(id, SEAM_UNWIND_NO_CFI);
	}
	check_order(&table);
	seam_unwind_table_fini(&table);
}

/* An FDE with addresses of 8 bytes, and a CIE that says so. */
static void put_far(uint64_t start, uint64_t range)
{
	uint8_t *at = made.entries + made.n;

	made.entries[16] = 0;			/* of the CIE: absptr */
	put32(at, 25);
	put32(at + 4, made.n + 4);
	memcpy(at + 8, &start, sizeof(start));
	memcpy(at + 16, &range, sizeof(range));
	memcpy(at + 24, "\0\x44\x0e\x10", 5);
	made.n += 29;
}

UNIT_TEST(functions_whose_offsets_do_not_fit_are_refused)
{
	struct seam_unwind_table table;
	struct seam_unwind_rows rows;

	/* one of more than 4 GiB */
	put_cie(&made);
	put_row(&made, CODE, made.n);
	put_far(CODE, UINT64_C(1) << 32);
	assert_int_equal(seam_unwind_rows_init(&rows, finish(&made), NULL), 0);
	assert_int_equal(seam_unwind_rows_find(&rows, CODE),
			 SEAM_UNWIND_BAD_CFI);
	seam_unwind_rows_fini(&rows);
	/* two, 8 GiB apart, in one table */
	put_cie(&made);
	put_far(CODE, 16);
	put_far(CODE + (UINT64_C(1) << 33), 16);
	finish(&made);
	made.frame.header.size = 0;
	assert_int_equal(seam_unwind_table_build(&table, &made.frame, NULL),
			 -ENOTSUP);
	assert_int_equal(seam_unwind_rows_init(&rows, &made.frame, NULL),
			 -ENOTSUP);
}

/* Its size has 16 bits where it is kept. */
UNIT_TEST(an_expression_of_64_kib_is_refused)
{
	static const uint8_t block[UINT16_MAX + 1];
	struct seam_unwind_rules rules = { 0 };

	assert_true(seam_unwind_rules_expression(&rules, (struct seam_bytes) {
			block, UINT16_MAX }) >= 0);
	assert_int_equal(seam_unwind_rules_expression(&rules,
			(struct seam_bytes) { block, UINT16_MAX + 1 }),
			 -EOVERFLOW);
	seam_unwind_rules_fini(&rules);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
