/* SPDX-License-Identifier: MIT */
/* test_elf_functions.c - symbols of files, whatever is in them */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* for read_functions() */
#include "traced/sysprof/native_symbols.c"

static struct {
	uint8_t *bytes;
	size_t n;
	const ElfW(Phdr) *headers;
	size_t n_headers;
	int fd;			/* of a file in memory, for changed ones */
	char path[32];
} library;

static int read_library(void **state)
{
	int fd = open(getenv("LATE_LIBRARY"), O_RDONLY);
	const ElfW(Ehdr) *header;
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return -1;
	library.n = (size_t)stat.st_size;
	library.bytes = malloc(library.n);
	if (read(fd, library.bytes, library.n) != stat.st_size)
		return -1;
	close(fd);
	header = (const ElfW(Ehdr) *)library.bytes;
	library.headers = (const ElfW(Phdr) *)(library.bytes +
					       header->e_phoff);
	library.n_headers = header->e_phnum;
	library.fd = memfd_create("changed", 0);
	snprintf(library.path, sizeof(library.path), "/proc/self/fd/%d",
		 library.fd);
	return library.fd < 0;
}

static int free_library(void **state)
{
	close(library.fd);
	free(library.bytes);
	return 0;
}

static size_t count(const struct elf_functions *functions,
		    const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < functions->list.n; i++)
		n += !strcmp(functions->names + functions->list.items[i].name,
			     name);
	return n;
}

/* What holds for any file: ascending, and each has a name that ends. */
static void check(const struct elf_functions *functions)
{
	for (size_t i = 0; i < functions->list.n; i++) {
		assert_true(*(functions->names +
			      functions->list.items[i].name));
		assert_true(strlen(functions->names +
				   functions->list.items[i].name) <
			    library.n);
		assert_true(i == 0 || functions->list.items[i - 1].addr <
				      functions->list.items[i].addr);
	}
}

/* Read the first @n bytes of the library. */
static int read_changed(size_t n, struct elf_functions *functions)
{
	int r;

	assert_int_equal(pwrite(library.fd, library.bytes, n, 0), n);
	assert_int_equal(ftruncate(library.fd, (off_t)n), 0);
	r = read_functions(functions, library.path, library.headers,
				    library.n_headers);
	check(functions);
	assert_true(r == 0 || functions->list.n == 0);
	return r;
}

static void functions_of_a_file_have_names_and_sizes(void **state)
{
	struct elf_functions functions;

	assert_int_equal(read_changed(library.n, &functions), 0);
	assert_int_equal(count(&functions, "late_function"), 1);
	/* that of an import would be 0 */
	assert_true(functions.list.items[0].addr > 0);
	free_functions(&functions);
}

static void a_cut_file_has_no_functions(void **state)
{
	struct elf_functions functions;

	for (size_t n = 0; n < library.n; n++) {
		int r = read_changed(n, &functions);

		assert_true(r == -EBADMSG || r == -ENOENT);
		free_functions(&functions);
	}
}

static void a_changed_bit_is_no_harm(void **state)
{
	struct elf_functions functions;
	size_t n_read = 0;

	for (size_t i = 0; i < library.n; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);

		/* the headers to compare with are not changed */
		if (library.bytes + i >= (const uint8_t *)library.headers &&
		    library.bytes + i < (const uint8_t *)(library.headers +
							  library.n_headers))
			continue;
		library.bytes[i] ^= bit;
		n_read += read_changed(library.n, &functions) == 0 &&
			  count(&functions, "late_function") == 1;
		library.bytes[i] ^= bit;
		free_functions(&functions);
	}
	assert_true(n_read > library.n * 9 / 10);
}

static void another_file_of_the_name_is_not_used(void **state)
{
	struct elf_functions functions;

	assert_int_equal(pwrite(library.fd, library.bytes, library.n, 0),
			 library.n);
	assert_int_equal(read_functions(&functions, library.path,
						 library.headers,
						 library.n_headers - 1),
			 -ESTALE);
	assert_int_equal(read_functions(&functions, "/nonexistent",
						 library.headers, 1), -ENOENT);
	assert_int_equal(read_functions(&functions, "/dev/zero",
						 library.headers, 1),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_file_have_names_and_sizes),
		cmocka_unit_test(a_cut_file_has_no_functions),
		cmocka_unit_test(a_changed_bit_is_no_harm),
		cmocka_unit_test(another_file_of_the_name_is_not_used),
	};

	return cmocka_run_group_tests(tests, read_library, free_library);
}
