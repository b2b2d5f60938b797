/* SPDX-License-Identifier: MIT */
/* walk.c - step by step to the root; see walk.h */
#include "unwind/walk/walk.h"

/*
 * The length of "call r/m64" (ff /2) from its ModRM byte on: a base register
 * with SIB byte and displacement.
 */
static size_t operand_bytes(const uint8_t *modrm, size_t left)
{
	unsigned int mod = modrm[0] >> 6, rm = modrm[0] & 7;
	size_t n = 1;

	if (mod == 3)
		return n;
	if (rm == 4) {
		if (left < 2)
			return 0;
		n++;
		if (mod == 0 && (modrm[1] & 7) == 5)
			n += 4;
	}
	if (mod == 0 && rm == 5)
		n += 4;
	return mod == 1 ? n + 1 : mod == 2 ? n + 4 : n;
}

bool seam_unwind_is_call(const uint8_t *end, size_t n)
{
	if (n >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t size = 2; size <= n && size <= SEAM_UNWIND_CALL_BYTES;
	     size++) {
		const uint8_t *at = end - size;

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2 &&
		    operand_bytes(at + 1, size - 1) == size - 1)
			return true;
	}
	return false;
}

/* Code that cannot be read, JIT code of another process, may end in a call. */
static bool is_after_call(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];
	size_t n = space->code_before(space->context, pc, bytes);

	return n == 0 || seam_unwind_is_call(bytes + sizeof(bytes), n);
}

/*
 * Code without call frame information, taken to keep rbp as its frame
 * pointer: [rbp] is the caller's, [rbp + 8] the return address.
 */
static enum seam_unwind_end
step_by_frame_pointer(const struct seam_unwind_space *space,
		      const struct seam_unwind_memory *memory,
		      struct seam_unwind_registers *regs)
{
	uint64_t rbp = regs->value[SEAM_X86_64_RBP], saved, pc;
	struct seam_unwind_code code;

	if (!seam_unwind_has(regs, SEAM_X86_64_RBP) || rbp & 7 ||
	    rbp < regs->value[SEAM_X86_64_RSP])
		return SEAM_UNWIND_WITHOUT_CFI;
	if (!seam_unwind_read(memory, rbp, &saved) ||
	    !seam_unwind_read(memory, rbp + 8, &pc))
		return seam_unwind_unreadable(memory, rbp + 8);
	if (pc == 0)
		return SEAM_UNWIND_ROOT;
	/* the saved value is the caller's, which may not be a pointer */
	if (!space->find(space->context, pc - 1, &code) ||
	    !is_after_call(space, pc))
		return SEAM_UNWIND_WITHOUT_CFI;
	regs->value[SEAM_X86_64_RSP] = rbp + 16;
	regs->value[SEAM_X86_64_RBP] = saved;
	regs->value[SEAM_X86_64_RIP] = pc;
	/* what else the function saved is not known */
	regs->known = UINT64_C(1) << SEAM_X86_64_RSP |
		      UINT64_C(1) << SEAM_X86_64_RBP |
		      UINT64_C(1) << SEAM_X86_64_RIP;
	return SEAM_UNWIND_CALLER;
}

static bool is_signal_frame(const struct seam_unwind_code *code)
{
	return code->rules && code->id > SEAM_UNWIND_BAD_CFI &&
	       code->rules->rules.items[code->id].is_signal_frame;
}

/* A step by the adapter of a virtual machine. */
static enum seam_unwind_end
step_by_adapter(const struct seam_unwind_adapter *adapter,
		const struct seam_unwind_memory *memory,
		struct seam_unwind_registers *regs)
{
	struct seam_unwind_registers caller = *regs;
	enum seam_unwind_end end = adapter->step(adapter->context, memory,
						 &caller);

	if (end != SEAM_UNWIND_CALLER)
		return end;
	if (caller.value[SEAM_X86_64_RSP] < regs->value[SEAM_X86_64_RSP])
		return SEAM_UNWIND_NO_PROGRESS;
	*regs = caller;
	return end;
}

/* From the frame @at in @code to its caller, in the first way that knows it. */
static enum seam_unwind_end
leave_frame(const struct seam_unwind_space *space,
	    const struct seam_unwind_memory *memory,
	    const struct seam_unwind_code *code,
	    struct seam_unwind_registers *regs, struct seam_unwind_frame *at)
{
	enum seam_unwind_end end = SEAM_UNWIND_WITHOUT_CFI;
	uint8_t quality = at->quality;

	if (code->is_entry)
		return SEAM_UNWIND_ROOT;
	at->is_interrupted = false;
	at->quality = SEAM_UNWIND_BY_ADAPTER;
	if (code->adapter)
		end = step_by_adapter(code->adapter, memory, regs);
	if (end != SEAM_UNWIND_WITHOUT_CFI)
		return end;
	at->is_interrupted = is_signal_frame(code);
	at->quality = SEAM_UNWIND_BY_CFI;
	if (code->rules)
		end = seam_unwind_step(code->rules, code->id, memory, regs);
	if (end != SEAM_UNWIND_WITHOUT_CFI)
		return end;
	at->quality = SEAM_UNWIND_BY_FRAME_POINTER;
	if (quality == SEAM_UNWIND_BY_FRAME_POINTER &&
	    regs->value[SEAM_X86_64_RBP] == 0)
		return SEAM_UNWIND_ROOT;
	return step_by_frame_pointer(space, memory, regs);
}

void seam_unwind_walk(const struct seam_unwind_space *space,
		      const struct seam_unwind_memory *memory,
		      const struct seam_unwind_registers *start,
		      struct seam_unwind_stack *stack)
{
	struct seam_unwind_registers regs = *start;
	struct seam_unwind_frame next = { .is_interrupted = true };
	enum seam_unwind_end end = SEAM_UNWIND_CALLER;

	for (stack->n = 0; end == SEAM_UNWIND_CALLER; ) {
		struct seam_unwind_code code = { .rules = NULL };

		next.pc = regs.value[SEAM_X86_64_RIP];
		next.sp = regs.value[SEAM_X86_64_RSP];
		stack->end_pc = next.pc;
		if (stack->n == stack->max) {
			end = SEAM_UNWIND_TOO_DEEP;
			break;
		}
		stack->frames[stack->n++] = next;
		/* a return address may be the first after its function */
		end = space->find(space->context,
				  next.pc - !next.is_interrupted, &code) ?
		      leave_frame(space, memory, &code, &regs, &next) :
		      SEAM_UNWIND_NO_MAPPING;
	}
	/* what follows data that was taken for a return address is no frame */
	stack->n -= end == SEAM_UNWIND_NO_MAPPING && stack->n > 1;
	stack->end = (uint8_t)end;
}
