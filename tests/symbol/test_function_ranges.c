/* SPDX-License-Identifier: MIT */
/*
 * test_function_ranges.c - the promises of function_ranges.h
 *
 * Real code is built and stripped; the symbols that it had are the oracle.
 */
#include "symbol/elf/function_ranges.c"

#include "../perf_bytes.h"
#include "build.h"
#include "unit.h"

static const char program[] =
	"#include <stdlib.h>\n"
	"#define F __attribute__((noinline, used))\n"
	"static F int one(int x) { return x * 3 + rand(); }\n"
	"static F int two(int x) { return x * 5 - rand(); }\n"
	"F int shared(int x) { return x * 7 + one(x); }\n"
	"static F int three(int x) { return x + two(x) + one(x); }\n"
	"static F void last(int x) { exit(three(x)); }\n"
	"asm(\".text\\n.globl bare\\n.type bare,@function\\nbare:\\n\"\n"
	"    \"nop\\nret\\n\");\n"
	"asm(\".text\\n.type tramp,@function\\n\"\n"
	"    \".cfi_startproc\\n.cfi_signal_frame\\nnop\\n.globl tramp\\n\"\n"
	"    \"tramp: mov $15,%eax\\nsyscall\\n.size tramp,.-tramp\\n\"\n"
	"    \".cfi_endproc\\n\");\n"
	"int main(int argc, char **argv) {\n"
	"	(void)argv; if (argc > 5) last(argc); return shared(argc); }\n";

static const char *const functions[] = {
	"one", "two", "shared", "three", "last", "main",
};

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("b.c", program);
	build_run("gcc -O1 -fno-reorder-functions -Wl,--build-id -o full b.c");
	build_run("objcopy --strip-all full bare");
	build_run("cp bare none");
	return 0;
}

static struct seam_function_ranges read_file(const char *name)
{
	struct seam_function_ranges bounds = { 0 };
	struct seam_err err = { 0 };
	struct seam_elf file;

	assert_int_equal(seam_elf_open(&file, build_path(name), &err), 0);
	assert_int_equal(seam_function_ranges_read(&bounds, &file), 0);
	seam_elf_close(&file);
	return bounds;
}

/* Write 0 over where the file says that its section headers are. */
static void drop_section_headers(const char *name)
{
	build_run("printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=%s bs=1 seek=40 "
		  "conv=notrunc status=none", name);
	build_run("printf '\\0\\0\\0\\0' | dd of=%s bs=1 seek=60 "
		  "conv=notrunc status=none", name);
}

UNIT_TEST(a_stripped_file_has_its_functions_bounds)
{
	static const char *const files[] = { "bare", "none" };

	drop_section_headers("none");
	for (size_t f = 0; f < SEAM_ARRAY_SIZE(files); f++) {
		struct seam_function_ranges bounds = read_file(files[f]);

		for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions); i++) {
			uint64_t addr = build_symbol("full", functions[i]);
			uint64_t size = strtoull(build_ask("nm -S full | "
				"awk '$4 == \"%s\" { print $2 }'",
				functions[i]), NULL, 16);
			const struct seam_function_range *b =
				seam_function_ranges_find(&bounds, addr);

			assert_non_null(b);
			assert_int_equal(b->start, addr);
			assert_int_equal(b->end, addr + size);
			assert_ptr_equal(seam_function_ranges_find(&bounds,
						addr + size - 1), b);
			assert_false(b->is_signal_frame);
			assert_null(seam_function_ranges_name(&bounds, b));
		}
		assert_null(seam_function_ranges_find(
			&bounds, build_symbol("full", "bare")));
		assert_true(seam_function_ranges_find(
				    &bounds, build_symbol("full", "tramp"))
			    ->is_signal_frame);
		seam_function_ranges_fini(&bounds);
	}
}

/* All functions of a large program that was built by others. */
UNIT_TEST(bounds_agree_with_the_symbols_of_this_test)
{
	struct seam_function_ranges bounds = { 0 };
	struct seam_err err = { 0 };
	struct seam_elf file;
	uint64_t addr;
	char line[80];
	FILE *list;
	size_t n = 0, n_wrong = 0;

	assert_int_equal(seam_elf_open(&file, "/proc/self/exe", &err), 0);
	assert_int_equal(seam_function_ranges_read(&bounds, &file), 0);
	seam_elf_close(&file);
	snprintf(line, sizeof(line), "nm -S --defined-only /proc/%d/exe",
		 getpid());
	list = popen(line, "r");
	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		unsigned long long start, size;
		const struct seam_function_range *b;
		char type;

		if (sscanf(line, "%llx %llx %c", &start, &size, &type) != 3 ||
		    (type != 't' && type != 'T') || size == 0)
			continue;
		addr = start;
		b = seam_function_ranges_find(&bounds, addr);
		n++;
		n_wrong += !b || b->start != addr || b->end != addr + size;
	}
	pclose(list);
	assert_true(n > 50);
	assert_int_equal(n_wrong, 0);
	seam_function_ranges_fini(&bounds);
}

/* -- what the whole of symbols makes of it ------------------------------ */

static struct seam_symbols *open_module(const char *name, uint32_t *module)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });

	assert_non_null(symbols);
	*module = seam_symbols_module(symbols, &(struct seam_module) {
		.path = build_path(name) });
	return symbols;
}

static uint64_t offset_of(const char *function)
{
	return build_offset("full", build_symbol("full", function));
}

UNIT_TEST(an_exported_function_does_not_swallow_stripped_neighbours)
{
	struct seam_location at[4];
	struct seam_extent extent;
	struct seam_symbols *s;
	uint32_t m;

	/* One symbol is left, and it has no size. */
	build_run("objcopy --strip-all -K shared full kept");
	s = open_module("kept", &m);
	assert_int_equal(seam_symbols_resolve(s, m, offset_of("shared") + 1,
					      at, 4), 1);
	assert_string_equal(at[0].function, "shared");
	assert_int_equal(seam_symbols_resolve(s, m, offset_of("three") + 1, at,
					      4), 0);
	assert_true(seam_symbols_extent(s, m, offset_of("three") + 1,
					&extent));
	assert_int_equal(extent.offset, offset_of("three"));
	assert_true(extent.size > 0);
	/* What nothing describes stays an address. */
	assert_true(seam_symbols_extent(s, m, offset_of("bare") + 1, &extent));
	assert_int_equal(extent.size, 0);
	seam_symbols_free(s);
}

UNIT_TEST(a_label_ends_where_a_stripped_function_begins)
{
	struct seam_location at[4];
	struct seam_symbols *s;
	uint32_t m;

	build_write("l.c", "int work(int x);\n"
		"asm(\".text\\n.globl label\\nlabel:\\n.cfi_startproc\\nnop\\n"
		"ret\\n.cfi_endproc\\n\");\n"
		"asm(\".globl work\\nwork:\\n.cfi_startproc\\nnop\\nnop\\n"
		"ret\\n.cfi_endproc\\n\");\n"
		"int main(void) { return work(1); }\n");
	build_run("gcc -O1 -o lfull l.c && objcopy --strip-all -K label lfull "
		  "label");
	s = open_module("label", &m);
	assert_int_equal(seam_symbols_resolve(s, m, build_offset("lfull",
		build_symbol("lfull", "label")) + 1, at, 4), 1);
	assert_string_equal(at[0].function, "label");
	assert_int_equal(seam_symbols_resolve(s, m, build_offset("lfull",
		build_symbol("lfull", "work")) + 1, at, 4), 0);
	seam_symbols_free(s);
}

UNIT_TEST(a_trampoline_is_known_by_its_frame_or_its_name)
{
	struct seam_symbols *s;
	uint32_t m;

	s = open_module("bare", &m);
	assert_true(seam_symbols_is_trampoline(s, m, offset_of("tramp")));
	assert_false(seam_symbols_is_trampoline(s, m, offset_of("tramp") + 1));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions); i++)
		assert_false(seam_symbols_is_trampoline(s, m,
						offset_of(functions[i])));
	seam_symbols_free(s);
	build_run("objcopy --redefine-sym two=__restore_rt "
		  "--redefine-sym three=runtime.sigreturn__sigaction.abi0 "
		  "full renamed");
	s = open_module("renamed", &m);
	assert_true(seam_symbols_is_trampoline(s, m, offset_of("two")));
	assert_true(seam_symbols_is_trampoline(s, m, offset_of("three")));
	assert_false(seam_symbols_is_trampoline(s, m, offset_of("two") + 2));
	assert_false(seam_symbols_is_trampoline(s, m, offset_of("one")));
	seam_symbols_free(s);
}

/* -- .gopclntab by hand ------------------------------------------------- */

static const char *const go_names[] = {
	"main.main", "runtime.sigreturn", "main.(*T).Work",
};

#define GO_TEXT 0x401000

/* Three functions of 0x40 bytes.  Source: Go, src/debug/gosym/pclntab.go. */
static struct bytes make_go(uint32_t magic, unsigned int addr_bytes,
			    enum seam_endian endian)
{
	bool is_new = magic != 0xfffffffb, has_text = magic == 0xfffffff0 ||
		      magic == 0xfffffff1;
	unsigned int word = has_text ? 4 : addr_bytes;
	uint64_t base = has_text ? 0 : GO_TEXT;
	struct bytes b = { .endian = endian };
	size_t places = 0, table, names[3];

	put_u32(&b, magic);
	put_u16(&b, 0);
	put_n(&b, 1, 1);
	put_n(&b, addr_bytes, 1);
	put_n(&b, 3, addr_bytes);
	if (is_new) {
		put_n(&b, 1, addr_bytes);
		if (has_text)
			put_n(&b, GO_TEXT, addr_bytes);
		places = b.size;
		for (int i = 0; i < 5; i++)
			put_n(&b, 0, addr_bytes);
	}
	if (is_new) {
		set_n(&b, places, b.size, addr_bytes);
		for (size_t i = 0; i < 3; i++) {
			names[i] = b.size -
				   (places + 5 * (size_t)addr_bytes);
			put(&b, go_names[i], strlen(go_names[i]) + 1);
		}
		set_n(&b, places + 4 * (size_t)addr_bytes, b.size, addr_bytes);
	}
	table = b.size;
	for (uint64_t i = 0; i < 4; i++) {
		put_n(&b, base + 0x40 * i, word);
		if (i < 3)
			put_n(&b, 0, word);
	}
	for (size_t i = 0; i < 3; i++) {
		size_t from = is_new ? table : 0;

		set_n(&b, table + (2 * i + 1) * word, b.size - from, word);
		put_n(&b, base + 0x40 * i, word);
		if (!is_new)
			names[i] = b.size + 4 + 8;
		put_u32(&b, names[i]);
		put_u64(&b, 0);
		if (!is_new)
			put(&b, go_names[i], strlen(go_names[i]) + 1);
	}
	return b;
}

static const uint32_t magics[] = {
	0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1,
};

UNIT_TEST(a_go_table_of_every_version_has_names)
{
	for (size_t v = 0; v < 4 * SEAM_ARRAY_SIZE(magics); v++) {
		enum seam_endian endian = v & 4 ? SEAM_BIG : SEAM_LITTLE;
		struct bytes b = make_go(magics[v % 4], v & 8 ? 4 : 8, endian);
		struct seam_gopclntab t;
		struct go_function f;

		assert_true(open_table(&t, (struct seam_bytes) {
			b.data, b.size }, endian));
		assert_int_equal(t.n, 3);
		for (size_t i = 0; i < 3; i++) {
			assert_true(read_function(&t, i, &f));
			assert_string_equal(f.name, go_names[i]);
			assert_int_equal(f.start_addr, GO_TEXT + 0x40 * i);
			assert_int_equal(f.end_addr, GO_TEXT + 0x40 * i + 0x40);
		}
		assert_false(read_function(&t, 3, &f));
		free(b.data);
	}
}

static void read_go(struct seam_bytes bytes)
{
	struct seam_gopclntab t;
	struct go_function f;

	if (!open_table(&t, bytes, SEAM_LITTLE))
		return;
	assert_true(t.n <= bytes.size);
	for (size_t i = 0; i <= t.n; i++)
		if (read_function(&t, i, &f))
			assert_true((const uint8_t *)f.name >= bytes.data &&
				    (const uint8_t *)f.name + strlen(f.name) <
				    bytes.data + bytes.size);
}

UNIT_TEST(every_cut_and_every_flip_of_a_go_table_ends)
{
	for (size_t v = 0; v < SEAM_ARRAY_SIZE(magics); v++) {
		struct bytes b = make_go(magics[v], 8, SEAM_LITTLE);

		for (size_t size = 0; size <= b.size; size++) {
			struct seam_bytes cut = exact(b.data, size);

			read_go(cut);
			free_exact(cut);
		}
		for (size_t bit = 0; bit < 8 * b.size; bit++) {
			struct seam_bytes copy = exact(b.data, b.size);

			((uint8_t *)(uintptr_t)copy.data)[bit / 8] ^=
				(uint8_t)(1 << bit % 8);
			read_go(copy);
			free_exact(copy);
		}
		free(b.data);
	}
}

/* File "table": functions of 0x40 bytes from @addr on. */
static void write_go(uint64_t addr)
{
	struct bytes b = make_go(0xfffffff1, 8, SEAM_LITTLE);
	FILE *out = fopen(build_path("table"), "w");

	set_n(&b, 24, addr, 8);
	assert_non_null(out);
	assert_int_equal(fwrite(b.data, 1, b.size, out), b.size);
	fclose(out);
	free(b.data);
}

/* A stripped program with such a table, by its section. */
UNIT_TEST(a_stripped_go_program_has_names)
{
	struct seam_location at[4];
	struct seam_symbols *s;
	uint32_t m;
	uint64_t one = build_symbol("full", "one");

	write_go(one);
	build_run("objcopy --add-section .gopclntab=table bare go");
	s = open_module("go", &m);
	assert_int_equal(seam_symbols_resolve(s, m, build_offset("full", one) +
					      1, at, 4), 1);
	assert_string_equal(at[0].function, "main.main");
	assert_true(seam_symbols_is_trampoline(s, m, build_offset("full", one)
					       + 0x40));
	seam_symbols_free(s);
}

/*
 * The address is 0 in the file: a relocation has it, one of many, and it is not
 * that of .text.
 */
UNIT_TEST(a_position_independent_go_program_has_names)
{
	struct seam_location at[4];
	struct seam_symbols *s;
	uint64_t one;
	uint32_t m;

	write_go(0);
	build_write("table.s",
		    ".section .data.rel,\"aw\"\n.quad main, two, main, two\n"
		    ".section .gopclntab,\"aw\"\n.incbin \"table\", 0, 24\n"
		    ".quad one\n.incbin \"table\", 32\n"
		    ".section .data.rel.ro,\"aw\"\n.quad two, main, two\n"
		    ".section .note.GNU-stack,\"\"\n");
	build_write("pie.c", "int two(int x) { return x * 5; }\n"
		    "int one(int x) { return x * 3; }\n"
		    "int main(int n, char **v) { (void)v; return one(n); }\n");
	build_run("gcc -O1 -fno-reorder-functions -falign-functions=64 -pie "
		  "-fPIE -Wl,--build-id -o pie pie.c table.s");
	build_run("objcopy --strip-all --update-section .gopclntab=table pie "
		  "bare_pie");
	one = build_symbol("pie", "one");
	s = open_module("bare_pie", &m);
	assert_int_equal(seam_symbols_resolve(s, m, build_offset("pie", one) +
					      1, at, 4), 1);
	assert_string_equal(at[0].function, "main.main");
	seam_symbols_free(s);
}

UNIT_MAIN(enter, build_leave, NULL, NULL)
