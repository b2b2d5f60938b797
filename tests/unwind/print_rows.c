/* SPDX-License-Identifier: MIT */
/*
 * print_rows FILE - all rows of a file's .eh_frame, one a line
 *
 *	FDE start end
 *	start cfa column=rule...
 *
 * in the words of readelf --debug-dump=frames-interp, which is the oracle.
 * Each address at which a row starts is also looked up in the whole table, and
 * by way of the table of contents: all must agree.
 */
#include "unwind/compile/program.h"
#include "unwind/compile/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "elf_frames.h"

static struct seam_unwind_table table;
static const struct seam_eh_frame *frame;

static void print_rule(unsigned int column, const struct seam_unwind_row *row)
{
	int32_t value = row->value[column];

	switch (row->how[column]) {
	case SEAM_UNWIND_AT_CFA:
		printf(" %u=c%+d", column, value);
		break;
	case SEAM_UNWIND_CFA_PLUS:
		printf(" %u=v%+d", column, value);
		break;
	case SEAM_UNWIND_AT_EXPRESSION:
		printf(" %u=exp", column);
		break;
	case SEAM_UNWIND_EXPRESSION:
		printf(" %u=vexp", column);
		break;
	case SEAM_UNWIND_REGISTER:
		printf(" %u=r%d", column, value);
		break;
	case SEAM_UNWIND_UNDEFINED:
		printf(" %u=u", column);
		break;
	}
}

static int print_row(void *context, uint64_t start,
		     const struct seam_unwind_row *row)
{
	const struct seam_eh_fde *fde = context;
	struct seam_eh_fde found = { 0 };
	int id = seam_unwind_rules_intern(&table.rules, row);

	printf("%" PRIx64, start);
	if (row->cfa_how == SEAM_UNWIND_CFA_EXPRESSION)
		printf(" exp");
	else
		printf(" %u%+d", row->cfa_column, row->cfa_value);
	for (unsigned int i = 0; i < SEAM_UNWIND_COLUMNS; i++)
		print_rule(i, row);
	putchar('\n');
	if (seam_unwind_table_find(&table, start) != id) {
		printf("# the table has %u at %" PRIx64 "\n",
		       seam_unwind_table_find(&table, start), start);
		return -1;
	}
	if (seam_eh_frame_find(frame, start, &found) != 1 ||
	    found.start != fde->start || found.end != fde->end) {
		printf("# the contents have another at %" PRIx64 "\n", start);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct seam_eh_fde fde = { 0 };
	struct seam_cfi_file file;
	size_t offset = 0, next;
	int r;

	if (argc != 2 || !open_frames(&file, argv[1]) ||
	    seam_unwind_table_build(&table, &file.eh, NULL) < 0)
		return 2;
	frame = &file.eh;
	while ((r = seam_eh_frame_entry(frame, offset, &fde, &next)) >= 0) {
		offset = next;
		if (r == 0)
			continue;
		printf("FDE %" PRIx64 " %" PRIx64 "\n", fde.start, fde.end);
		if (seam_unwind_program_rows(frame, &fde, &table.rules,
					     print_row, &fde) < 0)
			return 1;
	}
	printf("# %zu rows, %zu rules for %zu bytes of .eh_frame\n", table.n,
	       table.rules.rules.n, file.eh.entries.size);
	seam_unwind_table_fini(&table);
	seam_cfi_file_close(&file);
	return 0;
}
