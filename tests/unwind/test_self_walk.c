/* SPDX-License-Identifier: MIT */
/*
 * test_self_walk.c - a handler's walk of its own process
 *
 * libgcc's _Unwind_Backtrace() in the same handler is the oracle.  Under
 * AddressSanitizer every word is read through process_vm_readv(); the build
 * that people use loads from the stack as well.
 */
#include "unwind/in_process/self_walk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>

#include "unwind/in_process/self_memory.h"
#include "unit.h"

#include "self_stacks.h"

/* Of self_library.so, a second one, and one without CFI. */
static const char *library_path, *other_path, *plain_path;

static struct seam_unwind_frame frames[MAX_SELF_FRAMES];
static struct seam_unwind_stack stack = {
	.frames = frames, .max = MAX_SELF_FRAMES,
};
static struct their_stack theirs;
static volatile int n_walks, n_equal, n_roots, sink;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	seam_self_walk(context, &stack);
	theirs.n = 0;
	_Unwind_Backtrace(add_their_frame, &theirs);
	n_walks++;
	n_equal += is_equal_stack(&stack, &theirs);
	n_roots += stack.end == SEAM_UNWIND_ROOT;
}

static void handle(int signal, int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

	action.sa_sigaction = on_signal;
	assert_int_equal(sigaction(signal, &action, NULL), 0);
}

static void expect_equal(size_t n_least)
{
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_true(stack.n >= n_least);
	assert_true(is_equal_stack(&stack, &theirs));
}

static void walk_here(void)
{
	stack.n = 0;
	send_signal(SIGUSR1);
}

__attribute__((noinline)) static void deep(int n, void (*callee)(void))
{
	volatile int keep = n;

	if (n > 0)
		deep(n - 1, callee);
	else
		callee();
	sink = keep;
}

/* --- stacks of all kinds --- */

UNIT_TEST(a_handler_has_the_stack_that_libgcc_has)
{
	handle(SIGUSR1, 0);
	deep(300, walk_here);
	expect_equal(300);
	for (size_t i = 1; i < stack.n; i++)
		assert_int_equal(frames[i].quality, SEAM_UNWIND_BY_CFI);
}

UNIT_TEST(no_more_frames_than_asked_for)
{
	stack.max = 7;
	deep(20, walk_here);
	stack.max = MAX_SELF_FRAMES;
	assert_int_equal(stack.n, 7);
	assert_int_equal(stack.end, SEAM_UNWIND_TOO_DEEP);
}

static int compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* libc's assembler, its allocator, the vdso, callbacks. */
static void work(void)
{
	static char from[9000], to[9000];
	static int numbers[512];
	struct timespec now;
	struct tm parts;
	void *memory;

	memset(from, 'a', sizeof(from) - 1);
	memcpy(to, from, sizeof(to));
	sink = (int)strlen(to) + memcmp(from, to, sizeof(to));
	sink = strchr(to, 'b') != NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	localtime_r(&now.tv_sec, &parts);
	for (int i = 0; i < 512; i++)
		numbers[i] = i * 7919 % 512;
	qsort(numbers, 512, sizeof(numbers[0]), compare_numbers);
	memory = malloc((size_t)numbers[0] + 100);
	sink = snprintf(to, sizeof(to), "%f %p", 1.0 / 3, memory);
	free(memory);
}

static void work_under_a_timer(void)
{
	const struct itimerval tick = { { 0, 1000 }, { 0, 1000 } };
	const struct itimerval none = { { 0, 0 }, { 0, 0 } };

	n_walks = n_equal = n_roots = 0;
	handle(SIGPROF, SA_RESTART);
	setitimer(ITIMER_PROF, &tick, NULL);
	while (n_walks < 150)
		work();
	setitimer(ITIMER_PROF, &none, NULL);
}

UNIT_TEST(at_any_instruction_of_libc)
{
	work_under_a_timer();
	assert_int_equal(n_roots, n_walks);
	assert_int_equal(n_equal, n_walks);
}

static void raise_in_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	deep(5, walk_here);
	sink++;
}

/* The handler on the alternate stack interrupts code on either stack. */
UNIT_TEST(an_alternate_stack_leads_to_the_other_one)
{
	const size_t size = 128 << 10;
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t other = { .ss_sp = malloc(size), .ss_size = size };
	const stack_t none = { .ss_flags = SS_DISABLE };

	assert_non_null(other.ss_sp);
	sigaltstack(&other, NULL);
	handle(SIGUSR1, SA_ONSTACK);
	deep(20, walk_here);
	expect_equal(20);

	action.sa_sigaction = raise_in_handler;
	sigaction(SIGUSR2, &action, NULL);
	send_signal(SIGUSR2);
	expect_equal(10);
	sigaltstack(&none, NULL);
	handle(SIGUSR1, 0);
	free(other.ss_sp);
}

UNIT_TEST(errno_is_what_it_was)
{
	errno = 4711;
	deep(3, walk_here);
	assert_int_equal(errno, 4711);
}

/* --- threads --- */

static void *walk_in_thread(void *is_begun)
{
	if (is_begun)
		assert_int_equal(seam_self_thread_begin(), 0);
	deep(40, walk_here);
	return NULL;
}

static void expect_thread(const pthread_attr_t *attr, bool is_begun)
{
	pthread_t thread;

	stack.n = 0;
	assert_int_equal(pthread_create(&thread, attr, walk_in_thread,
					is_begun ? &thread : NULL), 0);
	pthread_join(thread, NULL);
	expect_equal(40);
}

UNIT_TEST(threads_announced_or_not_have_their_stacks)
{
	const size_t size = 1 << 20;
	void *own = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;

	assert_true(own != MAP_FAILED);
	expect_thread(NULL, false);
	expect_thread(NULL, true);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, own, size);
	expect_thread(&attr, false);
	expect_thread(&attr, true);
	pthread_attr_destroy(&attr);
	munmap(own, size);
}

static ucontext_t coroutine, back;

static void run_coroutine(void)
{
	deep(10, walk_here);
	swapcontext(&coroutine, &back);
}

/* A stack that no thread library knows, with nothing mapped around it. */
UNIT_TEST(a_coroutine_has_its_own_stack)
{
	const size_t page = SEAM_SELF_PAGE, size = 64 << 10;
	uint8_t *pages = mmap(NULL, size + 2 * page, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	mprotect(pages + page, size, PROT_READ | PROT_WRITE);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = pages + page;
	coroutine.uc_stack.ss_size = size;
	coroutine.uc_link = NULL;
	makecontext(&coroutine, run_coroutine, 0);
	swapcontext(&back, &coroutine);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_true(stack.n >= 12);
	munmap(pages, size + 2 * page);
}

/* --- images --- */

struct library {
	void *handle;
	void (*call)(void (*callee)(void));
};

static struct library load_library(const char *path)
{
	struct library library = { .handle = dlopen(path, RTLD_NOW) };

	assert_non_null(library.handle);
	/* ISO C has no cast from an object's to a function's address */
	*(void **)&library.call = dlsym(library.handle, "library_call");
	assert_non_null(library.call);
	return library;
}

UNIT_TEST(a_library_is_known_from_the_refresh_on)
{
	struct library library;
	uint64_t n_unmapped;

	assert_int_equal(seam_self_refresh(), 0);
	library = load_library(library_path);
	n_unmapped = seam_self_n_unmapped();
	library.call(walk_here);
	assert_int_equal(stack.end, SEAM_UNWIND_NO_MAPPING);
	assert_in_range(stack.end_pc, (uintptr_t)library.call,
			(uintptr_t)library.call + 100);
	read_code_ranges();
	for (size_t i = 0; i < stack.n; i++)
		assert_false(frames[i].pc == stack.end_pc);
	assert_int_equal(seam_self_n_unmapped(), n_unmapped + 1);

	assert_int_equal(seam_self_refresh(), 1);
	assert_int_equal(seam_self_refresh(), 0);
	library.call(walk_here);
	expect_equal(4);

	dlclose(library.handle);
	assert_int_equal(seam_self_refresh(), 1);
	deep(3, walk_here);
	expect_equal(4);
}

/* The second call frees what the first one replaced. */
static void refresh_twice(void)
{
	assert_int_equal(seam_self_refresh(), 1);
	assert_int_equal(seam_self_refresh(), 0);
}

UNIT_TEST(a_library_loaded_again_has_its_table_still)
{
	size_t size;

	dlclose(load_library(library_path).handle);
	refresh_twice();
	size = seam_self_bytes();
	for (int i = 0; i < 200; i++) {
		struct library library = load_library(library_path);

		refresh_twice();
		/* no other table: an image more */
		assert_in_range(seam_self_bytes(), size,
				size + sizeof(struct seam_self_image));
		if (i % 100 == 0) {
			library.call(walk_here);
			expect_equal(4);
		}
		dlclose(library.handle);
		refresh_twice();
		assert_int_equal(seam_self_bytes(), size);
	}
}

/* Unloaded and loaded between two refreshes, where the first one was. */
UNIT_TEST(another_library_at_the_same_address_has_its_own_table)
{
	struct library library = load_library(library_path), other;

	assert_int_equal(seam_self_refresh(), 1);
	library.call(walk_here);
	expect_equal(4);
	dlclose(library.handle);
	other = load_library(other_path);
	assert_ptr_equal(other.call, library.call);
	assert_int_equal(seam_self_refresh(), 1);
	other.call(walk_here);
	expect_equal(4);
	dlclose(other.handle);
	assert_int_equal(seam_self_refresh(), 1);
}

static size_t frame_by(uint8_t quality)
{
	for (size_t i = 0; i < stack.n; i++)
		if (frames[i].quality == quality)
			return i;
	return SIZE_MAX;
}

UNIT_TEST(a_library_without_cfi_is_left_by_its_frame_pointer)
{
	struct library library = load_library(plain_path);

	assert_int_equal(seam_self_refresh(), 1);
	library.call(walk_here);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	assert_in_range(frame_by(SEAM_UNWIND_BY_FRAME_POINTER), 2, 6);
	dlclose(library.handle);
	assert_int_equal(seam_self_refresh(), 1);
}

/* --- the frames of a virtual machine --- */

static uint8_t *jit_code;

static bool has_jit_code(void *context, uint64_t pc, bool is_in_image)
{
	(void)is_in_image;
	return pc - (uint64_t)(uintptr_t)*(uint8_t **)context < 4096;
}

/* "push rbp" is all that the code has put on its stack. */
static enum seam_unwind_end
step_jit(void *context, const struct seam_unwind_memory *memory,
	 struct seam_unwind_registers *regs)
{
	uint64_t rsp = regs->value[SEAM_X86_64_RSP];

	(void)context;
	if (!seam_unwind_read(memory, rsp, &regs->value[SEAM_X86_64_RBP]) ||
	    !seam_unwind_read(memory, rsp + 8, &regs->value[SEAM_X86_64_RIP]))
		return SEAM_UNWIND_UNREADABLE;
	regs->value[SEAM_X86_64_RSP] = rsp + 16;
	return SEAM_UNWIND_CALLER;
}

UNIT_TEST(an_adapter_leads_through_its_own_code)
{
	/* push rbp; xor ebp, ebp; call rdi; pop rbp; ret */
	static const char code[] = "\x55\x31\xed\xff\xd7\x5d\xc3";
	const struct seam_self_adapter adapter = {
		has_jit_code, { step_jit, &jit_code } };
	void (*call)(void (*callee)(void));
	size_t at;

	jit_code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(jit_code != MAP_FAILED);
	memcpy(jit_code, code, sizeof(code));
	memcpy(&call, &jit_code, sizeof(call));
	call(walk_here);
	assert_int_equal(stack.end, SEAM_UNWIND_NO_MAPPING);
	assert_true(has_jit_code(&jit_code, stack.end_pc, false));
	assert_int_equal(seam_self_add_adapter(&adapter), 0);
	call(walk_here);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	at = frame_by(SEAM_UNWIND_BY_ADAPTER);
	assert_in_range(at, 2, 6);
	assert_true(has_jit_code(&jit_code, frames[at - 1].pc, false));
	assert_int_equal(seam_self_remove_adapter(&adapter), 0);
	munmap(jit_code, 4096);
}

/*
 * An adapter that knows its code, but not the frame: two frames by the frame
 * pointer, the outer one called at the start of the first page that is mapped.
 */
static enum seam_unwind_end
step_nothing(void *context, const struct seam_unwind_memory *memory,
	     struct seam_unwind_registers *regs)
{
	(void)context;
	(void)memory;
	(void)regs;
	return SEAM_UNWIND_WITHOUT_CFI;
}

UNIT_TEST(an_adapter_may_leave_frames_to_the_frame_pointer)
{
	/* push rbp; mov rbp, rsp; call rdi (then: rsi); pop rbp; ret */
	static const char outer[] = "\x55\x48\x89\xe5\xff\xd7\x5d\xc3";
	static const char inner[] = "\x55\x48\x89\xe5\xff\xd6\x5d\xc3";
	const struct seam_self_adapter adapter = {
		has_jit_code, { step_nothing, &jit_code } };
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(void *inner_code, void (*callee)(void));
	size_t at;

	assert_true(pages != MAP_FAILED);
	mprotect(pages, 4096, PROT_NONE);
	jit_code = pages + 4096;
	memcpy(jit_code, outer, sizeof(outer));
	memcpy(jit_code + 64, inner, sizeof(inner));
	memcpy(&call, &jit_code, sizeof(call));
	assert_int_equal(seam_self_add_adapter(&adapter), 0);
	call(jit_code + 64, walk_here);
	assert_int_equal(seam_self_remove_adapter(&adapter), 0);
	assert_int_equal(stack.end, SEAM_UNWIND_ROOT);
	at = frame_by(SEAM_UNWIND_BY_FRAME_POINTER);
	assert_true(frames[at].pc == (uint64_t)(uintptr_t)jit_code + 6);
	assert_int_equal(frames[at + 1].quality, SEAM_UNWIND_BY_FRAME_POINTER);
	munmap(pages, 8192);
}

/* --- memory --- */

static void expect_word(struct seam_self_memory *memory, const uint8_t *at)
{
	uint64_t word = 0;

	memory->window_bytes = 0;
	assert_true(seam_unwind_read(&memory->memory, (uintptr_t)at, &word));
	assert_memory_equal(&word, at, sizeof(word));
}

UNIT_TEST(what_is_mapped_can_be_read_up_to_its_edges)
{
	const size_t page = SEAM_SELF_PAGE;
	uint8_t *pages = mmap(NULL, 4 * page, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct seam_self_range none = { 0, 0 };
	const stack_t alternate = { .ss_flags = SS_DISABLE };
	struct seam_self_memory memory;
	uint64_t word;

	mprotect(pages + page, 2 * page, PROT_READ | PROT_WRITE);
	for (size_t i = page; i < 3 * page; i++)
		pages[i] = (uint8_t)(i * 7);
	seam_self_memory_init(&memory, (uintptr_t)pages, (uintptr_t)pages,
			      &alternate, none);
	assert_int_equal(memory.memory.stack_bytes, 0);
	expect_word(&memory, pages + page);
	expect_word(&memory, pages + page + 1);
	expect_word(&memory, pages + 2 * page);
	expect_word(&memory, pages + 2 * page - 3);
	expect_word(&memory, pages + 3 * page - sizeof(word));
	for (size_t i = 0; i <= 4 * page - sizeof(word); i++)
		assert_int_equal(seam_unwind_read(&memory.memory,
						  (uintptr_t)pages + i, &word),
				 i >= page && i <= 3 * page - sizeof(word));
	munmap(pages, 4 * page);
}

/* self_linked.so's, which is loaded before main(). */
void library_call(void (*callee)(void));

/* ld.so called it; its entry point has no call frame information. */
static enum seam_unwind_end constructor_end;
static size_t n_constructor_frames;

__attribute__((visibility("default"))) void on_library_load(void);
void on_library_load(void)
{
	if (constructor_end != SEAM_UNWIND_CALLER ||
	    seam_self_init() < 0)
		return;
	handle(SIGUSR1, 0);
	walk_here();
	constructor_end = (enum seam_unwind_end)stack.end;
	n_constructor_frames = stack.n;
}

UNIT_TEST(a_constructor_at_the_start_has_a_root)
{
	assert_int_equal(constructor_end, SEAM_UNWIND_ROOT);
	assert_true(n_constructor_frames > 4);
	library_call(walk_here);
	expect_equal(4);
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 4 || seam_self_init() < 0 || seam_self_thread_begin() < 0)
		return 2;
	library_path = argv[1];
	other_path = argv[2];
	plain_path = argv[3];
	r = unit_run(NULL, NULL, NULL, NULL);
	/* nothing of it is left to a leak checker */
	return r ? r : -seam_self_fini();
}
