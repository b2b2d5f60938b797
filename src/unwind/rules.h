/* SPDX-License-Identifier: MIT */
/*
 * rules.h - how a frame's caller is found: the unwinding rules of one file
 *
 * At each instruction, call frame information has one rule for the frame's
 * CFA (the caller's stack pointer) and one for each register that the
 * function has saved.  A file of a million instructions has a few hundred
 * different sets of them: 395 in Debian 12's libc, 986 in libLLVM.  So a set
 * is stored once under an id of 16 bits, and a table from addresses to
 * rules costs 6 bytes a row.
 *
 * Columns are DWARF's register numbers of the machine: on x86-64 0 to 15 are
 * rax rdx rcx rbx rsi rdi rbp rsp r8..r15, and 16 is the return address.
 *
 * Ownership: the arrays belong to the struct; nothing points out of it, so
 * that it may be copied into shared memory array by array.
 * Threads: one thread adds; then any number reads.
 * Source: System V ABI for AMD64 1.0, figure 3.36; DWARF 5, 6.4.1.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"

enum {
	SEAM_UNWIND_COLUMNS = 33,	/* arm64: x0..x30, sp, pc */

	SEAM_X86_64_RBX = 3,
	SEAM_X86_64_RBP = 6,
	SEAM_X86_64_RSP = 7,
	SEAM_X86_64_R12 = 12,
	SEAM_X86_64_RIP = 16,
	SEAM_X86_64_COLUMNS = 17,
};

/* Where a register's value in the caller is. */
enum seam_unwind_how {
	SEAM_UNWIND_SAME,		/* the register still holds it */
	SEAM_UNWIND_UNDEFINED,		/* lost; of a return address: root */
	SEAM_UNWIND_AT_CFA,		/* in memory at CFA + value */
	SEAM_UNWIND_CFA_PLUS,		/* CFA + value */
	SEAM_UNWIND_REGISTER,		/* in the register of column value */
	SEAM_UNWIND_AT_EXPRESSION,	/* in memory at its expression */
	SEAM_UNWIND_EXPRESSION,		/* the value of its expression */
};

/* How the CFA is found. */
enum seam_unwind_cfa {
	SEAM_UNWIND_CFA_NONE,		/* no information: not a frame */
	SEAM_UNWIND_CFA_REGISTER,	/* register cfa_column + cfa_value */
	SEAM_UNWIND_CFA_EXPRESSION,	/* the expression's value */
};

/* All rules in force at an instruction, while they are computed. */
struct seam_unwind_row {
	uint8_t cfa_how;			/* enum seam_unwind_cfa */
	uint8_t cfa_column;
	bool is_signal_frame;
	uint8_t how[SEAM_UNWIND_COLUMNS];	/* enum seam_unwind_how */
	uint64_t columns;	/* bit i: how[i] is not SEAM_UNWIND_SAME */
	int32_t cfa_value;
	/* offset, column, or id of an expression: see enum seam_unwind_how */
	int32_t value[SEAM_UNWIND_COLUMNS];
};

/* A register that is not SAME. */
struct seam_unwind_saved {
	int32_t value;
	uint8_t column;
	uint8_t how;
	uint16_t unused;
};

/* The same as a row, without the registers that are SAME. */
struct seam_unwind_rule {
	int32_t cfa_value;
	uint8_t cfa_how;
	uint8_t cfa_column;
	uint8_t is_signal_frame;
	uint8_t n_saved;
	uint32_t first_saved;		/* in .saved */
};

/* Ids that every file has; they have no rules. */
enum {
	SEAM_UNWIND_NO_CFI,		/* the address has no CFI */
	SEAM_UNWIND_BAD_CFI,		/* its CFI breaks the format */
	SEAM_UNWIND_MAX_RULES = 65536,
	/* Bytes of all expressions; the most in a file of Debian 12: 900. */
	SEAM_UNWIND_MAX_EXPRESSIONS = 1 << 20,
};

/* Zeroed is valid and empty. */
struct seam_unwind_rules {
	SEAM_ARRAY(struct seam_unwind_rule) rules;
	SEAM_ARRAY(struct seam_unwind_saved) saved;
	/* each two bytes of length, then DWARF operations */
	SEAM_ARRAY(uint8_t) expressions;
	struct seam_index rule_index, expression_index;
};

/*
 * The id of @row.  -ENOMEM; -EOVERFLOW where a file has more sets than ids:
 * no compiler makes such a file.
 */
int seam_unwind_rules_intern(struct seam_unwind_rules *rules,
			     const struct seam_unwind_row *row);

/*
 * The id of an expression, to be used as the value of a rule.  -ENOMEM;
 * -EOVERFLOW for one of more than 64 KiB, or all of them beyond
 * SEAM_UNWIND_MAX_EXPRESSIONS.
 */
int seam_unwind_rules_expression(struct seam_unwind_rules *rules,
				 struct seam_bytes expression);

/* The expression of an id. */
static inline struct seam_bytes
seam_unwind_rules_borrow_expression(const struct seam_unwind_rules *rules,
				    int32_t id)
{
	const uint8_t *at = rules->expressions.items + id;
	uint16_t size;

	memcpy(&size, at, sizeof(size));
	return (struct seam_bytes) { at + sizeof(size), size };
}

void seam_unwind_rules_fini(struct seam_unwind_rules *rules);
