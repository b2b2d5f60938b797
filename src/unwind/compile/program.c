/* SPDX-License-Identifier: MIT */
/* program.c - call frame instructions, run into rows; see program.h */
#include "unwind/compile/program.h"

#include <errno.h>

/* Source: DWARF 5, table 7.29; the last ones are GNU's and arm64's. */
enum {
	ADVANCE_LOC = 0x40, OFFSET = 0x80, RESTORE = 0xc0,
	LOW_BITS = 0x3f,

	NOP = 0x00, SET_LOC, ADVANCE_LOC1, ADVANCE_LOC2, ADVANCE_LOC4,
	OFFSET_EXTENDED, RESTORE_EXTENDED, UNDEFINED, SAME_VALUE, REGISTER,
	REMEMBER_STATE, RESTORE_STATE,
	DEF_CFA, DEF_CFA_REGISTER, DEF_CFA_OFFSET, DEF_CFA_EXPRESSION,
	EXPRESSION, OFFSET_EXTENDED_SF, DEF_CFA_SF, DEF_CFA_OFFSET_SF,
	VAL_OFFSET, VAL_OFFSET_SF, VAL_EXPRESSION,
	ARGS_SIZE = 0x2e, NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* Rows that REMEMBER_STATE may nest; compilers use one or two. */
enum { MAX_REMEMBERED = 16 };

/* A program while it runs. */
struct run {
	struct seam_cursor c;
	const struct seam_eh_frame *frame;
	const struct seam_eh_fde *fde;
	struct seam_unwind_rules *rules;
	uint64_t instructions_addr;	/* of @c's first byte */
	uint64_t loc;			/* where the row begins */
	struct seam_unwind_row row;
	const struct seam_unwind_row *initial;	/* what RESTORE goes back to */
	struct seam_unwind_row *remembered;	/* MAX_REMEMBERED */
	size_t n_remembered;
	int error;
};

static void fail(struct run *run, int error)
{
	if (!run->error)
		run->error = error;
}

static int32_t narrow(struct run *run, int64_t value)
{
	if (value != (int32_t)value)
		fail(run, -EOVERFLOW);
	return (int32_t)value;
}

/* @n times the data factor: an offset from the CFA. */
static int32_t factored(struct run *run, int64_t n)
{
	int64_t value;

	if (__builtin_mul_overflow(n, run->fde->cie.data_factor, &value))
		fail(run, -EOVERFLOW);
	return run->error ? 0 : narrow(run, value);
}

/* A rule for @column; those of vector registers and the like are left out. */
static void set(struct run *run, uint64_t column, enum seam_unwind_how how,
		int32_t value)
{
	if (column >= SEAM_UNWIND_COLUMNS)
		return;
	run->row.how[column] = (uint8_t)how;
	run->row.columns &= ~(UINT64_C(1) << column);
	run->row.columns |= (uint64_t)(how != SEAM_UNWIND_SAME) << column;
	run->row.value[column] = value;
}

static void restore(struct run *run, uint64_t column)
{
	if (!run->initial)
		fail(run, -EBADMSG);	/* in a CIE */
	else if (column < SEAM_UNWIND_COLUMNS)
		set(run, column, run->initial->how[column],
		    run->initial->value[column]);
}

/* Intern a block of operations.  Its id. */
static int32_t take_expression(struct run *run)
{
	uint64_t size = seam_cursor_uleb128(&run->c);
	struct seam_bytes block;
	int id;

	block.size = seam_cursor_count(&run->c, size, 1);
	block.data = seam_cursor_bytes(&run->c, block.size);
	if (run->c.error)
		return 0;
	id = seam_unwind_rules_expression(run->rules, block);
	if (id < 0)
		fail(run, id);
	return id < 0 ? 0 : id;
}

/* Instructions that change the CFA's rule. */
static void define_cfa(struct run *run, uint8_t op)
{
	struct seam_cursor *c = &run->c;
	bool is_whole = op == DEF_CFA || op == DEF_CFA_SF ||
			op == DEF_CFA_EXPRESSION;
	uint64_t column;

	/* the others change the register or the offset of such a rule */
	if (!is_whole && run->row.cfa_how != SEAM_UNWIND_CFA_REGISTER)
		fail(run, -EBADMSG);
	switch (op) {
	case DEF_CFA:
	case DEF_CFA_SF:
	case DEF_CFA_REGISTER:
		column = seam_cursor_uleb128(c);
		if (column >= SEAM_UNWIND_COLUMNS)
			fail(run, -EBADMSG);
		run->row.cfa_how = SEAM_UNWIND_CFA_REGISTER;
		run->row.cfa_column = (uint8_t)column;
		break;
	case DEF_CFA_EXPRESSION:
		run->row.cfa_value = take_expression(run);
		run->row.cfa_how = SEAM_UNWIND_CFA_EXPRESSION;
		run->row.cfa_column = 0;
		break;
	}
	if (op == DEF_CFA || op == DEF_CFA_OFFSET)
		run->row.cfa_value = narrow(run,
			(int64_t)seam_cursor_uleb128(c));
	else if (op == DEF_CFA_SF || op == DEF_CFA_OFFSET_SF)
		run->row.cfa_value = factored(run, seam_cursor_sleb128(c));
}

/* Instructions that change a register's rule; the column comes first. */
static void define_register(struct run *run, uint8_t op)
{
	struct seam_cursor *c = &run->c;
	uint64_t column = seam_cursor_uleb128(c);

	switch (op) {
	case OFFSET_EXTENDED:
		set(run, column, SEAM_UNWIND_AT_CFA,
		    factored(run, (int64_t)seam_cursor_uleb128(c)));
		break;
	case OFFSET_EXTENDED_SF:
		set(run, column, SEAM_UNWIND_AT_CFA,
		    factored(run, seam_cursor_sleb128(c)));
		break;
	case NEGATIVE_OFFSET_EXTENDED:
		set(run, column, SEAM_UNWIND_AT_CFA,
		    narrow(run, -(int64_t)factored(run,
				(int64_t)seam_cursor_uleb128(c))));
		break;
	case VAL_OFFSET:
		set(run, column, SEAM_UNWIND_CFA_PLUS,
		    factored(run, (int64_t)seam_cursor_uleb128(c)));
		break;
	case VAL_OFFSET_SF:
		set(run, column, SEAM_UNWIND_CFA_PLUS,
		    factored(run, seam_cursor_sleb128(c)));
		break;
	case EXPRESSION:
		set(run, column, SEAM_UNWIND_AT_EXPRESSION,
		    take_expression(run));
		break;
	case VAL_EXPRESSION:
		set(run, column, SEAM_UNWIND_EXPRESSION,
		    take_expression(run));
		break;
	case REGISTER: {
		uint64_t other = seam_cursor_uleb128(c);

		if (other >= SEAM_UNWIND_COLUMNS)
			fail(run, -EBADMSG);
		set(run, column, SEAM_UNWIND_REGISTER, (int32_t)other);
		break;
	}
	case UNDEFINED:
		set(run, column, SEAM_UNWIND_UNDEFINED, 0);
		break;
	case SAME_VALUE:
		set(run, column, SEAM_UNWIND_SAME, 0);
		break;
	case RESTORE_EXTENDED:
		restore(run, column);
		break;
	default:		/* as NEGATE_RA_STATE, of arm64 */
		fail(run, -ENOTSUP);
	}
}

/* An instruction that is no advance and has no operand in its low bits. */
static void execute(struct run *run, uint8_t op)
{
	switch (op) {
	case NOP:
		break;
	case REMEMBER_STATE:
		if (run->n_remembered == MAX_REMEMBERED)
			fail(run, -ENOTSUP);
		else
			run->remembered[run->n_remembered++] = run->row;
		break;
	case RESTORE_STATE:
		if (run->n_remembered == 0)
			fail(run, -EBADMSG);
		else
			run->row = run->remembered[--run->n_remembered];
		break;
	case DEF_CFA:
	case DEF_CFA_SF:
	case DEF_CFA_REGISTER:
	case DEF_CFA_OFFSET:
	case DEF_CFA_OFFSET_SF:
	case DEF_CFA_EXPRESSION:
		define_cfa(run, op);
		break;
	case ARGS_SIZE:
		/* bytes of arguments on the stack: no part of the CFA */
		seam_cursor_uleb128(&run->c);
		break;
	default:
		define_register(run, op);
	}
}

/* True when @op is one that ends a row; *@loc is then where the next begins. */
static bool advances(struct run *run, uint8_t op, uint64_t *loc)
{
	const struct seam_eh_cie *cie = &run->fde->cie;
	uint64_t n;

	if ((op & ~LOW_BITS) == ADVANCE_LOC)
		n = op & LOW_BITS;
	else if (op == ADVANCE_LOC1)
		n = seam_cursor_u8(&run->c);
	else if (op == ADVANCE_LOC2)
		n = seam_cursor_u16(&run->c);
	else if (op == ADVANCE_LOC4)
		n = seam_cursor_u32(&run->c);
	else if (op == SET_LOC) {
		*loc = seam_eh_address(&run->c, cie->address_encoding,
				       cie->address_bytes,
				       run->instructions_addr, 0);
		if (*loc < run->loc)
			fail(run, -EBADMSG);
		return true;
	} else
		return false;
	if (__builtin_mul_overflow(n, cie->code_factor, &n) ||
	    __builtin_add_overflow(run->loc, n, loc))
		fail(run, -EBADMSG);
	return true;
}

static int failure(const struct run *run)
{
	if (run->error)
		return run->error;
	return run->c.error == -ENOTSUP ? -ENOTSUP :
	       run->c.error ? -EBADMSG : 0;
}

/*
 * Run to the end of the row: up to an instruction that advances beyond
 * run->loc, and then *@next is where it leads; or up to the program's end.
 * Returns 1 in the first case, 0 in the second, or the failure.
 */
static int run_row(struct run *run, uint64_t *next)
{
	while (seam_cursor_left(&run->c) && !run->c.error && !run->error) {
		uint8_t op = seam_cursor_u8(&run->c);
		uint8_t low = op & LOW_BITS;

		if (advances(run, op, next)) {
			if (*next > run->loc && failure(run) == 0)
				return 1;
		} else if ((op & ~LOW_BITS) == OFFSET) {
			set(run, low, SEAM_UNWIND_AT_CFA, factored(run,
				(int64_t)seam_cursor_uleb128(&run->c)));
		} else if ((op & ~LOW_BITS) == RESTORE) {
			restore(run, low);
		} else {
			execute(run, op);
		}
	}
	return failure(run);
}

static void point_at(struct run *run, struct seam_bytes instructions,
		     size_t offset)
{
	run->c = seam_cursor_make(instructions.data, instructions.size,
				  run->frame->endian);
	run->instructions_addr = run->frame->entries_addr + offset;
}

/* The CIE's program, which makes the row that each function begins with. */
static int run_cie(struct run *run, struct seam_unwind_row *initial)
{
	const struct seam_eh_cie *cie = &run->fde->cie;
	uint64_t next;
	int r;

	run->row.is_signal_frame = cie->is_signal_frame;
	point_at(run, cie->instructions, cie->instructions_offset);
	r = run_row(run, &next);
	if (r != 0)
		return r < 0 ? r : -EBADMSG;	/* it has no addresses */
	*initial = run->row;
	run->initial = initial;
	run->loc = run->fde->start;
	point_at(run, run->fde->instructions, run->fde->instructions_offset);
	return 0;
}

int seam_unwind_program_rows(const struct seam_eh_frame *frame,
			     const struct seam_eh_fde *fde,
			     struct seam_unwind_rules *rules,
			     seam_unwind_row_fn on_row, void *context)
{
	struct seam_unwind_row initial, remembered[MAX_REMEMBERED];
	struct run run = {
		.frame = frame, .fde = fde, .rules = rules,
		.remembered = remembered,
	};
	uint64_t next = 0;
	int more = 1, r = run_cie(&run, &initial);

	while (r == 0 && more && run.loc < fde->end) {
		more = run_row(&run, &next);
		if (more < 0)
			return more;
		r = on_row(context, run.loc, &run.row);
		run.loc = next;
	}
	return r;
}
