/* SPDX-License-Identifier: MIT */
/*
 * test_stack_dumps.c - registers and copies of the stack in a recording
 *
 * Files are made by hand around this program's own registers, stack and
 * mappings, so that every frame is known.
 */
#include "model/perf/stack_dumps.h"

#include <ucontext.h>

#include "../no_memory.h"
#include "base/workers.h"
#include "loaded.h"
#include "wire/perf/perf_sample.h"
#include "variants.h"

enum { PID = 7, MAX_STACK = 32768 };

/* -- a sample of this program ------------------------------------------- */

/* One sample's user registers, by the kernel's number, and stack. */
struct taken {
	uint64_t regs[24];
	uint64_t abi;
	uint8_t stack[MAX_STACK];
	size_t n_stack;			/* valid bytes */
};

static struct taken taken;
static volatile int sink;
static uint64_t stack_end;		/* of this thread */
static struct { uint64_t begin, end, offset; char path[512]; } maps[256];
static size_t n_maps;

/* Mappings of code; a few pages that have no file are left out. */
static int read_maps(void **state)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[1024], perms[8];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		uint64_t begin, end, offset;
		char path[512] = "";

		sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64
		       " %*s %*s %511[^\n]", &begin, &end, perms, &offset,
		       path);
		if (strstr(path, "[stack]"))
			stack_end = end;
		if (!strchr(perms, 'x') || !*path || n_maps == 256)
			continue;
		maps[n_maps].begin = begin;
		maps[n_maps].end = end;
		maps[n_maps].offset = offset;
		snprintf(maps[n_maps++].path, sizeof(path), "%s", path);
	}
	fclose(file);
	assert_true(stack_end > 0);
	return 0;
}

/* What is there may be a sanitizer's red zone. */
__attribute__((no_sanitize_address))
static void copy_stack(uint64_t from)
{
	const volatile uint8_t *stack = (const void *)(uintptr_t)from;

	taken.n_stack = stack_end - from < MAX_STACK ?
			(size_t)(stack_end - from) : MAX_STACK;
	taken.n_stack &= ~(size_t)7;
	for (size_t i = 0; i < taken.n_stack; i++)
		taken.stack[i] = stack[i];
}

static void take(const ucontext_t *context)
{
	static const int order[24] = {
		REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_RIP, 0, 0, 0, 0, 0, 0, 0, REG_R8, REG_R9,
		REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	for (int i = 0; i < 24; i++)
		taken.regs[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	taken.abi = PERF_SAMPLE_REGS_ABI_64;
	copy_stack(taken.regs[7]);
}

__attribute__((noipa)) static void inner(void)
{
	ucontext_t context;

	getcontext(&context);
	take(&context);
	sink++;
}

__attribute__((noipa)) static void middle(int depth)
{
	if (depth > 1)
		middle(depth - 1);
	else
		inner();
	sink++;
}

__attribute__((noipa)) static void outer(int depth)
{
	middle(depth);
	sink++;
}

static void on_signal(int number)
{
	(void)number;
	inner();
	sink++;
}

/* -- recordings --------------------------------------------------------- */

static void put_maps(struct bytes *b)
{
	put_comm(b, PID, PID, "test", true, 1);
	for (size_t i = 0; i < n_maps; i++)
		put_mmap2(b, PID, maps[i].begin, maps[i].end - maps[i].begin,
			  maps[i].offset, maps[i].path, 2);
}

/* What a sample has besides its registers and stack. */
struct made {
	uint64_t chain[40];
	size_t n_chain;
	uint64_t stated;		/* bytes of stack, if not those there */
	bool is_stated;
	uint16_t misc;
};

static void put_dump(struct bytes *b, uint64_t time, const struct made *made)
{
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, made && made->misc ?
				 made->misc : PERF_RECORD_MISC_USER);
	size_t n = made ? made->n_chain : 0;

	put_u64(b, TEST_ID_1);
	put_u64(b, made && made->misc ? made->chain[1] : taken.regs[8]);
	put_u32(b, PID);
	put_u32(b, PID);
	put_u64(b, time);
	put_u32(b, 1);
	put_u32(b, 0);
	put_u64(b, 250000);
	put_u64(b, n);
	for (size_t i = 0; i < n; i++)
		put_u64(b, made->chain[i]);
	put_u64(b, taken.abi);
	for (int i = 0; taken.abi && i < 24; i++)
		if (SEAM_PERF_X86_64_MASK >> i & 1)
			put_u64(b, taken.regs[i]);
	put_u64(b, taken.n_stack);
	put(b, taken.stack, taken.n_stack);
	if (taken.n_stack)
		put_u64(b, made && made->is_stated ? made->stated :
			taken.n_stack);
	end_record(b, at);
}

/* A file whose events have registers and stacks; free(.data). */
static struct bytes make_dumps(const struct bytes *data)
{
	struct bytes file = make_file(data);

	for (size_t i = 0; i < 2; i++) {
		size_t at = 120 + 144 * i;

		set_n(&file, at + 24, TEST_SAMPLE_TYPE |
		      PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, 8);
		set_n(&file, at + 80, SEAM_PERF_X86_64_MASK, 8);
		set_n(&file, at + 88, MAX_STACK, 4);
	}
	return file;
}

/* Takes the file.  The files of this machine are used unchecked. */
static int try_load(struct loaded *l, struct bytes made)
{
	const char *root = "/";
	const struct seam_symbols_options options = {
		.symfs = &root, .n_symfs = 1, .no_lines = true,
	};

	return try_to_load(l, made, (struct seam_perf_input) { 0 }, &options);
}

static void load_file(struct loaded *l, struct bytes made)
{
	assert_int_equal(try_load(l, made), 0);
	assert_int_equal(seam_stack_ends_count(&l->profile, NULL, &l->counts),
			 0);
}

static void load(struct loaded *l, struct bytes *data)
{
	load_file(l, make_dumps(data));
	free(data->data);
}

/* The sample of take() alone. */
static void load_one(struct loaded *l, const struct made *made)
{
	struct bytes data = { .endian = SEAM_LITTLE };

	put_maps(&data);
	put_dump(&data, 10, made);
	load(l, &data);
}

/* -- tests -------------------------------------------------------------- */

UNIT_TEST(a_copy_of_the_stack_gives_all_frames)
{
	struct loaded l;

	outer(3);
	load_one(&l, NULL);
	assert_string_equal(stack_text(&l, 0, "outer"),
			    "inner middle middle middle outer");
	assert_non_null(strstr(stack_text(&l, 0, NULL), " main "));
	assert_string_equal(strrchr(stack_text(&l, 0, NULL), ' '), " _start");
	assert_int_equal(ended(&l, SEAM_STACK_COMPLETE), 1);
	assert_int_equal(l.counts.dump_bytes, MAX_STACK);
	unload(&l);
}

UNIT_TEST(a_signal_handler_leads_to_the_code_that_it_interrupted)
{
	struct loaded l;
	const char *text;

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	load_one(&l, NULL);
	text = stack_text(&l, 0, NULL);
	assert_non_null(strstr(text, "inner on_signal "));
	assert_non_null(strstr(text, " raise"));
	assert_non_null(strstr(text, " main "));
	unload(&l);
}

UNIT_TEST(the_kernels_frames_come_before_those_of_the_stack)
{
	const struct made made = {
		.chain = { KERNEL, UINT64_C(0xffffffff81000010) },
		.n_chain = 2, .misc = PERF_RECORD_MISC_KERNEL,
	};
	struct loaded l;
	const char *text;

	outer(1);
	load_one(&l, &made);
	text = stack_text(&l, 0, "outer");
	assert_non_null(strstr(text, "]"));
	assert_string_equal(strstr(text, "] ") + 2, "inner middle outer");
	unload(&l);
}

UNIT_TEST(a_stack_ends_with_the_copy_and_is_counted)
{
	struct loaded l;

	outer(3);
	/* fewer bytes than there are, by the count of the kernel */
	load_one(&l, &(struct made) { .is_stated = true, .stated = 8 });
	assert_string_equal(stack_text(&l, 0, NULL), "inner");
	assert_int_equal(ended(&l, SEAM_STACK_TRUNCATED), 1);
	unload(&l);
}

/* The innermost function is known even so. */
UNIT_TEST(a_file_that_is_not_here_ends_the_stack_with_that_reason)
{
	struct bytes data = { .endian = SEAM_LITTLE };
	struct loaded l;
	const struct seam_stack_counts *c = &l.counts;

	outer(3);
	put_comm(&data, PID, PID, "test", true, 1);
	for (size_t i = 0; i < n_maps; i++)
		put_mmap2(&data, PID, maps[i].begin,
			  maps[i].end - maps[i].begin, maps[i].offset,
			  "/nowhere/else", 2);
	put_dump(&data, 10, NULL);
	load(&l, &data);
	assert_memory_equal(stack_text(&l, 0, NULL), "[else+0x", 8);
	assert_null(strchr(stack_text(&l, 0, NULL), ' '));
	assert_int_equal(ended(&l, SEAM_STACK_NO_FILE), 1);
	assert_int_equal(c->n_modules, 1);
	assert_string_equal(c->modules[0].path, "/nowhere/else");
	assert_int_equal(c->modules[0].end, SEAM_STACK_NO_FILE);
	unload(&l);
}

UNIT_TEST(what_is_mapped_counts_at_the_time_of_the_sample)
{
	struct bytes data = { .endian = SEAM_LITTLE };
	struct loaded l;

	outer(2);
	put_dump(&data, 10, NULL);		/* nothing is mapped */
	put_comm(&data, PID, PID, "test", true, 11);
	for (size_t i = 0; i < n_maps; i++)
		put_mmap2(&data, PID, maps[i].begin,
			  maps[i].end - maps[i].begin, maps[i].offset,
			  maps[i].path, 12);
	put_dump(&data, 20, NULL);
	put_comm(&data, PID, PID, "other", true, 21);
	put_dump(&data, 30, NULL);		/* nothing again */
	load(&l, &data);
	assert_string_equal(stack_text(&l, 0, NULL), "[unknown]");
	assert_string_equal(stack_text(&l, 1, "outer"),
			    "inner middle middle outer");
	assert_string_equal(stack_text(&l, 2, NULL), "[unknown]");
	assert_int_equal(ended(&l, SEAM_STACK_NO_MAPPING), 2);
	assert_int_equal(ended(&l, SEAM_STACK_COMPLETE), 1);
	unload(&l);
}

/* Within exec all are 0; a 32-bit task has others. */
UNIT_TEST(registers_without_a_user_stack_are_no_broken_stack)
{
	struct loaded l;

	outer(1);
	memset(taken.regs, 0, sizeof(taken.regs));
	taken.n_stack = 0;
	load_one(&l, NULL);
	assert_int_equal(seam_stack_counts_total(&l.counts), 0);
	assert_int_equal(l.counts.n_empty, 1);
	unload(&l);

	outer(1);
	taken.abi = PERF_SAMPLE_REGS_ABI_32;
	load_one(&l, NULL);
	assert_int_equal(seam_stack_counts_total(&l.counts), 0);
	assert_int_equal(l.counts.n_empty, 0);
	assert_int_equal(l.counts.n_32_bit, 1);
	assert_string_equal(stack_text(&l, 0, NULL), "inner");
	unload(&l);

	outer(1);
	taken.n_stack = 0;			/* the kernel could read none */
	load_one(&l, NULL);
	assert_int_equal(ended(&l, SEAM_STACK_UNREADABLE), 1);
	assert_string_equal(stack_text(&l, 0, NULL), "inner");
	unload(&l);

	outer(1);
	taken.abi = PERF_SAMPLE_REGS_ABI_NONE;
	taken.n_stack = 0;
	load_one(&l, NULL);
	assert_int_equal(seam_stack_counts_total(&l.counts), 0);
	unload(&l);
}

/* Any registers, any stack: an end, and frames in mapped code alone. */
UNIT_TEST(hostile_registers_and_stacks_end)
{
	struct bytes data = { .endian = SEAM_LITTLE };
	uint64_t seed = 1;
	struct loaded l;
	size_t n = 600;

	put_maps(&data);
	for (size_t i = 0; i < n; i++) {
		outer((int)(i % 5) + 1);
		taken.n_stack = taken.n_stack < 2048 ? taken.n_stack : 2048;
		for (size_t k = 0; k < i % 7 + 1; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			if (i % 3)
				memcpy(taken.stack + seed / 7 %
				       (taken.n_stack - 8), &seed, 8);
			if (i % 3 != 1)
				taken.regs[(seed >> 33) % 24] =
					i % 2 ? seed : seed >> 60 ?
					taken.regs[7] + (seed >> 50) :
					UINT64_MAX - (seed >> 40);
		}
		put_dump(&data, 10 + i, NULL);
	}
	load(&l, &data);
	assert_int_equal(l.profile.samples.n, n);
	assert_int_equal(seam_stack_counts_total(&l.counts) +
			 l.counts.n_empty, n);
	unload(&l);
}

UNIT_TEST(a_cut_or_changed_recording_gives_what_is_whole)
{
	struct bytes data = { .endian = SEAM_LITTLE }, whole;
	uint64_t seed = 3;

	put_maps(&data);
	for (uint64_t i = 0; i < 4; i++) {
		outer(2);
		taken.n_stack = 512;
		put_dump(&data, 10 + i, NULL);
	}
	whole = make_dumps(&data);
	for (size_t size = whole.size - data.size; size < whole.size;
	     size += 61) {
		struct bytes copy = { .endian = SEAM_LITTLE };
		struct loaded l;

		put(&copy, whole.data, size % 2 ? size : whole.size);
		for (int k = 0; k < 3 && size % 2 == 0; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			copy.data[600 + (seed >> 33) % (copy.size - 700)] ^=
				(uint8_t)(1 << (seed >> 61));
		}
		load_file(&l, copy);
		assert_true(l.profile.samples.n <= 4 + 40);
		unload(&l);
	}
	free(whole.data);
	free(data.data);
}

/* A load without names, or without all frames, is one; a crash is not. */
UNIT_TEST(any_allocation_may_fail)
{
	struct bytes data = { .endian = SEAM_LITTLE }, file;
	struct loaded l;
	long n = 0;
	int r;

	put_maps(&data);
	for (uint64_t i = 0; i < 3; i++) {
		outer((int)i + 1);
		taken.n_stack = taken.n_stack < 1024 ? taken.n_stack : 1024;
		put_dump(&data, 10 + i, NULL);
	}
	file = make_dumps(&data);
	free(data.data);
	variants_off = true;
	do {
		until_failure = ++n;
		r = try_load(&l, file);
		assert_true(r == 0 || r == -ENOMEM);
		assert_true(r || l.profile.samples.n == 3);
		seam_profile_fini(&l.profile);
	} while (until_failure <= 0 && n < 10000);
	until_failure = 0;
	variants_off = false;
	assert_int_equal(r, 0);
	assert_true(n > 100);
	free(file.data);
}

int main(void)
{
	return unit_run(read_maps, NULL, NULL, NULL);
}
