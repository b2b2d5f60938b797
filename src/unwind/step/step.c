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

enum seam_unwind_end
seam_unwind_step(const struct seam_unwind_rules *rules, uint16_t id,
		 const struct seam_unwind_memory *memory,
		 struct seam_unwind_registers *regs)
{
	const uint64_t pc_bit = UINT64_C(1) << SEAM_X86_64_RIP;
	const struct seam_unwind_saved *saved;
	const struct seam_unwind_rule *rule;
	struct seam_unwind_registers caller = *regs;
	enum seam_unwind_end end;
	uint64_t cfa = 0;

	if (id == SEAM_UNWIND_NO_CFI)
		return SEAM_UNWIND_WITHOUT_CFI;
	if (id == SEAM_UNWIND_BAD_CFI)
		return SEAM_UNWIND_BROKEN_CFI;
	rule = &rules->rules.items[id];
	if (rule->cfa_how == SEAM_UNWIND_CFA_NONE)
		return SEAM_UNWIND_BROKEN_CFI;
	saved = rules->saved.items + rule->first_saved;
	end = find_cfa(rules, rule, memory, regs, &cfa);
	if (end != SEAM_UNWIND_CALLER)
		return end;
	if (!rule->is_signal_frame) {
		if (cfa <= regs->value[SEAM_X86_64_RSP])
			return SEAM_UNWIND_NO_PROGRESS;
		caller.known &= PRESERVED;
	}
	caller.known &= ~pc_bit;
	caller.value[SEAM_X86_64_RSP] = cfa;
	caller.known |= UINT64_C(1) << SEAM_X86_64_RSP;
	for (; saved < rules->saved.items + rule->first_saved + rule->n_saved;
	     saved++) {
		if (is_popped(saved, cfa, regs))
			continue;
		end = find_saved(rules, saved, cfa, memory, regs,
				 &caller.value[saved->column]);
		caller.known &= ~(UINT64_C(1) << saved->column);
		if (end == SEAM_UNWIND_CALLER)
			caller.known |= UINT64_C(1) << saved->column;
		else if (saved->column == SEAM_X86_64_RIP)
			return end;
		/* any other register may be unknown until a rule needs it */
	}
	if (!(caller.known & pc_bit))
		return SEAM_UNWIND_BROKEN_CFI;
	if (caller.value[SEAM_X86_64_RIP] == 0)
		return SEAM_UNWIND_ROOT;
	*regs = caller;
	return SEAM_UNWIND_CALLER;
}
