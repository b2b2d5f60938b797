/* SPDX-License-Identifier: MIT */
/* test_guard.c - mapped files that shrink while they are read */
#include "base/guard.h"

#include "unit.h"

enum { PAGES = 3 };

static size_t page_bytes;

/* A file of three pages, each byte 7, and a guarded mapping of it. */
static struct seam_bytes map_file(FILE **file)
{
	struct seam_bytes mapped = { .size = PAGES * page_bytes };

	*file = tmpfile();
	assert_non_null(*file);
	/* Here, as cmocka has a handler of its own for each test. */
	seam_guard_install();
	for (size_t i = 0; i < mapped.size; i++)
		fputc(7, *file);
	assert_int_equal(fflush(*file), 0);
	mapped.data = mmap(NULL, mapped.size, PROT_READ, MAP_SHARED,
			   fileno(*file), 0);
	assert_ptr_not_equal(mapped.data, MAP_FAILED);
	seam_guard_add(mapped);
	return mapped;
}

static uint8_t at(struct seam_bytes mapped, size_t pos)
{
	return *((const volatile uint8_t *)mapped.data + pos);
}

static void end_map(struct seam_bytes mapped, FILE *file)
{
	seam_guard_remove(mapped);
	assert_int_equal(munmap((void *)(uintptr_t)mapped.data, mapped.size),
			 0);
	fclose(file);
}

/* Two pages are lost in one mapping, which counts once. */
UNIT_TEST(reads_zeros_where_the_file_shrank)
{
	unsigned int before = seam_guard_tripped();
	FILE *file;
	struct seam_bytes mapped = map_file(&file);

	assert_int_equal(at(mapped, mapped.size - 1), 7);
	assert_int_equal(ftruncate(fileno(file), (off_t)page_bytes), 0);
	assert_int_equal(at(mapped, mapped.size - 1), 0);
	assert_int_equal(at(mapped, page_bytes), 0);
	assert_int_equal(at(mapped, page_bytes - 1), 7);
	assert_int_equal(seam_guard_tripped(), before + 1);
	end_map(mapped, file);
}

/* The place of a mapping that shrank is taken by another one. */
UNIT_TEST(counts_each_mapping_that_shrank)
{
	unsigned int before = seam_guard_tripped();

	for (unsigned int i = 1; i <= 3; i++) {
		FILE *file;
		struct seam_bytes mapped = map_file(&file);

		assert_int_equal(ftruncate(fileno(file), 0), 0);
		assert_int_equal(at(mapped, 0), 0);
		assert_int_equal(seam_guard_tripped(), before + i);
		end_map(mapped, file);
	}
}

int main(void)
{
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	return unit_run(NULL, NULL, NULL, NULL);
}
