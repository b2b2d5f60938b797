/* SPDX-License-Identifier: MIT */
/* test_build_id.c - build ids of ELF files, whole, cut and damaged */
#include "symbol/elf/build_id.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A file of a header, a PT_LOAD, a PT_NOTE and two notes. */
struct small {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr other;
	char other_name[4];
	uint8_t other_value[8];
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[20];
};

static struct small small_file(void)
{
	struct small s = {
		.header = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				     ELFDATA2LSB, EV_CURRENT },
			.e_phoff = offsetof(struct small, segments),
			.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
		},
		.segments = {
			{ .p_type = PT_LOAD },
			{ .p_type = PT_NOTE,
			  .p_offset = offsetof(struct small, other),
			  .p_filesz = sizeof(struct small) -
				      offsetof(struct small, other) },
		},
		.other = { .n_namesz = 4, .n_descsz = 7, .n_type = 1 },
		.other_name = "abc",
		.note = { .n_namesz = 4, .n_descsz = 20,
			  .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};

	for (uint8_t i = 0; i < 20; i++)
		s.id[i] = (uint8_t)(0xa0 + i);
	return s;
}

static size_t read_id(const void *data, size_t size, uint8_t *id)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	size_t n;

	assert_int_equal(pwrite(fd, data, size, 0), size);
	n = seam_build_id_read(fd, id);
	close(fd);
	return n;
}

static void finds_the_id_among_other_notes(void **state)
{
	struct small s = small_file();
	uint8_t id[20];

	(void)state;
	assert_int_equal(read_id(&s, sizeof(s), id), 20);
	assert_memory_equal(id, s.id, 20);
}

static void has_no_id_where_the_file_is_cut(void **state)
{
	struct small s = small_file();
	uint8_t id[20];

	(void)state;
	for (size_t n = 0; n < offsetof(struct small, id) + 20; n++)
		assert_int_equal(read_id(&s, n, id), 0);
}

static void takes_no_note_outside_the_segment_of_notes(void **state)
{
	struct small s = small_file();
	uint8_t id[20];

	(void)state;
	s.segments[1].p_type = PT_LOAD;
	assert_int_equal(read_id(&s, sizeof(s), id), 0);
}

static void survives_any_flipped_bit(void **state)
{
	uint8_t id[20];

	(void)state;
	for (size_t bit = 0; bit < sizeof(struct small) * 8; bit++) {
		struct small s = small_file();

		((uint8_t *)&s)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(read_id(&s, sizeof(s), id) <= 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_id_among_other_notes),
		cmocka_unit_test(has_no_id_where_the_file_is_cut),
		cmocka_unit_test(
			takes_no_note_outside_the_segment_of_notes),
		cmocka_unit_test(survives_any_flipped_bit),
	};

	return cmocka_run_group_tests_name("build_id", tests, NULL, NULL);
}
