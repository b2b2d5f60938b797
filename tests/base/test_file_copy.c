/* SPDX-License-Identifier: MIT */
/*
 * test_file_copy.c - a copy of a file is whole, or its error is reported
 *
 * Linked with --wrap=pwrite64, which pwrite() is with offsets of 64 bits: any
 * write may fail, and those after it not.
 */
#include "base/file.h"

#include "unit.h"

enum { SIZE = 100000 };

static int until_failure;	/* at 1 the next write fails */
static int n_writes;

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at);

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t at)
{
	n_writes++;
	if (until_failure-- == 1) {
		errno = ENOSPC;
		return -1;
	}
	return __real_pwrite64(fd, data, size, at);
}

static int new_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int made(void)
{
	int fd = new_file();

	for (int i = 0; i < SIZE; i++)
		assert_int_equal(__real_pwrite64(fd, &i, 1, i), 1);
	return fd;
}

UNIT_TEST(a_copy_has_the_bytes_up_to_its_limit)
{
	static const uint64_t limits[] = {
		0, 1, 32768, 40000, SIZE, UINT64_MAX,
	};
	int from = made();

	for (size_t i = 0; i < 6; i++) {
		size_t size = limits[i] < SIZE ? limits[i] : SIZE;
		int to = new_file();
		uint8_t *bytes = calloc(1, size + 1);

		assert_non_null(bytes);
		assert_int_equal(seam_file_copy(from, to, limits[i], "x",
						NULL), 0);
		assert_int_equal(lseek(to, 0, SEEK_END), size);
		assert_int_equal(pread(to, bytes, size, 0), size);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(bytes[k], k & 0xff);
		free(bytes);
		close(to);
	}
	close(from);
}

UNIT_TEST(a_failed_write_is_the_result_whatever_comes_after_it)
{
	int from = made();

	for (int i = 1; i <= 4; i++) {
		int to = new_file();

		until_failure = i;
		n_writes = 0;
		assert_int_equal(seam_file_copy(from, to, UINT64_MAX, "x",
						NULL), -ENOSPC);
		assert_int_equal(n_writes, i);
		close(to);
	}
	close(from);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
