/* SPDX-License-Identifier: MIT */
/* test_made.c - a command that fails takes away what it made */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/output_folder.h"

static char folder[64], path[80];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/seam-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void put_file(const struct seam_output_folder *made, const char *name)
{
	close(openat(made->folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static void begin(struct seam_output_folder *made)
{
	assert_int_equal(seam_output_folder_begin(made, path, NULL), 0);
	put_file(made, "a");
	assert_int_equal(seam_output_folder_note(made, "a", NULL), 0);
	mkdirat(made->folder, "b", 0700);
	assert_int_equal(seam_output_folder_note(made, "b", NULL), 0);
	put_file(made, "b/c");
	assert_int_equal(seam_output_folder_note(made, "b/c", NULL), 0);
}

static void all_that_was_made_is_undone(void **state)
{
	struct seam_output_folder made;

	(void)state;
	begin(&made);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), -1);
	seam_output_folder_undo(&made);		/* again is harmless */
}

static void what_others_made_stays(void **state)
{
	char theirs[128];
	struct seam_output_folder made;

	(void)state;
	begin(&made);
	put_file(&made, "b/theirs");
	seam_output_folder_undo(&made);
	snprintf(theirs, sizeof(theirs), "%s/b/theirs", path);
	assert_int_equal(access(theirs, F_OK), 0);
	snprintf(theirs, sizeof(theirs), "%s/a", path);
	assert_int_equal(access(theirs, F_OK), -1);
}

static void a_folder_that_is_there_is_not_ours(void **state)
{
	struct seam_output_folder made;

	(void)state;
	mkdir(path, 0700);
	assert_int_equal(seam_output_folder_begin(&made, path, NULL), -EEXIST);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), 0);
}

static void what_is_done_stays(void **state)
{
	struct seam_output_folder made;

	(void)state;
	begin(&made);
	seam_output_folder_fini(&made);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(all_that_was_made_is_undone),
		TEST(what_others_made_stays),
		TEST(a_folder_that_is_there_is_not_ours),
		TEST(what_is_done_stays),
	};

	return cmocka_run_group_tests_name("made", tests, NULL, NULL);
}
