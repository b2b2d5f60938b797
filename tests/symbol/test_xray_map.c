/* SPDX-License-Identifier: MIT */
/*
 * test_xray_map.c - instrumentation maps, from this very program
 *
 * The program carries a section xray_instr_map with entries of versions 0, 1
 * and 2 and all kinds; being position-independent, it has the first two only
 * in its relocations.
 */
#include "symbol/xray/xray_map.h"

#include <gelf.h>

#include "../no_memory.h"
#include "base/file.h"
#include "symbol/symbols.h"
#include "unit.h"

int xray_alpha(int x);
int xray_beta(int x);
int xray_gamma(int x);

/* Some of a few hundred bytes print gigabytes; this one 200 KB. */
#define BOMB "_Z1fI1aIiiE" \
	"S0_IS1_S1_ES0_IS2_S2_ES0_IS3_S3_ES0_IS4_S4_E" \
	"S0_IS5_S5_ES0_IS6_S6_ES0_IS7_S7_ES0_IS8_S8_E" \
	"S0_IS9_S9_ES0_ISA_SA_ES0_ISB_SB_ES0_ISC_SC_E" \
	"S0_ISD_SD_ES0_ISE_SE_E" \
	"Evv"
#define WITH_PARAMETERS "_Z5deltaiPKc"

int xray_bomb(int x) __asm__(BOMB);
int xray_delta(int x) __asm__(WITH_PARAMETERS);

__attribute__((noinline)) int xray_bomb(int x)
{
	return x + 4;
}
__attribute__((noinline)) int xray_delta(int x)
{
	return x + 5;
}
__attribute__((noinline)) int xray_alpha(int x)
{
	return x + 1;
}
__attribute__((noinline)) int xray_beta(int x)
{
	return x + 2;
}
__attribute__((noinline)) int xray_gamma(int x)
{
	return x + 3;
}

#define ABSOLUTE(function, kind, version)				\
	".quad " function "\n.quad " function "\n"			\
	".byte " #kind ", 1, " #version "\n.zero 13\n"
#define RELATIVE(function, kind)					\
	".quad " function " - .\n.quad " function " - .\n"		\
	".byte " #kind ", 0, 2\n.zero 13\n"

__asm__(".pushsection xray_instr_map, \"aw\", @progbits\n" ABSOLUTE(
	"xray_alpha", 0, 0) ABSOLUTE("xray_alpha", 1, 0)
		ABSOLUTE("xray_beta", 3, 1) ABSOLUTE("xray_beta", 2, 1)
			RELATIVE("xray_gamma", 0) RELATIVE("xray_gamma", 1)
				RELATIVE("xray_gamma", 4)
					RELATIVE("xray_gamma", 5)
	/* the map does not sort: the same function again is another id */
	RELATIVE("xray_alpha", 0)
	RELATIVE(BOMB, 0)
	RELATIVE(BOMB, 1)
	RELATIVE(WITH_PARAMETERS, 0)
	".popsection\n");

/* NULL: the map has no such function, or no name of it. */
static const char *name_of(const struct seam_xray_map *map, uint32_t id)
{
	const struct seam_xray_mapped *f = seam_xray_map_find(map, id);

	return f && f->name ? seam_strings_get(&map->strings, f->name) : NULL;
}

static void assert_is_ours(const struct seam_xray_map *map)
{
	static const struct {
		const char *name;
		uint8_t kinds;
	} want[] = {
		{ "xray_alpha", 0x03 }, { "xray_beta", 0x0c },
		{ "xray_gamma", 0x33 }, { "xray_alpha", 0x01 },
		{ BOMB, 0x03 }, { "delta(int, char const*)", 0x01 },
	};

	assert_int_equal(map->functions.n, 6);
	for (uint32_t id = 1; id <= 6; id++) {
		const struct seam_xray_mapped *f = seam_xray_map_find(map, id);

		assert_non_null(f);
		assert_string_equal(name_of(map, id), want[id - 1].name);
		assert_int_equal(f->kinds, want[id - 1].kinds);
		assert_true(f->file_offset > 0);
	}
	assert_null(seam_xray_map_find(map, 0));
	assert_null(name_of(map, 7));
}

UNIT_TEST(reads_every_version_from_a_pie)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_xray_map map;
	struct seam_err err = { 0 };

	assert_int_equal(
		xray_alpha(xray_beta(xray_gamma(xray_bomb(xray_delta(1))))),
		16);
	assert_int_equal(seam_symbols_read_map(symbols, &map, "/proc/self/exe",
					       NULL, &err), 0);
	assert_is_ours(&map);
	seam_xray_map_fini(&map);
	seam_symbols_free(symbols);
}

/* Where the section stands in a file. */
static size_t find_section(const uint8_t *data, size_t size)
{
	Elf *elf = elf_memory((char *)(uintptr_t)data, size);
	size_t names, at = 0;
	Elf_Scn *scn = NULL;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		gelf_getshdr(scn, &shdr);
		if (strcmp(elf_strptr(elf, names, shdr.sh_name),
			   "xray_instr_map") == 0)
			at = shdr.sh_offset;
	}
	elf_end(elf);
	return at;
}

/* This program, to be changed. */
static struct seam_bytes copy_self(uint8_t **copy)
{
	struct seam_file file;
	size_t size;

	assert_int_equal(seam_file_open(&file, "/proc/self/exe", NULL), 0);
	size = file.bytes.size;
	*copy = malloc(size);
	assert_non_null(*copy);
	memcpy(*copy, file.bytes.data, size);
	seam_file_close(&file);
	return (struct seam_bytes) { *copy, size };
}

/* A linker may leave zeroes where a relocation will write; lld does. */
UNIT_TEST(takes_absolute_addresses_from_the_relocations)
{
	struct seam_xray_map map;
	uint8_t *copy;
	struct seam_bytes file = copy_self(&copy);
	size_t at;

	elf_version(EV_CURRENT);
	at = find_section(copy, file.size);
	assert_true(at > 0);
	for (size_t entry = 0; entry < 4; entry++)
		memset(copy + at + 32 * entry, 0, 16);
	assert_int_equal(seam_xray_map_read(&map, file, NULL), 0);
	assert_is_ours(&map);
	seam_xray_map_fini(&map);
	((Elf64_Ehdr *)copy)->e_type = ET_REL;
	assert_int_equal(seam_xray_map_read(&map, file, NULL), -ENOTSUP);
	free(copy);
}

/* Damage anywhere in the first 64 KiB and in the map: refused, or read. */
UNIT_TEST(survives_damage_everywhere)
{
	struct seam_err err = { 0 };
	struct seam_xray_map map;
	uint8_t *copy;
	struct seam_bytes file = copy_self(&copy);
	size_t step = file.size / 400 + 1;

	for (size_t i = 0; i < file.size; i += i < 64 ? 1 : step) {
		copy[i] ^= 0xff;
		if (seam_xray_map_read(&map, file, &err) == 0)
			seam_xray_map_fini(&map);
		copy[i] ^= 0xff;
	}
	free(copy);
}

static int read_text(struct seam_xray_map *map, const char *text,
		     struct seam_err *err)
{
	return seam_xray_map_read(map, (struct seam_bytes) {
		(const uint8_t *)text, strlen(text) }, err);
}

UNIT_TEST(reads_the_yaml_of_llvm_xray)
{
	struct seam_xray_map map;

	assert_int_equal(read_text(&map,
		"# a comment\n---\n"
		"- { id: 7, address: 0x21D70, function: 0x21D70, kind: "
		"function-enter, always-instrument: false, function-name: "
		"'work(int)', version: 2 }\n"
		"- { id: 7, address: 0x21D8A, function: 0x21D70, kind: "
		"function-exit, always-instrument: false, function-name: "
		"'work(int)', version: 2 }\n"
		"- { id: 3, address: 12, function: 12, kind: log-args-enter, "
		"always-instrument: true}\n...\n", NULL), 0);
	assert_int_equal(map.functions.n, 2);
	assert_string_equal(name_of(&map, 7), "work(int)");
	assert_int_equal(seam_xray_map_find(&map, 7)->kinds, 3);
	assert_int_equal(seam_xray_map_find(&map, 7)->addr, 0x21d70);
	assert_null(name_of(&map, 3));
	assert_int_equal(seam_xray_map_find(&map, 3)->kinds, 8);
	seam_xray_map_fini(&map);
}

static const char *text_of(const struct seam_xray_map *map, uint32_t string)
{
	return string ? seam_strings_get(&map->strings, string) : "-";
}

/* A comment that is none of ours names no binary. */
UNIT_TEST(functions_are_of_the_binary_named_before_their_id)
{
	static const char *const want[][2] = {
		{ "-", "-" }, { "/a \"b\"", "00ff12" }, { "/lib/c", "-" },
		{ "/lib/c", "-" }, { "/d", "0123456789abcdef0123456789abcdef"
		  "01234567" },
	};
	struct seam_xray_map map;

	assert_int_equal(read_text(&map,
		"# image 2 \"/a \\\"b\\\"\" 00ff12\n# image 3 \"/lib/c\"\n"
		"# image 4 \"/x\" 0123456789abcdef0123456789abcdef012345678\n"
		"# image 4 \"/x\"00\n# image 4 /x\n# image 4 \"\n# image 4 \n"
		"# image 5 \"/d\" 0123456789abcdef0123456789abcdef01234567\n---\n"
		"- { id: 1, function: 1, kind: function-enter }\n"
		"- { id: 2, function: 1, kind: function-enter }\n"
		"- { id: 3, function: 1, kind: function-enter }\n"
		"- { id: 4, function: 1, kind: function-enter }\n"
		"- { id: 5, function: 1, kind: function-enter }\n", NULL), 0);
	assert_int_equal(map.functions.n, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_string_equal(text_of(&map, map.functions.items[i].image),
				    want[i][0]);
		assert_string_equal(text_of(&map,
					    map.functions.items[i].build_id),
				    want[i][1]);
	}
	seam_xray_map_fini(&map);
}

UNIT_TEST(refuses_what_is_no_map_and_reports_why)
{
	static const struct {
		const char *text;
		int code;
		const char *why;
	} wrong[] = {
		{ "", -ENODATA, "it is empty" },
		{ "---\n[]\n", -ENODATA, "no entries" },
		{ "hello\n", -EBADMSG, "no list" },
		{ "- { id: 1 }\n", -EBADMSG, "without" },
		{ "- { id: x, kind: function-enter }\n", -EBADMSG, "number" },
		{ "- { id: -1, kind: function-enter }\n", -EBADMSG, "number" },
		{ "- { id: 99999999999, kind: function-exit }\n", -EBADMSG,
		  "too large" },
		{ "- { id: 1, kind: other }\n", -EBADMSG, "kind" },
		{ "- { id: 1, kind: [ 1 ] }\n", -EBADMSG, "entry" },
		{ "- { id: 1, kind: { a: b } }\n", -EBADMSG, "entries" },
		{ "- { id: 1\n", -EBADMSG, "line" },
		{ "\177ELF", -EBADMSG, "ELF" },
		{ "MZ\x90", -EBADMSG, "line 1" },
		{ "!<arch>\n", -EBADMSG, "no list" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wrong); i++) {
		struct seam_err err = { 0 };
		struct seam_xray_map map;

		assert_int_equal(read_text(&map, wrong[i].text, &err),
				 wrong[i].code);
		assert_non_null(strstr(err.cause[0], wrong[i].why));
		assert_null(map.functions.items);
	}
}

UNIT_TEST(yaml_cut_anywhere_is_read_or_refused)
{
	static const char text[] =
		"- { id: 7, function: 0x21D70, kind: function-enter }\n"
		"- { id: 7, function: 0x21D70, kind: function-exit, "
		"function-name: \"a\\x41\" }\n";

	for (size_t size = 0; size < sizeof(text); size++) {
		uint8_t *copy = malloc(size + 1);
		struct seam_xray_map map;

		assert_non_null(copy);
		memcpy(copy, text, size);
		if (seam_xray_map_read(&map, (struct seam_bytes) {
				copy, size }, NULL) == 0)
			seam_xray_map_fini(&map);
		free(copy);
	}
}

/* A failure without a cause is a success to the parent of a sandbox. */
UNIT_TEST(yaml_without_memory_is_refused_with_a_cause)
{
	static const char text[] = "- { id: 1, function: 0x10, "
		"kind: function-enter, function-name: f }\n";
	const struct seam_bytes bytes = {
		(const uint8_t *)text, sizeof(text) - 1,
	};
	struct seam_xray_map map;
	int r = -ENOMEM;

	for (long n = 1; r; n++) {
		struct seam_err err = { 0 };

		until_failure = n;
		r = seam_xray_map_read(&map, bytes, &err);
		assert_int_equal(r, until_failure > 0 ? 0 : -ENOMEM);
		assert_int_equal(err.n_causes > 0, r < 0);
	}
	until_failure = 0;
	assert_int_equal(map.functions.n, 1);
	seam_xray_map_fini(&map);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
