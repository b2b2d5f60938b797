/* SPDX-License-Identifier: MIT */
/* test_code_files.c - files with call frame information, for stack_dumps */
#include "model/perf/stack_dumps.h"

#include "../symbol/build.h"
#include "symbol/elf/build_id.h"
#include "unit.h"

/* Without .eh_frame of its own: .debug_frame has its rules. */
static int enter(void **state)
{
	if (build_enter(state))
		return -1;
	build_write("p.c", "int f(int x) { return x * 3; }\n"
		    "int main(int n, char **v) { (void)v; return f(n); }\n");
	build_run("gcc -O1 -g -fno-unwind-tables "
		  "-fno-asynchronous-unwind-tables -Wl,--build-id -o whole "
		  "p.c");
	build_run("objcopy --only-keep-debug whole split.debug");
	build_run("objcopy --strip-debug --add-gnu-debuglink=split.debug whole "
		  "split");
	return 0;
}

static uint32_t add_file(struct seam_profile *p, const char *name)
{
	struct seam_profile_module m = {
		.kind = SEAM_MODULE_FILE, .pid = 7,
		.path = seam_strings_put(&p->strings, build_path(name)),
	};
	int fd = open(build_path(name), O_RDONLY | O_CLOEXEC);

	m.build_id_size = (uint8_t)seam_build_id_read(fd, 0, m.build_id);
	assert_int_equal(m.build_id_size, 20);
	close(fd);
	return seam_profile_module(p, &m);
}

/* The debug file is opened on request, and only for what is not here. */
UNIT_TEST(debug_frame_may_be_in_the_debug_file_alone)
{
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_profile p;
	struct seam_code_files files = { .profile = &p, .symbols = symbols };

	assert_int_equal(seam_profile_init(&p), 0);
	for (int i = 0; i < 2; i++) {
		uint32_t m = add_file(&p, i ? "whole" : "split");
		const struct seam_code_file *file;

		assert_int_equal(seam_code_files_open(&files, m, false), 0);
		file = seam_code_files_get(&files, m);
		assert_true(file->is_found);
		assert_false(file->is_debug_tried);
		assert_int_equal(file->cfi.debug.entries.size > 0, i);
		assert_int_equal(seam_code_files_open(&files, m, true), 0);
		assert_ptr_equal(seam_code_files_get(&files, m), file);
		assert_true(file->is_debug_tried);
		assert_true(file->cfi.debug.entries.size > 0);
	}
	seam_code_files_fini(&files);
	seam_profile_fini(&p);
	seam_symbols_free(symbols);
}

int main(void)
{
	return unit_run(enter, build_leave, NULL, NULL);
}
