/* SPDX-License-Identifier: MIT */
/* test_kernel_code.c - code out of a file like /proc/kcore */
#include <elf.h>

#include "symbol/code/kernel_code.c"
#include "unit.h"

enum { N = 2, CODE_AT = 4096 };

static const uint64_t vaddr = 0xffffffffa1000000;
static char path[64];

static struct {
	Elf64_Ehdr e;
	Elf64_Phdr p[N];
} core;

static void write_core(size_t size)
{
	static uint8_t file[CODE_AT + 64];
	FILE *out;

	memcpy(file, &core, sizeof(core));
	for (size_t i = 0; i < 64; i++)
		file[CODE_AT + i] = (uint8_t)i;
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(file, 1, size, out), size);
	fclose(out);
}

static int set_up(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/seam-test-XXXXXX");
	fd = mkstemp(path);
	memset(&core, 0, sizeof(core));
	memcpy(core.e.e_ident, ELFMAG, SELFMAG);
	core.e.e_ident[EI_CLASS] = ELFCLASS64;
	core.e.e_ident[EI_DATA] = ELFDATA2LSB;
	core.e.e_ident[EI_VERSION] = EV_CURRENT;
	core.e.e_version = EV_CURRENT;
	core.e.e_type = ET_CORE;
	core.e.e_ehsize = sizeof(core.e);
	core.e.e_machine = EM_X86_64;
	core.e.e_phoff = sizeof(core.e);
	core.e.e_phentsize = sizeof(core.p[0]);
	core.e.e_phnum = N;
	core.p[0] = (Elf64_Phdr) { .p_type = PT_NOTE, .p_vaddr = vaddr,
				   .p_memsz = 64 };
	core.p[1] = (Elf64_Phdr) { .p_type = PT_LOAD, .p_vaddr = vaddr,
				   .p_memsz = 64, .p_filesz = 64,
				   .p_offset = CODE_AT };
	return close(fd);
}

static int tear_down(void **state)
{
	return unlink(path);
}

static int read_at(uint64_t addr, uint8_t *buf, size_t size)
{
	struct seam_machine machine;
	int r = read_core(path, addr, buf, size, &machine, NULL);

	if (r == 0)
		assert_int_equal(machine.elf_machine, EM_X86_64);
	return r;
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(memory_is_read_at_its_address)
{
	uint8_t buf[8];

	write_core(CODE_AT + 64);
	assert_int_equal(read_at(vaddr + 5, buf, 8), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(buf[i], 5 + i);
	assert_int_equal(read_at(vaddr + 56, buf, 8), 0);
}

TEST(what_is_not_there_is_not_read)
{
	uint8_t buf[8];

	write_core(CODE_AT + 64);
	assert_int_equal(read_at(vaddr - 1, buf, 8), -ENODATA);
	assert_int_equal(read_at(vaddr + 60, buf, 8), -ENODATA);
	assert_int_equal(read_at(vaddr + 64, buf, 8), -ENODATA);
	for (size_t size = 0; size < CODE_AT + 8; size += 7) {
		write_core(size);
		assert_int_equal(read_at(vaddr, buf, 8), -ENODATA);
	}
	unlink(path);
	assert_int_equal(read_at(vaddr, buf, 8), -ENOENT);
	write_core(0);
}

TEST(what_is_no_core_is_not_read)
{
	uint8_t buf[8];

	core.e.e_ident[EI_CLASS] = ELFCLASS32;
	write_core(CODE_AT + 64);
	assert_int_equal(read_at(vaddr, buf, 8), -ENODATA);
	core.e.e_ident[EI_CLASS] = ELFCLASS64;
	core.e.e_phoff = 1 << 20;
	write_core(CODE_AT + 64);
	assert_int_equal(read_at(vaddr, buf, 8), -ENODATA);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
