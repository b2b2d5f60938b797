/* SPDX-License-Identifier: MIT */
/* test_sysprof_c_symbols.c - the functions of the files that are loaded */
#include <dlfcn.h>

#include <lauxlib.h>

#include "sysprof_run.h"
#include "wire/sysprof/sysprof.h"
#include "unit.h"

/* for read_functions() */
#include "traced/sysprof/native_symbols.c"

static bool is_named(const char *name, uint64_t addr, bool is_event)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item = { 0 };
	struct seam_err err = { 0 };
	bool found = false;

	seam_sysprof_begin(&reader, (struct seam_bytes) { seen.bytes,
							  seen.n });
	while (seam_sysprof_next(&reader, &item, &err) == 1)
		found |= item.kind == SEAM_SYSPROF_SYMBOL_CFUNC &&
			 item.is_event == is_event &&
			 item.cfunc.addr == addr &&
			 item.cfunc.name.size == strlen(name) &&
			 !memcmp(item.cfunc.name.data, name, strlen(name));
	seam_sysprof_fini(&reader);
	return found;
}

UNIT_TEST(loaded_files_have_their_symbols)
{
	void *library, *late;

	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	library = dlopen(getenv("LATE_LIBRARY"), RTLD_NOW);
	assert_non_null(library);
	late = dlsym(library, "late_function");
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(is_named("luaL_newstate", (uint64_t)luaL_newstate, false));
	/* static, so in .symtab alone */
	assert_true(is_named("is_named", (uint64_t)is_named, false));
	assert_true(is_named("late_function", (uint64_t)late, true));
	assert_true(count_stream().n_symbols > 1000);
	dlclose(library);
	/* and the next stream begins with what is loaded then */
	run(LUAM_SYSPROF_LEAF, 0);
	assert_true(is_named("luaL_newstate", (uint64_t)luaL_newstate, false));
	assert_false(is_named("late_function", (uint64_t)late, false));
	assert_int_equal(count_stream().n_events, 0);
}

static void count_late(void *context, uint64_t addr, const char *name, size_t n)
{
	(void)addr;
	*(int *)context += n == 13 && !memcmp(name, "late_function", n);
}

/* What was loaded there in between may have taken its names. */
UNIT_TEST(a_file_that_is_loaded_again_is_listed_again)
{
	struct seam_native_symbols symbols = { 0 };
	int n = 0;

	for (int i = 0; i < 3; i++) {
		void *library = dlopen(getenv("LATE_LIBRARY"), RTLD_NOW);

		assert_non_null(library);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 1);
		assert_int_equal(n, i + 1);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 0);
		dlclose(library);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 1);
	}
	assert_int_equal(n, 3);
	seam_native_symbols_fini(&symbols);
}

enum { FAR = 1 << 30 };

/* Move functions of a library's .symtab out of it, or make them too long. */
static void damage_symbols(uint8_t *bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	const Elf64_Shdr *section = (const Elf64_Shdr *)(bytes +
							 header->e_shoff);

	while (section->sh_type != SHT_SYMTAB)
		section++;
	for (size_t i = 0; i < section->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym *s = (Elf64_Sym *)(bytes + section->sh_offset) + i;

		if (i % 2)
			s->st_value += FAR;
		else
			s->st_size = FAR;
	}
}

/* Load a copy of the library with damaged symbols. */
static void *load_damaged(void)
{
	int from = open(getenv("LATE_LIBRARY"), O_RDONLY);
	int to = memfd_create("damaged", 0);
	struct stat stat;
	char path[32];
	void *bytes, *library;

	assert_int_equal(fstat(from, &stat), 0);
	bytes = malloc((size_t)stat.st_size);
	assert_int_equal(read(from, bytes, (size_t)stat.st_size), stat.st_size);
	damage_symbols(bytes);
	assert_int_equal(write(to, bytes, (size_t)stat.st_size), stat.st_size);
	free(bytes);
	close(from);
	/* it stays open, because it is read by this name again */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	return library;
}

static uint64_t damaged_addr;

static void count_far(void *context, uint64_t addr, const char *name, size_t n)
{
	(void)name;
	(void)n;
	/* the file is smaller than half of it */
	*(int *)context += addr > damaged_addr + FAR / 2 &&
			   addr < damaged_addr + 2 * (uint64_t)FAR;
}

UNIT_TEST(a_file_has_no_symbols_outside_of_it)
{
	struct seam_native_symbols symbols = { 0 };
	int n_far = 0;
	void *library;

	seam_native_symbols_put(&symbols, NULL, count_far, &n_far);
	library = load_damaged();
	damaged_addr = (uint64_t)dlsym(library, "late_function");
	n_far = 0;
	assert_int_equal(seam_native_symbols_put(&symbols, NULL, count_far,
						 &n_far), 1);
	assert_int_equal(n_far, 0);
	seam_native_symbols_fini(&symbols);
	dlclose(library);
}

/* The symbol at or below each address, the last one of several. */
static struct {
	uint64_t of[2], addr[2];
	bool is_named[2];
} nearest;

static void find_nearest(void *context, uint64_t addr, const char *name,
			 size_t n)
{
	(void)context;
	for (int i = 0; i < 2; i++)
		if (addr <= nearest.of[i] && addr >= nearest.addr[i]) {
			nearest.addr[i] = addr;
			nearest.is_named[i] = n == 5 &&
					      !memcmp(name, "named", n);
		}
}

UNIT_TEST(a_name_without_a_size_is_not_its_neighbours)
{
	void *library = dlopen(getenv("STRIPPED_LIBRARY"), RTLD_NOW);
	struct seam_native_symbols symbols = { 0 };
	struct seam_native_name name = { .name = "named" };
	struct seam_native_names names = { { 0 } };
	void **statics;

	assert_non_null(library);
	statics = dlsym(library, "late_statics");
	assert_non_null(statics);
	name.addr = (uint64_t)statics[0];
	assert_true(SEAM_ARRAY_ADD(&names.list, name));
	nearest.of[0] = (uint64_t)statics[0] + 1;
	nearest.of[1] = (uint64_t)statics[1] + 1;
	assert_true(nearest.of[0] < nearest.of[1]);
	assert_int_equal(seam_native_symbols_put(&symbols, &names, find_nearest,
						 NULL), 1);
	assert_true(nearest.is_named[0]);
	assert_false(nearest.is_named[1]);
	free(names.list.items);
	seam_native_symbols_fini(&symbols);
	dlclose(library);
}

/* ---- whatever is in a file ---- */

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

static size_t count(const struct elf_functions *functions, const char *name)
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

UNIT_TEST(functions_of_a_file_have_names_and_sizes)
{
	struct elf_functions functions;

	assert_int_equal(read_changed(library.n, &functions), 0);
	assert_int_equal(count(&functions, "late_function"), 1);
	/* that of an import would be 0 */
	assert_true(functions.list.items[0].addr > 0);
	free_functions(&functions);
}

UNIT_TEST(a_cut_file_has_no_functions)
{
	struct elf_functions functions;

	for (size_t n = 0; n < library.n; n++) {
		int r = read_changed(n, &functions);

		assert_true(r == -EBADMSG || r == -ENOENT);
		free_functions(&functions);
	}
}

UNIT_TEST(a_changed_bit_is_no_harm)
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

UNIT_TEST(another_file_of_the_name_is_not_used)
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
	return unit_run(read_library, free_library, set_up, tear_down);
}
