/* SPDX-License-Identifier: MIT */
/*
 * test_memory.c - each allocation of Seam's own fails once
 *
 * Linked with --wrap, so that only calls in Seam count; libelf and libdw have
 * memory.  A module then has fewer answers, or none with a reason, and
 * nothing leaks: AddressSanitizer looks.
 */
#include "symbol/module/elf_module.h"

#include "../no_memory.h"
#include "build.h"
#include "unit.h"

static const char program[] =
	"extern int far(int);\n"
	"static inline __attribute__((always_inline)) int leaf(int x)\n"
	"{ return far(x) * 3; }\n"
	"int outer(int x) { return leaf(x) + leaf(x + 1); }\n";

/* Everything once: files, names, inlined calls, a stripped file. */
static size_t resolve_all(const char *const *paths, size_t n_paths)
{
	const struct seam_symbols_options options = { .bundle = "b" };
	struct seam_location at[8];
	size_t n_named = 0;

	for (size_t i = 0; i < n_paths; i++) {
		const struct seam_module file = { .path = paths[i] };
		struct seam_elf_module module = {
			.options = &options, .file = &file,
		};
		struct seam_arena arena = { 0 };

		seam_elf_module_read(&module);
		for (uint64_t offset = 0; offset < 4096; offset += 8) {
			n_named += seam_elf_module_resolve(&module, offset,
							   at, 8);
			n_named += seam_elf_module_name(&module, offset,
							&arena) != NULL;
		}
		seam_arena_fini(&arena);
		seam_elf_module_fini(&module);
	}
	return n_named;
}

UNIT_TEST(every_allocation_may_fail)
{
	const char *paths[] = { build_path("p.so"), build_path("bare.so") };
	size_t whole, n;

	build_write("p.c", program);
	build_run("gcc -shared -fPIC -nostdlib -Os -g "
		  "-Wl,-z,noseparate-code -o p.so p.c && "
		  "objcopy --only-keep-debug p.so p.debug && "
		  "objcopy -S --add-gnu-debuglink=p.debug p.so bare.so");
	whole = resolve_all(paths, 2);
	assert_true(whole > 0);
	for (n = 1; n < 10000; n++) {
		until_failure = (long)n;
		assert_true(resolve_all(paths, 2) <= whole);
		if (until_failure > 0)
			break;	/* there were not as many allocations */
	}
	until_failure = 0;
	assert_true(n > 50 && n < 10000);
	assert_int_equal(resolve_all(paths, 2), whole);
}

UNIT_MAIN(build_enter, build_leave, NULL, NULL)
