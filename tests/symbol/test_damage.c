/* SPDX-License-Identifier: MIT */
/*
 * test_damage.c - ELF files that are cut, flipped, or made to mislead
 *
 * The undamaged file has all that is read: both symbol tables, a PLT, DWARF
 * with inlined calls.  It is small, so that every byte has its turn.
 */
#include <gelf.h>

#include "base/file.h"
#include "build.h"
#include "probe.h"
#include "symbol/elf/elf_file.h"
#include "unit.h"

static const char program[] =
	"extern int far(int);\n"
	"static inline __attribute__((always_inline)) int leaf(int x)\n"
	"{ return far(x) * 3; }\n"
	"int outer(int x) { return leaf(x) + leaf(x + 1); }\n"
	"static __attribute__((used, noinline)) int local(int x)\n"
	"{ return x + 1; }\n";

static struct seam_file small;

static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("p.c", program);
	build_run("gcc -shared -fPIC -nostdlib -Os -g -Wl,--build-id "
		  "-Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 "
		  "-fno-asynchronous-unwind-tables -o p.so p.c");
	return seam_file_read(&small, AT_FDCWD, build_path("p.so"), 1 << 20,
			      NULL);
}

static int leave(void **state)
{
	seam_file_close(&small);
	return build_leave(state);
}

UNIT_TEST(the_undamaged_file_has_names)
{
	assert_true(probe_image(small.bytes.data, small.bytes.size) > 0);
}

UNIT_TEST(a_cut_at_every_byte_does_no_harm)
{
	for (size_t n = 0; n < small.bytes.size; n++)
		probe_image(small.bytes.data, n);
}

static void flip_all(uint8_t mask)
{
	uint8_t *copy = malloc(small.bytes.size);

	memcpy(copy, small.bytes.data, small.bytes.size);
	for (size_t i = 0; i < small.bytes.size; i++) {
		copy[i] ^= mask;
		probe_image(copy, small.bytes.size);
		copy[i] ^= mask;
	}
	free(copy);
}

UNIT_TEST(a_flipped_byte_does_no_harm_anywhere)
{
	flip_all(0xff);
}

UNIT_TEST(a_flipped_bit_does_no_harm_anywhere)
{
	flip_all(0x01);
}

/* A segment can claim more than the file has. */
UNIT_TEST(no_address_outside_the_file_has_a_name)
{
	uint8_t *copy = malloc(small.bytes.size);
	Elf64_Ehdr header;
	Elf64_Phdr load;

	memcpy(copy, small.bytes.data, small.bytes.size);
	memcpy(&header, copy, sizeof(header));
	memcpy(&load, copy + header.e_phoff, sizeof(load));
	assert_int_equal(load.p_type, PT_LOAD);
	load.p_offset = 1;
	load.p_filesz = UINT64_MAX;
	load.p_flags = PF_R | PF_X;
	/* UINT64_MAX is now at an address that has a symbol. */
	load.p_vaddr = build_symbol("p.so", "outer") + 2;
	memcpy(copy + header.e_phoff, &load, sizeof(load));
	probe_image(copy, small.bytes.size);
	free(copy);
}

/*
 * DIEs of one byte each, all with 20,000 attributes that take no bytes: four
 * thousand million attributes in a file of 300 KB.
 */
UNIT_TEST(dwarf_that_repeats_itself_ends)
{
	struct build_answer a;

	build_write("bomb.s",
		".globl _start\n.text\n"
		"_start: .fill 64, 1, 0x90\n"
		".size _start, 64\n.type _start, @function\n"
		".section .debug_abbrev,\"\",@progbits\n"
		".byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0\n"
		".byte 2, 0x2e, 0\n"
		".rept 20000\n.byte 0x3f, 0x19\n.endr\n"
		".byte 0, 0, 0\n"
		".section .debug_info,\"\",@progbits\n"
		".long end - begin\n"
		"begin: .short 4\n.long 0\n.byte 8\n"
		".byte 1\n.quad _start, 64\n"
		".fill 200000, 1, 2\n"
		".byte 0\n"
		"end:\n");
	build_run("gcc -nostdlib -static -o bomb bomb.s");
	a = build_resolve("bomb", build_symbol("bomb", "_start"));
	assert_string_equal(a.function, "_start");
	assert_non_null(strstr(a.problem, "repeats itself"));
}

/* The linker would unpack it: the flag is set after that. */
static void set_compressed(const char *path)
{
	Elf64_Ehdr e;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &e, sizeof(e), 0), sizeof(e));
	for (unsigned int i = 0; i < e.e_shnum; i++) {
		off_t at = (off_t)(e.e_shoff + i * sizeof(Elf64_Shdr));
		Elf64_Shdr header;
		uint32_t type = 0;

		assert_int_equal(pread(fd, &header, sizeof(header), at),
				 sizeof(header));
		if (header.sh_size != 88 ||
		    pread(fd, &type, 4, (off_t)header.sh_offset) != 4 ||
		    type != ELFCOMPRESS_ZLIB)
			continue;
		header.sh_flags |= SHF_COMPRESSED;
		assert_int_equal(pwrite(fd, &header, sizeof(header), at),
				 sizeof(header));
	}
	close(fd);
}

/*
 * A section that says in @header what it unpacks to, 64 bytes after that; in
 * the form of today, or in the one before ELF had it.
 */
static void assert_packed(const char *name, const char *header, bool is_read)
{
	struct build_answer a;
	char text[1000];

	snprintf(text, sizeof(text),
		 ".globl _start\n.text\n_start: .fill 64, 1, 0x90\n"
		 ".size _start, 64\n.type _start, @function\n"
		 ".section .debug_info,\"\",@progbits\n.fill 16\n"
		 ".section %s,\"\",@progbits\n%s\n.fill 64, 1, 1\n", name,
		 header);
	build_write("packed.s", text);
	build_run("gcc -nostdlib -static -o packed packed.s && "
		  "sed -i s/[.]xdebug_str/.zdebug_str/ packed");
	set_compressed("packed");
	a = build_resolve("packed", build_symbol("packed", "_start"));
	assert_string_equal(a.function, "_start");
	assert_int_equal(!strstr(a.problem, "would unpack to over"), is_read);
}

UNIT_TEST(sections_that_unpack_to_gigabytes_are_not_unpacked)
{
	assert_packed(".debug_str",
		      ".long 1, 0\n.quad 0x40000000, 1", false);
	assert_packed(".debug_str",
		      ".long 1, 0\n.quad 0xffffffffffffffff, 1", false);
	assert_packed(".xdebug_str",
		      ".ascii \"ZLIB\"\n.byte 0, 0, 0, 0, 0x40, 0, 0, 0",
		      false);
	assert_packed(".debug_str",
		      ".long 1, 0\n.quad 0x4000, 1", true);
}

/*
 * A 32-bit file of the other byte order, by libelf: one function symbol in
 * a section that runs.
 */
static void make_foreign(const char *path)
{
	static uint32_t code[16];
	static char strings[] = "\0.text\0.symtab\0.strtab\0over_there";
	FILE *out = fopen(path, "w");
	Elf *elf;
	Elf32_Ehdr *header;
	Elf32_Phdr *load;
	Elf32_Sym symbols[2] = { { 0 } };
	Elf_Scn *sections[3];
	Elf32_Shdr *headers[3];
	Elf_Data *data[3];

	assert_non_null(out);
	elf_version(EV_CURRENT);
	elf = elf_begin(fileno(out), ELF_C_WRITE, NULL);
	header = elf32_newehdr(elf);
	load = elf32_newphdr(elf, 1);
	assert_true(elf && header && load);
	header->e_ident[EI_DATA] = ELFDATA2MSB;
	header->e_machine = EM_PPC;
	header->e_type = ET_EXEC;
	for (int i = 0; i < 3; i++) {
		sections[i] = elf_newscn(elf);
		headers[i] = elf32_getshdr(sections[i]);
		data[i] = elf_newdata(sections[i]);
		data[i]->d_version = EV_CURRENT;
	}
	symbols[1] = (Elf32_Sym) {
		.st_name = 23, .st_value = 0x10000010, .st_size = 0x20,
		.st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1,
	};
	data[0]->d_buf = code;
	data[0]->d_size = sizeof(code);
	*headers[0] = (Elf32_Shdr) {
		.sh_name = 1, .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x10000000,
	};
	data[1]->d_buf = symbols;
	data[1]->d_size = sizeof(symbols);
	data[1]->d_type = ELF_T_SYM;
	*headers[1] = (Elf32_Shdr) {
		.sh_name = 7, .sh_type = SHT_SYMTAB, .sh_link = 3,
		.sh_entsize = sizeof(Elf32_Sym), .sh_info = 1,
	};
	data[2]->d_buf = strings;
	data[2]->d_size = sizeof(strings);
	*headers[2] = (Elf32_Shdr) { .sh_name = 15, .sh_type = SHT_STRTAB };
	header->e_shstrndx = 3;
	assert_true(elf_update(elf, ELF_C_NULL) > 0);
	*load = (Elf32_Phdr) {
		.p_type = PT_LOAD, .p_offset = headers[0]->sh_offset,
		.p_vaddr = 0x10000000, .p_filesz = sizeof(code),
		.p_memsz = sizeof(code), .p_flags = PF_R | PF_X,
	};
	assert_true(elf_update(elf, ELF_C_WRITE) > 0);
	elf_end(elf);
	fclose(out);
}

UNIT_TEST(other_sizes_and_byte_orders_are_read)
{
	make_foreign("ppc");
	assert_string_equal(build_resolve("ppc", 0x10000010).function,
			    "over_there");
	assert_int_equal(build_resolve("ppc", 0x1000000f).n, 0);
	assert_int_equal(build_resolve("ppc", 0x10000030).n, 0);
}

UNIT_MAIN(enter, leave, NULL, NULL)
