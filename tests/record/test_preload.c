/* SPDX-License-Identifier: MIT */
/*
 * test_preload.c - the command's ELF file, libraries and environment
 *
 * This program exports what only LuaJIT does.
 */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>

#include "folder.h"
#include "record/preload/preload.h"

__attribute__((visibility("default"))) void luaJIT_setmode(void);

void luaJIT_setmode(void)
{
}

static struct seam_program_file program;

static bool read_file(const char *path)
{
	return seam_program_file_read(&program, path, true);
}

static bool needs_library(const char *name)
{
	for (size_t i = 0; i < program.n_needed; i++)
		if (strncmp(program.needed[i], name, strlen(name)) == 0)
			return true;
	return false;
}

UNIT_TEST(a_program_that_exports_luajit_has_it)
{
	assert_true(read_file("/proc/self/exe"));
	assert_true(program.is_dynamic);
	assert_true(program.has_luajit);
	assert_true(needs_library("libc.so"));
	assert_true(needs_library("libcmocka.so"));
}

UNIT_TEST(libraries_without_it_do_not)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)strtol, &info));
	assert_true(read_file(info.dli_fname));
	assert_false(program.has_luajit);
	assert_true(dladdr((void *)(uintptr_t)_cmocka_run_group_tests, &info));
	assert_true(read_file(info.dli_fname));
	assert_false(program.has_luajit);
	assert_true(needs_library("libc.so"));
}

UNIT_TEST(what_is_no_program_is_refused)
{
	assert_false(read_file("/proc/self/maps"));
	assert_false(read_file("/nowhere"));
}

/* Compile @code; the file. */
static const char *make_library(const char *code)
{
	static char path[96];
	char command[512];

	snprintf(path, sizeof(path), "%s/library.so", folder);
	snprintf(command, sizeof(command), "echo '%s' | gcc -shared -fPIC "
		 "-nostdlib -o %s -xc -", code, path);
	assert_int_equal(system(command), 0);
	return path;
}

UNIT_TEST(only_a_definition_counts)
{
	assert_true(read_file(make_library(
		"void luaJIT_setmode(void) { }")));
	assert_true(program.has_luajit);
	assert_true(read_file(make_library(
		"void luaJIT_setmode(void);"
		"void f(void) { luaJIT_setmode(); }")));
	assert_false(program.has_luajit);
}

UNIT_TEST(instrumentation_is_seen_by_its_hooks)
{
	assert_true(read_file(make_library(
		"void f(void) { }")));
	assert_false(program.has_calls);
	assert_true(read_file(make_library(
		"void __cyg_profile_func_enter(void);"
		"void f(void) { __cyg_profile_func_enter(); }")));
	assert_true(program.has_calls);
	assert_true(read_file(make_library(
		"__attribute__((patchable_function_entry(5)))"
		"void f(void) { }")));
	assert_true(program.has_calls);
	assert_false(program.is_dynamic);
}

UNIT_TEST(files_of_another_machine_are_refused)
{
	const char *path = make_library("void luaJIT_setmode(void) { }");
	FILE *file = fopen(path, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, offsetof(Elf64_Ehdr, e_machine),
			       SEEK_SET), 0);
	assert_int_equal(fputc(EM_AARCH64, file), EM_AARCH64);
	assert_int_equal(fclose(file), 0);
	assert_false(read_file(path));
}

static void add_file(const char *name)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

/* Where "lib.so" is found; @paths: of the program in "bin". */
static void expect_found(const char *paths, const char *name,
			 const char *expected)
{
	char path[96], found[PATH_MAX], wanted[256];
	bool is_found;

	snprintf(path, sizeof(path), "%s/bin/program", folder);
	snprintf(wanted, sizeof(wanted), "%s%s", folder,
		 expected ? expected : "");
	snprintf(program.paths, sizeof(program.paths), "%s", paths);
	is_found = seam_program_file_find(&program, path, name, found);
	assert_int_equal(is_found, expected != NULL);
	if (expected)
		assert_string_equal(found, wanted);
}

UNIT_TEST(libraries_are_found_as_ld_so_finds_them)
{
	static const char *const folders[] = { "bin", "a", "b" };
	char path[160];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	add_file("a/lib.so");
	add_file("b/lib.so");
	add_file("bin/own.so");
	unsetenv("LD_LIBRARY_PATH");
	expect_found("", "lib.so", NULL);
	expect_found("$ORIGIN/../a", "lib.so", "/bin/../a/lib.so");
	expect_found("/nowhere:${ORIGIN}/../b:", "lib.so",
		     "/bin/../b/lib.so");
	expect_found("$ORIGIN", "own.so", "/bin/own.so");
	snprintf(path, sizeof(path), "/nowhere:%s/b:%s/a", folder, folder);
	setenv("LD_LIBRARY_PATH", path, 1);
	expect_found("", "lib.so", "/b/lib.so");
	expect_found("$ORIGIN/../a", "lib.so", "/bin/../a/lib.so");
	/* no search for a path */
	snprintf(path, sizeof(path), "%s/a/lib.so", folder);
	expect_found("", path, "/a/lib.so");
	expect_found("", "b/lib.so", NULL);
	unsetenv("LD_LIBRARY_PATH");
}

/* ---- the environment ---- */

#define SAMPLER "/a/libseam-sampler.so"
#define FDR "/a/libseam-fdr.so"

static struct seam_preload with_sampler(void)
{
	return (struct seam_preload) { .is_used = true, .library = SAMPLER };
}

/* @name of the command's environment, which is @before for the user. */
static void expect(struct seam_preload p, const char *name, const char *before,
		   const char *expected)
{
	if (before)
		setenv(name, before, 1);
	else
		unsetenv(name);
	seam_preload_set(&p);
	assert_string_equal(getenv(name), expected);
}

static void expect_preload(struct seam_preload p, const char *before,
			   const char *expected)
{
	expect(p, "LD_PRELOAD", before, expected);
}

UNIT_TEST(the_sampler_is_before_what_the_user_preloads)
{
	struct seam_preload p = with_sampler();

	expect_preload(p, NULL, SAMPLER);
	expect_preload(p, "", SAMPLER);
	expect_preload(p, "/x.so:/y.so", SAMPLER ":/x.so:/y.so");
	expect_preload(p, "/x.so /y.so", SAMPLER ":/x.so /y.so");
}

/* --trace: with a sampler, and without. */
UNIT_TEST(libseam_fdr_is_preloaded_as_well)
{
	struct seam_preload p = with_sampler();

	p.has_fdr = true;
	snprintf(p.fdr, sizeof(p.fdr), "%s", FDR);
	expect_preload(p, NULL, SAMPLER ":" FDR);
	expect_preload(p, "/x.so", SAMPLER ":" FDR ":/x.so");
	p.is_used = false;
	expect_preload(p, NULL, FDR);
	expect_preload(p, "/x.so", FDR ":/x.so");
	p.has_fdr = false;
	expect_preload(p, "/x.so", "/x.so");
}

UNIT_TEST(options_of_asan_are_added_to)
{
	struct seam_preload p = with_sampler();

	expect(p, "ASAN_OPTIONS", NULL, "verify_asan_link_order=0");
	expect(p, "ASAN_OPTIONS", "", "verify_asan_link_order=0");
	expect(p, "ASAN_OPTIONS", "detect_leaks=0",
	       "detect_leaks=0:verify_asan_link_order=0");
}

UNIT_TEST(without_an_sampler_the_environment_stays)
{
	struct seam_preload p = with_sampler();

	p.is_used = false;
	unsetenv("ASAN_OPTIONS");
	expect_preload(p, "/x.so", "/x.so");
	assert_null(getenv("ASAN_OPTIONS"));
	unsetenv("LD_PRELOAD");
}

int main(void)
{
	return unit_run(make_folder, drop_folder, NULL, NULL);
}
