/* SPDX-License-Identifier: MIT */
/* test_elf_needs.c - this program exports what only LuaJIT does */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>

#include "record/preload/elf_needs.h"

__attribute__((visibility("default"))) void luaJIT_setmode(void);

void luaJIT_setmode(void)
{
}

static struct seam_elf_needs needs;

static bool needs_library(const char *name)
{
	for (size_t i = 0; i < needs.n; i++)
		if (strncmp(needs.names[i], name, strlen(name)) == 0)
			return true;
	return false;
}

static void a_program_that_exports_luajit_has_it(void **state)
{
	(void)state;
	assert_true(seam_elf_needs_read(&needs, "/proc/self/exe"));
	assert_true(needs.has_luajit);
	assert_true(needs_library("libc.so"));
	assert_true(needs_library("libcmocka.so"));
}

static void libraries_without_it_do_not(void **state)
{
	Dl_info info;

	(void)state;
	assert_true(dladdr((void *)(uintptr_t)strtol, &info));
	assert_true(seam_elf_needs_read(&needs, info.dli_fname));
	assert_false(needs.has_luajit);
	assert_true(dladdr((void *)(uintptr_t)_cmocka_run_group_tests, &info));
	assert_true(seam_elf_needs_read(&needs, info.dli_fname));
	assert_false(needs.has_luajit);
	assert_true(needs_library("libc.so"));
}

static void what_is_no_program_is_refused(void **state)
{
	(void)state;
	assert_false(seam_elf_needs_read(&needs, "/proc/self/maps"));
	assert_false(seam_elf_needs_read(&needs, "/nowhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_exports_luajit_has_it),
		cmocka_unit_test(libraries_without_it_do_not),
		cmocka_unit_test(what_is_no_program_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
