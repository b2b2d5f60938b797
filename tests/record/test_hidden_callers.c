/* SPDX-License-Identifier: MIT */
/*
 * test_hidden_callers.c - the caller of a frame that is larger than its copy
 *
 * Functions of this program are the code; stacks are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/stacks/hidden_callers.h"

#define REAL __attribute__((noipa, noinline))

enum {
	TID = 7, TOP = 0x7000000, PLACE = TOP - 0x400, FRAMES = 64,
	LARGE = 3516, PART = 1024,	/* bytes of code */
};

static struct seam_cfi_files files;
static struct seam_process_maps maps;
static struct seam_sample_code code;
static struct seam_hidden_callers hidden;
static struct seam_stack_joins joins;
static struct seam_unwind_frame frames[FRAMES];

/* ---- the code ---- */

static volatile uint64_t x, returns_to;

REAL static void parser(void)
{
	returns_to = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

REAL static void other(void)
{
	x++;
}

REAL static void caller(void)
{
	other();
	parser();
	other();
	x++;
}

REAL static void second_caller(void)
{
	other();
	parser();
	x++;
}

REAL static void calls_twice(void)
{
	parser();
	other();
	parser();
	x++;
}

REAL static void calls_by_pointer(void (*volatile function)(void))
{
	function();
	x++;
}

/* Ends in parser(), which returns to its caller. */
void jumps(void);
__asm__(".pushsection .text\n"
	".type jumps, @function\n"
	"jumps: .cfi_startproc\n"
	"nop\n"
	".byte 0xe9\n"
	".long parser - . - 4\n"
	".cfi_endproc\n"
	".popsection");

/* More than is read at once: a call of other() at first, two of parser(). */
void large(void);
__asm__(".pushsection .text\n"
	".type large, @function\n"
	"large: .cfi_startproc\n"
	".byte 0xe8\n"
	".long other - . - 4\n"
	".byte 0xe8\n"
	".long parser - . - 4\n"
	".fill 3500, 1, 0x90\n"
	".byte 0xe8\n"
	".long parser - . - 4\n"
	"ret\n"
	".cfi_endproc\n"
	".popsection");

/* Reads of code; the one of number fail_at would wait for a disk. */
static int n_reads, fail_at;

ssize_t __real_preadv64v2(int fd, const struct iovec *io, int n, off_t pos,
			  int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *io, int n, off_t pos,
			  int flags);

ssize_t __wrap_preadv64v2(int fd, const struct iovec *io, int n, off_t pos,
			  int flags)
{
	n_reads++;
	if (fail_at > 0 && --fail_at == 0) {
		errno = EAGAIN;
		return -1;
	}
	return __real_preadv64v2(fd, io, n, pos, flags);
}

static uint64_t at(const void *function)
{
	return (uint64_t)(uintptr_t)function + 1;
}

static void wait_for_files(void)
{
	while (seam_cfi_files_collect(&files)) {
		struct pollfd p = { .events = POLLIN };

		p.fd = seam_helper_fd(files.helper);
		poll(&p, 1, 1000);
	}
}

/* Have the code of this program in @code. */
static int read_program(void **state)
{
	char line[512], path[256];
	struct seam_perf_mapping m = { .pid = getpid(),
				       .prot = PROT_READ | PROT_EXEC };
	FILE *in = fopen("/proc/self/maps", "r");
	uint64_t end;

	(void)state;
	while (fgets(line, sizeof(line), in)) {
		struct seam_process_mapping mapping;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64
			   " %*s %" SCNu64 " %255s", &m.addr, &end, &m.pgoff,
			   &m.ino, path) != 5)
			continue;
		m.len = end - m.addr;
		m.filename = path;
		mapping = (struct seam_process_mapping) {
			.begin = m.addr, .end = end, .offset = m.pgoff,
			.file = seam_cfi_files_add(&files, &m, true,
						   SEAM_NONE),
		};
		seam_process_maps_add(&maps, getpid(), &mapping);
	}
	fclose(in);
	code = (struct seam_sample_code) {
		.files = &files,
		.map = seam_process_maps_find(&maps, getpid()),
	};
	wait_for_files();
	/* the first look requests it */
	seam_sample_code_call(&code, &hidden.calls, at(caller), at(parser));
	seam_hidden_callers_fini(&hidden);
	wait_for_files();
	return code.map ? 0 : -1;
}

static int forget_program(void **state)
{
	(void)state;
	seam_cfi_files_fini(&files);
	seam_process_maps_fini(&maps);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	seam_hidden_callers_fini(&hidden);
	seam_stack_joins_fini(&joins);
	return 0;
}

/* ---- stacks ---- */

/*
 * A stack of leaf, the frame @pc at PLACE, and @n_outer frames beyond it, of
 * which the last is the root.  @odd: these are others.
 */
static struct seam_unwind_stack stack_of(uint64_t pc, size_t n_outer, int odd)
{
	struct seam_unwind_stack stack = {
		.frames = frames, .max = FRAMES, .end = SEAM_UNWIND_ROOT,
	};

	frames[stack.n++] = (struct seam_unwind_frame) {
		.pc = 0x10, .sp = PLACE - 32,
	};
	frames[stack.n++] = (struct seam_unwind_frame) {
		.pc = pc, .sp = PLACE,
	};
	for (size_t i = 0; i < n_outer; i++)
		frames[stack.n++] = (struct seam_unwind_frame) {
			.pc = 0x1000 + 16 * i + (i == 1 && odd),
			.sp = PLACE + 32 * (i + 1),
		};
	return stack;
}

static void learn(uint64_t pc, size_t n_outer, int odd, int times)
{
	for (int i = 0; i < times; i++) {
		struct seam_unwind_stack stack = stack_of(pc, n_outer, odd);

		seam_stack_joins_learn(&joins, TID, &stack);
		seam_hidden_callers_learn(&hidden, TID, &stack);
	}
}

static uint64_t last_sp = PLACE - 0x20000;

/* How many frames are appended to a stack that ends in parser(). */
static size_t complete(uint64_t place, size_t max)
{
	struct seam_unwind_stack stack = {
		.frames = frames, .n = 2, .max = max,
		.end = SEAM_UNWIND_TRUNCATED,
	};

	frames[0] = (struct seam_unwind_frame) {
		.pc = 0x20, .sp = PLACE - 0x20100, .is_interrupted = true,
	};
	frames[1] = (struct seam_unwind_frame) {
		.pc = at(parser), .sp = last_sp,
	};
	return seam_hidden_callers_complete(&hidden, &joins, TID, &code,
					    place, &stack);
}

/* ---- tests ---- */

static uint64_t call_of(uint64_t from, uint64_t callee)
{
	return seam_sample_code_call(&code, &hidden.calls, from, callee);
}

static void the_return_address_is_after_the_only_call(void **state)
{
	(void)state;
	caller();
	/* of the second, the first's answer */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(call_of(at(caller), at(parser)), returns_to);
		assert_int_equal(call_of(returns_to, at(parser)), returns_to);
	}
	second_caller();
	assert_int_equal(call_of(at(second_caller), at(parser)), returns_to);
}

static void without_one_call_that_can_be_read_there_is_no_address(void **s)
{
	(void)s;
	calls_twice();
	calls_by_pointer(parser);
	assert_int_equal(call_of(at(calls_twice), at(parser)),
			 SEAM_CALL_UNKNOWN);
	assert_int_equal(call_of(at(calls_by_pointer), at(parser)), 0);
	assert_int_equal(call_of(at(other), at(parser)), 0);
	assert_int_equal(call_of(at(jumps), at(parser)), 0);
	/* another file, nothing */
	assert_int_equal(call_of(at(caller), at(strtol)), 0);
	assert_int_equal(call_of(1, at(parser)), 0);
	assert_int_equal(call_of(at(caller), 1), 0);
}

static void no_part_of_the_code_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(call_of(at(large), at(other)), at(large) + 4);
	assert_int_equal(call_of(at(large), at(parser)), SEAM_CALL_UNKNOWN);
	hidden.calls = (struct seam_found_calls) { .n_bytes = 0 };
	for (int i = 1; i <= 4; i++) {
		fail_at = i;
		assert_int_equal(call_of(at(large), at(other)),
				 SEAM_CALL_UNKNOWN);
	}
	fail_at = 0;
	assert_int_equal(call_of(at(large), at(other)), at(large) + 4);
}

static void what_is_read_in_a_round_is_bounded(void **state)
{
	uint64_t n = 0;

	(void)state;
	n_reads = 0;
	/* too many functions to remember */
	for (uint64_t i = 0; i < 3 * SEAM_FOUND_CALLS_BYTES / LARGE; i++) {
		memset(hidden.calls.items, 0, sizeof(hidden.calls.items));
		n += call_of(at(large), at(other)) != SEAM_CALL_UNKNOWN;
	}
	assert_in_range(n, 1, SEAM_FOUND_CALLS_BYTES / LARGE);
	assert_in_range(n_reads, n, 2 * SEAM_FOUND_CALLS_BYTES / PART);
	assert_int_equal(call_of(at(large), at(other)), SEAM_CALL_UNKNOWN);
	seam_hidden_callers_begin_round(&hidden);
	assert_int_equal(call_of(at(large), at(other)), at(large) + 4);
	/* it is known now, and not read again */
	n_reads = 0;
	assert_int_equal(call_of(at(large), at(other)), at(large) + 4);
	assert_int_equal(n_reads, 0);
}

static void a_frame_at_the_place_of_the_hidden_one_leads_to_the_root(void **s)
{
	(void)s;
	caller();
	for (size_t n_outer = 1; n_outer < 20; n_outer++) {
		seam_hidden_callers_want(&hidden, TID);
		learn(at(caller) + 1, n_outer, 0, 2);
		assert_int_equal(complete(PLACE, FRAMES), n_outer + 1);
		assert_int_equal(frames[2].pc, returns_to);
		for (size_t i = 0; i < n_outer; i++) {
			assert_int_equal(frames[3 + i].pc, 0x1000 + 16 * i);
			assert_int_equal(frames[3 + i].sp,
					 PLACE + 32 * (i + 1));
		}
		/* no room, another place, one below the last frame */
		assert_int_equal(complete(PLACE, n_outer + 2), 0);
		assert_int_equal(complete(PLACE + 8, FRAMES), 0);
		last_sp = PLACE;
		assert_int_equal(complete(PLACE, FRAMES), 0);
		last_sp = PLACE - 0x20000;
		tear_down(s);
	}
}

static void one_sample_is_no_evidence(void **state)
{
	(void)state;
	seam_hidden_callers_want(&hidden, TID);
	learn(at(caller) + 1, 5, 0, 1);
	assert_int_equal(complete(PLACE, FRAMES), 0);
	learn(at(caller) + 1, 5, 0, 1);
	assert_int_equal(complete(PLACE, FRAMES), 6);
	/* the frame after next has changed */
	learn(at(caller) + 1, 5, 1, SEAM_STACK_JOIN_EQUAL_AGAIN);
	assert_int_equal(complete(PLACE, FRAMES), 0);
	learn(at(caller) + 1, 5, 1, 1);
	assert_int_equal(complete(PLACE, FRAMES), 6);
}

static void the_frame_there_must_have_called_the_function(void **state)
{
	(void)state;
	seam_hidden_callers_want(&hidden, TID);
	learn(at(other) + 1, 5, 0, 2);
	assert_int_equal(complete(PLACE, FRAMES), 0);
	/* two callers at the place: which one is not known */
	learn(at(caller) + 1, 5, 0, 2);
	assert_int_equal(complete(PLACE, FRAMES), 6);
	for (int i = 0; i < 2; i++) {
		struct seam_unwind_stack stack =
			stack_of(at(second_caller) + 1, 5, 0);

		frames[2].pc += 0x500;
		seam_stack_joins_learn(&joins, TID, &stack);
		seam_hidden_callers_learn(&hidden, TID, &stack);
	}
	assert_int_equal(complete(PLACE, FRAMES), 0);
}

static void a_caller_with_two_calls_may_be_the_one(void **state)
{
	(void)state;
	seam_hidden_callers_want(&hidden, TID);
	learn(at(caller) + 1, 5, 0, 2);
	assert_int_equal(complete(PLACE, FRAMES), 6);
	for (int i = 0; i < 2; i++) {
		struct seam_unwind_stack stack =
			stack_of(at(calls_twice) + 1, 5, 0);

		frames[2].pc += 0x500;
		seam_stack_joins_learn(&joins, TID, &stack);
		seam_hidden_callers_learn(&hidden, TID, &stack);
	}
	assert_int_equal(complete(PLACE, FRAMES), 0);
}

static void only_wanted_threads_are_learned(void **state)
{
	struct seam_unwind_stack stack;

	(void)state;
	learn(at(caller) + 1, 5, 0, 2);
	assert_null(hidden.items);
	seam_hidden_callers_want(&hidden, TID + 1);
	learn(at(caller) + 1, 5, 0, 2);
	assert_int_equal(complete(PLACE, FRAMES), 0);
	seam_hidden_callers_want(&hidden, TID);
	learn(at(caller) + 1, 5, 0, 2);
	assert_int_equal(complete(PLACE, FRAMES), 6);
	/* not for ever */
	hidden.n_learned += SEAM_HIDDEN_CALLERS_WANTED;
	stack = stack_of(at(caller) + 1, 5, 1);
	seam_hidden_callers_learn(&hidden, TID, &stack);
	assert_int_equal(complete(PLACE, FRAMES), 6);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
	const struct CMUnitTest tests[] = {
		T(the_return_address_is_after_the_only_call),
		T(without_one_call_that_can_be_read_there_is_no_address),
		T(no_part_of_the_code_is_left_out),
		T(what_is_read_in_a_round_is_bounded),
		T(a_frame_at_the_place_of_the_hidden_one_leads_to_the_root),
		T(one_sample_is_no_evidence),
		T(the_frame_there_must_have_called_the_function),
		T(a_caller_with_two_calls_may_be_the_one),
		T(only_wanted_threads_are_learned),
	};

	return cmocka_run_group_tests(tests, read_program, forget_program);
}
