/* SPDX-License-Identifier: MIT */
/* test_inject.c - elfutils reads from the file what was put into it */
#include "export/inject/inject.h"

#include <elfutils/libdw.h>
#include <gelf.h>

#include "unit.h"

/* As CPython writes it: 16 bytes behind the start of 11 bytes of code. */
static const uint8_t frame[] = {
	0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1b,
	0x0c, 7, 8, 0x90, 1, 0, 0,
	0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0, 0,
	0, 0x44, 0x0e, 0x10, 0x46, 0x0e, 8, 0,
};

static const uint8_t code[64] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 };

enum { F, EMPTY, G, H, N };

static void make(struct seam_inject_function *functions)
{
	functions[F] = (struct seam_inject_function) {
		.name = "f", .size = 11, .code = { code, 11 },
		.eh_frame = { frame, sizeof(frame) }, .eh_frame_offset = 16,
	};
	functions[EMPTY] = (struct seam_inject_function) { .name = "empty" };
	functions[G] = (struct seam_inject_function) {
		.name = "g", .size = 64, .code = { code, 64 },
	};
	functions[H] = (struct seam_inject_function) {
		.name = "of a map, without code", .size = 5000,
			/* cut off */
		.eh_frame = { frame, 20 }, .eh_frame_offset = 16,
	};
}

struct opened {
	struct seam_inject_function functions[N];
	uint64_t n_bad_tables;
	int fd;
	Elf *elf;
};

static void open_made(struct opened *o, struct seam_inject_function *functions,
		      size_t n, unsigned int machine)
{
	o->n_bad_tables = 0;
	o->fd = memfd_create("inject", 0);
	assert_true(o->fd >= 0);
	assert_int_equal(seam_inject_elf(o->fd, functions, n, machine,
					 &o->n_bad_tables, NULL), 0);
	elf_version(EV_CURRENT);
	o->elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(o->elf);
}

static void open_file(struct opened *o)
{
	make(o->functions);
	open_made(o, o->functions, N, EM_X86_64);
}

static void close_file(struct opened *o)
{
	elf_end(o->elf);
	close(o->fd);
}

static Elf_Scn *section(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, header) && header->sh_type == type)
			return scn;
	fail_msg("no section of type %u", type);
	return NULL;
}

UNIT_TEST(symbols_and_code_are_at_their_offsets)
{
	struct opened o;
	GElf_Shdr header;
	Elf_Data *data;

	open_file(&o);
	data = elf_getdata(section(o.elf, SHT_SYMTAB, &header), NULL);
	assert_int_equal(header.sh_size / header.sh_entsize, N + 1);
	assert_int_equal(o.functions[F].file_offset, 0x80);
	for (int i = 0; i < N; i++) {
		const struct seam_inject_function *f = &o.functions[i];
		GElf_Sym symbol;

		assert_non_null(gelf_getsym(data, i + 1, &symbol));
		assert_string_equal(elf_strptr(o.elf, header.sh_link,
					       symbol.st_name), f->name);
		assert_int_equal(symbol.st_value, f->file_offset);
		assert_int_equal(symbol.st_size, f->size);
		assert_int_equal(f->file_offset % 16, 0);
		if (f->code.size)
			assert_memory_equal(elf_rawfile(o.elf, NULL) +
					    f->file_offset, f->code.data,
					    f->size);
	}
	section(o.elf, SHT_PROGBITS, &header);	/* .text is the first */
	assert_int_equal(header.sh_addr, header.sh_offset);
	assert_int_equal(header.sh_offset, 0x80);
	close_file(&o);
}

UNIT_TEST(frames_cover_their_function_and_no_other)
{
	struct opened o;
	Dwarf_Frame *found = NULL;
	Dwarf_Addr start, end;
	Dwarf_CFI *cfi;
	bool is_signal;

	open_file(&o);
	cfi = dwarf_getcfi_elf(o.elf);
	assert_non_null(cfi);
	assert_int_equal(dwarf_cfi_addrframe(cfi, o.functions[F].file_offset +
					     5, &found), 0);
	dwarf_frame_info(found, &start, &end, &is_signal);
	assert_int_equal(start, o.functions[F].file_offset + 4);
	assert_true(end <= o.functions[F].file_offset + 11);
	free(found);
	assert_int_not_equal(dwarf_cfi_addrframe(
		cfi, o.functions[G].file_offset, &found), 0);
	assert_int_equal(o.n_bad_tables, 1);
	dwarf_cfi_end(cfi);
	close_file(&o);
}

UNIT_TEST(damaged_tables_are_left_out)
{
	for (size_t i = 0; i < 8 * sizeof(frame); i++) {
		struct seam_inject_function functions[N];
		uint8_t *copy = malloc(sizeof(frame));
		struct opened o;

		make(functions);
		memcpy(copy, frame, sizeof(frame));
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		functions[F].eh_frame.data = copy;
		open_made(&o, functions, N, EM_X86_64);
		assert_true(o.n_bad_tables <= 2);
		close_file(&o);
		free(copy);
	}
}

UNIT_TEST(a_file_of_nothing_is_a_file)
{
	struct seam_inject_function huge = { .name = "x", .size = UINT64_MAX };
	uint64_t n_bad_tables = 0;
	struct opened o;
	size_t n = 0;

	open_made(&o, NULL, 0, EM_AARCH64);
	assert_int_equal(elf_getshdrnum(o.elf, &n), 0);
	assert_true(n > 5);
	assert_int_equal(seam_inject_elf(o.fd, &huge, 1, EM_X86_64,
					 &n_bad_tables, NULL), -EOVERFLOW);
	close_file(&o);
}

UNIT_TEST(an_error_of_writing_is_reported)
{
	struct seam_inject_function functions[N];
	uint64_t n_bad_tables = 0;
	int fd = open("/dev/full", O_WRONLY);

	make(functions);
	assert_true(seam_inject_elf(fd, functions, N, EM_X86_64,
				    &n_bad_tables, NULL) < 0);
	close(fd);
}

/* The 20 bytes behind the note's head and "GNU". */
static const void *build_id(Elf *elf)
{
	GElf_Shdr header;

	return (const char *)elf_getdata(section(elf, SHT_NOTE, &header),
					 NULL)->d_buf + 16;
}

/* perf keeps files by build id: one of the same code may have other names. */
UNIT_TEST(other_names_make_another_build_id)
{
	struct opened a, b;

	open_file(&a);
	make(b.functions);
	b.functions[G].name = "h";
	open_made(&b, b.functions, N, EM_X86_64);
	assert_memory_not_equal(build_id(a.elf), build_id(b.elf), 20);
	close_file(&b);
	/* and equal files are one */
	open_file(&b);
	assert_memory_equal(build_id(a.elf), build_id(b.elf), 20);
	close_file(&b);
	close_file(&a);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
