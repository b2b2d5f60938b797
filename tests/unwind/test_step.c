/* SPDX-License-Identifier: MIT */
/*
 * test_step.c - steps by rules lead where libgcc's unwinder leads
 *
 * The program unwinds itself: from a signal handler's context, and from
 * functions that save registers, align their stack, or call through the PLT.
 * _Unwind_Backtrace() is the oracle.
 */
#include "unwind/step/step.c"

#include <unwind.h>

#include "own_process.h"

/* --- our stack and libgcc's --- */

struct stack {
	uint64_t pc[MAX_FRAMES];
	size_t n;
	enum seam_unwind_end end;
};

static void walk(const struct seam_unwind_registers *regs, struct stack *stack)
{
	static struct seam_unwind_frame frames[MAX_FRAMES];
	struct seam_unwind_stack walked = {
		.frames = frames, .max = MAX_FRAMES,
	};

	seam_unwind_walk(&own_space, &own_memory, regs, &walked);
	stack->n = walked.n;
	stack->end = (enum seam_unwind_end)walked.end;
	for (size_t i = 0; i < walked.n; i++)
		stack->pc[i] = frames[i].pc;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *of)
{
	struct stack *stack = of;
	uint64_t pc = _Unwind_GetIP(context);

	if (pc == 0 || stack->n == MAX_FRAMES)
		return _URC_END_OF_STACK;
	stack->pc[stack->n++] = pc;
	return _URC_NO_REASON;
}

static struct stack ours, theirs;

/* From here up; the first frames differ by where each began. */
__attribute__((noinline)) static void compare_from_here(void)
{
	struct seam_unwind_registers regs = { 0 };
	ucontext_t context;

	theirs.n = 0;
	_Unwind_Backtrace(add_frame, &theirs);
	getcontext(&context);
	take_registers(&context, &regs);
	walk(&regs, &ours);
	assert_int_equal(ours.end, SEAM_UNWIND_ROOT);
	assert_int_equal(ours.n, theirs.n);
	for (size_t i = 1; i < ours.n; i++)
		assert_int_equal(ours.pc[i], theirs.pc[i]);
}

/* --- functions of all kinds --- */

static volatile int sink;

__attribute__((noinline)) static void deep(int n)
{
	if (n > 0)
		deep(n - 1);
	else
		compare_from_here();
	sink++;
}

UNIT_TEST(recursion_of_3000_frames)
{
	deep(3000);
	assert_true(ours.n > 3000);
}

/* gcc finds its way back by r10 and an expression here. */
__attribute__((noinline)) static void aligned(int n)
{
	_Alignas(128) volatile char room[256];
	volatile char *more = __builtin_alloca((size_t)n + 16);

	room[n] = more[n] = 1;
	compare_from_here();
	sink += room[n] + more[n];
}

UNIT_TEST(a_stack_that_is_aligned_and_of_variable_size)
{
	for (int n = 1; n < 100; n += 7)
		aligned(n);
}

static int compare_in_callback(const void *a, const void *b)
{
	compare_from_here();
	return *(const int *)a - *(const int *)b;
}

UNIT_TEST(a_library_that_calls_back)
{
	int numbers[4] = { 3, 1, 2, 0 };

	qsort(numbers, 4, sizeof(numbers[0]), compare_in_callback);
	assert_int_equal(numbers[0], 0);
}

static void compare_in_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	compare_from_here();
}

static void raise_in(int flags)
{
	static char alternate[65536];
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	action.sa_sigaction = compare_in_handler;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
}

UNIT_TEST(through_a_signal_handler)
{
	raise_in(0);
	assert_true(ours.n > 5);
}

UNIT_TEST(through_a_handler_on_its_own_stack)
{
	raise_in(SA_ONSTACK);
	assert_true(ours.n > 5);
}

/* --- each instruction that runs --- */

static struct stack at_trap;
static uint64_t n_traps, n_wrong, first_wrong;
static size_t n_above;
static struct {
	uint64_t start, end;
} stepper; /* step_through() */

/* Wherever a thread is stopped, the callers of what it runs are the same. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
	struct seam_unwind_registers regs = { 0 };

	(void)signal;
	(void)info;
	take_registers(context, &regs);
	if (regs.value[SEAM_X86_64_RIP] - stepper.start <
	    stepper.end - stepper.start)
		return;		/* its pushfq has no CFI */
	n_traps++;
	walk(&regs, &at_trap);
	if (at_trap.end == SEAM_UNWIND_ROOT && at_trap.n >= n_above &&
	    memcmp(at_trap.pc + at_trap.n - n_above, ours.pc + ours.n - n_above,
		   n_above * sizeof(ours.pc[0])) == 0)
		return;
	if (n_wrong++ == 0)
		first_wrong = at_trap.pc[0];
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The rules of longjmp() are of where it leads to, one by one. */
static jmp_buf back;

__attribute__((noinline)) static void jump_back(int n)
{
	volatile char room[64];

	room[n] = (char)n;
	sink = room[n];
	longjmp(back, n);
}

/* Prologues, epilogues, the PLT, and libc's code written by hand. */
__attribute__((noinline)) static size_t work(void)
{
	int numbers[20] = { 5, 3, 9, 1 };
	char text[200], other[200];
	volatile double d;

	qsort(numbers, 20, sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%d %s %.3f", numbers[3], "text", 2.5);
	memset(other, 'x', sizeof(other) - 1);
	memcpy(other, text, strlen(text));
	other[sizeof(other) - 1] = 0;
	if (!setjmp(back))
		jump_back(3);
	d = strtod(strchr(text, '.'), NULL);
	return strlen(other) + (size_t)d + (size_t)strcmp(text, other);
}

__attribute__((noinline)) static void step_through(void)
{
	compare_from_here();		/* the truth, from here up */
	n_above = ours.n - 2;		/* without these two frames */
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "cc",
			 "memory");
	sink = (int)work();
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "cc",
			 "memory");
}

UNIT_TEST(every_instruction_has_the_same_callers)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	const struct module *m = module_at((uint64_t)(uintptr_t)step_through);
	struct seam_eh_fde fde = { 0 };

	assert_int_equal(seam_eh_frame_find(&m->file.eh,
		(uint64_t)(uintptr_t)step_through - m->bias, &fde), 1);
	stepper.start = fde.start + m->bias;
	stepper.end = fde.end + m->bias;
	action.sa_sigaction = on_trap;
	sigaction(SIGTRAP, &action, NULL);
	step_through();
	signal(SIGTRAP, SIG_DFL);
	assert_true(n_traps > 1000);
	if (n_wrong)
		print_message("# %lu of %lu wrong, first at %lx\n", n_wrong,
			      n_traps, first_wrong);
	assert_int_equal(n_wrong, 0);
}

/* --- what must not be followed --- */

UNIT_TEST(a_frame_that_does_not_grow_ends_the_stack)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP,
		.how[SEAM_X86_64_RIP] = SEAM_UNWIND_AT_CFA,
	};
	struct seam_unwind_registers regs = {
		.known = UINT64_MAX, .value[SEAM_X86_64_RSP] = 0x1000,
	};
	const struct seam_unwind_memory memory = { .stack_addr = 0x1000 };
	struct seam_unwind_rules rules = { 0 };
	int id = seam_unwind_rules_intern(&rules, &row);

	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory,
					  &regs), SEAM_UNWIND_NO_PROGRESS);
	row.cfa_value = 16;
	id = seam_unwind_rules_intern(&rules, &row);
	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory,
					  &regs), SEAM_UNWIND_UNREADABLE);
	assert_int_equal(regs.value[SEAM_X86_64_RSP], 0x1000);
	assert_int_equal(seam_unwind_step(&rules, SEAM_UNWIND_NO_CFI, &memory,
					  &regs), SEAM_UNWIND_WITHOUT_CFI);
	seam_unwind_rules_fini(&rules);
}

/* vfork() pops its return address: CFA = rsp, rip is in rdi. */
UNIT_TEST(a_return_address_in_a_register_needs_no_larger_frame)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP,
		.how[SEAM_X86_64_RIP] = SEAM_UNWIND_REGISTER,
		.value[SEAM_X86_64_RIP] = 5,
	};
	struct seam_unwind_registers regs = {
		.value = { [SEAM_X86_64_RSP] = 0x1000, [5] = 0x401000 },
		.known = UINT64_MAX,
	};
	const struct seam_unwind_memory memory = { .stack_addr = 0x1000 };
	struct seam_unwind_rules rules = { 0 };
	int id = seam_unwind_rules_intern(&rules, &row);

	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory, &regs),
			 SEAM_UNWIND_CALLER);
	assert_int_equal(regs.value[SEAM_X86_64_RIP], 0x401000);
	assert_int_equal(regs.value[SEAM_X86_64_RSP], 0x1000);
	/* rdi is lost in the caller, so this cannot go on for ever */
	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory, &regs),
			 SEAM_UNWIND_UNKNOWN_REGISTER);
	/* but a frame below is none */
	row.cfa_value = -8;
	regs.known = UINT64_MAX;
	id = seam_unwind_rules_intern(&rules, &row);
	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory, &regs),
			 SEAM_UNWIND_NO_PROGRESS);
	seam_unwind_rules_fini(&rules);
}

/*
 * After "pop rbp" the rule still names the place below the stack pointer, which
 * no copy of the stack has and signal handlers write to.
 */
UNIT_TEST(a_register_popped_below_the_stack_pointer_is_live)
{
	const struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP, .cfa_value = 8,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP |
			   UINT64_C(1) << SEAM_X86_64_RBP |
			   UINT64_C(1) << SEAM_X86_64_RBX,
		.how = { [SEAM_X86_64_RBX] = SEAM_UNWIND_AT_CFA,
			 [SEAM_X86_64_RBP] = SEAM_UNWIND_AT_CFA,
			 [SEAM_X86_64_RIP] = SEAM_UNWIND_AT_CFA },
		.value = { [SEAM_X86_64_RBX] = 0, [SEAM_X86_64_RBP] = -16,
			   [SEAM_X86_64_RIP] = -8 },
	};
	/* below the stack pointer; the return address; rbx */
	const uint64_t words[] = { 0xbad, 0x401000, 0x77 };
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)words, .stack_addr = 0x1000,
		.stack_bytes = sizeof(words),
	};
	struct seam_unwind_registers regs = {
		.value = { [SEAM_X86_64_RSP] = 0x1008,
			   [SEAM_X86_64_RBP] = 0x5550,
			   [SEAM_X86_64_RBX] = 0x66 },
		.known = UINT64_MAX,
	};
	struct seam_unwind_rules rules = { 0 };
	int id = seam_unwind_rules_intern(&rules, &row);

	assert_int_equal(seam_unwind_step(&rules, (uint16_t)id, &memory, &regs),
			 SEAM_UNWIND_CALLER);
	assert_int_equal(regs.value[SEAM_X86_64_RIP], 0x401000);
	assert_int_equal(regs.value[SEAM_X86_64_RBP], 0x5550);
	assert_int_equal(regs.value[SEAM_X86_64_RBX], 0x77);
	assert_int_equal(regs.value[SEAM_X86_64_RSP], 0x1010);
	seam_unwind_rules_fini(&rules);
}

static enum seam_unwind_end value_of(const char *operations, size_t size,
				     uint64_t *value)
{
	static const struct seam_unwind_memory memory;
	const struct seam_unwind_registers regs = {
		.known = UINT64_C(1) << SEAM_X86_64_RSP,
		.value[SEAM_X86_64_RSP] = 100,
	};

	return evaluate((struct seam_bytes) {
		(const uint8_t *)operations, size }, NULL, &memory, &regs,
		value);
}

#define EVALUATE(text, value) value_of(text, sizeof(text) - 1, value)

UNIT_TEST(operations_are_bounded_and_right)
{
	uint64_t value;

	/* breg7 -4; lit8; mul; const1u 3; minus */
	assert_int_equal(EVALUATE("\x77\x7c\x38\x1e\x08\x03\x1c", &value),
			 SEAM_UNWIND_CALLER);
	assert_int_equal(value, 96 * 8 - 3);
	/* lit1; lit2; lit3; rot: 3 becomes third; minus: 1 - 2 */
	assert_int_equal(EVALUATE("\x31\x32\x33\x17\x1c", &value),
			 SEAM_UNWIND_CALLER);
	assert_int_equal(value, UINT64_MAX);
	/* skip to itself */
	assert_int_equal(EVALUATE("\x2f\xfd\xff", &value),
			 SEAM_UNWIND_BROKEN_CFI);
	/* skip out of the block; pop of nothing; half a constant; breg3 */
	assert_int_equal(EVALUATE("\x2f\x10\x00", &value),
			 SEAM_UNWIND_BROKEN_CFI);
	assert_int_equal(EVALUATE("\x13", &value), SEAM_UNWIND_BROKEN_CFI);
	assert_int_equal(EVALUATE("\x0c\x01", &value), SEAM_UNWIND_BROKEN_CFI);
	assert_int_equal(EVALUATE("\x73\x00", &value),
			 SEAM_UNWIND_UNKNOWN_REGISTER);
	/* division by zero; nothing left */
	assert_int_equal(EVALUATE("\x31\x30\x1b", &value),
			 SEAM_UNWIND_BROKEN_CFI);
	assert_int_equal(EVALUATE("", &value), SEAM_UNWIND_BROKEN_CFI);
}

#define EIGHT(op) op op op op op op op op
#define OPERATIONS(text) (text), sizeof(text) - 1

/* At the edges of what each may do. */
UNIT_TEST(operations_that_are_wrong_end_the_stack)
{
	static const struct {
		const char *text;
		size_t size;
		enum seam_unwind_end end;
		uint64_t value;
	} all[] = {
		/* 32 words are on the stack, and no more */
		{ OPERATIONS(EIGHT("\x31") EIGHT("\x31") EIGHT("\x31")
			     EIGHT("\x32")), SEAM_UNWIND_CALLER, 2 },
		{ OPERATIONS(EIGHT("\x31") EIGHT("\x31") EIGHT("\x31")
			     EIGHT("\x32") "\x31"), SEAM_UNWIND_BROKEN_CFI, 0 },
		/* pick 0, pick 1 of one word */
		{ OPERATIONS("\x35\x15\x00"), SEAM_UNWIND_CALLER, 5 },
		{ OPERATIONS("\x35\x15\x01"), SEAM_UNWIND_BROKEN_CFI, 0 },
		/* -2^63 / -1, -2^63 / 1; 1 mod 0 */
		{ OPERATIONS("\x0e\0\0\0\0\0\0\0\x80\x09\xff\x1b"),
		  SEAM_UNWIND_BROKEN_CFI, 0 },
		{ OPERATIONS("\x0e\0\0\0\0\0\0\0\x80\x31\x1b"),
		  SEAM_UNWIND_CALLER, UINT64_C(1) << 63 },
		{ OPERATIONS("\x31\x30\x1d"), SEAM_UNWIND_BROKEN_CFI, 0 },
		/* bregx of column 71, which a shift takes for 7 */
		{ OPERATIONS("\x92\x47\x00"),
		  SEAM_UNWIND_UNKNOWN_REGISTER, 0 },
		/* deref_size of 0 and of 9 bytes; of what is not there */
		{ OPERATIONS("\x31\x94\x00"), SEAM_UNWIND_BROKEN_CFI, 0 },
		{ OPERATIONS("\x31\x94\x09"), SEAM_UNWIND_BROKEN_CFI, 0 },
		{ OPERATIONS("\x31\x94\x08"), SEAM_UNWIND_UNREADABLE, 0 },
		/* shifts by 64, of 1 and of -1 */
		{ OPERATIONS("\x31\x08\x40\x24"), SEAM_UNWIND_CALLER, 0 },
		{ OPERATIONS("\x09\xff\x08\x40\x25"), SEAM_UNWIND_CALLER, 0 },
		{ OPERATIONS("\x09\xff\x08\x40\x26"), SEAM_UNWIND_CALLER,
		  UINT64_MAX },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++) {
		uint64_t value = 0;

		assert_int_equal(value_of(all[i].text, all[i].size, &value),
				 all[i].end);
		if (all[i].end == SEAM_UNWIND_CALLER)
			assert_int_equal(value, all[i].value);
	}
}

UNIT_MAIN(load_modules, unload_modules, NULL, NULL)
