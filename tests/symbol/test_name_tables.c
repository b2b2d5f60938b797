/* SPDX-License-Identifier: MIT */
/*
 * test_name_tables.c - the promises of name_tables.c
 *
 * A program has tables as CPython, PHP and Lua have them, and structures that
 * look like these.  Its symbols, before it is stripped, say which is which.
 */
#include "symbol/elf/function_ranges.h"

#include "base/file.h"
#include "build.h"
#include "unit.h"

static const char program[] =
	"typedef int function(int);\n"
	"#define F(name) static __attribute__((noinline, used)) \\\n"
	"int name(int x) { return x * __LINE__ + __COUNTER__; }\n"
	"F(a_append) F(a_pop) F(a_close) F(b_read) F(b_close) F(b_seek)\n"
	"F(m_open) F(m_stat) F(m_both) F(a_size) F(a_set) F(a_mode) F(a_eof)\n"
	"F(z_trim) F(z_push) F(z_join) F(l_sin) F(l_cos) F(l_tan)\n"
	"F(r_one) F(r_two) F(r_three) F(r_four) F(i_one) F(i_two) F(i_three)\n"
	"F(v_one) F(v_two) F(v_three) F(v_code) F(o_both) F(few_a) F(few_b)\n"
	"F(a_free) F(ab_hash) F(ab_other) F(no_init)\n"
	"struct method { const char *name; function *f; int flags;\n"
	"	const char *doc; };\n"
	"struct property { const char *name; function *get, *set;\n"
	"	const char *doc; void *closure; };\n"
	"struct type { long count; void *type; long size; const char *name;\n"
	"	function *slots[25]; struct method *methods; void *members;\n"
	"	struct property *properties; void *base, *dict;\n"
	"	function *more[8]; };\n"
	"struct module { long count; void *base[4]; const char *name, *doc;\n"
	"	long size; struct method *methods; };\n"
	"struct method a_methods[] = { { \"append\", a_append, 8, \"text\" },\n"
	"	{ \"pop\", a_pop, 0x80, 0 }, { \"close\", a_close, 4, 0 },\n"
	"	{ \"both\", o_both, 4, 0 }, { 0 } };\n"
	"struct method b_methods[] = { { \"read\", b_read, 1, 0 },\n"
	"	{ \"close\", b_close, 4, 0 }, { \"seek\", b_seek, 3, 0 },\n"
	"	{ \"both\", o_both, 4, 0 }, { 0 } };\n"
	"struct method c_methods[] = { { \"close\", m_both, 1, 0 },\n"
	"	{ \"clear\", m_both, 4, 0 }, { \"drop\", m_both, 3, 0 }, { 0 } };\n"
	"struct method m_methods[] = { { \"open\", m_open, 1, 0 },\n"
	"	{ \"stat\", m_stat, 4, 0 }, { \"other\", z_join, 3, 0 }, { 0 } };\n"
	"struct method few[] = { { \"few_a\", few_a, 1, 0 },\n"
	"	{ \"few_b\", few_b, 1, 0 }, { 0 } };\n"
	"struct property a_properties[] = { { \"size\", a_size, a_set, 0, 0 },\n"
	"	{ \"mode\", a_mode, 0, \"text\", 0 }, { \"eof\", a_eof }, { 0 } };\n"
	"struct type a = { .count = 1, .name = \"io.A\",\n"
	"	.methods = a_methods, .properties = a_properties,\n"
	"	.slots = { [2] = a_free, [7] = ab_other, [11] = ab_hash,\n"
	"	[12] = a_append }, .more = { [6] = a_free } };\n"
	"struct type b = { .count = 0xffffffff, .name = \"Box\",\n"
	"	.methods = b_methods, .slots = { [11] = ab_hash,\n"
	"	[13] = ab_other } };\n"
	"struct type bare = { .count = 1, .name = \"io.None\",\n"
	"	.more = { [3] = no_init } };\n"
	"struct { const char *names[26]; struct method *methods; } no_type =\n"
	"	{ { \"wrong\", \"wrong\", \"wrong\", \"wrong\" }, c_methods };\n"
	"struct module m = { .count = 1, .name = \"posix\",\n"
	"	.methods = m_methods };\n"
	"int arguments[8] = { 1 };\n"
	"struct { const char *name; function *f; int *arguments;\n"
	"	unsigned n, flags; } z[] = { { \"trim\", z_trim, arguments, 2, 0 },\n"
	"	{ \"push\", z_push, arguments, 1, 7 },\n"
	"	{ \"join\", z_join, arguments, 0, 0 }, { 0 } };\n"
	"struct { const char *name; function *f; } l[] = {\n"
	"	{ \"sin\", l_sin }, { \"cos\", l_cos }, { \"tan\", l_tan }, { 0 } };\n"
	"struct { function *f; const char *name; } reversed[] = {\n"
	"	{ r_one, \"one\" }, { r_two, \"two\" }, { r_three, \"three\" },\n"
	"	{ r_four, \"four\" }, { 0 } };\n"
	"struct { long flags, tag, pos; const char *name; function *type; }\n"
	"	items[] = { { 0, 0, 8, \"issuer\", i_one },\n"
	"	{ 0, 0, 16, \"subject\", i_two }, { 0, 0, 24, \"key\", i_three } };\n"
	"struct { function *f; int argc, i; const char *name; function *jit; }\n"
	"	builtins[] = { { v_code, 0, 0, \"v1\", v_one },\n"
	"	{ v_code, 1, 1, \"v2\", v_two }, { v_code, 2, 2, \"v3\", v_three },\n"
	"	{ v_code, 0, 3, \"v4\", v_one } };\n"
	"struct type *types[] = { &a, &b };\n"
	"struct { struct module *m; } modules[] = { { &m } };\n"
	"int main(void) { return 0; }\n";

/* NULL: no name.  "*" stands for its address. */
static const struct {
	const char *symbol, *name;
} functions[] = {
	{ "a_append", "io.A.append" }, { "a_pop", "io.A.pop" },
	{ "a_close", "io.A.close" }, { "a_size", "io.A.size" },
	{ "a_mode", "io.A.mode" }, { "a_eof", "io.A.eof" }, { "a_set", NULL },
	{ "a_free", "io.A.tp_dealloc" },
	/* in the same slot of two types, and in two slots */
	{ "ab_hash", "tp_hash" }, { "ab_other", NULL },
	/* a type without methods may be something else */
	{ "no_init", NULL },
	{ "b_read", "Box.read" }, { "b_close", "Box.close" },
	/* of several names in one table the first */
	{ "m_both", "close" },
	/* the same name of two types */
	{ "o_both", "both" },
	{ "m_open", "posix.open" }, { "m_stat", "posix.stat" },
	{ "z_trim", "trim" }, { "z_push", "push" },
	/* two tables, two names */
	{ "z_join", NULL },
	{ "l_sin", "sin *" }, { "l_tan", "tan *" },
	{ "r_one", NULL }, { "r_two", NULL }, { "r_four", NULL },
	{ "i_one", NULL }, { "i_two", NULL }, { "i_three", NULL },
	{ "v_one", NULL }, { "v_two", NULL }, { "v_three", NULL },
	{ "v_code", NULL }, { "few_a", NULL }, { "main", NULL },
};

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("t.c", program);
	return 0;
}

static void read_file(struct seam_function_ranges *ranges, const char *name)
{
	struct seam_elf file;

	assert_int_equal(seam_elf_open(&file, build_path(name), NULL), 0);
	assert_int_equal(seam_function_ranges_read(ranges, &file), 0);
	assert_int_equal(seam_name_tables_read(ranges, &file), 0);
	seam_elf_close(&file);
}

static const char *name_of(const struct seam_function_ranges *ranges,
			   uint64_t addr)
{
	const struct seam_function_range *range =
		seam_function_ranges_find(ranges, addr);

	assert_non_null(range);
	assert_int_equal(range->start, addr);
	return seam_function_ranges_name(ranges, range);
}

static void check_name(const char *name, const char *want, uint64_t addr)
{
	char text[64];
	size_t n;

	if (!want) {
		assert_null(name);
		return;
	}
	n = strcspn(want, "*");
	snprintf(text, sizeof(text), "%.*s", (int)n, want);
	if (want[n])
		snprintf(text + n, sizeof(text) - n, "(%#" PRIx64 ")", addr);
	assert_non_null(name);
	assert_string_equal(name, text);
}

UNIT_TEST(functions_in_tables_have_names_and_no_others)
{
	static const char *const flags[] = {
		"-no-pie", "-fPIE -pie", "-fPIC -shared", "-O2 -no-pie",
		"-fPIC -shared -Wl,-z,noseparate-code", "-Os -pie -fPIE",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags); i++) {
		struct seam_function_ranges ranges = { 0 };

		build_run("gcc -O1 %s -fno-ipa-icf -o full t.c && "
			  "objcopy --strip-all full bare", flags[i]);
		read_file(&ranges, "bare");
		for (size_t f = 0; f < SEAM_ARRAY_SIZE(functions); f++) {
			uint64_t addr = build_symbol("full",
						     functions[f].symbol);

			check_name(name_of(&ranges, addr), functions[f].name,
				   addr);
		}
		seam_function_ranges_fini(&ranges);
	}
}

/* Each in a table of its own, which no type or module has. */
UNIT_TEST(functions_of_one_name_have_their_address)
{
	struct seam_function_ranges ranges = { 0 };

	build_run("sed 's/\\.name = \"[^\"]*\"/.size = 0/' t.c > u.c && "
		  "gcc -O1 -fPIC -shared -o full u.c && "
		  "objcopy --strip-all full bare");
	read_file(&ranges, "bare");
	for (const char *name = "abm"; *name; name++) {
		char symbol[] = "?_close";
		uint64_t addr;

		symbol[0] = *name;
		if (*name == 'm')
			memcpy(symbol, "m_both", sizeof("m_both"));
		addr = build_symbol("full", symbol);
		check_name(name_of(&ranges, addr), "close *", addr);
	}
	check_name(name_of(&ranges, build_symbol("full", "a_append")),
		   "append", 0);
	assert_null(name_of(&ranges, build_symbol("full", "a_size")));
	seam_function_ranges_fini(&ranges);
}

/* Names of ranges, however the tables are damaged. */
static size_t count_names(struct seam_bytes bytes)
{
	struct seam_function_ranges ranges = { 0 };
	struct seam_elf file;
	size_t n = 0;

	if (seam_elf_open_bytes(&file, bytes, NULL))
		return 0;
	assert_int_equal(seam_function_ranges_read(&ranges, &file), 0);
	assert_int_equal(seam_name_tables_read(&ranges, &file), 0);
	for (size_t i = 0; i < ranges.items.n; i++) {
		const char *name = seam_function_ranges_name(
			&ranges, &ranges.items.items[i]);

		if (!name)
			continue;
		assert_in_range(strlen(name), 2, 160);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDE"
					"FGHIJKLMNOPQRSTUVWXYZ_0123456789. ()"),
				 strlen(name));
		n++;
	}
	seam_function_ranges_fini(&ranges);
	seam_elf_close(&file);
	return n;
}

UNIT_TEST(a_damaged_byte_or_a_cut_does_no_harm)
{
	struct seam_file file;
	uint8_t *copy;
	size_t size;

	build_run("gcc -Os -fPIC -shared -nostdlib -Wl,-z,noseparate-code "
		  "-Wl,-z,max-page-size=4096 -fno-ipa-icf -o full t.c && "
		  "objcopy --strip-all full bare");
	assert_int_equal(seam_file_read(&file, AT_FDCWD, build_path("bare"),
					1 << 20, NULL), 0);
	size = file.bytes.size;
	assert_int_equal(count_names(file.bytes), 20);
	for (size_t i = 0; i < size; i++) {
		/* of the exact size, for the sanitizer */
		copy = malloc(i + 1);
		memcpy(copy, file.bytes.data, i + 1);
		count_names((struct seam_bytes) { copy, i + 1 });
		free(copy);
	}
	copy = malloc(size);
	memcpy(copy, file.bytes.data, size);
	for (size_t i = 0; i < size; i++) {
		copy[i] ^= 0xff;
		count_names((struct seam_bytes) { copy, size });
		copy[i] ^= 0xff;
	}
	free(copy);
	seam_file_close(&file);
}

UNIT_MAIN(enter, build_leave, NULL, NULL)
