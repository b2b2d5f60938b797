/* SPDX-License-Identifier: MIT */
/* test_disassembly.c - instructions, and where the code of a function is */

#include <elf.h>

#include "build.h"
#include "symbol/code/disassembly.h"
#include "unit.h"

static const struct seam_machine x86 = { .elf_machine = EM_X86_64,
					 .is_64 = true };

struct walked {
	struct seam_instruction all[1000];
	size_t n;
};

static int take(void *context, const struct seam_instruction *one)
{
	struct walked *walked = context;

	assert_true(walked->n < SEAM_ARRAY_SIZE(walked->all));
	walked->all[walked->n++] = *one;
	return 0;
}

static int walk(struct walked *walked, const struct seam_machine *machine,
		const uint8_t *code, size_t size, uint64_t addr)
{
	const struct seam_code_block block = {
		.machine = *machine, .bytes = { code, size }, .addr = addr,
	};

	walked->n = 0;
	return seam_disassembly_walk(&block, take, walked, NULL);
}

static bool no_library;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
	return no_library ? NULL : __real_dlopen(name, flags);
}

/* In a child: the library is looked for once a process. */
static int fails_without_capstone(void)
{
	const struct seam_code_block block = {
		.machine.elf_machine = EM_X86_64,
	};
	struct seam_err err = { 0 };

	no_library = true;
	return seam_disassembly_walk(&block, take, NULL, &err) == -ENOTSUP &&
	       strstr(err.cause[0], "(package libcapstone");
}

UNIT_TEST(a_missing_library_is_an_error_with_its_package)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fails_without_capstone() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

UNIT_TEST(names_instructions_and_their_sizes)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xc3, 0x06 };
	static const struct { size_t size; const char *text; } want[] = {
		{ 1, "push rbp" }, { 3, "mov rbp, rsp" }, { 1, "ret" },
		{ 1, ".byte 0x06" },
	};
	static struct walked walked;
	size_t at = 0;

	assert_int_equal(walk(&walked, &x86, code, sizeof(code), 0x1000), 0);
	assert_int_equal(walked.n, SEAM_ARRAY_SIZE(want));
	for (size_t i = 0; i < walked.n; at += want[i++].size) {
		assert_int_equal(walked.all[i].addr, 0x1000 + at);
		assert_int_equal(walked.all[i].size, want[i].size);
		assert_string_equal(walked.all[i].text, want[i].text);
	}
	assert_int_equal(at, sizeof(code));
}

UNIT_TEST(any_bytes_are_walked_to_their_end)
{
	static const uint32_t machines[] = {
		EM_X86_64, EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_S390,
	};
	uint32_t random = 1;

	for (size_t m = 0; m < SEAM_ARRAY_SIZE(machines); m++) {
		struct seam_machine machine = {
			.elf_machine = machines[m], .is_64 = true,
			.is_big_endian = machines[m] == EM_S390,
		};
		static struct walked walked;
		/* Exact, so that a read behind its end is found. */
		uint8_t *code = malloc(997);
		size_t at = 0;

		assert_non_null(code);
		for (size_t i = 0; i < 997; i++) {
			random = random * 1664525 + 1013904223;
			code[i] = (uint8_t)(random >> 16);
		}
		assert_int_equal(walk(&walked, &machine, code, 997, 0), 0);
		for (size_t i = 0; i < walked.n; at += walked.all[i++].size)
			assert_in_range(walked.all[i].size, 1, 997 - at);
		assert_int_equal(at, 997);
		free(code);
	}
}

UNIT_TEST(an_unknown_machine_is_reported)
{
	const struct seam_code_block block = { .machine.elf_machine = EM_VAX };
	struct seam_err err = { 0 };

	assert_int_equal(seam_disassembly_walk(&block, take, NULL, &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.cause[0], "75"));
}

static const char program[] =
	"__attribute__((noinline)) int f(int i) { return i * 3; }\n"
	"int main(int c, char **v) { (void)v; return f(c); }\n";

UNIT_TEST(finds_the_extent_and_the_bytes_of_a_function)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_machine machine;
	struct seam_extent extent;
	uint8_t code[64];
	uint64_t addr, offset;
	uint32_t module;

	build_write("p.c", program);
	build_run("gcc -O1 -o p p.c");
	addr = build_symbol("p", "f");
	offset = build_offset("p", addr);
	module = seam_symbols_module(symbols, &(struct seam_module) {
		.path = build_path("p") });
	assert_true(seam_symbols_extent(symbols, module, offset + 1, &extent));
	assert_int_equal(extent.offset, offset);
	assert_int_equal(extent.addr, addr);
	assert_in_range(extent.size, 2, sizeof(code));
	assert_int_equal(seam_symbols_code(symbols, module, extent.offset,
			code, (size_t)extent.size, &machine, NULL), 0);
	assert_int_equal(code[extent.size - 1], 0xc3);
	assert_int_equal(machine.elf_machine, EM_X86_64);
	assert_true(machine.is_64);
	assert_false(machine.is_big_endian);
	seam_symbols_free(symbols);
}

UNIT_TEST(code_that_is_not_there_is_an_error)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_machine machine;
	struct seam_extent extent;
	struct seam_err err = { 0 };
	uint32_t gone, here, kernel;
	uint8_t code[16];

	build_write("p.c", program);
	build_run("gcc -O1 -o p p.c");
	gone = seam_symbols_module(symbols, &(struct seam_module) {
		.path = build_path("gone") });
	here = seam_symbols_module(symbols, &(struct seam_module) {
		.path = build_path("p") });
	kernel = seam_symbols_kernel(symbols, &(struct seam_kernel) { 0 });
	assert_false(seam_symbols_extent(symbols, gone, 0, &extent));
	assert_false(seam_symbols_extent(symbols, kernel, 0, &extent));
	assert_false(seam_symbols_extent(symbols, here, UINT64_MAX, &extent));
	assert_true(seam_symbols_code(symbols, gone, 0, code, 16, &machine,
				      &err) < 0);
	assert_int_equal(seam_symbols_code(symbols, here, UINT64_MAX - 4,
			code, 16, &machine, &err), -ENODATA);
	/* Nobody knows which kernel that is; what would help is said. */
	assert_int_equal(seam_symbols_code(symbols, kernel, 0, code, 16,
			&machine, &err), -ENOENT);
	assert_non_null(strstr(err.cause[0], "build id not recorded"));
	assert_non_null(strstr(err.cause[0], "--symfs"));
	seam_symbols_free(symbols);
}

UNIT_MAIN(build_enter, build_leave, NULL, NULL)
