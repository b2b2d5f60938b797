/* SPDX-License-Identifier: MIT */
/*
 * test_cfi_files.c - a file is read for its rules if it is still the one that
 * was opened, and takes those of a debug file of the same author only
 */
#include "record/stacks/cfi_files.h"

#include "symbol/elf/build_id.h"
#include "unit.h"

static char folder[] = "/tmp/cfi_files_XXXXXX";
static char path[64], debug_path[64];

static void run_shell(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* A program whose only rules are in .debug_frame of its debug file. */
static int build_program(void **state)
{
	if (!mkdtemp(folder) || chmod(folder, 0755) < 0 || chdir(folder) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/program", folder);
	snprintf(debug_path, sizeof(debug_path), "%s/program.debug", folder);
	run_shell("echo '#define F(x) int f##x(int n) { return n * x##1; }\n"
		  "#define G(x) F(x##0) F(x##1) F(x##2) F(x##3) F(x##4)\n"
		  "#define H(x) G(x##0) G(x##1) G(x##2) G(x##3) G(x##4)\n"
		  "H(1) H(2) H(3) H(4) H(5) int main(void) { return 0; }' "
		  ">p.c && gcc -g -fno-asynchronous-unwind-tables "
		  "-fno-unwind-tables -Wl,--build-id -o whole p.c && "
		  "objcopy --only-keep-debug whole program.debug && "
		  "objcopy --strip-all --add-gnu-debuglink=program.debug "
		  "whole program");
	return 0;
}

static int remove_program(void **state)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") < 0 || system(command) ? -1 : 0;
}

static struct seam_file_identity own_identity(void)
{
	struct seam_file_identity identity = { .ino = 0 };
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	identity.build_id_size = seam_build_id_read(fileno(file), 0, identity.build_id);
	fclose(file);
	assert_int_equal(identity.build_id_size, 20);
	return identity;
}

/* Open the program as one that this process maps; its id in @files. */
static uint32_t open_program(struct seam_cfi_files *files)
{
	struct seam_file_identity identity = own_identity();
	const struct seam_perf_mapping mapping = {
		.pid = getpid(), .addr = 0x1000, .len = 0x1000,
		.filename = path, .build_id = identity.build_id,
		.build_id_size = identity.build_id_size,
	};
	uint32_t id = seam_cfi_files_add(files, &mapping, true, SEAM_NONE);

	assert_int_not_equal(id, SEAM_NONE);
	while (seam_cfi_files_collect(files))
		usleep(100);
	assert_int_equal(files->mappings.items[id].state,
			 SEAM_CFI_MAPPING_OPEN);
	return id;
}

/* NULL: it was refused. */
static struct seam_mapped_file_cfi *read_program(struct seam_cfi_files *files,
						 uint32_t id)
{
	struct seam_mapped_file_cfi *file;
	bool is_pending = true;

	for (;;) {
		file = seam_cfi_files_want(files, id, &is_pending);
		if (!is_pending)
			return file;
		while (seam_cfi_files_collect(files))
			usleep(100);
	}
}

/* Whether it is read after @command has run on the file that is open. */
static bool is_read_after(const char *command)
{
	struct seam_cfi_files files = { 0 };
	uint32_t id = open_program(&files);
	bool is_read;

	run_shell(command);
	is_read = read_program(&files, id);
	seam_cfi_files_fini(&files);
	return is_read;
}

UNIT_TEST(a_file_that_was_written_to_after_it_was_opened_is_refused)
{
	assert_true(is_read_after("true"));
	assert_false(is_read_after("cp program same; cat same >program"));
	assert_false(is_read_after("touch -d 2001-01-01 program"));
	assert_false(is_read_after("echo >>program"));
	assert_false(is_read_after("chmod 700 program"));
	assert_false(is_read_after("cp same program; chmod 755 program"));
	assert_true(is_read_after("true"));
}

UNIT_TEST(a_file_that_lost_its_name_after_it_was_opened_is_read)
{
	assert_true(is_read_after("cp -p program kept; rm program"));
	run_shell("mv kept program");
	assert_true(is_read_after("cp -p program new; mv new program"));
	assert_false(is_read_after("cp -p program kept; echo >>program; "
				   "rm program"));
	run_shell("mv kept program");
}

/* Times of files are those of the kernel's last tick. */
UNIT_TEST(another_build_id_at_the_same_time_is_refused)
{
	struct seam_cfi_files files = { 0 };
	uint32_t id = open_program(&files);

	files.mappings.items[id].identity.build_id[0] ^= 1;
	assert_null(read_program(&files, id));
	seam_cfi_files_fini(&files);
}

/* Whether the debug file's rules are used when these are the authors. */
static bool takes_debug(uid_t program, uid_t debug)
{
	struct seam_cfi_files files = { 0 };
	const struct seam_mapped_file_cfi *file;
	bool takes;

	assert_int_equal(chown(path, program, (gid_t)-1), 0);
	assert_int_equal(chown(debug_path, debug, (gid_t)-1), 0);
	file = read_program(&files, open_program(&files));
	assert_non_null(file);
	takes = file->cfi.debug.entries.size > 0;
	seam_cfi_files_fini(&files);
	return takes;
}

UNIT_TEST(a_debug_file_is_of_the_author_of_the_program)
{
	uid_t own = geteuid();

	assert_true(takes_debug(own, own));
	if (own != 0)
		return;		/* no file can be given to another user */
	assert_true(takes_debug(65533, 65533));
	assert_true(takes_debug(65533, 0));
	assert_false(takes_debug(65533, 65532));
	assert_false(takes_debug(0, 65532));
	assert_true(takes_debug(0, 0));
}

int main(void)
{
	return unit_run(build_program, remove_program, NULL, NULL);
}
