/* SPDX-License-Identifier: MIT */
/* test_made.c - a command that fails takes away what it made */

#include "../unit.h"
#include "cli/output_folder.h"

static char folder[64], path[80];

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/seam-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void put_file(const char *name)
{
	char at[256];

	snprintf(at, sizeof(at), "%s/%s", folder, name);
	close(open(at, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

/* out/ with a file of its own, and copies of from/b and from/b/c. */
static void begin(struct seam_output_folder *made)
{
	char from[128], b[160];
	int fd;

	snprintf(from, sizeof(from), "%s/from", folder);
	snprintf(b, sizeof(b), "%s/b", from);
	mkdir(from, 0700);
	mkdir(b, 0700);
	put_file("from/b/c");
	put_file("from/not");
	assert_int_equal(seam_output_folder_begin(made, path, NULL), 0);
	fd = seam_output_folder_create(made, "a", NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(seam_output_folder_copy(made, from, "not", NULL), 0);
	assert_int_equal(faccessat(made->folder, "b/c", F_OK, 0), 0);
	assert_int_equal(faccessat(made->folder, "not", F_OK, 0), -1);
}

UNIT_TEST(all_that_was_made_is_undone)
{
	struct seam_output_folder made;

	begin(&made);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), -1);
	seam_output_folder_undo(&made);		/* again is harmless */
}

UNIT_TEST(what_others_made_stays)
{
	char theirs[128];
	struct seam_output_folder made;

	begin(&made);
	put_file("out/b/theirs");
	seam_output_folder_undo(&made);
	snprintf(theirs, sizeof(theirs), "%s/b/theirs", path);
	assert_int_equal(access(theirs, F_OK), 0);
	snprintf(theirs, sizeof(theirs), "%s/a", path);
	assert_int_equal(access(theirs, F_OK), -1);
}

UNIT_TEST(a_folder_that_is_there_is_not_ours)
{
	struct seam_output_folder made;

	mkdir(path, 0700);
	assert_int_equal(seam_output_folder_begin(&made, path, NULL), -EEXIST);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), 0);
}

UNIT_TEST(what_is_done_stays)
{
	struct seam_output_folder made;

	begin(&made);
	seam_output_folder_fini(&made);
	seam_output_folder_undo(&made);
	assert_int_equal(access(path, F_OK), 0);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
