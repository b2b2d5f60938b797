/* SPDX-License-Identifier: MIT */
/*
 * test_walk.c - whole stacks: of code with and without call frame
 * information, from live memory and from a copy of the stack
 */
#include "unwind/walk/walk.h"

#include <sys/syscall.h>

#include "own_process.h"

static struct seam_unwind_frame frames[MAX_FRAMES], others[MAX_FRAMES];
static struct seam_unwind_stack stack = { .frames = frames };
static struct seam_unwind_registers here;

/* The stack of the caller, read where it is. */
__attribute__((noinline)) static void walk_from_here(void)
{
	ucontext_t context;

	getcontext(&context);
	take_registers(&context, &here);
	stack.max = MAX_FRAMES;
	seam_unwind_walk(&own_space, &own_memory, &here, &stack);
}

/* --- code without call frame information --- */

#define PROLOGUE "\x55\x48\x89\xe5"		/* push rbp; mov rbp, rsp */
#define CALL_RDI "\xff\xd7"
#define EPILOGUE "\x5d\xc3"				/* pop rbp; ret */

/* Run @code, which gets the address of walk_from_here() as its argument. */
__attribute__((noinline)) static void run_jit(const char *code, size_t size)
{
	union {
		void *bytes;
		void (*call)(void (*callee)(void));
	} jit = {
		mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};

	assert_true(jit.bytes != MAP_FAILED);
	memcpy(jit.bytes, code, size);
	jit_code.start = (uint64_t)(uintptr_t)jit.bytes;
	jit_code.end = jit_code.start + 4096;
	jit.call(walk_from_here);
	munmap(jit.bytes, 4096);
	jit_code.start = jit_code.end = 0;
}

static size_t jit_frame(void)
{
	for (size_t i = 0; i < stack.n; i++)
		if (!module_at(frames[i].pc))
			return i;
	return SIZE_MAX;
}

UNIT_TEST(code_without_cfi_is_left_by_its_frame_pointer)
{
	static const char code[] = PROLOGUE CALL_RDI EPILOGUE;
	size_t at;

	run_jit(code, sizeof(code));
	at = jit_frame();
	assert_in_range(at, 1, 2);
	assert_int_equal(frames[0].quality, SEAM_UNWIND_BY_REGISTERS);
	assert_int_equal(frames[at].quality, SEAM_UNWIND_BY_CFI);
	assert_int_equal(frames[at + 1].quality, SEAM_UNWIND_BY_FRAME_POINTER);
	assert_in_range(frames[at + 1].pc, (uint64_t)(uintptr_t)run_jit,
			(uint64_t)(uintptr_t)run_jit + 1024);
	assert_int_equal(frames[at + 2].quality, SEAM_UNWIND_BY_CFI);
}

UNIT_TEST(a_frame_pointer_that_is_none_is_not_followed)
{
#define CODE(text) { text, sizeof(text) }
	static const struct {
		const char *text;
		size_t size;
	} codes[] = {
		/* push rbp; xor ebp, ebp; call; pop rbp; ret */
		CODE("\x55\x31\xed" CALL_RDI EPILOGUE),
		/* push rbp; lea rbp, [rsp - 64]: below the frame */
		CODE("\x55\x48\x8d\x6c\x24\xc0" CALL_RDI EPILOGUE),
		/* push rbp; push rsp; push rsp; mov rbp, rsp: data, no call */
		CODE("\x55\x54\x54\x48\x89\xe5" CALL_RDI "\x58\x58"
		     EPILOGUE),
		/* push rbp; push rdi; push rsp; mov rbp, rsp: a function */
		CODE("\x55\x57\x54\x48\x89\xe5" CALL_RDI "\x58\x58"
		     EPILOGUE),
		/* push rbp; lea rbp, [rsp + 1]: not where a push puts it */
		CODE("\x55\x48\x8d\x6c\x24\x01" CALL_RDI EPILOGUE),
	};
#undef CODE

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(codes); i++) {
		run_jit(codes[i].text, codes[i].size);
		assert_int_equal(stack.end, SEAM_UNWIND_WITHOUT_CFI);
		assert_int_equal(stack.n, 2);
	}
}

/* Of code that begins with "push rbp" and is at a call; or another end. */
static enum seam_unwind_end
step_by_test(void *context, const struct seam_unwind_memory *memory,
	     struct seam_unwind_registers *regs)
{
	const enum seam_unwind_end *end = context;
	uint64_t rsp = regs->value[SEAM_X86_64_RSP];

	if (*end != SEAM_UNWIND_CALLER && *end != SEAM_UNWIND_NO_PROGRESS)
		return *end;
	assert_true(seam_unwind_read(memory, rsp,
				     &regs->value[SEAM_X86_64_RBP]));
	assert_true(seam_unwind_read(memory, rsp + 8,
				     &regs->value[SEAM_X86_64_RIP]));
	regs->value[SEAM_X86_64_RSP] =
		*end == SEAM_UNWIND_CALLER ? rsp + 16 : rsp - 8;
	return SEAM_UNWIND_CALLER;
}

UNIT_TEST(an_adapter_leads_out_of_its_own_frames)
{
	static const char code[] = "\x55\x31\xed" CALL_RDI EPILOGUE;
	enum seam_unwind_end end = SEAM_UNWIND_CALLER;
	const struct seam_unwind_adapter adapter = { step_by_test, &end };
	size_t at;

	jit_code.adapter = &adapter;
	run_jit(code, sizeof(code));
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	at = jit_frame();
	assert_int_equal(frames[at + 1].quality, SEAM_UNWIND_BY_ADAPTER);
	assert_in_range(frames[at + 1].pc, (uint64_t)(uintptr_t)run_jit,
			(uint64_t)(uintptr_t)run_jit + 1024);
	assert_int_equal(frames[at + 2].quality, SEAM_UNWIND_BY_CFI);

	end = SEAM_UNWIND_UNREADABLE;
	run_jit(code, sizeof(code));
	assert_int_equal(stack.end, SEAM_UNWIND_UNREADABLE);
	assert_int_equal(stack.n, at + 1);
	end = SEAM_UNWIND_NO_PROGRESS;	/* a stack pointer that descends */
	run_jit(code, sizeof(code));
	assert_int_equal(stack.end, SEAM_UNWIND_NO_PROGRESS);
	/* not one of its frames: the frame pointer, which is 0 here */
	end = SEAM_UNWIND_WITHOUT_CFI;
	run_jit(code, sizeof(code));
	assert_int_equal(stack.end, SEAM_UNWIND_WITHOUT_CFI);
	jit_code.adapter = NULL;
}

UNIT_TEST(calls_are_reported_from_other_instructions)
{
	static const struct {
		const char *code;
		size_t size;
		bool is_call;
	} all[] = {
#define CODE(text, is_call) { text, sizeof(text) - 1, is_call }
		CODE("\xe8\x01\x02\x03\x04", true),	/* call rel32 */
		CODE("\xff\xd0", true),			/* call rax */
		CODE("\x41\xff\xd4", true),		/* call r12 */
		CODE("\xff\x10", true),			/* call [rax] */
		CODE("\xff\x14\x24", true),		/* call [rsp] */
		CODE("\xff\x50\x08", true),		/* call [rax + 8] */
		CODE("\xff\x54\x24\x08", true),		/* call [rsp + 8] */
		CODE("\x41\xff\x54\xc4\x08", true),	/* ... [r12+rax*8+8] */
		CODE("\xff\x15\x01\x02\x03\x04", true),	/* call [rip + n] */
		CODE("\xff\x90\x01\x02\x03\x04", true),	/* call [rax + n] */
		CODE("\xff\x94\xc3\x01\x02\x03\x04", true),
		CODE("\xff\x14\xc5\x01\x02\x03\x04", true), /* [rax*8 + n] */
		CODE("\xff\xe0", false),		/* jmp rax */
		CODE("\xff\x30", false),		/* push [rax] */
		CODE("\xff\x50", false),		/* cut before its end */
		CODE("\xe9\x01\x02\x03\x04", false),	/* jmp rel32 */
		CODE("\x90\x90\x90\x90\x90\x90\x90", false),
		CODE("\xc3", false),
		CODE("", false),
#undef CODE
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++)
		assert_int_equal(seam_unwind_is_call(
			(const uint8_t *)all[i].code + all[i].size,
			all[i].size), all[i].is_call);
}

/* --- return addresses --- */

static jmp_buf back;
static volatile int sink;

__attribute__((noreturn, noinline)) static void leave(void)
{
	walk_from_here();
	longjmp(back, 1);
}

/* Its last instruction is a call: it returns to where the next one starts. */
__attribute__((noreturn, noinline)) static void end_in_a_call(int n)
{
	volatile char room[256];

	room[n] = (char)n;
	sink = room[n];
	leave();
}

UNIT_TEST(a_call_at_the_end_of_a_function_is_in_it)
{
	if (!setjmp(back))
		end_in_a_call(3);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_true(stack.n > 5);
}

/* --- a copy of the stack --- */

__attribute__((noinline)) static void deep(int n)
{
	volatile int keep = n;

	if (n > 0)
		deep(n - 1);
	else
		walk_from_here();
	keep++;
}

/* Of frames with a sanitizer's red zones, too. */
__attribute__((no_sanitize_address))
static void copy_stack(uint8_t *to, uint64_t from, uint64_t size)
{
	const volatile uint8_t *bytes = (const void *)(uintptr_t)from;

	for (uint64_t i = 0; i < size; i++)
		to[i] = bytes[i];
}

/*
 * A profiler has the lowest bytes of a stack.  The frames in them are those
 * of the whole stack, and the end says that there were more.
 */
UNIT_TEST(a_cut_stack_is_the_start_of_the_whole)
{
	struct seam_unwind_registers regs = { 0 };
	uint64_t bottom, size;
	ucontext_t context;
	uint8_t *copy;

	deep(40);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_true(stack.n > 40);
	getcontext(&context);
	take_registers(&context, &regs);
	seam_unwind_walk(&own_space, &own_memory, &regs, &stack);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	bottom = regs.value[SEAM_X86_64_RSP];
	size = frames[stack.n - 1].sp - bottom;
	copy = malloc(size);
	assert_non_null(copy);
	copy_stack(copy, bottom, size);
	for (uint64_t n = 1; n <= size; n++) {
		const struct seam_unwind_memory memory = {
			.stack = copy, .stack_addr = bottom,
			.stack_bytes = n,
		};
		struct seam_unwind_stack cut = {
			.frames = others, .max = MAX_FRAMES,
		};

		seam_unwind_walk(&own_space, &memory, &regs, &cut);
		assert_in_range(cut.n, 1, stack.n);
		for (size_t i = 0; i < cut.n; i++) {
			assert_int_equal(cut.frames[i].pc, frames[i].pc);
			assert_int_equal(cut.frames[i].sp, frames[i].sp);
		}
		assert_int_equal(cut.end, n == size && cut.n == stack.n ?
				 SEAM_UNWIND_ROOT : SEAM_UNWIND_TRUNCATED);
	}
	free(copy);
}

UNIT_TEST(no_more_frames_than_there_is_room_for)
{
	struct seam_unwind_registers regs = { 0 };
	ucontext_t context;

	getcontext(&context);
	take_registers(&context, &regs);
	for (size_t max = 0; max < 4; max++) {
		stack.max = max;
		seam_unwind_walk(&own_space, &own_memory, &regs, &stack);
		assert_int_equal(stack.n, max);
		assert_int_equal(stack.end, SEAM_UNWIND_TOO_DEEP);
	}
}

/* --- what is found to be a root --- */

static bool find_entry(void *context, uint64_t addr,
		       struct seam_unwind_code *code)
{
	code->is_entry = true;
	return addr == *(const uint64_t *)context;
}

static size_t no_code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	(void)addr;
	(void)bytes;
	return 0;
}

UNIT_TEST(an_entry_point_without_cfi_is_a_root)
{
	uint64_t entry = 0x401000;
	const struct seam_unwind_space space = {
		.find = find_entry, .code_before = no_code_before,
		.context = &entry,
	};
	struct seam_unwind_registers regs = {
		.value[SEAM_X86_64_RIP] = entry, .known = UINT64_MAX,
	};

	stack.max = MAX_FRAMES;
	seam_unwind_walk(&space, &own_memory, &regs, &stack);
	assert_int_equal(stack.n, 1);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	regs.value[SEAM_X86_64_RIP] = 0;
	seam_unwind_walk(&space, &own_memory, &regs, &stack);
	assert_int_equal(stack.end, SEAM_UNWIND_NO_MAPPING);
	assert_int_equal(stack.end_pc, 0);
}

/* A range around the entry may reach into a function that has CFI. */
static bool find_with_rule(void *context, uint64_t addr,
			   struct seam_unwind_code *code)
{
	code->is_entry = true;
	code->rules = context;
	code->id = addr == 0x401000 ? SEAM_UNWIND_BAD_CFI + 1 :
				      SEAM_UNWIND_NO_CFI;
	return addr == 0x401000 || addr == 0x400fff;
}

UNIT_TEST(code_at_the_entry_point_that_has_cfi_is_unwound)
{
	const struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP, .cfa_value = 8,
		.columns = UINT64_C(1) << SEAM_X86_64_RIP,
		.how[SEAM_X86_64_RIP] = SEAM_UNWIND_AT_CFA,
		.value[SEAM_X86_64_RIP] = -8,
	};
	uint64_t word = 0x401000;
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)&word, .stack_addr = 0x1000,
		.stack_bytes = sizeof(word),
	};
	struct seam_unwind_rules rules = { 0 };
	const struct seam_unwind_space space = {
		.find = find_with_rule, .code_before = no_code_before,
		.context = &rules,
	};
	struct seam_unwind_registers regs = {
		.value = { [SEAM_X86_64_RIP] = 0x401000,
			   [SEAM_X86_64_RSP] = 0x1000 },
		.known = UINT64_MAX,
	};

	assert_int_equal(seam_unwind_rules_intern(&rules, &row),
			 SEAM_UNWIND_BAD_CFI + 1);
	stack.max = MAX_FRAMES;
	seam_unwind_walk(&space, &memory, &regs, &stack);
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_int_equal(frames[1].quality, SEAM_UNWIND_BY_CFI);
	seam_unwind_rules_fini(&rules);
}

/* --- signals --- */

__attribute__((noinline)) static void deep_raise(int n)
{
	volatile int keep = n;

	if (n > 0)
		deep_raise(n - 1);
	else
		raise(SIGUSR2);
	keep++;
}

/* Trampolines without call frame information, as musl and Go have them. */
void return_by_eax(void);
void return_by_rax(void);
__asm__(".text\n\t.p2align 4\n\tnop\n"
	"return_by_eax: mov $15, %eax\n\tsyscall\n\t.p2align 4\n\tnop\n"
	"return_by_rax: mov $15, %rax\n\tsyscall\n\t.p2align 4\n");

static size_t n_interrupted;
static uint64_t interrupted_pc;

__attribute__((noinline)) static void walk_in_handler(int signal)
{
	(void)signal;
	walk_from_here();
	n_interrupted = 0;
	for (size_t i = 1; i < stack.n; i++) {
		if (!frames[i].is_interrupted)
			continue;
		n_interrupted++;
		interrupted_pc = frames[i].pc;
		assert_int_equal(frames[i].quality, SEAM_UNWIND_BY_CFI);
	}
}

/* The kernel's struct sigaction, to choose the trampoline. */
static void raise_through(void (*trampoline)(void), bool is_alternate)
{
	static char room[65536];
	struct {
		void (*handler)(int);
		uint64_t flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {
		walk_in_handler, 0x04000000 | (is_alternate ? SA_ONSTACK : 0),
		trampoline, 0,
	};
	stack_t alternate = { .ss_sp = room, .ss_size = sizeof(room) };

	sigaltstack(&alternate, NULL);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR2, &action, NULL, 8),
			 0);
	deep_raise(5);
	signal(SIGUSR2, SIG_DFL);
}

UNIT_TEST(a_signal_frame_needs_no_cfi_of_its_trampoline)
{
	static void (*const all[])(void) = { return_by_eax, return_by_rax };

	for (size_t i = 0; i < 4; i++) {
		raise_through(all[i % 2], i / 2);
		assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
		assert_int_equal(n_interrupted, 1);
		assert_non_null(module_at(interrupted_pc));
		assert_true(stack.n > 10);
	}
}

/* --- where stacks begin, and where they only seem to --- */

/*
 * Code from 0x1000 on, 64 bytes of each kind, with a "call" before 0x1008 of
 * each but the last two; words of the stack from 0x8000 on.
 */
enum {
	CALLER = 0x1000,	/* CFA = rsp + 16 */
	CODE = CALLER - SEAM_UNWIND_CALL_BYTES,
	SIGNAL = 0x1040,	/* the kernel's frame: registers at rsp + 8 */
	RAISE = 0x1080,		/* saves rax and rdx, as an eh_return */
	PLAIN = 0x10c0,		/* without CFI */
	CONTEXT = 0x1100,	/* __start_context(), likewise */
	GOEXIT = 0x1140,	/* likewise */
	CODE_END = 0x1180,
	RETURN = 8,
	STACK = 0x8000,
	RCX = 2,		/* a column; its value is STACK + 24 */
};

static struct {
	struct seam_unwind_rules rules;
	uint16_t ids[3];
	uint8_t code[CODE_END - CODE];	/* zeros before CALLER */
	uint64_t words[32];
} made;

static uint16_t made_rule(uint64_t columns, bool is_signal)
{
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER,
		.cfa_column = SEAM_X86_64_RSP, .cfa_value = 16,
		.columns = columns, .is_signal_frame = is_signal,
	};

	for (uint8_t i = 0; i < SEAM_X86_64_COLUMNS; i++) {
		row.how[i] = columns >> i & 1 ? SEAM_UNWIND_AT_CFA :
			     SEAM_UNWIND_SAME;
		/* of the signal frame: rsp is in its first word */
		row.value[i] = i == SEAM_X86_64_RSP ? -16 : -8;
	}
	return (uint16_t)seam_unwind_rules_intern(&made.rules, &row);
}

static bool find_made(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	size_t kind = (addr - CALLER) / 64;

	(void)context;
	*code = (struct seam_unwind_code) {
		.rules = &made.rules,
		.id = kind < 3 ? made.ids[kind] : SEAM_UNWIND_NO_CFI,
	};
	return addr >= CALLER && addr < CODE_END;
}

static size_t made_code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	(void)context;
	if (addr < CALLER || addr > CODE_END)
		return 0;
	memcpy(bytes, made.code + (addr - CALLER), SEAM_UNWIND_CALL_BYTES);
	return SEAM_UNWIND_CALL_BYTES;
}

static void make_code(void)
{
	static const uint8_t start_context[] = {
		0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff,
		0x74, 0x08, 0xe8, 0, 0, 0, 0,
	};
	const uint64_t rip = UINT64_C(1) << SEAM_X86_64_RIP;

	memset(&made, 0, sizeof(made));
	made.ids[0] = made_rule(rip, false);
	made.ids[1] = made_rule(rip | UINT64_C(1) << SEAM_X86_64_RSP, true);
	made.ids[2] = made_rule(rip | 0xf00b | UINT64_C(1) << SEAM_X86_64_RBP,
				false);
	for (size_t i = 0; i < 4; i++)
		made.code[CALLER - CODE + 64 * i + RETURN - 5] = 0xe8;
	memcpy(made.code + (CONTEXT - CODE), start_context,
	       sizeof(start_context));
	memcpy(made.code + (GOEXIT - CODE) + 7, "\x90\xe8", 2);
}

/* Walk over @n words from the code at @pc. */
static void walk_made(uint64_t pc, const uint64_t *words, size_t n)
{
	const struct seam_unwind_space space = {
		.find = find_made, .code_before = made_code_before,
	};
	const struct seam_unwind_memory memory = {
		.stack = (const uint8_t *)made.words, .stack_addr = STACK,
		.stack_bytes = 8 * n,
	};
	struct seam_unwind_registers regs = {
		.value = { [SEAM_X86_64_RIP] = pc, [SEAM_X86_64_RSP] = STACK,
			   [SEAM_X86_64_RBP] = STACK + 32,
			   [RCX] = STACK + 24 },
		.known = UINT64_MAX,
	};

	memcpy(made.words, words, 8 * n);
	stack.max = MAX_FRAMES;
	seam_unwind_walk(&space, &memory, &regs, &stack);
}

UNIT_TEST(a_return_address_of_zero_is_no_root)
{
	static const uint64_t zero[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
	static const uint64_t plain[] = { 0, PLAIN + RETURN, 0, 0, 0, 0 };

	make_code();
	walk_made(CALLER + RETURN, zero, 8);
	assert_int_equal(stack.n, 1);
	assert_int_equal(stack.end, SEAM_UNWIND_NO_MAPPING);
	/* nor is a frame pointer of zero */
	walk_made(CALLER + RETURN, plain, 6);
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.end, SEAM_UNWIND_WITHOUT_CFI);
	seam_unwind_rules_fini(&made.rules);
}

UNIT_TEST(a_coroutine_begins_where_nothing_called)
{
	/* the frame pointer leads on, past the caller: it is not followed */
	uint64_t words[] = {
		0, CONTEXT, 0, 0, STACK + 48, CALLER + RETURN, 0,
		CALLER + RETURN, 0, 0,
	};
	static const struct {
		uint64_t pc;
		enum seam_unwind_end end;
	} cases[] = {
		{ CONTEXT, SEAM_UNWIND_ROOT },		/* makecontext()'s */
		{ CONTEXT + 17, SEAM_UNWIND_ROOT },	/* it calls */
		{ GOEXIT + 8, SEAM_UNWIND_ROOT },
		{ GOEXIT + 20, SEAM_UNWIND_WITHOUT_CFI },
	};

	make_code();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		words[1] = cases[i].pc;
		walk_made(CALLER + RETURN, words, SEAM_ARRAY_SIZE(words));
		/* the call that is in it can only be left so */
		assert_int_equal(stack.frames[1].pc, cases[i].pc);
		if (cases[i].pc == CONTEXT + 17)
			continue;
		assert_int_equal(stack.n, 2);
		assert_int_equal(stack.end, cases[i].end);
	}
	seam_unwind_rules_fini(&made.rules);
}

UNIT_TEST(what_a_signal_interrupted_may_be_on_another_stack)
{
	static const uint64_t same[] = {
		STACK + 0x100, CALLER + RETURN, 0, 0,
	};
	static const uint64_t other[] = {
		0x900000, CALLER + RETURN, 0, 0,
	};
	static const uint64_t below[] = {
		STACK - 0x1000, CALLER + RETURN, 0, 0,
	};

	make_code();
	walk_made(SIGNAL + RETURN, same, 4);
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.end, SEAM_UNWIND_TRUNCATED);
	assert_int_equal(stack.end_cfa, STACK + 0x110);
	walk_made(SIGNAL + RETURN, other, 4);
	assert_int_equal(stack.n, 2);
	assert_true(stack.frames[1].is_interrupted);
	assert_int_equal(stack.end, SEAM_UNWIND_OTHER_STACK);
	assert_int_equal(stack.end_cfa, 0x900010);
	walk_made(SIGNAL + RETURN, below, 4);
	assert_int_equal(stack.end, SEAM_UNWIND_OTHER_STACK);
	seam_unwind_rules_fini(&made.rules);
}

/*
 * RAISE as the last instructions of _Unwind_RaiseException() in libgcc: rcx is
 * where the return address was put, and all but the return address is restored.
 */
static void make_end_of_raise(void)
{
	static const uint8_t columns[] = { 0, 1, SEAM_X86_64_RBX, 12, 13, 14,
					   15, SEAM_X86_64_RIP };
	struct seam_unwind_row row = {
		.cfa_how = SEAM_UNWIND_CFA_REGISTER, .cfa_column = RCX,
		.cfa_value = 8,
	};

	for (size_t i = 0; i < sizeof(columns); i++) {
		row.columns |= UINT64_C(1) << columns[i];
		row.how[columns[i]] = SEAM_UNWIND_AT_CFA;
		row.value[columns[i]] = -8;
	}
	made.ids[2] = (uint16_t)seam_unwind_rules_intern(&made.rules, &row);
}

static void assert_landing_pad(uint64_t pad, uint64_t sp)
{
	assert_int_equal(stack.n, 3);
	/* readers look for the code before a return address */
	assert_int_equal(stack.frames[1].pc, pad + 1);
	assert_int_equal(stack.frames[1].sp, sp);
	assert_int_equal(stack.frames[2].pc, PLAIN + RETURN);
	assert_int_equal(stack.frames[2].sp, sp + 16);
}

UNIT_TEST(an_exception_goes_on_at_its_landing_pad)
{
	/* the landing pad's frame is that of CALLER */
	uint64_t raise[] = { 0, 0, 0, PLAIN + RETURN, 0, 0 };
	uint64_t end[] = { 0, 0, 0, 0, 0, PLAIN + RETURN, 0, 0 };
	static const uint64_t pads[] = {
		CALLER + 32,		/* after no call */
		CALLER,			/* the first byte with these rules */
		CALLER + RETURN,	/* after a call */
	};

	make_code();
	raise[1] = CALLER + RETURN;
	walk_made(RAISE + RETURN, raise, 6);
	assert_int_equal(stack.frames[1].pc, CALLER + RETURN);
	for (size_t i = 0; i < 2; i++) {
		raise[1] = pads[i];
		walk_made(RAISE + RETURN, raise, 6);
		assert_landing_pad(pads[i], STACK + 16);
	}
	/* other functions return to where they were called */
	walk_made(CALLER + RETURN, raise, 6);
	assert_int_equal(stack.frames[1].pc, CALLER);
	make_end_of_raise();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(pads); i++) {
		end[3] = pads[i];
		walk_made(RAISE + RETURN, end, 8);
		assert_landing_pad(pads[i], STACK + 32);
	}
	seam_unwind_rules_fini(&made.rules);
}

/* Of a static program: without rules, and without a frame. */
UNIT_TEST(a_stub_that_jumps_has_no_frame)
{
	/* the frame pointer would skip the caller */
	static const uint64_t words[] = {
		CALLER + RETURN, 0, CALLER + RETURN + 1, 0,
		STACK + 128, CALLER + RETURN,
	};
	static const char *const stubs[] = {
		"\xff\x25", "\xf2\xff\x25", "\xf3\x0f\x1e\xfa\xff\x25",
		"\xf3\x0f\x1e\xfa\xf2\xff\x25",
	};

	make_code();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(stubs); i++) {
		memset(made.code + (PLAIN - CODE) + 16, 0, 16);
		memcpy(made.code + (PLAIN - CODE) + 16, stubs[i],
		       strlen(stubs[i]));
		walk_made(PLAIN + 16, words, 6);
		assert_true(stack.n > 2);
		assert_int_equal(stack.frames[1].pc, CALLER + RETURN);
		assert_int_equal(stack.frames[1].sp, STACK + 8);
	}
	seam_unwind_rules_fini(&made.rules);
}

UNIT_TEST(a_system_call_may_be_the_last_instruction)
{
	static const uint64_t words[] = { STACK + 0x100, CALLER + RETURN, 0 };

	make_code();
	/* the address after RAISE's last byte is in code without CFI */
	memcpy(made.code + (PLAIN - CODE) - 2, "\x0f\x05", 2);
	walk_made(PLAIN, words, 3);
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.frames[1].pc, CALLER + RETURN);
	memset(made.code + (PLAIN - CODE) - 2, 0, 2);
	walk_made(PLAIN, words, 3);
	assert_int_equal(stack.n, 1);
	seam_unwind_rules_fini(&made.rules);
}

UNIT_MAIN(load_modules, unload_modules, NULL, NULL)
