/* SPDX-License-Identifier: MIT */
/* step.c - expressions, and one frame up by rules; see step.h */
#include "unwind/step/step.h"

#include "base/cursor.h"

/* ---- memory ---- */

bool seam_unwind_read(const struct seam_unwind_memory *memory, uint64_t addr,
		      uint64_t *word)
{
	uint64_t offset = addr - memory->stack_addr;

	if (offset < memory->stack_bytes &&
	    memory->stack_bytes - offset >= sizeof(*word)) {
		memcpy(word, memory->stack + offset, sizeof(*word));
		return true;
	}
	return memory->read && memory->read(memory->context, addr, word);
}

enum seam_unwind_end
seam_unwind_unreadable(const struct seam_unwind_memory *memory, uint64_t addr)
{
	uint64_t end = memory->stack_addr + memory->stack_bytes;

	return memory->stack_bytes && addr + sizeof(uint64_t) > end &&
	       addr < end + SEAM_UNWIND_MAX_STACK ?
	       SEAM_UNWIND_TRUNCATED : SEAM_UNWIND_UNREADABLE;
}

/* ---- expressions ---- */

/*
 * DWARF operations, for the few functions whose rules are no register and
 * offset: stubs of the PLT, where the CFA depends on the program counter;
 * signal trampolines; functions that align their stack.  They are untrusted,
 * and bounded.
 */
enum {
	MAX_OPERATIONS = 256,
	MAX_DEPTH = 32,		/* words */
};

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
	uint64_t words[MAX_DEPTH];
};

static void stop(struct machine *m, enum seam_unwind_end end)
{
	if (m->end == SEAM_UNWIND_CALLER)
		m->end = end;
}

static void push(struct machine *m, uint64_t word)
{
	if (m->depth == MAX_DEPTH)
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

/* Two words become one. */
static void combine(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m), r = 0;
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case OP_AND: r = a & b; break;
	case OP_DIV:
		if (b == 0 || (sa == INT64_MIN && sb == -1))
			stop(m, SEAM_UNWIND_BROKEN_CFI);
		else
			r = (uint64_t)(sa / sb);
		break;
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
	uint64_t a, b, c;

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
	case OP_ROT:		/* the first becomes the third */
		a = pop(m);
		b = pop(m);
		c = pop(m);
		push(m, a);
		push(m, c);
		push(m, b);
		break;
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

/*
 * Run @expression; @first, unless NULL, is on its stack at the start (the CFA,
 * for registers).  Returns SEAM_UNWIND_CALLER with *@value, or why not.
 * Source: DWARF 5, 2.5.1 and 7.7.1; 6.4.2 lists what is not allowed here.
 */
static enum seam_unwind_end
evaluate(struct seam_bytes expression, const uint64_t *first,
	 const struct seam_unwind_memory *memory,
	 const struct seam_unwind_registers *regs, uint64_t *value)
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
		if (i == MAX_OPERATIONS)
			return SEAM_UNWIND_BROKEN_CFI;
		execute(&m, seam_cursor_u8(&m.c));
	}
	if (m.c.error)
		return SEAM_UNWIND_BROKEN_CFI;
	*value = m.end == SEAM_UNWIND_CALLER ? pop(&m) : 0;
	return m.end;
}

/* ---- a step ---- */

/* rbx, rbp, r12 to r15: what a callee has to preserve. */
#define PRESERVED (UINT64_C(1) << SEAM_X86_64_RBX |			\
		   UINT64_C(1) << SEAM_X86_64_RBP |			\
		   UINT64_C(0xf) << SEAM_X86_64_R12)

static enum seam_unwind_end
find_cfa(const struct seam_unwind_rules *rules,
	 const struct seam_unwind_rule *rule,
	 const struct seam_unwind_memory *memory,
	 const struct seam_unwind_registers *regs, uint64_t *cfa)
{
	if (rule->cfa_how == SEAM_UNWIND_CFA_EXPRESSION)
		return evaluate(
			seam_unwind_rules_borrow_expression(rules,
							    rule->cfa_value),
			NULL, memory, regs, cfa);
	if (!seam_unwind_has(regs, rule->cfa_column))
		return SEAM_UNWIND_UNKNOWN_REGISTER;
	*cfa = regs->value[rule->cfa_column] +
	       (uint64_t)(int64_t)rule->cfa_value;
	return SEAM_UNWIND_CALLER;
}

/* The caller's value of a saved register; SEAM_UNWIND_ROOT: it is lost. */
static enum seam_unwind_end
find_saved(const struct seam_unwind_rules *rules,
	   const struct seam_unwind_saved *saved, uint64_t cfa,
	   const struct seam_unwind_memory *memory,
	   const struct seam_unwind_registers *regs, uint64_t *value)
{
	uint64_t at = cfa + (uint64_t)(int64_t)saved->value;
	enum seam_unwind_end end = SEAM_UNWIND_CALLER;

	switch (saved->how) {
	case SEAM_UNWIND_CFA_PLUS:
		*value = at;
		return end;
	case SEAM_UNWIND_REGISTER:
		if (!seam_unwind_has(regs, (unsigned int)saved->value))
			return SEAM_UNWIND_UNKNOWN_REGISTER;
		*value = regs->value[saved->value];
		return end;
	case SEAM_UNWIND_AT_CFA:
		break;
	case SEAM_UNWIND_AT_EXPRESSION:
	case SEAM_UNWIND_EXPRESSION:
		end = evaluate(
			seam_unwind_rules_borrow_expression(rules,
							    saved->value),
			&cfa, memory, regs, &at);
		if (end != SEAM_UNWIND_CALLER ||
		    saved->how == SEAM_UNWIND_EXPRESSION) {
			*value = at;
			return end;
		}
		break;
	default:
		return SEAM_UNWIND_ROOT;
	}
	return seam_unwind_read(memory, at, value) ? SEAM_UNWIND_CALLER :
	       seam_unwind_unreadable(memory, at);
}

/* How @rule finds @column in the caller. */
static enum seam_unwind_how how_of(const struct seam_unwind_rules *rules,
				   const struct seam_unwind_rule *rule,
				   uint8_t column)
{
	const struct seam_unwind_saved *saved =
		rules->saved.items + rule->first_saved;

	for (size_t i = 0; i < rule->n_saved; i++)
		if (saved[i].column == column)
			return (enum seam_unwind_how)saved[i].how;
	return SEAM_UNWIND_SAME;
}

/* Whether the stack pointer has a rule of its own, as in longjmp(). */
static bool has_rule_for_sp(const struct seam_unwind_rules *rules,
			    const struct seam_unwind_rule *rule)
{
	return how_of(rules, rule, SEAM_X86_64_RSP) != SEAM_UNWIND_SAME;
}

/*
 * Compilers do not describe their epilogues to the last pop: after "pop
 * rbp" the rule still names the place in memory, which is below the stack
 * pointer then, where signal handlers write.  The register has the value.
 */
static bool is_popped(const struct seam_unwind_saved *saved, uint64_t cfa,
		      const struct seam_unwind_registers *regs)
{
	return saved->how == SEAM_UNWIND_AT_CFA &&
	       PRESERVED >> saved->column & 1 &&
	       seam_unwind_has(regs, saved->column) &&
	       cfa + (uint64_t)(int64_t)saved->value <
		       regs->value[SEAM_X86_64_RSP];
}

/*
 * The caller's values of the registers that @rule saves, in @values by column;
 * bits of *@known are set for those, cleared for what is lost.
 */
static enum seam_unwind_end
find_all(const struct seam_unwind_rules *rules,
	 const struct seam_unwind_rule *rule, uint64_t cfa,
	 const struct seam_unwind_memory *memory,
	 const struct seam_unwind_registers *regs, uint64_t *values,
	 uint64_t *known)
{
	const struct seam_unwind_saved *saved =
		rules->saved.items + rule->first_saved;

	for (const struct seam_unwind_saved *after = saved + rule->n_saved;
	     saved < after; saved++) {
		uint64_t bit = UINT64_C(1) << saved->column;
		enum seam_unwind_end end;

		if (is_popped(saved, cfa, regs) &&
		    !has_rule_for_sp(rules, rule)) {
			values[saved->column] = regs->value[saved->column];
			continue;
		}
		end = find_saved(rules, saved, cfa, memory, regs,
				 &values[saved->column]);
		if (end == SEAM_UNWIND_CALLER)
			*known |= bit;
		else if (saved->column == SEAM_X86_64_RIP ||
			 saved->column == SEAM_X86_64_RSP)
			return end;
		else	/* may be unknown until a rule needs it */
			*known &= ~bit;
	}
	return SEAM_UNWIND_CALLER;
}

enum seam_unwind_end
seam_unwind_step(const struct seam_unwind_rules *rules, uint16_t id,
		 const struct seam_unwind_memory *memory,
		 struct seam_unwind_registers *regs)
{
	const uint64_t pc_bit = UINT64_C(1) << SEAM_X86_64_RIP;
	uint64_t cfa = 0, known = regs->known, values[SEAM_UNWIND_COLUMNS];
	const struct seam_unwind_saved *saved;
	const struct seam_unwind_rule *rule;
	enum seam_unwind_end end;

	regs->cfa = 0;
	if (id == SEAM_UNWIND_NO_CFI)
		return SEAM_UNWIND_WITHOUT_CFI;
	if (id == SEAM_UNWIND_BAD_CFI)
		return SEAM_UNWIND_BROKEN_CFI;
	rule = &rules->rules.items[id];
	if (rule->cfa_how == SEAM_UNWIND_CFA_NONE)
		return SEAM_UNWIND_BROKEN_CFI;
	end = find_cfa(rules, rule, memory, regs, &cfa);
	if (end != SEAM_UNWIND_CALLER)
		return end;
	if (!rule->is_signal_frame) {
		/*
		 * Right in longjmp(), and where the return address was popped
		 * into a register, as in vfork() and at the end of
		 * _Unwind_Resume().
		 */
		if (cfa <= regs->value[SEAM_X86_64_RSP] &&
		    !has_rule_for_sp(rules, rule) &&
		    how_of(rules, rule, SEAM_X86_64_RIP) !=
			    SEAM_UNWIND_REGISTER)
			return SEAM_UNWIND_NO_PROGRESS;
		known &= PRESERVED;
	}
	regs->cfa = cfa;
	known &= ~pc_bit;
	known |= UINT64_C(1) << SEAM_X86_64_RSP;
	values[SEAM_X86_64_RSP] = cfa;
	end = find_all(rules, rule, cfa, memory, regs, values, &known);
	if (end != SEAM_UNWIND_CALLER)
		return end;
	if (!(known & pc_bit))
		return SEAM_UNWIND_BROKEN_CFI;
	/* equal only where it may stay */
	if (!rule->is_signal_frame &&
	    values[SEAM_X86_64_RSP] < regs->value[SEAM_X86_64_RSP])
		return SEAM_UNWIND_NO_PROGRESS;
	/* only what changes: copies of all columns would take half the time */
	regs->value[SEAM_X86_64_RSP] = values[SEAM_X86_64_RSP];
	saved = rules->saved.items + rule->first_saved;
	for (size_t i = 0; i < rule->n_saved; i++)
		if (known >> saved[i].column & 1)
			regs->value[saved[i].column] =
				values[saved[i].column];
	regs->known = known;
	return SEAM_UNWIND_CALLER;
}
