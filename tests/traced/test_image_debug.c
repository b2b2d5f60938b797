/* SPDX-License-Identifier: MIT */
/* test_image_debug.c - debug files, whole, damaged and hostile */
#include "unit.h"

#include "folder.h"
#include "traced/fdr/sleds/function_names.h"

static const ElfW(Phdr) no_headers;
static const uint8_t id[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/*
 * A file with sections, whose table comes before what they have: a cut leaves
 * it whole.
 */
struct made_file {
	ElfW(Ehdr) header;
	ElfW(Shdr) sections[6];
	char names[64];			/* of sections */
	struct {
		ElfW(Nhdr) head;
		char name[4];
		uint8_t id[8];
	} note;
	char link[24];			/* .gnu_debuglink */
	ElfW(Sym) symbols[4];
	char text[32];			/* names of symbols */
};

static const char section_names[] = "\0.gnu_debuglink";
static const char text[] = "\0leaf\0step";

static ElfW(Shdr) section(uint32_t type, size_t at, size_t n)
{
	return (ElfW(Shdr)) { .sh_type = type, .sh_offset = at, .sh_size = n };
}

#define OF(type, member) section(type, offsetof(struct made_file, member), \
				 sizeof(((struct made_file *)0)->member))

static struct made_file make_file(void)
{
	struct made_file f = {
		.header = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			.e_phentsize = sizeof(ElfW(Phdr)),
			.e_shentsize = sizeof(ElfW(Shdr)),
			.e_shoff = offsetof(struct made_file, sections),
			.e_shnum = 6, .e_shstrndx = 1,
		},
		.sections = {
			[1] = OF(SHT_STRTAB, names), [2] = OF(SHT_NOTE, note),
			[3] = OF(SHT_PROGBITS, link),
			[4] = OF(SHT_SYMTAB, symbols),
			[5] = OF(SHT_STRTAB, text),
		},
		.note = { { 4, sizeof(id), NT_GNU_BUILD_ID }, "GNU", { 0 } },
		.link = "app.debug",
		.symbols = {
			[1] = { .st_name = 1, .st_shndx = 1, .st_value = 0x10,
				.st_info = STT_FUNC },
			[2] = { .st_name = 6, .st_shndx = 1, .st_value = 0x20,
				.st_info = STT_FUNC },
		},
	};

	memcpy(f.names, section_names, sizeof(section_names));
	memcpy(f.text, text, sizeof(text));
	memcpy(f.note.id, id, sizeof(id));
	f.sections[3].sh_name = 1;
	f.sections[4].sh_link = 5;
	return f;
}

static void put(const char *name, const void *bytes, size_t n)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);		/* writing to what was there takes longer */
	out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

/* Of the image's file "app", which has no symbols but is like @f. */
static bool open_debug(struct seam_image_file *debug, struct made_file f)
{
	struct seam_image_file file;
	char path[128];
	bool is_open;

	f.sections[4].sh_type = SHT_PROGBITS;
	put("app", &f, sizeof(f));
	snprintf(path, sizeof(path), "%s/app", folder);
	assert_int_equal(seam_image_file_open(&file, path, &no_headers, 0), 0);
	is_open = seam_image_debug_open(debug, &file, path, id, sizeof(id));
	seam_image_file_close(&file);
	assert_int_equal(is_open, debug->fd >= 0);
	return is_open;
}

/* How many functions the debug file has that are leaf() or step(). */
static size_t count_names(void)
{
	struct seam_image_symbols symbols;
	struct seam_image_file debug;
	size_t n = 0;

	if (!open_debug(&debug, make_file()))
		return 0;
	if (seam_image_file_symbols(&debug, SHT_SYMTAB, &symbols) == 0) {
		for (size_t i = 0; i < symbols.n; i++) {
			const ElfW(Sym) *symbol = &symbols.list[i];
			const char *name = seam_image_symbol_name(&symbols,
								  symbol);

			n += seam_image_symbol_is_function(&symbols, symbol) &&
			     strlen(name) == 4;
		}
		seam_image_symbols_fini(&symbols);
	}
	seam_image_file_close(&debug);
	return n;
}

UNIT_TEST(it_is_found_beside_the_file_and_below_it)
{
	const struct made_file f = make_file();
	char path[128];

	assert_int_equal(count_names(), 0);
	put("app.debug", &f, sizeof(f));
	assert_int_equal(count_names(), 2);
	snprintf(path, sizeof(path), "%s/app.debug", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/.debug", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	put(".debug/app.debug", &f, sizeof(f));
	assert_int_equal(count_names(), 2);
}

UNIT_TEST(one_that_is_cut_has_no_names)
{
	const struct made_file f = make_file();

	for (size_t n = 0; n < sizeof(f); n++) {
		put("app.debug", &f, n);
		assert_int_equal(count_names(), 0);
	}
}

/* Another id is never accepted, and nothing is read that is not there. */
UNIT_TEST(each_bit_of_it_may_be_wrong)
{
	const size_t note = offsetof(struct made_file, note);
	size_t n_opened = 0;

	for (size_t bit = 0; bit < 8 * sizeof(struct made_file); bit++) {
		struct made_file f = make_file();

		((uint8_t *)&f)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		put("app.debug", &f, sizeof(f));
		if (bit / 8 >= note && bit / 8 < note + sizeof(f.note))
			assert_int_equal(count_names(), 0);
		else
			n_opened += count_names() > 0;
	}
	assert_true(n_opened > sizeof(struct made_file));
}

UNIT_TEST(a_table_may_say_anything_of_its_place)
{
	static const uint64_t numbers[] = {
		0, 1, 63, 1 << 16, 1u << 30, (1u << 30) + 1, 1ull << 40,
		INT64_MAX, UINT64_MAX - 7, UINT64_MAX,
	};

	for (size_t s = 0; s < 6; s++)
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(numbers); i++)
			for (size_t j = 0; j < SEAM_ARRAY_SIZE(numbers); j++) {
				struct made_file f = make_file();

				f.sections[s].sh_offset = numbers[i];
				f.sections[s].sh_size = numbers[j];
				put("app.debug", &f, sizeof(f));
				/* a table may be at any bytes, an id not */
				if (s == 2)
					assert_int_equal(count_names(), 0);
				else
					count_names();
			}
}

UNIT_TEST(only_a_name_with_an_end_is_looked_for)
{
	static const char *const links[] = {
		"", ".", "..", "/", "x/app.debug", "../app.debug", "app",
		"app.debug/",
	};
	struct seam_image_file debug;
	struct made_file f = make_file();

	put("app.debug", &f, sizeof(f));
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(links); i++) {
		memset(f.link, 0, sizeof(f.link));
		memcpy(f.link, links[i], strlen(links[i]));
		assert_false(open_debug(&debug, f));
	}
	f = make_file();
	for (size_t n = 0; n < 40; n++) {
		bool is_whole = n > strlen("app.debug");

		/* what follows it in the file are zeros, then symbols */
		f.sections[3].sh_size = n;
		assert_int_equal(open_debug(&debug, f), is_whole);
		seam_image_file_close(&debug);
	}
}

UNIT_TEST(an_image_without_a_build_id_has_none)
{
	const struct made_file f = make_file();
	struct seam_image_file file, debug;
	char path[128];

	put("app", &f, sizeof(f));
	put("app.debug", &f, sizeof(f));
	snprintf(path, sizeof(path), "%s/app", folder);
	assert_int_equal(seam_image_file_open(&file, path, &no_headers, 0), 0);
	for (size_t n = 0; n < sizeof(id); n++)
		assert_false(seam_image_debug_open(&debug, &file, path, id, n));
	assert_true(seam_image_debug_open(&debug, &file, path, id, sizeof(id)));
	seam_image_file_close(&debug);
	assert_false(seam_image_debug_open(&debug, &file, NULL, id,
					   sizeof(id)));
	seam_image_file_close(&file);
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
