/* SPDX-License-Identifier: MIT */
/* expression.c - a small stack machine; see expression.h */
#include "unwind/step/expression.h"

#include "base/cursor.h"

/* Source: DWARF 5, table 7.9. */
enum {
	OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S, OP_CONST2U, OP_CONST2S,
	OP_CONST4U, OP_CONST4S, OP_CONST8U, OP_CONST8S, OP_CONSTU, OP_CONSTS,
	OP_DUP, OP_DROP, OP_OVER, OP_PICK, OP_SWAP, OP_ROT,
	OP_ABS = 0x19, OP_AND, OP_DIV, OP_MINUS, OP_MOD, OP_MUL, OP_NEG, OP_NOT,
	OP_OR, OP_PLUS, OP_PLUS_UCONST, OP_SHL, OP_SHR, OP_SHRA, OP_XOR,
	OP_BRA, OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT, OP_NE, OP_SKIP,
	OP_LIT0 = 0x30, OP_LIT31 = 0x4f, OP_BREG0 = 0x70, OP_BREG31 = 0x8f,
	OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96,
};

struct machine {
	struct seam_cursor c;
	const struct seam_unwind_memory *memory;
	const struct seam_unwind_registers *regs;
	enum seam_unwind_end end;
	size_t depth;
	uint64_t words[SEAM_UNWIND_MAX_DEPTH];
};

static void stop(struct machine *m, enum seam_unwind_end end)
{
	if (m->end == SEAM_UNWIND_CALLER)
		m->end = end;
}

static void push(struct machine *m, uint64_t word)
{
	if (m->depth == SEAM_UNWIND_MAX_DEPTH)
		stop(m, SEAM_UNWIND_BROKEN_CFI);
	else
		m->words[m->depth++] = word;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth == 0) {
		stop(m, SEAM_UNWIND_BROKEN_CFI);
		return 0;
	}
	return m->words[--m->depth];
}

/* A copy of the word that is @below others. */
static void pick(struct machine *m, size_t below)
{
	if (below >= m->depth)
		stop(m, SEAM_UNWIND_BROKEN_CFI);
	else
		push(m, m->words[m->depth - 1 - below]);
}

static void push_register(struct machine *m, uint64_t column)
{
	int64_t offset = seam_cursor_sleb128(&m->c);

	if (column >= SEAM_UNWIND_COLUMNS ||
	    !seam_unwind_has(m->regs, (unsigned int)column))
		stop(m, SEAM_UNWIND_UNKNOWN_REGISTER);
	else
		push(m, m->regs->value[column] + (uint64_t)offset);
}

static void dereference(struct machine *m, uint8_t bytes)
{
	uint64_t addr = pop(m), word = 0;

	if (bytes == 0 || bytes > sizeof(word))
		stop(m, SEAM_UNWIND_BROKEN_CFI);
	else if (!seam_unwind_read(m->memory, addr, &word))
		stop(m, SEAM_UNWIND_UNREADABLE);
	else
		push(m, bytes == 8 ? word :
				     word & ((UINT64_C(1) << 8 * bytes) - 1));
}

static void jump(struct machine *m, bool taken)
{
	int16_t distance = (int16_t)seam_cursor_u16(&m->c);
	int64_t to = (int64_t)m->c.pos + distance;

	if (!taken || m->c.error)
		return;
	if (to < 0 || to > (int64_t)m->c.size)
		stop(m, SEAM_UNWIND_BROKEN_CFI);
	else
		m->c.pos = (size_t)to;
}

static uint64_t divide(struct machine *m, int64_t a, int64_t b)
{
	if (b == 0 || (a == INT64_MIN && b == -1)) {
		stop(m, SEAM_UNWIND_BROKEN_CFI);
		return 0;
	}
	return (uint64_t)(a / b);
}

/* Two words become one. */
static void combine(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m), r = 0;
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case OP_AND: r = a & b; break;
	case OP_DIV: r = divide(m, sa, sb); break;
	case OP_MINUS: r = a - b; break;
	case OP_MOD:
		if (b == 0)
			stop(m, SEAM_UNWIND_BROKEN_CFI);
		else
			r = a % b;
		break;
	case OP_MUL: r = a * b; break;
	case OP_OR: r = a | b; break;
	case OP_PLUS: r = a + b; break;
	case OP_SHL: r = b < 64 ? a << b : 0; break;
	case OP_SHR: r = b < 64 ? a >> b : 0; break;
	case OP_SHRA: r = (uint64_t)(sa >> (b < 63 ? b : 63)); break;
	case OP_XOR: r = a ^ b; break;
	case OP_EQ: r = sa == sb; break;
	case OP_GE: r = sa >= sb; break;
	case OP_GT: r = sa > sb; break;
	case OP_LE: r = sa <= sb; break;
	case OP_LT: r = sa < sb; break;
	case OP_NE: r = sa != sb; break;
	}
	push(m, r);
}

/* The top three words, turned: the first becomes the third. */
static void rotate(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m), c = pop(m);

	push(m, a);
	push(m, c);
	push(m, b);
}

static void constant(struct machine *m, uint8_t op)
{
	struct seam_cursor *c = &m->c;

	switch (op) {
	case OP_CONST1U: push(m, seam_cursor_u8(c)); break;
	case OP_CONST1S: push(m, (uint64_t)(int8_t)seam_cursor_u8(c)); break;
	case OP_CONST2U: push(m, seam_cursor_u16(c)); break;
	case OP_CONST2S: push(m, (uint64_t)(int16_t)seam_cursor_u16(c)); break;
	case OP_CONST4U: push(m, seam_cursor_u32(c)); break;
	case OP_CONST4S: push(m, (uint64_t)(int32_t)seam_cursor_u32(c)); break;
	case OP_CONST8U:
	case OP_CONST8S: push(m, seam_cursor_u64(c)); break;
	case OP_CONSTU: push(m, seam_cursor_uleb128(c)); break;
	case OP_CONSTS: push(m, (uint64_t)seam_cursor_sleb128(c)); break;
	}
}

/* Operations on the words that are there, and jumps. */
static void operate(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case OP_DEREF: dereference(m, 8); break;
	case OP_DEREF_SIZE: dereference(m, seam_cursor_u8(&m->c)); break;
	case OP_DUP: pick(m, 0); break;
	case OP_DROP: pop(m); break;
	case OP_OVER: pick(m, 1); break;
	case OP_PICK: pick(m, seam_cursor_u8(&m->c)); break;
	case OP_SWAP:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		break;
	case OP_ROT: rotate(m); break;
	case OP_ABS:
		a = pop(m);
		push(m, (int64_t)a < 0 ? -a : a);
		break;
	case OP_NEG: push(m, -pop(m)); break;
	case OP_NOT: push(m, ~pop(m)); break;
	case OP_PLUS_UCONST:
		a = pop(m);
		push(m, a + seam_cursor_uleb128(&m->c));
		break;
	case OP_BRA: jump(m, pop(m) != 0); break;
	case OP_SKIP: jump(m, true); break;
	case OP_BREGX: push_register(m, seam_cursor_uleb128(&m->c)); break;
	case OP_NOP: break;
	default: stop(m, SEAM_UNWIND_BROKEN_CFI);
	}
}

static void execute(struct machine *m, uint8_t op)
{
	if (op >= OP_LIT0 && op <= OP_LIT31)
		push(m, op - OP_LIT0);
	else if (op >= OP_BREG0 && op <= OP_BREG31)
		push_register(m, op - OP_BREG0);
	else if (op >= OP_CONST1U && op <= OP_CONSTS)
		constant(m, op);
	else if ((op >= OP_AND && op <= OP_MUL) || op == OP_OR ||
		 op == OP_PLUS || (op >= OP_SHL && op <= OP_XOR) ||
		 (op >= OP_EQ && op <= OP_NE))
		combine(m, op);
	else
		operate(m, op);
}

enum seam_unwind_end
seam_unwind_evaluate(struct seam_bytes expression, const uint64_t *first,
		     const struct seam_unwind_memory *memory,
		     const struct seam_unwind_registers *regs,
		     uint64_t *value)
{
	struct machine m = {
		.c = seam_cursor_make(expression.data, expression.size,
				      SEAM_LITTLE),
		.memory = memory, .regs = regs,
	};

	if (first)
		push(&m, *first);
	for (int i = 0; seam_cursor_left(&m.c) && !m.c.error &&
	     m.end == SEAM_UNWIND_CALLER; i++) {
		if (i == SEAM_UNWIND_MAX_OPERATIONS)
			return SEAM_UNWIND_BROKEN_CFI;
		execute(&m, seam_cursor_u8(&m.c));
	}
	if (m.c.error)
		return SEAM_UNWIND_BROKEN_CFI;
	*value = m.end == SEAM_UNWIND_CALLER ? pop(&m) : 0;
	return m.end;
}
