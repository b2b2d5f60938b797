/* SPDX-License-Identifier: MIT */
/* test_procfs.c - lists of CPUs, values of /proc files */
#include "record/proc/procfs.h"

#include "unit.h"

UNIT_TEST(reads_lists_of_cpus)
{
	struct seam_number_list list = { 0 };

	assert_int_equal(seam_procfs_list(&list, "0-2,5,7-8"), 0);
	assert_int_equal(list.n, 6);
	assert_int_equal(list.items[2], 2);
	assert_int_equal(list.items[3], 5);
	assert_int_equal(list.items[5], 8);
	free(list.items);
}

UNIT_TEST(refuses_lists_that_make_no_sense)
{
	static const char *const bad[] = {
		"x", "1-", "-1", "3-1", "1;2", "0-99999999", "1,,2",
		"99999999999999999999",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++) {
		struct seam_number_list list = { 0 };

		assert_int_equal(seam_procfs_list(&list, bad[i]), -EBADMSG);
		free(list.items);
	}
}

UNIT_TEST(finds_a_value_by_its_whole_key)
{
	char path[] = "/tmp/seam-machine-XXXXXX", value[64];
	int fd = mkstemp(path);
	static const char text[] = "model\t\t: 2\nmodel name\t: A B\nx: y\n";

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_string_equal(seam_procfs_value(path, "model", value, 64), "2");
	assert_string_equal(seam_procfs_value(path, "model name", value, 64),
			    "A B");
	assert_string_equal(seam_procfs_value(path, "nam", value, 64), "");
	unlink(path);
	assert_string_equal(seam_procfs_value(path, "x", value, 64), "");
}

UNIT_TEST(finds_its_own_thread)
{
	struct seam_number_list tids = { 0 };

	assert_int_equal(seam_procfs_threads(&tids, getpid(), NULL), 0);
	assert_int_equal(tids.items[0], getpid());
	free(tids.items);
	tids = (struct seam_number_list) { 0 };
	assert_int_equal(seam_procfs_threads(&tids, 0x7ffffff0, NULL), -ESRCH);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
