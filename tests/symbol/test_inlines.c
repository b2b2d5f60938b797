/* SPDX-License-Identifier: MIT */
/*
 * test_inlines.c - lines and inlined calls, held against addr2line
 *
 * Every instruction of small programs is asked for, in the ways that
 * compilers and linkers lay them out.  binutils' answers are the oracle:
 * the chain of functions, each with its file and line.
 */
#include "symbol/symbols.h"

#include "build.h"
#include "unit.h"

static const char c_program[] =
	"#include \"inner.h\"\n"
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) int leaf(int x)\n"
	"{\n"
	"	sink = x;\n"
	"	return sink * 3;\n"
	"}\n"
	"static inline __attribute__((always_inline)) int middle(int x)\n"
	"{\n"
	"	int sum = 0;\n"
	"	for (int i = 0; i < x; i++) {\n"
	"		int y = leaf(i);\n"
	"		if (y & 4)\n"
	"			sum += leaf(y) + inner(y);\n"
	"	}\n"
	"	return sum + leaf(sum);\n"
	"}\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{\n"
	"	return middle(x) - leaf(x);\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	(void)argv;\n"
	"	return outer(argc) + middle(argc + 1);\n"
	"}\n";

static const char inner_header[] =
	"extern volatile int sink;\n"
	"static inline __attribute__((always_inline)) int inner(int x)\n"
	"{\n"
	"	sink += x;\n"
	"	return x ^ sink;\n"
	"}\n";

static const char cxx_program[] =
	"volatile int sink;\n"
	"namespace a { namespace b {\n"
	"struct Shape {\n"
	"	int w;\n"
	"	inline __attribute__((always_inline)) int area(int h) const\n"
	"	{ sink = w; return w * h + sink; }\n"
	"	int grow(int by);\n"
	"};\n"
	"__attribute__((noinline)) int Shape::grow(int by)\n"
	"{\n"
	"	w += by;\n"
	"	return area(by) + area(w);\n"
	"}\n"
	"inline __attribute__((always_inline)) int twice(Shape &s)\n"
	"{ return s.area(2) * 2; }\n"
	"} }\n"
	"int main(int argc, char **)\n"
	"{\n"
	"	a::b::Shape s = { argc };\n"
	"	return s.grow(3) + a::b::twice(s);\n"
	"}\n";

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("inner.h", inner_header);
	build_write("p.c", c_program);
	build_write("p.cc", cxx_program);
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "??";
}

/* "name(int) [clone .cold]" -> "name"; "file.c:12 (disc.. 3)" -> cut. */
static void trim(char *text, const char *at)
{
	text[strcspn(text, "\n")] = '\0';
	text[strcspn(text, at)] = '\0';
}

/* Compare one location with the next two lines of addr2line. */
static void compare(FILE *oracle, uint64_t addr,
		    const struct seam_location *have)
{
	char function[512], place[512], expected[1200], actual[1200];
	unsigned int line;
	char *colon;

	assert_non_null(fgets(function, sizeof(function), oracle));
	assert_non_null(fgets(place, sizeof(place), oracle));
	trim(function, "(");
	trim(place, " ");
	colon = strrchr(place, ':');
	assert_non_null(colon);
	*colon = '\0';
	line = (unsigned int)strtoul(colon + 1, NULL, 10);
	snprintf(expected, sizeof(expected), "%" PRIx64 " %s %s:%u", addr,
		 function, last_part(place), line);
	snprintf(actual, sizeof(actual), "%" PRIx64 " %.500s %.500s:%u", addr,
		 have->function ? have->function : "??",
		 last_part(have->file), have->line);
	assert_string_equal(actual, expected);
}

/*
 * Ask for every instruction of @function in @file.  Returns how many of them
 * were in inlined calls.
 */
static size_t check(const char *file, const char *function)
{
	const struct seam_symbols_options options = { 0 };
	struct seam_symbols *symbols = seam_symbols_new(&options);
	const struct seam_module module = { .path = build_path(file) };
	uint32_t m = seam_symbols_module(symbols, &module);
	uint64_t base = build_symbol(file, function);
	uint64_t shift = base - build_offset(file, base);
	struct seam_location at[32];
	char command[1024], line[64];
	size_t n_inlined = 0, n_addrs = 0;
	FILE *addrs, *oracle;
	uint64_t size = strtoull(build_ask("nm -S %s | sed -n 's/^[0-9a-f]* "
		"\\([0-9a-f]*\\) . %s$/\\1/p'", file, function), NULL, 16);

	build_run("objdump -d --no-show-raw-insn --start-address=%" PRIu64
		  " --stop-address=%" PRIu64 " %s | sed -n "
		  "'s/^ *\\([0-9a-f]*\\):.*/\\1/p' > addrs", base, base + size,
		  file);
	snprintf(command, sizeof(command),
		 "addr2line -i -f -C -e %s < addrs", file);
	addrs = fopen("addrs", "r");
	oracle = popen(command, "r");
	assert_true(addrs && oracle);
	while (fgets(line, sizeof(line), addrs)) {
		uint64_t addr = strtoull(line, NULL, 16);
		size_t n = seam_symbols_resolve(symbols, m, addr - shift, at,
						32);

		assert_true(n > 0);
		for (size_t i = 0; i < n; i++) {
			compare(oracle, addr, &at[i]);
			assert_int_equal(at[i].is_inlined, i + 1 < n);
		}
		n_inlined += n > 1;
		n_addrs++;
	}
	assert_true(n_addrs > 10);
	assert_int_equal(fgetc(oracle), EOF);
	fclose(addrs);
	pclose(oracle);
	seam_symbols_free(symbols);
	return n_inlined;
}

UNIT_TEST(chains_are_those_of_addr2line_for_c)
{
	static const char *const flags[] = {
		"-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gdwarf-2",
		"-gdwarf-4 -no-pie", "-gdwarf-4 -gz",
		"-gdwarf-4 -fno-dwarf2-cfi-asm -ffunction-sections",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags); i++) {
		build_run("gcc -O2 %s -o p p.c", flags[i]);
		assert_true(check("p", "outer") > 0);
		assert_true(check("p", "main") > 0);
	}
}

UNIT_TEST(chains_are_those_of_addr2line_for_cxx)
{
	build_run("g++ -O2 -gdwarf-4 -o pp p.cc");
	assert_true(check("pp", "_ZN1a1b5Shape4growEi") > 0);
	assert_true(check("pp", "main") > 0);
}

/* clang writes no .debug_aranges and no DW_AT_sibling. */
UNIT_TEST_IF(chains_are_those_of_addr2line_for_clang,
		build_has("clang"), "no clang")
{
	build_run("clang -O2 -gdwarf-4 -o p p.c");
	assert_true(check("p", "outer") > 0);
	assert_true(check("p", "main") > 0);
}

static size_t resolve_outer(const struct seam_symbols_options *options,
			    const char *file, size_t cap,
			    struct seam_location *last)
{
	struct seam_symbols *symbols = seam_symbols_new(options);
	const struct seam_module module = { .path = build_path(file) };
	uint32_t m = seam_symbols_module(symbols, &module);
	uint64_t start = build_offset(file, build_symbol(file, "outer"));
	struct seam_location at[32];
	size_t most = 0;

	for (uint64_t i = 0; i < 60; i++) {
		size_t n = seam_symbols_resolve(symbols, m, start + i, at, cap);

		if (n < most)
			continue;
		most = n;
		*last = at[n - 1];
		assert_string_equal(last->function, "outer");
		assert_false(last->is_inlined);
		/* Into a literal: the symbols go away. */
		last->function = "outer";
		last->file = last->file ? "some" : NULL;
	}
	seam_symbols_free(symbols);
	return most;
}

/* gcc gives none of these a linkage name. */
static const char scoped_program[] =
	"#define I inline __attribute__((always_inline))\n"
	"volatile int sink;\n"
	"static I int top(int x) { return sink + x * 3; }\n"
	"namespace a {\n"
	"namespace { I int hidden(int x) { return sink + x * 5; }\n"
	"struct S { int m(int x); struct T { I int t(int x)\n"
	"	{ return sink - x; } }; };\n"
	"I int S::m(int x) { return hidden(x) + T().t(x); } }\n"
	"static I int local(int x) { return sink + x * 7; }\n"
	"I int shared(int x) { return sink + x * 9; }\n"
	"inline namespace v2 { static I int deep(int x)\n"
	"{ return sink + x * 11; } } }\n"
	"extern \"C\" __attribute__((noinline)) int outer(int x) {\n"
	"	a::S s;\n"
	"	auto call = [](int y) __attribute__((always_inline)) { return sink + y * 13; };\n"
	"	return top(x) + s.m(x) + a::local(x) + a::shared(x) +\n"
	"	       a::deep(x) + call(x); }\n"
	"int main(int argc, char **) { return outer(argc); }\n";

/*
 * Whether an instruction of outer() is in the inlined function @name, or in one
 * whose name begins with it, if it ends in ':'.
 */
static bool has_inlined(const char *file, const char *name)
{
	const struct seam_symbols_options options = { 0 };
	struct seam_symbols *symbols = seam_symbols_new(&options);
	const struct seam_module module = { .path = build_path(file) };
	uint32_t m = seam_symbols_module(symbols, &module);
	uint64_t base = build_offset(file, build_symbol(file, "outer"));
	size_t size = strlen(name) + (name[strlen(name) - 1] != ':');
	bool found = false;

	for (uint64_t i = 0; i < 60; i++) {
		struct seam_location at[8];
		size_t n = seam_symbols_resolve(symbols, m, base + i, at, 8);

		for (size_t k = 0; k + 1 < n; k++)
			found |= strncmp(at[k].function, name, size) == 0;
	}
	seam_symbols_free(symbols);
	return found;
}

UNIT_TEST(inlined_functions_have_their_namespaces_and_types)
{
	static const char *const names[] = {
		"top", "a::(anonymous namespace)::hidden", "a::local",
		"a::(anonymous namespace)::S::m", "a::shared", "a::v2::deep",
		"a::(anonymous namespace)::S::T::t",
		"outer::",	/* a lambda, without a name in gcc 12 */
	};
	static const char *const flags[] = { "-g", "-g -gdwarf-4", "-g -flto" };

	build_write("s.cc", scoped_program);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags); i++) {
		build_run("g++ -O2 %s -o scoped s.cc", flags[i]);
		for (size_t k = 0; k < SEAM_ARRAY_SIZE(names); k++)
			if (!has_inlined("scoped", names[k]))
				fail_msg("%s: no %s", flags[i], names[k]);
	}
}

UNIT_TEST(options_leave_out_inlined_frames_and_lines)
{
	const struct seam_symbols_options all = { 0 };
	const struct seam_symbols_options no_inline = { .no_inline = true };
	const struct seam_symbols_options no_lines = { .no_lines = true };
	struct seam_location last;

	build_run("gcc -O2 -g -o p p.c");
	assert_int_equal(resolve_outer(&all, "p", 32, &last), 3);
	assert_int_equal(last.line, 20);
	assert_int_equal(resolve_outer(&no_inline, "p", 32, &last), 1);
	assert_int_equal(last.line, 20);
	assert_int_equal(resolve_outer(&no_lines, "p", 32, &last), 1);
	assert_int_equal(last.line, 0);
	assert_null(last.file);
}

UNIT_TEST(the_function_stays_when_there_is_no_room_for_all)
{
	const struct seam_symbols_options options = { 0 };
	struct seam_location last;

	build_run("gcc -O2 -g -o p p.c");
	assert_int_equal(resolve_outer(&options, "p", 2, &last), 2);
	assert_int_equal(resolve_outer(&options, "p", 1, &last), 1);
	assert_int_equal(last.line, 20);
}

UNIT_TEST(inlined_calls_are_found_in_separate_debug_files)
{
	const struct seam_symbols_options options = { 0 };
	struct seam_location last;

	build_run("gcc -O2 -g -o p p.c && objcopy --only-keep-debug p p.debug "
		  "&& strip --strip-debug --remove-section=.x -o q p && "
		  "objcopy --add-gnu-debuglink=p.debug q r");
	assert_int_equal(resolve_outer(&options, "q", 32, &last), 1);
	assert_int_equal(resolve_outer(&options, "r", 32, &last), 3);
}

UNIT_TEST(split_dwarf_is_named_as_what_is_missing)
{
	struct build_answer a;

	build_run("gcc -O2 -g -gsplit-dwarf -o split p.c");
	a = build_resolve("split", build_symbol("split", "outer"));
	assert_int_equal(a.n, 1);
	assert_string_equal(a.function, "outer");
	assert_true(a.line > 0);
	assert_non_null(strstr(a.problem, "split DWARF"));
}

/* Without any symbol DWARF still knows the function. */
UNIT_TEST(dwarf_names_what_the_symbol_table_does_not)
{
	build_run("gcc -O2 -g -o p p.c && "
		  "objcopy --strip-symbol=outer p nosym");
	assert_string_equal(build_resolve("nosym", build_symbol("p",
				"outer")).function, "outer");
}

UNIT_TEST_IF(rust_names_and_inlines_are_read,
		!system("rustc --version >/dev/null 2>&1"), "no rustc")
{
	build_write("p.rs",
		"#[inline(always)] fn leaf(x: u64) -> u64 {\n"
		"	unsafe { std::ptr::read_volatile(&x) * 3 }\n"
		"}\n"
		"#[inline(never)] pub fn outer(x: u64) -> u64 {\n"
		"	leaf(x) + leaf(x + 1)\n"
		"}\n"
		"#[no_mangle] pub fn plain() -> u64 {\n"
		"	outer(std::env::args().count() as u64)\n"
		"}\n"
		"fn main() { std::process::exit(plain() as i32); }\n");
	build_run("rustc -O -g -o rs p.rs 2>rs.log || cat rs.log");
	assert_true(strlen(build_ask("nm rs | sed -n 's/.* \\(.*5outer.*\\)"
				     "/\\1/p'")) > 0);
	assert_string_equal(build_resolve("rs", strtoull(
		build_ask("nm rs | grep 5outer"), NULL, 16)).function,
			    "p::outer");
}

UNIT_MAIN(enter, build_leave, NULL, NULL)
