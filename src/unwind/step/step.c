/* SPDX-License-Identifier: MIT */
/* step.c - one frame up, by rules; see step.h */
#include "unwind/step/step.h"

#include "unwind/step/expression.h"

/* rbx, rbp, r12 to r15: what a callee has to preserve. */
#define PRESERVED (UINT64_C(1) << SEAM_X86_64_RBX |			\
		   UINT64_C(1) << SEAM_X86_64_RBP |			\
		   UINT64_C(0xf) << SEAM_X86_64_R12)

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

static enum seam_unwind_end
find_cfa(const struct seam_unwind_rules *rules,
	 const struct seam_unwind_rule *rule,
	 const struct seam_unwind_memory *memory,
	 const struct seam_unwind_registers *regs, uint64_t *cfa)
{
	if (rule->cfa_how == SEAM_UNWIND_CFA_EXPRESSION)
		return seam_unwind_evaluate(
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
		end = seam_unwind_evaluate(
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
 * Whether a CFA that is not above the stack pointer may be right: in longjmp(),
 * and where the return address was popped into a register, as in vfork() and
 * at the end of _Unwind_Resume().
 */
static bool may_stay(const struct seam_unwind_rules *rules,
		     const struct seam_unwind_rule *rule)
{
	return has_rule_for_sp(rules, rule) ||
	       how_of(rules, rule, SEAM_X86_64_RIP) == SEAM_UNWIND_REGISTER;
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
		if (cfa <= regs->value[SEAM_X86_64_RSP] &&
		    !may_stay(rules, rule))
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
