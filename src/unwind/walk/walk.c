/* SPDX-License-Identifier: MIT */
/* walk.c - step by step to the root; see walk.h */
#include "unwind/walk/walk.h"

/*
 * A signal frame and what it interrupted are not further apart on one stack:
 * the red zone, and the vector registers, of which AMX has 8 KiB.
 */
enum { MAX_SIGNAL_FRAME = 32768 };

size_t seam_unwind_operand_bytes(const uint8_t *modrm, size_t left)
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
		    seam_unwind_operand_bytes(at + 1, size - 1) == size - 1)
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

/* Whether the bytes before @end are the @n, at most 7, at @code. */
static bool is_code(const struct seam_unwind_space *space, uint64_t end,
		    const uint8_t *code, size_t n)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];

	return space->code_before(space->context, end, bytes) >= n &&
	       memcmp(bytes + sizeof(bytes) - n, code, n) == 0;
}

bool seam_unwind_is_stack_entry(const struct seam_unwind_space *space,
				uint64_t pc)
{
	/* mov %rbx, %rsp; mov (%rsp), %rdi; after "endbr64" in some builds */
	static const uint8_t start_context[] = {
		0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24,
	};
	static const uint8_t goexit[] = { 0x90, 0xe8 };
	enum { ENDBR = 4, CALL_END = 17 };

	return is_code(space, pc + 7, start_context, 7) ||
	       is_code(space, pc + 7 + ENDBR, start_context, 7) ||
	       is_code(space, pc + 7 - CALL_END, start_context, 7) ||
	       (is_code(space, pc + 1, goexit, 2) &&
		!is_after_call(space, pc));
}

/*
 * Whether the code is "mov $15, %eax; syscall", or the same with %rax: the
 * end of a signal handler, above which the kernel's frame is.  Its first words
 * are uc_flags, at most 7, and uc_link, 0: cheap to see, and rare elsewhere.
 */
static bool is_sigreturn(const struct seam_unwind_space *space,
			 const struct seam_unwind_memory *memory,
			 const struct seam_unwind_registers *regs)
{
	static const uint8_t of_eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t of_rax[] = { 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	uint64_t sp = regs->value[SEAM_X86_64_RSP], flags, link;
	uint64_t pc = regs->value[SEAM_X86_64_RIP];

	if (!seam_unwind_read(memory, sp, &flags) || flags > 7 ||
	    !seam_unwind_read(memory, sp + 8, &link) || link)
		return false;
	/* of the second the last 7 bytes of 9 */
	return is_code(space, pc + 7, of_eax, 7) ||
	       is_code(space, pc + 9, of_rax, 7);
}

/*
 * From a handler to what it interrupted: the kernel's frame has all registers.
 * glibc has rules for its trampoline; musl and Go have none for theirs.
 *
 * Source: arch/x86/include/asm/sigframe.h, struct rt_sigframe, and
 * uapi/asm/sigcontext.h: what follows uc_flags, uc_link and uc_stack.
 */
static enum seam_unwind_end
step_over_signal(const struct seam_unwind_memory *memory,
		 struct seam_unwind_registers *regs)
{
	static const uint8_t order[SEAM_X86_64_COLUMNS] = {
		8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2,
		SEAM_X86_64_RSP, SEAM_X86_64_RIP,
	};
	uint64_t at = regs->value[SEAM_X86_64_RSP] + 5 * sizeof(uint64_t);
	struct seam_unwind_registers caller = { .known = 0 };

	for (size_t i = 0; i < SEAM_X86_64_COLUMNS; i++, at += 8) {
		if (!seam_unwind_read(memory, at, &caller.value[order[i]]))
			return seam_unwind_unreadable(memory, at);
		caller.known |= UINT64_C(1) << order[i];
	}
	*regs = caller;
	return SEAM_UNWIND_CALLER;
}

/*
 * Whether the code at @pc is "jmp *x(%rip)", with or without "endbr64" and
 * "bnd" before it: a stub that has no frame.  Linkers write no rules for those
 * of static programs (.iplt).
 */
static bool is_stub(const struct seam_unwind_space *space, uint64_t pc)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t jump[] = { 0xff, 0x25 }, bnd[] = { 0xf2 };

	if (is_code(space, pc + sizeof(endbr), endbr, sizeof(endbr)))
		pc += sizeof(endbr);
	if (is_code(space, pc + sizeof(bnd), bnd, sizeof(bnd)))
		pc += sizeof(bnd);
	return is_code(space, pc + sizeof(jump), jump, sizeof(jump));
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
	regs->cfa = rbp + 16;
	if (!seam_unwind_read(memory, rbp, &saved) ||
	    !seam_unwind_read(memory, rbp + 8, &pc))
		return seam_unwind_unreadable(memory, rbp + 8);
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

static bool has_cfi(const struct seam_unwind_code *code)
{
	return code->rules && code->id != SEAM_UNWIND_NO_CFI;
}

static bool is_signal_frame(const struct seam_unwind_code *code)
{
	return code->rules && code->id > SEAM_UNWIND_BAD_CFI &&
	       code->rules->rules.items[code->id].is_signal_frame;
}

/*
 * Whether the return address @pc of a frame in @code is a landing pad.  Only
 * functions that leave by __builtin_eh_return(), as _Unwind_RaiseException(),
 * save rax and rdx: they overwrite their return address, and at their end rbp
 * is the landing pad's.
 */
static bool is_landing_pad(const struct seam_unwind_space *space,
			   const struct seam_unwind_code *code, uint64_t pc)
{
	/* rax, rdx, rbx, r12 to r15, and the return address */
	const uint64_t all = 0xf00b | UINT64_C(1) << SEAM_X86_64_RIP;
	const uint64_t rbp = UINT64_C(1) << SEAM_X86_64_RBP;
	enum { N_ALL = 8 };
	const struct seam_unwind_rule *rule =
		&code->rules->rules.items[code->id];
	const struct seam_unwind_saved *saved =
		code->rules->saved.items + rule->first_saved;
	uint64_t columns = 0;

	if (rule->n_saved < N_ALL)
		return false;
	for (size_t i = 0; i < rule->n_saved; i++)
		columns |= UINT64_C(1) << saved[i].column;
	return columns == all ||
	       (columns == (all | rbp) && !is_after_call(space, pc));
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
	uint64_t sp = regs->value[SEAM_X86_64_RSP];
	bool at_interrupted = at->is_interrupted;
	bool is_checked = at_interrupted ||
			  at->quality == SEAM_UNWIND_BY_FRAME_POINTER;

	regs->cfa = 0;
	if (code->is_entry && !has_cfi(code))
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
	/*
	 * Readers look for the call before a return address; a landing pad may
	 * be the first instruction of its function, so its frame has the
	 * address after the landing pad's first byte.
	 */
	if (end == SEAM_UNWIND_CALLER &&
	    is_landing_pad(space, code, regs->value[SEAM_X86_64_RIP]))
		regs->value[SEAM_X86_64_RIP]++;
	if (end != SEAM_UNWIND_WITHOUT_CFI)
		return end;
	if (is_sigreturn(space, memory, regs)) {
		at->is_interrupted = true;
		return step_over_signal(memory, regs);
	}
	if (at_interrupted && is_stub(space, regs->value[SEAM_X86_64_RIP])) {
		/* it has pushed nothing */
		regs->cfa = sp + 8;
		if (!seam_unwind_read(memory, sp,
				      &regs->value[SEAM_X86_64_RIP]))
			return seam_unwind_unreadable(memory, sp);
		regs->value[SEAM_X86_64_RSP] = sp + 8;
		return SEAM_UNWIND_CALLER;
	}
	/* nothing is known of the frame of code that did not call */
	if (!is_checked && !is_after_call(space, regs->value[SEAM_X86_64_RIP]))
		return seam_unwind_is_stack_entry(space,
				regs->value[SEAM_X86_64_RIP]) ?
		       SEAM_UNWIND_ROOT : SEAM_UNWIND_WITHOUT_CFI;
	at->quality = SEAM_UNWIND_BY_FRAME_POINTER;
	return step_by_frame_pointer(space, memory, regs);
}

/*
 * The code of a frame at @pc; false where nothing is mapped.  A return address
 * may be the first after its function, and so may the address after a system
 * call, as in __restore_rt().
 */
static bool find_code(const struct seam_unwind_space *space, uint64_t pc,
		      bool is_interrupted, struct seam_unwind_code *code)
{
	static const uint8_t syscall[] = { 0x0f, 0x05 };

	if (!space->find(space->context, pc - !is_interrupted, code))
		return false;
	return !is_interrupted || has_cfi(code) ||
	       !is_code(space, pc, syscall, sizeof(syscall)) ||
	       space->find(space->context, pc - 1, code);
}

void seam_unwind_walk(const struct seam_unwind_space *space,
		      const struct seam_unwind_memory *memory,
		      const struct seam_unwind_registers *start,
		      struct seam_unwind_stack *stack)
{
	struct seam_unwind_registers regs = *start;
	const struct seam_unwind_frame first = { .is_interrupted = true };

	stack->n = 0;
	seam_unwind_walk_on(space, memory, &regs, &first, stack);
}

void seam_unwind_walk_on(const struct seam_unwind_space *space,
			 const struct seam_unwind_memory *memory,
			 struct seam_unwind_registers *regs,
			 const struct seam_unwind_frame *from,
			 struct seam_unwind_stack *stack)
{
	struct seam_unwind_frame next = *from;
	enum seam_unwind_end end = SEAM_UNWIND_CALLER;
	bool is_other = false;

	next.sp = regs->value[SEAM_X86_64_RSP];
	while (end == SEAM_UNWIND_CALLER) {
		struct seam_unwind_code code = { .rules = NULL };
		struct seam_unwind_frame *frame;
		uint64_t before = next.sp;

		next.pc = regs->value[SEAM_X86_64_RIP];
		next.sp = regs->value[SEAM_X86_64_RSP];
		/* a signal's frame and what it interrupted: on two stacks? */
		is_other |= next.is_interrupted &&
			    next.sp - before > MAX_SIGNAL_FRAME;
		stack->end_pc = next.pc;
		if (stack->n == stack->max) {
			end = SEAM_UNWIND_TOO_DEEP;
			break;
		}
		/* member by member: a copy would wait for the stores above */
		frame = &stack->frames[stack->n++];
		frame->pc = next.pc;
		frame->sp = next.sp;
		frame->quality = next.quality;
		frame->is_interrupted = next.is_interrupted;
		end = find_code(space, next.pc, next.is_interrupted, &code) ?
		      leave_frame(space, memory, &code, regs, &next) :
		      SEAM_UNWIND_NO_MAPPING;
	}
	if (is_other && (end == SEAM_UNWIND_TRUNCATED ||
			 end == SEAM_UNWIND_UNREADABLE))
		end = SEAM_UNWIND_OTHER_STACK;
	stack->end = (uint8_t)end;
	stack->end_cfa = end == SEAM_UNWIND_TRUNCATED ||
			 end == SEAM_UNWIND_OTHER_STACK ? regs->cfa : 0;
	/*
	 * Data was taken for the return address of the last frame, which is in
	 * no code.  The frame before it may be a root, whose rules do not say
	 * so.
	 */
	if (end == SEAM_UNWIND_NO_MAPPING && stack->n >= 2 &&
	    seam_unwind_is_stack_entry(space, stack->frames[--stack->n - 1].pc))
		stack->end = SEAM_UNWIND_ROOT;
}
