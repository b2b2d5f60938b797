/* SPDX-License-Identifier: MIT */
/*
 * test_load_perf.c - from records to a profile: who, where, when, how much
 *
 * Files are made by hand, so that every answer is known.  Their binaries do
 * not exist: an address shows as [module+0x...], which tells the module and
 * the offset that it was resolved to.
 */

#include "../simpleperf_bytes.h"
#include "base/hash.h"
#include "loaded.h"
#include "model/perf/perf_scan.h"
#include "model/profile/timeline.h"

static void load(struct loaded *l, const struct bytes *data, bool pipe)
{
	load_made(l, pipe ? make_pipe(data) : make_file(data),
		  (struct seam_perf_input) { 0 });
}

static const char *comm_of(const struct loaded *l, size_t i)
{
	return seam_profile_text(&l->profile, seam_samples_comm(&l->profile, i));
}

/* Of each test: its records, and what was loaded of them. */
static struct bytes made;
static struct loaded got;

static int begin(void **state)
{
	made = (struct bytes) { .endian = SEAM_LITTLE };
	got = (struct loaded) { .file.size = 0 };
	return 0;
}

static int end(void **state)
{
	if (got.file.data)
		unload(&got);
	free(made.data);
	return 0;
}

/* Which mapping an address means depends on when it was sampled. */
UNIT_TEST(an_address_means_what_was_there_at_its_time)
{
	static const uint64_t chain[] = { USER, 0x401100, 0x401200 };

	/* Out of order on purpose: rings are not drained by time. */
	put_sample(&made, TEST_ID_1, 7, 7, 350, chain, 3);
	put_sample(&made, TEST_ID_1, 7, 7, 150, chain, 3);
	put_sample(&made, TEST_ID_1, 7, 7, 250, chain, 3);
	put_comm(&made, 7, 7, "after", true, 300);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0x8000, "/bin/after", 301);
	put_comm(&made, 7, 7, "before", true, 100);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/before", 101);
	put_mmap2(&made, 7, 0x401000, 0x180, 0x50, "/lib/plugin", 200);
	load(&got, &made, false);

	assert_string_equal(comm_of(&got, 0), "after");
	assert_string_equal(stack_text(&got, 0, NULL),
			    "[after+0x9100] [after+0x9200]");
	assert_string_equal(comm_of(&got, 1), "before");
	assert_string_equal(stack_text(&got, 1, NULL),
			    "[before+0x1100] [before+0x1200]");
	/* Half covered: what sticks out is still the first file. */
	assert_string_equal(stack_text(&got, 2, NULL),
			    "[plugin+0x150] [before+0x1200]");
}

/* As what stood before the recording: all of it has one time. */
UNIT_TEST(of_one_time_the_later_record_holds)
{
	static const uint64_t chain[] = { USER, 0x401100, 0x411100 };

	put_mmap2(&made, 7, 0x410000, 0x4000, 0, "/bin/cleared", 100);
	put_comm(&made, 7, 7, "early", false, 100);
	put_comm(&made, 7, 7, "late", true, 100);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/covered", 100);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0x1000, "/bin/seen", 100);
	put_sample(&made, TEST_ID_1, 7, 7, 150, chain, 3);
	load(&got, &made, false);
	assert_string_equal(comm_of(&got, 0), "late");
	assert_string_equal(stack_text(&got, 0, NULL),
			    "[seen+0x2100] [unknown]");
}

UNIT_TEST(a_fork_has_its_parents_memory_and_a_reused_pid_has_not)
{
	static const uint64_t chain[] = { USER, 0x401100 };
	const struct seam_process *process;
	const struct seam_thread *thread;

	put_comm(&made, 7, 7, "parent", true, 10);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/parent", 11);
	put_task(&made, PERF_RECORD_FORK, 8, 7, 8, 7, 20);
	put_sample(&made, TEST_ID_1, 8, 8, 30, chain, 2);
	put_task(&made, PERF_RECORD_EXIT, 8, 7, 8, 7, 40);
	/* Another program gets pid 8; its parent was never seen. */
	put_task(&made, PERF_RECORD_FORK, 8, 1, 8, 1, 50);
	put_comm(&made, 8, 8, "other", true, 51);
	put_mmap2(&made, 8, 0x400000, 0x4000, 0x1000, "/bin/other", 52);
	put_sample(&made, TEST_ID_1, 8, 8, 60, chain, 2);
	/* A thread of 7 shares its memory; its name is its own. */
	put_task(&made, PERF_RECORD_FORK, 7, 7, 9, 7, 60);
	put_comm(&made, 7, 9, "pool", false, 61);
	put_sample(&made, TEST_ID_1, 7, 9, 70, chain, 2);
	load(&got, &made, true);

	assert_string_equal(comm_of(&got, 0), "parent");
	assert_string_equal(stack_text(&got, 0, NULL), "[parent+0x1100]");
	assert_string_equal(comm_of(&got, 1), "other");
	assert_string_equal(stack_text(&got, 1, NULL), "[other+0x2100]");
	assert_string_equal(comm_of(&got, 2), "pool");
	assert_string_equal(stack_text(&got, 2, NULL), "[parent+0x1100]");
	assert_int_not_equal(got.profile.samples.thread[0],
			     got.profile.samples.thread[1]);
	thread = &got.profile.threads.items[got.profile.samples.thread[2]];
	process = &got.profile.processes.items[thread->process];
	assert_int_equal(process->pid, 7);
	/* that of its first thread, whatever the others are called */
	assert_string_equal(seam_profile_text(&got.profile, process->name),
			    "parent");
}

/* As recorders report threads that were there before them. */
UNIT_TEST(a_fork_of_itself_is_no_new_thread)
{
	static const uint64_t chain[] = { USER, 0x401100 };

	put_comm(&made, 7, 9, "pool", false, 10);
	put_sample(&made, TEST_ID_1, 7, 9, 15, chain, 2);
	put_task(&made, PERF_RECORD_FORK, 7, 7, 9, 9, 20);
	put_sample(&made, TEST_ID_1, 7, 9, 25, chain, 2);
	load(&got, &made, false);
	assert_int_equal(got.profile.samples.thread[0],
			 got.profile.samples.thread[1]);
	assert_string_equal(comm_of(&got, 1), "pool");
}

/* Its EXIT was lost: the FORK alone tells that pid 8 is somebody else. */
UNIT_TEST(a_pid_is_used_again_though_nobody_saw_its_end)
{
	static const uint64_t chain[] = { USER, 0x401100 };

	put_comm(&made, 7, 7, "parent", true, 10);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/parent", 11);
	put_comm(&made, 8, 8, "old", true, 20);
	put_mmap2(&made, 8, 0x400000, 0x4000, 0x1000, "/bin/old", 21);
	put_sample(&made, TEST_ID_1, 8, 8, 30, chain, 2);
	put_task(&made, PERF_RECORD_FORK, 8, 7, 8, 7, 40);
	put_sample(&made, TEST_ID_1, 8, 8, 50, chain, 2);
	load(&got, &made, false);

	assert_string_equal(comm_of(&got, 0), "old");
	assert_string_equal(stack_text(&got, 0, NULL), "[old+0x2100]");
	assert_string_equal(comm_of(&got, 1), "parent");
	assert_string_equal(stack_text(&got, 1, NULL), "[parent+0x1100]");
	assert_int_equal(got.profile.processes.items[got.profile.threads.items[
		got.profile.samples.thread[0]].process].end_ns, 40);
}

/* main() may call pthread_exit(); exec ends the other threads. */
UNIT_TEST(a_process_ends_with_its_last_thread)
{
	static const uint64_t chain[] = { USER, 0x401100 };

	put_comm(&made, 7, 7, "app", true, 10);
	put_task(&made, PERF_RECORD_FORK, 7, 7, 9, 7, 20);
	put_task(&made, PERF_RECORD_EXIT, 7, 1, 7, 1, 30);
	put_sample(&made, TEST_ID_1, 7, 9, 40, chain, 2);
	put_task(&made, PERF_RECORD_EXIT, 7, 1, 9, 1, 50);
	put_comm(&made, 8, 8, "sh", true, 10);
	put_task(&made, PERF_RECORD_FORK, 8, 8, 10, 8, 20);
	put_task(&made, PERF_RECORD_EXIT, 8, 1, 8, 1, 30);
	put_comm(&made, 8, 8, "next", true, 31);	/* thread 10 is 8 now */
	put_sample(&made, TEST_ID_1, 8, 8, 40, chain, 2);
	put_task(&made, PERF_RECORD_EXIT, 8, 1, 8, 1, 60);
	load(&got, &made, false);

	for (size_t i = 0; i < 2; i++) {
		const struct seam_thread *thread = &got.profile.threads.items[
			got.profile.samples.thread[i]];

		assert_int_equal(thread->end_ns, 50 + 10 * i);
		assert_int_equal(got.profile.processes.items[thread->process]
				 .end_ns, 50 + 10 * i);
	}
}

static void put_ksymbol(struct bytes *b, uint64_t addr, uint32_t len,
			const char *name, bool gone, uint64_t time)
{
	size_t at = begin_record(b, PERF_RECORD_KSYMBOL, 0);

	put_u64(b, addr);
	put_u32(b, len);
	put_u16(b, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put_u16(b, gone);
	put_name(b, name);
	put_stamp(b, 0, 0, time);
	end_record(b, at);
}

/* Rings of several CPUs: records of the kernel's code come in any order. */
UNIT_TEST(kernel_code_comes_and_goes_in_the_order_of_time)
{
	static const uint64_t chain[] = { KERNEL, 0xffffffffc0100010 };
	static const uint8_t orders[][3] = {
		{ 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 },
	};

	for (size_t o = 0; o < SEAM_ARRAY_SIZE(orders); o++) {
		struct bytes b = { .endian = SEAM_LITTLE };
		struct loaded l;

		for (size_t i = 0; i < 3; i++) {
			unsigned int k = orders[o][i];

			put_ksymbol(&b, 0xffffffffc0100000, 0x1000,
				    k ? "new" : "old", k == 1, 100 + 100 * k);
		}
		/* Told last, true from the start, and no symbol's end. */
		put_mmap2(&b, -1, 0xffffffff81000000, 0x70000000, 0,
			  "[kernel.kallsyms]_text", 0);
		for (uint64_t i = 0; i < 4; i++)
			put_sample(&b, TEST_ID_1, 7, 7, 50 + 100 * i, chain, 2);
		load(&l, &b, false);
		assert_string_equal(stack_text(&l, 0, NULL),
				    "[kernel.kallsyms+0xffffffffc0100010]");
		assert_string_equal(stack_text(&l, 1, NULL), "old");
		assert_string_equal(stack_text(&l, 2, NULL),
				    "[kernel.kallsyms+0xffffffffc0100010]");
		assert_string_equal(stack_text(&l, 3, NULL), "new");
		unload(&l);
		free(b.data);
	}
}

/* The files that a phone has are not here: the recording has their names. */
UNIT_TEST(names_that_the_recording_brings_are_used)
{
	static const uint64_t k = 0xffffffff81000000;
	static const uint64_t chain[] = {
		KERNEL, k + 0x10, k + 0x100020, USER, 0x401130, 0x501124,
		0x601104, 0x700100, 0x401230,
	};
	static const struct made_symbol elf[] = {
		{ 0x2100, 0x100, "_Z4workv" },
	}, old[] = { { 0x8100, 0x40, "old" } }, dex[] = {
		{ 0x3100, 4, "Main.run" },
	}, jit[] = { { 0x7000f0, 0x40, "Main.hot" } }, core[] = {
		{ k, 0x40, "sys_read" },
	}, module[] = { { 0x110, 0x40, "ext4_read" } };

	for (int form = 0; form < 2; form++) {
		struct bytes b = { .endian = SEAM_LITTLE };
		struct bytes files = { .endian = SEAM_LITTLE };
		struct loaded l;
		size_t at;

		put_entry(&files, form, "/system/elf", SEAM_SIMPLEPERF_ELF,
			  0x2000, 0x1000, elf, 1);
		put_entry(&files, form, "/system/old", SEAM_SIMPLEPERF_ELF,
			  0x8000, UINT64_MAX, old, 1);
		put_entry(&files, form, "/system/dex", SEAM_SIMPLEPERF_DEX, 0,
			  UINT64_MAX, dex, 1);
		put_entry(&files, form, "//anon", SEAM_SIMPLEPERF_SYMBOL_MAP,
			  0, UINT64_MAX, jit, 1);
		put_entry(&files, form, "[kernel.kallsyms]",
			  SEAM_SIMPLEPERF_KERNEL, 0, UINT64_MAX, core, 1);
		put_entry(&files, form, "[ext4]",
			  SEAM_SIMPLEPERF_KERNEL_MODULE, 0x100, UINT64_MAX,
			  module, 1);
		at = begin_record(&b, SEAM_PERF_HEADER_FEATURE, 0);
		put_u64(&b, form ? SEAM_SIMPLEPERF_FILE2 :
			SEAM_SIMPLEPERF_FILE);
		put(&b, files.data, files.size);
		end_record(&b, at);
		put_mmap2(&b, 7, 0x400000, 0x2000, 0, "/system/elf", 1);
		put_mmap2(&b, 7, 0x501000, 0x1000, 0x5000, "/system/old", 1);
		put_mmap2(&b, 7, 0x601000, 0x1000, 0x3000, "/system/dex", 1);
		put_mmap2(&b, 7, 0x700000, 0x1000, 0, "//anon", 1);
		put_mmap2(&b, -1, k, 0x100000, 0, "[kernel.kallsyms]", 0);
		put_mmap2(&b, -1, k + 0x100000, 0x1000, 0, "[ext4]", 0);
		put_sample(&b, TEST_ID_1, 7, 7, 50, chain, 9);
		load(&l, &b, true);
		assert_string_equal(stack_text(&l, 0, NULL),
			"sys_read ext4_read work old Main.run Main.hot "
			"[elf+0x1230]");
		unload(&l);
		free(files.data);
		free(b.data);
	}
}

#define MISC_KERNEL PERF_RECORD_MISC_KERNEL
#define MISC_USER PERF_RECORD_MISC_USER

/* The walk of the stack begins where the interrupt was, some way behind. */
UNIT_TEST(the_leaf_is_where_the_sample_was)
{
	static const uint64_t k = 0xffffffff81000000;
	static const struct {
		uint16_t misc;
		uint64_t ip;
		size_t n;
		uint64_t chain[5];
		const char *stack;
		enum seam_layer layer;
	} cases[] = {
		{ MISC_USER, 0x401100, 3, { USER, 0x401180, 0x401200 },
		  "[prog+0x1100] [prog+0x1200]", SEAM_LAYER_NATIVE },
		{ MISC_USER, 0x401100, 2, { 0x401180, 0x401200 },
		  "[prog+0x1100] [prog+0x1200]", SEAM_LAYER_NATIVE },
		{ MISC_KERNEL, k + 0x100, 5, { KERNEL, k + 0x180, k + 0x200,
		  USER, 0x401200 },
		  "[kernel.kallsyms+0xffffffff81000100] "
		  "[kernel.kallsyms+0xffffffff81000200] [prog+0x1200]",
		  SEAM_LAYER_KERNEL },
		/* It entered the kernel before the interrupt came. */
		{ MISC_USER, 0x401100, 5, { KERNEL, k + 0x180, USER, 0x401180,
		  0x401200 },
		  "[prog+0x1100] [prog+0x1200]", SEAM_LAYER_NATIVE },
		{ MISC_USER, 0x401100, 2, { KERNEL, k + 0x180 },
		  "[prog+0x1100]", SEAM_LAYER_NATIVE },
		/* It left the kernel, or its part of the chain was excluded. */
		{ MISC_KERNEL, k + 0x100, 3, { USER, 0x401180, 0x401200 },
		  "[kernel.kallsyms+0xffffffff81000100] [prog+0x1180] "
		  "[prog+0x1200]", SEAM_LAYER_KERNEL },
		/* Segments without an address. */
		{ MISC_KERNEL, k + 0x100, 4, { KERNEL, USER, 0x401180,
		  0x401200 },
		  "[kernel.kallsyms+0xffffffff81000100] [prog+0x1180] "
		  "[prog+0x1200]", SEAM_LAYER_KERNEL },
		{ MISC_USER, 0x401100, 1, { USER }, "[prog+0x1100]",
		  SEAM_LAYER_NATIVE },
		/* No address was recorded. */
		{ MISC_USER, 0, 3, { USER, 0x401180, 0x401200 },
		  "[prog+0x1180] [prog+0x1200]", SEAM_LAYER_NATIVE },
	};

	for (size_t i = 0; i < 2 * SEAM_ARRAY_SIZE(cases); i++) {
		struct bytes b = { .endian = i % 2 ? SEAM_BIG : SEAM_LITTLE };
		const struct seam_profile *p;
		struct loaded l;

		put_mmap2(&b, 7, 0x400000, 0x4000, 0, "/bin/prog", 1);
		put_mmap2(&b, -1, k, 0x70000000, 0, "[kernel.kallsyms]_text",
			  0);
		put_sample_at(&b, TEST_ID_1, 7, 7, 50, cases[i / 2].misc,
			      cases[i / 2].ip, cases[i / 2].chain,
			      cases[i / 2].n);
		load(&l, &b, false);
		p = &l.profile;
		assert_string_equal(stack_text(&l, 0, NULL),
				    cases[i / 2].stack);
		assert_int_equal(p->functions.items[p->frames.items[
			p->stacks.items[p->samples.stack[0]].frame].function]
			.layer, cases[i / 2].layer);
		unload(&l);
		free(b.data);
	}
}

UNIT_TEST(layers_follow_the_context_of_an_address)
{
	static const uint64_t chain[] = {
		KERNEL, 0xffffffff81000010, USER, 0x7000, 0x401100,
	};
	const struct seam_profile *p = &got.profile;
	static const uint8_t layers[] = {
		SEAM_LAYER_KERNEL, SEAM_LAYER_JIT, SEAM_LAYER_NATIVE,
	};
	uint32_t s;

	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/vm", 1);
	put_mmap2(&made, 7, 0x7000, 0x1000, 0, "//anon", 2);
	put_sample(&made, TEST_ID_2, 7, 7, 5, chain, 5);
	load(&got, &made, false);

	s = p->samples.stack[0];
	for (size_t i = 0; i < 3; i++, s = p->stacks.items[s].parent) {
		uint32_t frame = p->stacks.items[s].frame;

		assert_int_equal(p->functions.items[p->frames.items[
			frame].function].layer, layers[i]);
	}
	assert_int_equal(s, 0);
	assert_string_equal(stack_text(&got, 0, NULL),
		"[kernel.kallsyms+0xffffffff81000010] [jit] "
		"[vm+0x1100]");
	/* No COMM at all: called by its number, as perf does. */
	assert_string_equal(comm_of(&got, 0), ":7");
}

/* Memory of a JIT may be inherited: its mapping is the parent's. */
UNIT_TEST(code_without_a_name_is_one_function_of_its_process)
{
	static const uint64_t chains[][3] = {
		{ USER, 0x7010, 0x401100 }, { USER, 0x7020, 0x401100 },
		{ USER, 0x9030, 0x401100 },
	};
	static const char *const modules[] = { "[jit vm 7]", "[jit vm 8]" };
	const struct seam_profile *p;

	put_comm(&made, 7, 7, "vm", true, 1);
	put_mmap2(&made, 7, 0x400000, 0x4000, 0, "/bin/vm", 1);
	put_mmap2(&made, 7, 0x7000, 0x1000, 0, "//anon", 2);
	put_mmap2(&made, 7, 0x9000, 0x1000, 0, "[anon:code]", 2);
	put_task(&made, PERF_RECORD_FORK, 8, 7, 8, 7, 3);
	for (size_t i = 0; i < 6; i++)
		put_sample(&made, TEST_ID_1, 7 + (int32_t)i / 3,
			   7 + (int32_t)i / 3, 10 + i,
			   chains[i % 3], 3);
	load(&got, &made, false);
	p = &got.profile;
	for (size_t i = 0; i < 6; i++) {
		const struct seam_frame *f = &p->frames.items[p->stacks.items[
			p->samples.stack[i]].frame];
		const struct seam_function *function =
			&p->functions.items[f->function];

		assert_string_equal(stack_text(&got, i, NULL),
				    "[jit] [vm+0x1100]");
		assert_string_equal(seam_profile_path(p, function->module),
				    modules[i / 3]);
		assert_int_equal(f->function, p->frames.items[p->stacks.items[
			p->samples.stack[i / 3 * 3]].frame].function);
		assert_int_equal(function->layer, SEAM_LAYER_JIT);
		assert_false(function->is_named);
		assert_int_equal(f->addr, chains[i % 3][1]);
	}
}

/* A file with the feature @bit, of @feature's bytes, in place of HOSTNAME. */
static struct bytes make_file_with(const struct bytes *data, int bit,
				   const struct bytes *feature)
{
	struct bytes file = make_file(data);
	size_t table = 120 + 2 * 144 + data->size, at = file.size;

	put(&file, feature->data, feature->size);
	set_n(&file, 72, UINT64_C(1) << bit | 1 << SEAM_PERF_FEATURE_EVENT_DESC, 8);
	set_n(&file, table, at, 8);
	set_n(&file, table + 8, feature->size, 8);
	return file;
}

/* A file of machine @arch whose samples end in registers 0 to 32. */
static struct bytes make_file_with_registers(const struct bytes *data,
					     const char *arch)
{
	struct bytes feature = { .endian = SEAM_LITTLE }, file;

	put_feature_string(&feature, arch);
	file = make_file_with(data, SEAM_PERF_FEATURE_ARCH, &feature);
	free(feature.data);
	for (size_t i = 0; i < 2; i++) {
		size_t attr = 120 + i * 144;

		set_n(&file, attr + 24,
		      TEST_SAMPLE_TYPE | PERF_SAMPLE_REGS_USER, 8);
		set_n(&file, attr + 80, UINT64_C(0x1ffffffff), 8);
	}
	return file;
}

/* Which register it is depends on the machine that was recorded. */
UNIT_TEST(the_users_leaf_is_in_the_machines_own_register)
{
	static const uint64_t chain[] = { KERNEL, 0xffffffff81000010 };
	static const struct { const char *arch, *leaf; } machines[] = {
		{ "x86_64", " [user+0x8000]" }, { "i686", " [user+0x8000]" },
		{ "aarch64", " [user+0x20000]" },
		{ "armv7l", " [user+0xf000]" }, { "riscv64", " [user+0x0]" },
		{ "mystery", "" },
	};

	for (size_t m = 0; m < SEAM_ARRAY_SIZE(machines); m++) {
		struct bytes b = { .endian = SEAM_LITTLE };
		struct loaded l;
		char want[100];
		size_t at;

		put_mmap2(&b, 7, 0x1000, 0x40000, 0, "/bin/user", 1);
		at = b.size;
		put_sample(&b, TEST_ID_1, 7, 7, 5, chain, 2);
		put_u64(&b, PERF_SAMPLE_REGS_ABI_64);
		for (uint64_t i = 0; i <= 32; i++)
			put_u64(&b, 0x1000 + i * 0x1000);
		end_record(&b, at);
		load_made(&l, make_file_with_registers(&b, machines[m].arch),
			  (struct seam_perf_input) { 0 });
		snprintf(want, sizeof(want),
			 "[kernel.kallsyms+0xffffffff81000010]%s",
			 machines[m].leaf);
		assert_string_equal(stack_text(&l, 0, NULL), want);
		unload(&l);
		free(b.data);
	}
}

static void put_build_id(struct bytes *b, uint16_t misc, int32_t pid,
			 const char *name, uint8_t id)
{
	size_t at = begin_record(b, SEAM_PERF_HEADER_BUILD_ID, misc);

	put_u32(b, (uint32_t)pid);
	for (size_t i = 0; i < 20; i++)
		put_n(b, id, 1);
	put_u32(b, 20);
	put_name(b, name);
	end_record(b, at);
}

static void put_kernel_mmap(struct bytes *b, uint16_t misc, const char *name,
			    uint64_t addr, uint64_t text)
{
	size_t at = begin_record(b, PERF_RECORD_MMAP, misc);

	put_u32(b, UINT32_MAX);
	put_u32(b, 0);
	put_u64(b, addr);
	put_u64(b, 0x1000000);
	put_u64(b, text);
	put_name(b, name);
	put_stamp(b, -1, 0, 0);
	end_record(b, at);
}

/* A recording of a host may tell of its guests, whose kernels are others. */
UNIT_TEST(a_guests_kernel_is_not_the_hosts)
{
	static const uint64_t chain[] = { KERNEL, 0xffffffff81000010 };
	static const uint8_t host_id[20] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
					     1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct bytes b = { .endian = SEAM_LITTLE };
	struct bytes ids = { .endian = SEAM_LITTLE };
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_file file = { 0 };
	struct loaded l;

	put_build_id(&ids, PERF_RECORD_MISC_KERNEL, -1, "[kernel.kallsyms]",
		     1);
	put_build_id(&ids, PERF_RECORD_MISC_GUEST_KERNEL, 700,
		     "[guest.kernel.kallsyms.700]", 2);
	put_build_id(&ids, PERF_RECORD_MISC_GUEST_KERNEL, 701,
		     "[kernel.kallsyms]", 3);
	put_kernel_mmap(&b, PERF_RECORD_MISC_KERNEL, "[kernel.kallsyms]_text",
			0xffffffff81000000, 0xffffffff81000000);
	put_kernel_mmap(&b, PERF_RECORD_MISC_GUEST_KERNEL,
			"[guest.kernel.kallsyms]_text", 0xffffffff81000000,
			0xffffffff82000000);
	put_sample(&b, TEST_ID_1, 7, 7, 5, chain, 2);
	l.file = make_file_with(&b, SEAM_PERF_FEATURE_BUILD_ID, &ids);
	file.bytes = (struct seam_bytes) { l.file.data, l.file.size };
	assert_int_equal(seam_profile_init(&l.profile), 0);
	assert_int_equal(seam_load_perf(&l.profile,
		&(struct seam_perf_input) { .data = &file }, symbols, NULL),
		0);
	/* The first module that was asked for: known already if it is this. */
	assert_int_equal(seam_symbols_kernel(symbols, &(struct seam_kernel) {
		.build_id = host_id, .build_id_size = 20,
		.text_addr = 0xffffffff81000000 }), 0);
	assert_string_equal(stack_text(&l, 0, NULL),
			    "[kernel.kallsyms+0xffffffff81000010]");
	seam_symbols_free(symbols);
	unload(&l);
	free(ids.data);
	free(b.data);
}

UNIT_TEST(counts_by_event_and_reports_what_was_lost)
{
	static const uint64_t chain[] = { USER, 0x401100 };
	size_t at;

	for (uint64_t i = 0; i < 10; i++)
		put_sample(&made, i < 7 ? TEST_ID_1 : TEST_ID_2, 7, 7, i + 1,
			   chain, 2);
	put_sample(&made, 0xbad, 7, 7, 20, chain, 2);
	put_lost(&made, TEST_ID_1, 30);
	/* PERF_FORMAT_LOST, told at the end: 25 of the second event. */
	at = begin_record(&made, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&made, 25);
	put_u32(&made, 7);
	put_u32(&made, 7);
	put_u64(&made, 100);
	put_u64(&made, 0);
	put_u64(&made, TEST_ID_2);
	end_record(&made, at);
	load(&got, &made, false);

	assert_int_equal(got.profile.samples.n, 10);
	assert_int_equal(got.profile.events.items[0].n_samples, 7);
	assert_int_equal(got.profile.events.items[1].n_samples, 3);
	assert_int_equal(got.profile.events.items[1].n_lost, 25);
	/* The larger of 30 and 25, and the one of no known event. */
	assert_int_equal(seam_profile_n_lost(&got.profile), 31);
}

UNIT_TEST(a_loss_is_in_the_timeline_of_the_thread_that_ran)
{
	static const uint64_t chain[] = { USER, 0x401100 };
	static const enum seam_item_kind kinds[] = {
		SEAM_ITEM_SAMPLE, SEAM_ITEM_LOSS, SEAM_ITEM_SAMPLE,
	};
	struct seam_timelines all;
	struct seam_timeline t;
	struct seam_item item;
	size_t at;

	put_sample(&made, TEST_ID_1, 7, 8, 10, chain, 2);
	put_sample(&made, TEST_ID_1, 7, 8, 200, chain, 2);
	put_sample(&made, TEST_ID_1, 7, 9, 90, chain, 2);
	at = begin_record(&made, PERF_RECORD_LOST, 0);
	put_u64(&made, TEST_ID_1);
	put_u64(&made, 30);
	put_u32(&made, 7);
	put_u32(&made, 8);
	put_u64(&made, 100);
	put_u64(&made, 0);
	put_u64(&made, TEST_ID_1);
	end_record(&made, at);
	load(&got, &made, false);

	assert_int_equal(seam_timelines_init(&all, &got.profile), 0);
	seam_timeline_open(&t, &all, NULL, got.profile.samples.thread[0]);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++) {
		assert_int_equal(seam_timeline_next(&t, &item), 1);
		assert_int_equal(item.kind, kinds[i]);
		if (item.kind == SEAM_ITEM_LOSS) {
			assert_int_equal(item.time_ns, 100);
			assert_int_equal(item.value, 30);
		}
	}
	assert_int_equal(seam_timeline_next(&t, &item), 0);
	seam_timeline_close(&t);
	seam_timelines_fini(&all);
}

/* A recording of a big-endian machine, in either mode, reads the same. */
UNIT_TEST(the_other_byte_order_gives_the_same_profile)
{
	static const uint64_t chain[] = {
		KERNEL, 0xffffffff81000010, USER, 0x401100, 0x401200,
	};

	for (int i = 0; i < 4; i++) {
		struct bytes b = { .endian = (enum seam_endian)(i & 1) };
		struct loaded l;

		put_comm(&b, 7, 7, "program", true, 100);
		put_mmap2(&b, 7, 0x400000, 0x4000, 0x80, "/bin/program", 101);
		for (uint64_t k = 0; k < 6; k++)
			put_sample(&b, k < 4 ? TEST_ID_1 : TEST_ID_2, 7,
				   7 + (int32_t)k % 2, 200 + k, chain, 5);
		put_lost(&b, TEST_ID_1, 3);
		load(&l, &b, i & 2);
		assert_int_equal(l.profile.samples.n, 6);
		assert_int_equal(l.profile.events.items[0].n_samples, 4);
		assert_int_equal(seam_profile_n_lost(&l.profile), 3);
		assert_string_equal(comm_of(&l, 0), "program");
		assert_string_equal(stack_text(&l, 0, NULL),
			"[kernel.kallsyms+0xffffffff81000010] "
			"[program+0x1180] [program+0x1280]");
		assert_int_equal(seam_samples_weight(&l.profile.samples, 5),
				 250000);
		assert_int_equal(l.profile.samples.time_ns[5], 205);
		assert_int_equal(l.profile.samples.cpu[5], 1);
		unload(&l);
		free(b.data);
	}
}

/* With one event any id is its: as many counters as there are samples. */
UNIT_TEST(any_number_of_counters_is_distinguished)
{
	enum { N = 3000 };
	struct bytes b = { .endian = SEAM_LITTLE }, file;
	struct seam_perf_data d;
	struct seam_perf_scan scan;

	for (uint64_t i = 0; i < 2 * N; i++)
		put_read_sample(&b, 5 + i % N, i < N ? 1 + i : 10001 + i, i);
	file = make_file(&b);
	make_read_event(&file);
	assert_int_equal(seam_perf_data_open(&d, (struct seam_bytes) {
		file.data, file.size }, NULL), 0);
	assert_int_equal(seam_perf_scan(&d, d.bytes, d.data_begin, d.data_end,
					&scan, 1,
					SEAM_SCAN_SAMPLES), 0);
	assert_int_equal(scan.samples.n, 2 * N);
	for (size_t i = 0; i < 2 * N; i++)
		assert_int_equal(seam_samples_weight(&scan.samples, i),
				 i < N ? 1 + i : 10000 + N);
	seam_perf_scan_fini(&scan);
	seam_perf_data_close(&d);
	free(b.data);
	free(file.data);
}

/*
 * A recorder that unwinds stacks, and one that drains each CPU, write samples
 * later than others that came after them.
 */
UNIT_TEST(a_counter_increases_in_the_order_of_time)
{
	static const struct { uint64_t time, value, weight; } cases[] = {
		{ 30, 70, 20 }, { 10, 10, 10 }, { 40, 70, 0 }, { 20, 50, 40 },
		{ 50, 75, 5 },
	};
	struct bytes b = { .endian = SEAM_LITTLE }, file;
	struct loaded l;
	size_t at = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		put_read_sample(&b, 5, cases[i].value, cases[i].time);
		put_read_sample(&b, 6, 2 * cases[i].value, cases[i].time);
	}
	file = make_file(&b);
	make_read_event(&file);
	load_made(&l, file, (struct seam_perf_input) { 0 });
	/* As in perf, a counter that did not increase has no sample. */
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++)
		for (size_t k = 1; cases[i].weight && k <= 2; k++, at++) {
			assert_int_equal(l.profile.samples.time_ns[at],
					 cases[i].time);
			assert_int_equal(seam_samples_weight(
				&l.profile.samples, at), k * cases[i].weight);
		}
	assert_int_equal(l.profile.samples.n, at);
	unload(&l);
	free(b.data);
}

/* -- cgroups ------------------------------------------------------------ */

/* Both events of a file of make_file(). */
static void have_cgroups(struct bytes *file)
{
	set_n(file, 120 + 24, TEST_SAMPLE_TYPE | PERF_SAMPLE_CGROUP, 8);
	set_n(file, 120 + 144 + 24, TEST_SAMPLE_TYPE | PERF_SAMPLE_CGROUP, 8);
}

UNIT_TEST(a_sample_has_the_cgroup_of_its_moment_or_of_its_thread)
{
	static const struct {
		int32_t tid;
		uint64_t id;
		const char *path;
	} cases[] = {
		{ 8, 0, "/a" }, { 8, 10, "/a" }, { 9, 11, "/b" }, { 9, 0, "/b" },
		{ 9, 12, "[cgroup 12]" }, { 9, 0, "[cgroup 12]" },
		{ 7, 0, "" },
	};
	const uint64_t chain[] = { USER, 0x401000 };
	struct bytes b = { .endian = SEAM_LITTLE }, file;
	struct loaded l;

	put_cgroup(&b, 10, "/old");
	put_cgroup(&b, 11, "/b");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++)
		put_cgroup_sample(&b, TEST_ID_1, 7, cases[i].tid, 10 + i,
				  chain, 2, cases[i].id);
	/* an id is that of one cgroup: later records are as valid */
	put_cgroup(&b, 10, "/a");
	file = make_file(&b);
	have_cgroups(&file);
	load_made(&l, file, (struct seam_perf_input) { 0 });
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++)
		assert_string_equal(seam_profile_text(&l.profile,
			seam_samples_cgroup(&l.profile.samples, i)),
			cases[i].path);
	unload(&l);
	free(b.data);
}

/* -- scanning in parts -------------------------------------------------- */

static struct bytes many_samples(size_t n)
{
	struct bytes b = { .endian = SEAM_LITTLE };

	for (uint64_t i = 0; i < n; i++) {
		uint64_t chain[40] = { USER };
		size_t depth = 2 + i * 7 % 37;

		/* Some words look like record headers, to mislead. */
		for (size_t k = 1; k < depth; k++)
			chain[k] = k % 3 ? 0x400000 + i % 50 * k :
				   UINT64_C(0x0018000100000009);
		put_cgroup_sample(&b, i % 2 ? TEST_ID_2 : TEST_ID_1,
				  7 + (int32_t)i / 300 % 3,
				  7 + (int32_t)i / 70 % 11, 1000 + i, chain,
				  depth, i / 400 % 5);
		if (i % 100 == 0)
			put_comm(&b, 7, 7, "thread", false, 1000 + i);
	}
	return b;
}

/* The columns of a scan, and what their ids stand for. */
struct joined {
	struct seam_samples samples;
	struct seam_callchains chains;
	struct seam_cgroup_ids cgroups;
	struct seam_tasks tasks;
	size_t n_sideband;
};

static struct joined scan(const struct seam_perf_data *d, size_t n_parts)
{
	struct seam_perf_scan parts[9];
	struct joined all = { 0 };

	assert_int_equal(seam_perf_scan(d, d->bytes, d->data_begin,
					d->data_end, parts, n_parts,
					SEAM_SCAN_RECORDS), 0);
	assert_int_equal(seam_scan_join(parts, n_parts,
					&(struct seam_scan_joined) {
		&all.samples, &all.chains, &all.cgroups, &all.tasks }), 0);
	for (size_t i = 0; i < n_parts; i++) {
		assert_int_equal(parts[i].error, 0);
		all.n_sideband += parts[i].sideband.n;
		seam_perf_scan_fini(&parts[i]);
	}
	return all;
}

static void free_joined(struct joined *all)
{
	seam_samples_fini(&all->samples);
	seam_callchains_fini(&all->chains);
	seam_cgroup_ids_fini(&all->cgroups);
	seam_tasks_fini(&all->tasks);
}

/* The id of the cgroup of sample @i. */
static uint64_t cgroup_of(const struct joined *all, size_t i)
{
	uint32_t number = seam_samples_cgroup(&all->samples, i);

	return number ? all->cgroups.items.items[number - 1] : 0;
}

static void assert_same_sample(const struct joined *a, const struct joined *b,
			       size_t i)
{
	const struct seam_samples *s = &a->samples, *t = &b->samples;
	const struct seam_task *x = &a->tasks.keys.items[s->thread[i]],
			       *y = &b->tasks.keys.items[t->thread[i]];
	const struct seam_callchain *c = &a->chains.items.items[s->stack[i]],
				    *d = &b->chains.items.items[t->stack[i]];

	assert_int_equal(s->time_ns[i], t->time_ns[i]);
	assert_int_equal(s->event[i], t->event[i]);
	assert_int_equal(s->record[i], t->record[i]);
	assert_int_equal(cgroup_of(a, i), cgroup_of(b, i));
	assert_int_equal(x->pid, y->pid);
	assert_int_equal(x->tid, y->tid);
	assert_int_equal(c->n, d->n);
	assert_int_equal(c->pid, d->pid);
	assert_memory_equal(a->chains.words.items + c->first,
			    b->chains.words.items + d->first, 8 * c->n);
}

UNIT_TEST(many_parts_give_what_one_gives)
{
	struct bytes data = many_samples(3000), file = make_file(&data);
	struct seam_perf_data d;
	struct joined one;

	have_cgroups(&file);
	assert_int_equal(seam_perf_data_open(&d, (struct seam_bytes) {
		file.data, file.size }, NULL), 0);
	one = scan(&d, 1);
	assert_int_equal(one.samples.n, 3000);
	for (size_t n = 2; n < 9; n++) {
		struct joined all = scan(&d, n);

		assert_int_equal(all.samples.n, 3000);
		assert_int_equal(cgroup_of(&all, 2999), 2999 / 400 % 5);
		for (size_t i = 0; i < 3000; i++)
			assert_same_sample(&one, &all, i);
		assert_int_equal(all.tasks.keys.n, one.tasks.keys.n);
		assert_int_equal(all.chains.items.n, one.chains.items.n);
		assert_int_equal(all.n_sideband, one.n_sideband);
		free_joined(&all);
	}
	free_joined(&one);
	seam_perf_data_close(&d);
	free(data.data);
	free(file.data);
}

/* A size of 0 in the middle: all parts together stop where one stops. */
UNIT_TEST(damage_stops_all_parts_at_the_same_place)
{
	struct bytes data = many_samples(2000), more = many_samples(2000);
	struct bytes file;
	struct seam_perf_data d;

	begin_record(&data, PERF_RECORD_SAMPLE, 0);
	put(&data, more.data, more.size);
	file = make_file(&data);
	assert_int_equal(seam_perf_data_open(&d, (struct seam_bytes) {
		file.data, file.size }, NULL), 0);
	for (size_t n = 1; n < 6; n++) {
		struct seam_perf_scan parts[6];
		size_t total = 0;

		assert_int_equal(seam_perf_scan(&d, d.bytes, d.data_begin,
						d.data_end, parts, n,
					SEAM_SCAN_SAMPLES), 0);
		for (size_t i = 0; i < n; i++) {
			total += parts[i].samples.n;
			seam_perf_scan_fini(&parts[i]);
		}
		assert_int_equal(total, 2000);
	}
	seam_perf_data_close(&d);
	free(data.data);
	free(more.data);
	free(file.data);
}

UNIT_TEST(a_profile_comes_out_of_any_cut)
{
	static const uint64_t chain[] = { USER, 0x401100, 0x401200 };
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct bytes b = { .endian = SEAM_LITTLE }, file;

	put_comm(&b, 7, 7, "before", true, 100);
	put_mmap2(&b, 7, 0x400000, 0x4000, 0, "/bin/before", 101);
	for (uint64_t i = 0; i < 5; i++)
		put_sample(&b, TEST_ID_1, 7, 7, 200 + i, chain, 3);
	file = make_file(&b);
	for (size_t size = 0; size < file.size; size++) {
		struct seam_file cut = { .bytes = exact(file.data, size) };
		struct seam_profile profile;
		int r;

		assert_int_equal(seam_profile_init(&profile), 0);
		r = seam_load_perf(&profile, &(struct seam_perf_input) {
			.data = &cut }, symbols, NULL);
		assert_true(r == 0 || r == -EBADMSG || r == -ENODATA);
		for (size_t i = 0; i < profile.samples.n; i++)
			assert_int_equal(profile.samples.time_ns[i], 200 + i);
		seam_profile_fini(&profile);
		free_exact(cut.bytes);
	}
	seam_symbols_free(symbols);
	free(b.data);
	free(file.data);
}

/* A sample names its event in 16 bits. */
UNIT_TEST(more_events_than_a_sample_can_name_are_refused)
{
	static const uint64_t chain[] = { USER, 0x401100 };

	for (uint64_t n = 65536; n <= 65537; n++) {
		struct bytes b = { .endian = SEAM_LITTLE }, empty = b;
		struct seam_symbols *symbols = seam_symbols_new(
			&(struct seam_symbols_options) { 0 });
		struct seam_file file = { 0 };
		struct seam_err err = { 0 };
		struct loaded l;
		int r;

		/* Behind the two that are there. */
		b = make_pipe(&empty);
		for (uint64_t i = 2; i < n; i++) {
			size_t at = begin_record(&b, SEAM_PERF_HEADER_ATTR, 0);

			put_attr(&b, PERF_COUNT_SW_DUMMY, TEST_SAMPLE_TYPE);
			put_u64(&b, 0x10000 + i);
			end_record(&b, at);
		}
		put_sample(&b, 0x10000 + n - 1, 7, 7, 5, chain, 2);
		file.bytes = (struct seam_bytes) { b.data, b.size };
		l.file = b;
		assert_int_equal(seam_profile_init(&l.profile), 0);
		r = seam_load_perf(&l.profile, &(struct seam_perf_input) {
			.data = &file }, symbols, &err);
		if (n == 65536) {
			assert_int_equal(r, 0);
			assert_int_equal(l.profile.samples.event[0], 65535);
		} else {
			assert_int_equal(r, -EOVERFLOW);
			assert_int_equal(err.n_causes, 1);
			assert_string_equal(err.cause[0],
				"65537 events, more than the maximum of "
				"65536");
		}
		seam_symbols_free(symbols);
		unload(&l);
	}
}

UNIT_MAIN(NULL, NULL, begin, end)
