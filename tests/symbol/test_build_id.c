/* SPDX-License-Identifier: MIT */
/* test_build_id.c - build ids of ELF files, whole, cut and damaged */
#include "symbol/elf/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

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
	n = seam_build_id_read(fd, 0, id);
	close(fd);
	return n;
}

UNIT_TEST(finds_the_id_among_other_notes)
{
	struct small s = small_file();
	uint8_t id[20];

	assert_int_equal(read_id(&s, sizeof(s), id), 20);
	assert_memory_equal(id, s.id, 20);
}

UNIT_TEST(has_no_id_where_the_file_is_cut)
{
	struct small s = small_file();
	uint8_t id[20];

	for (size_t n = 0; n < offsetof(struct small, id) + 20; n++)
		assert_int_equal(read_id(&s, n, id), 0);
}

UNIT_TEST(takes_no_note_outside_the_segment_of_notes)
{
	struct small s = small_file();
	uint8_t id[20];

	s.segments[1].p_type = PT_LOAD;
	assert_int_equal(read_id(&s, sizeof(s), id), 0);
}

UNIT_TEST(survives_any_flipped_bit)
{
	uint8_t id[20];

	for (size_t bit = 0; bit < sizeof(struct small) * 8; bit++) {
		struct small s = small_file();

		((uint8_t *)&s)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(read_id(&s, sizeof(s), id) <= 20);
	}
}

/* ---- without a build id ---- */

static uint64_t content_id(const void *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	uint64_t id;

	assert_int_equal(pwrite(fd, data, size, 0), size);
	id = seam_content_id_read(fd);
	close(fd);
	return id;
}

static struct small go_file(void)
{
	struct small s = small_file();

	s.note.n_type = 4;
	memcpy(s.name, "Go\0", 4);
	return s;
}

UNIT_TEST(the_id_of_go_identifies_a_file_alone)
{
	struct { struct small go; char more[100]; } a = { go_file(), "" }, b;
	uint64_t id = content_id(&a, sizeof(a));

	b = a;
	b.more[50] = 1;
	b.go.other_value[0] ^= 1;
	assert_true(content_id(&b, sizeof(b)) == id);
	assert_true(content_id(&b, sizeof(b) - 1) == id);
	b.go.id[19] ^= 1;
	assert_true(content_id(&b, sizeof(b)) != id);
}

/* A file of 1 MiB whose code is its second quarter. */
enum { MIB = 1 << 20, CODE = MIB / 4 };

UNIT_TEST(size_and_the_ends_of_file_and_code_identify_a_file)
{
	static const size_t known[] = {
		0, 5000, 65535, CODE, CODE + 65535, 2 * CODE - 65536,
		2 * CODE - 1, MIB - 65536, MIB - 1,
	};
	static const size_t unknown[] = {
		65536, CODE - 1, CODE + 65536, 2 * CODE - 65537, 2 * CODE,
		MIB - 65537,
	};
	uint8_t *file = calloc(1, MIB);
	struct small s = small_file();
	uint64_t id;

	s.segments[0].p_flags = PF_X;
	s.segments[0].p_offset = s.segments[0].p_filesz = CODE;
	s.segments[1].p_type = PT_NULL;
	memcpy(file, &s, sizeof(s));
	id = content_id(file, MIB);
	assert_true(id != 0);
	assert_true(content_id(file, MIB - 1) != id);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(known); i++) {
		file[known[i]] ^= 1;
		assert_true(content_id(file, MIB) != id);
		file[known[i]] ^= 1;
	}
	/* what is not read: a program that is patched keeps its symbols */
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(unknown); i++)
		file[unknown[i]] ^= 1;
	assert_true(content_id(file, MIB) == id);
	free(file);
}

/* A folder stands for a file on a disk with errors. */
UNIT_TEST(a_file_that_cannot_be_read_has_an_id)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(seam_content_id_read(fd) != 0);
	close(fd);
}

UNIT_TEST(any_bytes_have_an_id)
{
	struct small s = go_file();

	for (size_t n = 0; n <= sizeof(s); n++)
		assert_true(content_id(&s, n) != 0);
	for (size_t bit = 0; bit < sizeof(s) * 8; bit++) {
		((uint8_t *)&s)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(content_id(&s, sizeof(s)) != 0);
	}
	assert_true(content_id("", 0) != content_id("a", 1));
	assert_int_equal(seam_content_id_read(-1), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
