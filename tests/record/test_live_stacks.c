/* SPDX-License-Identifier: MIT */
/* test_live_stacks.c - samples with copies of stacks become plain ones */
#include "unit.h"

#include <link.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/auxv.h>

#include "jit_dump.h"
#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_sample.h"
#include "wire/perf/unwound.h"

enum {
	TID = 101,
	JIT = 0x10000, JIT_END = 0x20000,	/* code without a file */
	STACK = 0x7000000,
	LOADER = 0x1000000,
	MAX_CHAIN = 20,
	DUMP = 512,
};

static struct seam_live_stacks stacks;
static struct seam_stack_counts counts;
static struct seam_perf_attr attr;
static int32_t pid;			/* ours: it sees the files we see */
static char folder[] = "/tmp/live_stacks_XXXXXX";

static int set_up(void **state)
{
	counts = (struct seam_stack_counts) { .n_empty = 0 };
	stacks = (struct seam_live_stacks) { .n_dropped = 0 };
	attr = (struct seam_perf_attr) {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP,
		.sample_regs_user = SEAM_PERF_X86_64_MASK,
		.sample_stack_user = DUMP,
	};
	assert_int_equal(seam_live_stacks_init(&stacks, &attr, 1, MAX_CHAIN,
					       &counts, NULL), 0);
	assert_true(stacks.is_used);
	return 0;
}

static int tear_down(void **state)
{
	seam_live_stacks_fini(&stacks);
	return 0;
}

/* ---- records ---- */

static uint64_t record[4096];
static size_t n_words;

static void word(uint64_t v)
{
	record[n_words++] = v;
}

/* What a sample has; its chain is "kernel K, user U". */
struct made_sample {
	uint16_t misc;			/* more bits of its header */
	uint64_t abi, pc, sp, bp;
	const uint64_t *stack;		/* n_stack words are used */
	size_t n_stack;
	bool has_dump;
	const uint64_t *user;		/* the kernel's chain */
	size_t n_user;
	size_t n_kernel;	/* not 0: so many, and no user's part */
	bool has_no_raw;
};

static const void *make(const struct made_sample *s)
{
	struct seam_perf_header header = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER | s->misc,
	};

	n_words = 1;
	word(s->pc);
	word((uint32_t)pid | (uint64_t)TID << 32);
	word(1234);
	word(s->n_kernel ? 1 + s->n_kernel : 3 + s->n_user);
	word((uint64_t)PERF_CONTEXT_KERNEL);
	word(0xffffffff81000000);
	for (size_t i = 1; i < s->n_kernel; i++)
		word(0xffffffff81000000 + i);
	if (!s->n_kernel)
		word((uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < s->n_user; i++)
		word(s->user[i]);
	if (!s->has_no_raw)
		word(4 | UINT64_C(0x55) << 32);	/* size, 4 bytes */
	word(s->abi);
	for (int i = 0; s->abi && i < 17; i++)
		word(i == 6 ? s->bp : i == 7 ? s->sp : i == 8 ? s->pc : 0);
	word(s->has_dump ? DUMP : 0);
	for (size_t i = 0; s->has_dump && i < DUMP / 8; i++)
		word(i < s->n_stack ? s->stack[i] : 0xdead);
	if (s->has_dump)
		word(8 * s->n_stack);
	word(77);				/* cgroup */
	header.size = (uint16_t)(8 * n_words);
	memcpy(record, &header, sizeof(header));
	return record;
}

static const void *make_without_raw(const struct made_sample *s)
{
	struct made_sample like = *s;

	like.has_no_raw = true;
	return make(&like);
}

static void map(uint64_t begin, uint64_t end, const char *path, uint64_t ino)
{
	const struct seam_perf_sideband r = {
		.type = PERF_RECORD_MMAP2,
		.mapping = { .pid = pid, .addr = begin, .len = end - begin,
			     .prot = PROT_READ | PROT_EXEC, .filename = path,
			     .ino = ino },
	};

	seam_live_stacks_sideband(&stacks, &r, true);
}

/* The sample at @pos of the buffer, which has neither registers nor stack. */
static size_t read_any(size_t pos, struct seam_perf_sample *out)
{
	struct seam_perf_attr file = attr;
	struct seam_perf_header header;

	assert_true(pos + sizeof(header) <= stacks.out.n);
	memcpy(&header, stacks.out.items + pos, sizeof(header));
	assert_int_equal(header.type, PERF_RECORD_SAMPLE);
	assert_int_equal(header.misc & PERF_RECORD_MISC_CPUMODE_MASK,
			 PERF_RECORD_MISC_USER);
	file.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
					PERF_SAMPLE_STACK_USER);
	assert_int_equal(seam_perf_sample_read(&file, SEAM_NATIVE,
		seam_perf_record_at(stacks.out.items + pos).payload, out), 0);
	assert_int_equal(out->tid, TID);
	assert_int_equal(out->time, 1234);
	assert_int_equal(out->cgroup, 77);
	assert_int_equal(out->at.rest + 8 + sizeof(header), header.size);
	return pos + header.size;
}

/* One with RAW data of its own, which are as they were. */
static size_t read_out(size_t pos, struct seam_perf_sample *out)
{
	size_t end = read_any(pos, out);

	assert_int_equal(out->raw.size, 4);
	assert_int_equal(out->raw.data[0], 0x55);
	return end;
}

static void expect_chain(const uint64_t *user, size_t n)
{
	struct seam_perf_sample sample;

	assert_int_equal(read_out(0, &sample), stacks.out.n);
	assert_int_equal(sample.callchain.n, 3 + n);
	assert_int_equal(seam_perf_u64(&sample.callchain, 0),
			 (uint64_t)PERF_CONTEXT_KERNEL);
	assert_int_equal(seam_perf_u64(&sample.callchain, 2),
			 (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seam_perf_u64(&sample.callchain, 3 + i),
				 user[i]);
}

/* Two frames of JIT code by frame pointers, and no more. */
static const uint64_t jit_stack[] = {
	STACK + 24, JIT + 0x200, 0,		/* of the innermost */
	0, 0,
};
static const struct made_sample jit = {
	.abi = 2, .pc = JIT + 0x100, .sp = STACK, .bp = STACK,
	.stack = jit_stack, .n_stack = 5, .has_dump = true,
};

/* Rounds until no sample waits. */
static void wait_for_files(void)
{
	int fd = -1;

	while (seam_live_stacks_is_busy(&stacks, &fd)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		poll(&p, 1, 20);
		seam_live_stacks_begin_round(&stacks, false);
	}
}

/* One round with that sample. */
static void take(const void *made)
{
	seam_live_stacks_begin_round(&stacks, false);
	seam_live_stacks_sample(&stacks, 0, made);
}

/* ---- tests ---- */

UNIT_TEST(the_user_part_is_unwound_and_all_else_kept)
{
	static const uint64_t user[] = { JIT + 0x100, JIT + 0x200 };

	map(JIT, JIT_END, "//anon", 0);
	take(make(&jit));
	expect_chain(user, 2);
	/* that frame pointers end in 0 makes no root */
	assert_int_equal(counts.n_ended[SEAM_STACK_WITHOUT_CFI], 1);
	assert_int_equal(stacks.waiting.n, 0);
}

UNIT_TEST(a_task_without_64_bit_registers_keeps_the_kernels_chain)
{
	static const uint64_t user[] = { 5, 6, 7 };
	struct made_sample sample = { .user = user, .n_user = 3 };

	for (uint64_t abi = 0; abi < 2; abi++) {
		sample.abi = abi;
		sample.has_dump = abi;
		take(make(&sample));
		expect_chain(user, 3);
	}
	/* within exec: registers of 0 */
	sample.abi = 2;
	take(make(&sample));
	expect_chain(user, 3);
	assert_int_equal(counts.n_empty, 2);
	assert_int_equal(counts.n_32_bit, 1);
	assert_int_equal(seam_stack_counts_total(&counts), 0);
}

/* In a page fault of a stack that grows: the kernel's chain skips callers. */
UNIT_TEST(a_stack_that_cannot_be_copied_has_one_frame)
{
	static const uint64_t user[] = { JIT + 0x100, JIT + 0x200 };
	struct made_sample sample = jit;

	map(JIT, JIT_END, "//anon", 0);
	sample.n_stack = 0;
	sample.user = user;
	sample.n_user = 2;
	for (int i = 0; i < 2; i++) {
		sample.has_dump = i;
		take(make(&sample));
		expect_chain(user, 1);
	}
	assert_int_equal(counts.n_ended[SEAM_STACK_UNREADABLE], 2);
}

/* What a reader needs to join other samples: the places of frames. */
UNIT_TEST(a_sample_without_raw_data_tells_how_it_was_unwound)
{
	static const struct {
		size_t n_stack;
		uint64_t n_cfas, cfas[2];
		enum seam_stack_end end;
	} cases[] = {
		{ 2, 2, { STACK + 16, STACK + 40 }, SEAM_STACK_TRUNCATED },
		{ 5, 1, { STACK + 16 }, SEAM_STACK_WITHOUT_CFI },
	};
	struct seam_unwound unwound;
	struct seam_perf_sample out;
	struct made_sample sample = jit;

	stacks.attrs[0].sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	map(JIT, JIT_END, "//anon", 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		sample.n_stack = cases[i].n_stack;
		take(make_without_raw(&sample));
		assert_int_equal(read_any(0, &out), stacks.out.n);
		assert_int_equal(out.cgroup, 77);
		assert_int_equal(seam_unwound_read(out.raw, &unwound), 0);
		assert_int_equal(unwound.end, cases[i].end);
		assert_int_equal(unwound.n_frames, 2);
		assert_int_equal(unwound.n_cfas, cases[i].n_cfas);
		for (size_t k = 0; k < unwound.n_cfas; k++)
			assert_int_equal(seam_unwound_next(&unwound),
					 cases[i].cfas[k]);
	}
	/* samples without a stack tell so */
	sample = (struct made_sample) { .abi = 1 };
	take(make_without_raw(&sample));
	read_any(0, &out);
	assert_int_equal(seam_unwound_read(out.raw, &unwound), 0);
	assert_int_equal(unwound.end, SEAM_STACK_OF_32_BIT);
	assert_int_equal(unwound.n_frames, 0);
}

/* As far as it is in code; none of these leads to a root that is known. */
UNIT_TEST(the_kernels_chain_goes_on_where_the_copy_ends)
{
	static const struct {
		size_t n, n_expected;
		uint64_t user[5], expected[4];
	} cases[] = {
		{ 4, 4, { JIT + 0x100, JIT + 0x200, JIT + 0x300, JIT + 0x400 },
		  { JIT + 0x100, JIT + 0x200, JIT + 0x300, JIT + 0x400 } },
		/* a word that is no address */
		{ 4, 2, { JIT + 0x100, UINT64_MAX, JIT + 0x200, JIT + 0x300 },
		  { JIT + 0x100, JIT + 0x200 } },
		/* no code */
		{ 5, 3, { JIT + 0x100, JIT + 0x200, JIT + 0x300, 5,
			  JIT + 0x400 },
		  { JIT + 0x100, JIT + 0x200, JIT + 0x300 } },
	};
	uint64_t longest[MAX_CHAIN];
	struct made_sample sample = jit;

	map(JIT, JIT_END, "//anon", 0);
	sample.n_stack = 2;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		sample.user = cases[i].user;
		sample.n_user = cases[i].n;
		take(make(&sample));
		expect_chain(cases[i].expected, cases[i].n_expected);
		assert_int_equal(counts.n_ended[SEAM_STACK_TRUNCATED], i + 1);
	}
	/* the kernel's limit, with one address of the kernel */
	for (size_t i = 0; i < MAX_CHAIN; i++)
		longest[i] = JIT + 0x100 * (i + 1);
	sample.user = longest;
	sample.n_user = MAX_CHAIN - 1;
	take(make(&sample));
	expect_chain(longest, MAX_CHAIN - 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_TRUNCATED],
			 SEAM_ARRAY_SIZE(cases) + 1);
}

/* The kernel stops at its limit, and has no room for the user's part. */
UNIT_TEST(a_kernel_part_that_the_kernel_cut_is_counted)
{
	struct made_sample sample = jit;

	map(JIT, JIT_END, "//anon", 0);
	for (size_t n = MAX_CHAIN - 1; n <= MAX_CHAIN; n++) {
		struct seam_perf_sample out;

		sample.n_kernel = n;
		take(make(&sample));
		read_out(0, &out);
		/* two marks, and the two frames of the copy */
		assert_int_equal(out.callchain.n, n + 4);
		assert_int_equal(counts.n_kernel_cut, n == MAX_CHAIN);
	}
	assert_int_equal(counts.n_ended[SEAM_STACK_WITHOUT_CFI], 2);
}

UNIT_TEST(a_process_without_mappings_has_one_frame)
{
	static const uint64_t user[] = { JIT + 0x100 };

	take(make(&jit));
	expect_chain(user, 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_NO_MAPPING], 1);
}

/* An address of the program before it is no code of the new one. */
UNIT_TEST(exec_leaves_no_mapping)
{
	static const uint64_t user[] = { JIT + 0x100 };
	const struct seam_perf_sideband exec = {
		.type = PERF_RECORD_COMM,
		.misc = PERF_RECORD_MISC_COMM_EXEC,
		.comm = { .pid = pid, .tid = pid, .comm = "new" },
	};

	map(JIT, JIT_END, "//anon", 0);
	seam_live_stacks_sideband(&stacks, &exec, true);
	take(make(&jit));
	expect_chain(user, 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_NO_MAPPING], 1);
}

/* ld.so, where each program begins, has no rules for its first instructions. */
/* Of a ring that overwrites: samples are read after what came later. */
UNIT_TEST(a_mapping_after_the_sample_is_not_the_sample_s)
{
	struct seam_perf_sideband later = {
		.type = PERF_RECORD_MMAP2, .sample_id.time = 1235,
		.mapping = { .pid = pid, .addr = JIT, .len = JIT_END - JIT,
			     .prot = PROT_READ | PROT_EXEC,
			     .filename = "//anon" },
	};
	const uint64_t words[] = { 0, JIT + 8 };
	const struct made_sample s = {
		.abi = PERF_SAMPLE_REGS_ABI_64, .pc = JIT + 4, .sp = STACK,
		.bp = STACK, .stack = words, .n_stack = 2, .has_dump = true,
	};

	seam_live_stacks_sideband(&stacks, &later, true);
	seam_live_stacks_begin_round(&stacks, false);
	seam_live_stacks_sample(&stacks, 0, make(&s));
	assert_int_equal(stacks.stack->end, SEAM_STACK_NO_MAPPING);
	later.sample_id.time = 1234;
	seam_live_stacks_sideband(&stacks, &later, true);
	seam_live_stacks_sample(&stacks, 0, make(&s));
	assert_int_not_equal(stacks.stack->end, SEAM_STACK_NO_MAPPING);
}

UNIT_TEST(the_entry_point_of_the_loader_is_a_root)
{
	char *path = realpath("/lib64/ld-linux-x86-64.so.2", NULL);
	struct made_sample first = {
		.abi = 2, .sp = STACK, .bp = 8, .stack = jit_stack,
		.n_stack = 5, .has_dump = true,
	};
	struct stat st;
	FILE *file = path ? fopen(path, "r") : NULL;
	Elf64_Ehdr header;
	uint64_t user[1];

	assert_non_null(file);
	assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
	fclose(file);
	assert_int_equal(stat(path, &st), 0);
	map(LOADER, LOADER + (uint64_t)st.st_size, path, st.st_ino);
	first.pc = user[0] = LOADER + header.e_entry;
	take(make(&first));
	wait_for_files();
	expect_chain(user, 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_COMPLETE], 1);
	free(path);
}

UNIT_TEST(a_vdso_of_32_bits_is_not_ours)
{
	map(0xf7fc0000, 0xf7fc2000, "[vdso]", 0);
	assert_int_equal(stacks.files.files.n, 0);
	map(0x7ffff7fc0000, 0x7ffff7fc2000, "[vdso]", 0);
	assert_int_equal(stacks.files.files.n, 1);
}

/* The address of a ret in the vdso, which is mapped from @base to @end. */
static uint64_t find_ret(uint64_t base, uint64_t *end)
{
	const ElfW(Ehdr) *header = (const void *)(uintptr_t)base;
	const ElfW(Phdr) *segments =
		(const void *)(uintptr_t)(base + header->e_phoff);
	const uint8_t *found = NULL;

	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		*end = base + segments[i].p_offset + segments[i].p_filesz;
		found = memchr((const uint8_t *)header + 0x400, 0xc3,
			       segments[i].p_filesz - 0x400);
	}
	assert_non_null(found);
	return (uint64_t)(uintptr_t)found;
}

/* Its registers are the caller's, and where it returned to is lost. */
UNIT_TEST(after_the_ret_of_a_precise_event_no_caller_is_known)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), end = 0, words[64];
	struct made_sample sample = {
		.abi = 2, .pc = find_ret(base, &end), .sp = STACK,
		.bp = STACK, .stack = words, .n_stack = 64, .has_dump = true,
	};

	for (size_t i = 0; i < 64; i++)
		words[i] = JIT + 0x200;
	map(base, end, "[vdso]", 0);
	map(JIT, JIT_END, "//anon", 0);
	take(make(&sample));
	assert_int_equal(counts.n_ended[SEAM_STACK_LOST_REGISTER], 0);
	sample.misc = PERF_RECORD_MISC_EXACT_IP;
	take(make(&sample));
	expect_chain(&sample.pc, 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_LOST_REGISTER], 1);
}

UNIT_TEST(other_records_stay_in_their_place)
{
	static const struct seam_perf_header lost = {
		.type = PERF_RECORD_LOST, .size = sizeof(lost),
	};
	struct seam_perf_sample sample;
	size_t pos;

	map(JIT, JIT_END, "//anon", 0);
	take(make(&jit));
	seam_live_stacks_copy(&stacks, &lost);
	seam_live_stacks_sample(&stacks, 0, make(&jit));
	pos = read_out(0, &sample);
	assert_memory_equal(stacks.out.items + pos, &lost, sizeof(lost));
	assert_int_equal(read_out(pos + sizeof(lost), &sample), stacks.out.n);
}

UNIT_TEST(damaged_samples_are_counted_and_left_out)
{
	seam_live_stacks_begin_round(&stacks, false);
	for (size_t bytes = 8; bytes < 200; bytes += 8) {
		struct seam_perf_header header;

		make(&jit);
		memcpy(&header, record, sizeof(header));
		header.size = (uint16_t)bytes;
		memcpy(record, &header, sizeof(header));
		seam_live_stacks_sample(&stacks, 0, record);
	}
	assert_int_equal(stacks.out.n, 0);
	assert_int_equal(stacks.n_dropped, (200 - 8) / 8);
}

static bool has_no_room;	/* for the samples of a round */

void *__real_seam_array_reserve(void *items, size_t *cap, size_t need,
				size_t size);
void *__wrap_seam_array_reserve(void *items, size_t *cap, size_t need,
				size_t size);
void *__wrap_seam_array_reserve(void *items, size_t *cap, size_t need,
				size_t size)
{
	return has_no_room && cap == &stacks.out.cap ? NULL :
	       __real_seam_array_reserve(items, cap, need, size);
}

UNIT_TEST(samples_without_memory_are_counted)
{
	map(JIT, JIT_END, "//anon", 0);
	seam_live_stacks_begin_round(&stacks, false);
	make(&jit);
	has_no_room = true;
	seam_live_stacks_sample(&stacks, 0, record);
	has_no_room = false;
	assert_int_equal(stacks.out.n, 0);
	assert_int_equal(stacks.n_dropped, 1);
}

/* Where code was announced, the file's bytes are not what is executed. */
UNIT_TEST(announced_code_is_not_read_from_the_file_under_it)
{
	static struct dump dump;
	uint64_t base = getauxval(AT_SYSINFO_EHDR), end = 0;
	const uint64_t after = find_ret(base, &end) + 1;
	const uint64_t user[] = { after - 8, after };
	const uint64_t words[] = { 0, after };
	const struct made_sample s = {
		.abi = 2, .pc = user[0], .sp = STACK, .bp = STACK,
		.stack = words, .n_stack = 2, .has_dump = true,
	};

	map(base, end, "[vdso]", 0);
	/* it ends where it is returned to, and the file has no call there */
	dump.size = 0;
	put_load(&dump, 1, "f", after - 16, 16, 1);
	seam_live_jit_add(&stacks.jit, pid, dump_bytes(&dump));
	take(make(&s));
	expect_chain(user, 2);
}

/* What is not freed at the end, LeakSanitizer reports. */
UNIT_TEST(announced_code_is_freed_with_the_stacks)
{
	static struct dump dump;
	struct seam_unwind_code code;

	put_load(&dump, 1, "f", JIT + 0x100, 0x100, 1);
	seam_live_jit_add(&stacks.jit, pid, dump_bytes(&dump));
	assert_true(seam_live_jit_find(&stacks.jit,
		seam_live_jit_process(&stacks.jit, pid), JIT + 0x110, 2,
		&code));
}

static char path[64];		/* what make_file() made */

/* A file that can be opened but is no ELF file. */
static uint64_t make_file(void)
{
	struct stat st;
	FILE *file;

	snprintf(path, sizeof(path), "%s/code", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("no ELF file", file);
	fclose(file);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

UNIT_TEST(a_sample_waits_for_its_file_with_the_mappings_it_had)
{
	static const uint64_t user[] = { JIT + 0x100, JIT + 0x200 };
	struct seam_perf_sample sample;

	map(JIT, JIT_END, path, make_file());
	take(make(&jit));
	assert_int_equal(stacks.out.n, 0);
	assert_int_equal(stacks.waiting.n, 1);
	/* without the unused part of its dump */
	assert_true(stacks.waiting.n_bytes < DUMP);
	/* later the process maps something else there */
	map(JIT + 0x200, JIT_END, "//anon", 0);
	wait_for_files();
	assert_int_equal(stacks.waiting.n, 0);
	assert_int_equal(read_out(0, &sample), stacks.out.n);
	assert_int_equal(seam_perf_u64(&sample.callchain, 3), user[0]);
	assert_int_equal(seam_stack_counts_total(&counts), 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_NOT_READY], 0);
}

/* Whether fstat() finds another time of change each time. */
static _Atomic bool is_changing;

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st)
{
	static _Atomic long n;
	int result = __real_fstat64(fd, st);

	if (is_changing)
		st->st_mtim.tv_nsec = n++;
	return result;
}

static const struct made_sample without_caller = {
	.abi = 2, .pc = JIT + 0x100, .sp = STACK, .bp = 8,
	.stack = jit_stack, .n_stack = 5, .has_dump = true,
};

/* How the file of this program is after it was read for a sample. */
static enum seam_file_cfi_state read_own_file(void)
{
	char own[256];
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	assert_in_range(n, 1, sizeof(own) - 1);
	own[n] = '\0';
	assert_int_equal(stat(own, &st), 0);
	map(JIT, JIT_END, own, st.st_ino);
	take(make(&without_caller));
	wait_for_files();
	assert_int_equal(seam_stack_counts_total(&counts), 1);
	return stacks.files.files.items[0]->state;
}

UNIT_TEST(a_file_is_read_for_its_rules)
{
	assert_int_equal(read_own_file(), SEAM_FILE_CFI_READY);
}

UNIT_TEST(a_file_that_changes_while_it_is_read_is_not_used)
{
	is_changing = true;
	assert_int_equal(read_own_file(), SEAM_FILE_CFI_FAILED);
	is_changing = false;
	assert_int_equal(counts.n_ended[SEAM_STACK_NO_FILE], 1);
}

/* Code of a JIT in a memfd, which has a path and is no file. */
UNIT_TEST(memory_with_a_path_is_code_without_rules)
{
	map(JIT, JIT_END, "/memfd:jit (deleted)", 12345);
	take(make(&without_caller));
	wait_for_files();
	assert_int_equal(counts.n_ended[SEAM_STACK_NO_FILE], 0);
	assert_int_equal(counts.n_ended[SEAM_STACK_WITHOUT_CFI], 1);
}

UNIT_TEST(at_the_end_waiting_samples_are_written_as_they_are)
{
	struct seam_perf_sample sample;

	map(JIT, JIT_END, path, make_file());
	take(make(&jit));
	seam_live_stacks_begin_round(&stacks, true);
	assert_int_equal(stacks.waiting.n, 0);
	assert_int_equal(read_out(0, &sample), stacks.out.n);
}

UNIT_TEST(one_user_cannot_map_more_files_than_its_share)
{
	/* no process, so of no user that is known */
	enum { NOBODYS = INT32_MAX - 8 };
	struct seam_perf_mapping m = { .pid = NOBODYS, .prot = PROT_EXEC, .len = 9 };
	uint32_t id = 0;

	m.filename = path;
	for (int i = 0; i < SEAM_SHARE_FILES + 5; i++) {
		m.pid = NOBODYS - i;
		snprintf(path, sizeof(path), "/nowhere/%d", i);
		id = seam_cfi_files_add(&stacks.files, &m, false, SEAM_NONE);
	}
	assert_int_equal(id, SEAM_NONE);
	assert_int_equal(stacks.files.mappings.n, SEAM_SHARE_FILES);
	assert_int_equal(stacks.files.n_left_out, 5);
	/* the same file beside it is no further one */
	snprintf(path, sizeof(path), "/nowhere/0");
	assert_int_equal(seam_cfi_files_add(&stacks.files, &m, false, 0), 0);
	snprintf(path, sizeof(path), "/nowhere/else");
	m.pid = getpid();
	id = seam_cfi_files_add(&stacks.files, &m, false, 0);
	assert_int_equal(id, SEAM_SHARE_FILES);
	/* what is mapped no more leaves its place, once nothing uses it */
	seam_cfi_files_use(&stacks.files, 0, -1);
	m.pid = NOBODYS;
	assert_int_equal(seam_cfi_files_add(&stacks.files, &m, false,
					    SEAM_NONE), SEAM_NONE);
	seam_cfi_files_use(&stacks.files, 0, -1);
	assert_int_equal(seam_cfi_files_add(&stacks.files, &m, false,
					    SEAM_NONE), 0);
}

/* Map the file that was made in process @who, and have it opened. */
static const struct seam_cfi_mapping *open_as(int32_t who)
{
	struct seam_perf_mapping m = {
		.pid = who, .prot = PROT_EXEC, .len = 9, .filename = path,
	};
	struct stat st;
	uint32_t id;

	assert_int_equal(stat(path, &st), 0);
	m.ino = st.st_ino;
	id = seam_cfi_files_add(&stacks.files, &m, true, SEAM_NONE);
	assert_int_not_equal(id, SEAM_NONE);
	while (seam_cfi_files_collect(&stacks.files))
		usleep(100);
	assert_int_equal(stacks.files.mappings.items[id].state,
			 SEAM_CFI_MAPPING_OPEN);
	return &stacks.files.mappings.items[id];
}

UNIT_TEST(a_protected_file_is_opened_once_for_all_processes)
{
	make_file();
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(open_as(pid)->file, 0);
	assert_int_equal(open_as(1)->file, 0);
	assert_int_equal(stacks.files.mappings.n, 1);
	assert_int_equal(stacks.files.mappings.items[0].n_users, 2);
	assert_int_equal(stacks.files.n_open, 1);
}

/* One that all may write to stands for one that others own. */
UNIT_TEST(any_other_file_is_opened_for_each_and_read_once)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	make_file();
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(open_as(pid)->file, 0);
	assert_int_equal(open_as(pid)->file, 0);
	assert_int_equal(stacks.files.mappings.n, 2);
	assert_int_equal(stacks.files.n_open, 1);
	/* it was changed since: another file */
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(open_as(pid)->file, 1);
	assert_int_equal(chmod(path, 0644), 0);
}

UNIT_TEST(memory_of_waiting_samples_is_bounded)
{
	size_t n = 0;

	map(JIT, JIT_END, path, make_file());
	/* no result is taken before the next round */
	seam_live_stacks_begin_round(&stacks, false);
	while (stacks.out.n == 0) {
		seam_live_stacks_sample(&stacks, 0, make(&jit));
		n++;
	}
	assert_true(stacks.waiting.n_bytes <= SEAM_LIVE_WAITING_BYTES);
	assert_true(n > 10000);
	assert_int_equal(stacks.waiting.n, n - 1);
	wait_for_files();
	assert_int_equal(stacks.waiting.n, 0);
	assert_int_equal(seam_stack_counts_total(&counts), n);
}

UNIT_TEST(a_process_that_ran_before_is_waited_for)
{
	static const uint64_t user[] = { JIT + 0x100, JIT + 0x200 };

	stacks.is_starting = true;
	take(make(&jit));
	assert_int_equal(stacks.waiting.n, 1);
	map(JIT, JIT_END, "//anon", 0);
	stacks.is_starting = false;
	seam_live_stacks_begin_round(&stacks, false);
	expect_chain(user, 2);
}

static int set_up_folder(void **state)
{
	pid = getpid();
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	snprintf(path, sizeof(path), "%s/code", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	return unit_run(set_up_folder, remove_folder, set_up, tear_down);
}
