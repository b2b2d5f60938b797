/* SPDX-License-Identifier: MIT */
/* test_bundle.c - folders made, moved aside, and left alone */
#include "record/bundle/bundle.h"

#include "folder.h"
#include "unit.h"

static int enter(void **state)
{
	return make_folder(state) || chdir(folder);
}

static void put_manifest(const struct seam_bundle *bundle, const char *text)
{
	int fd = seam_bundle_file(bundle, "meta.json", NULL);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(seam_bundle_publish(bundle, "meta.json", NULL), 0);
}

static void make(const char *name, const char *content)
{
	struct seam_bundle bundle;
	int fd;

	assert_int_equal(seam_bundle_create(&bundle, name, NULL), 0);
	fd = seam_bundle_file(&bundle, "data", NULL);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	assert_int_equal(seam_bundle_publish(&bundle, "data", NULL), 0);
	close(seam_bundle_folder(&bundle, "elf", NULL));
	put_manifest(&bundle, "{\"schema\":\"seam.bundle/1\"}");
	assert_int_equal(seam_bundle_place(&bundle, NULL), 0);
	seam_bundle_settle(&bundle);
	seam_bundle_close(&bundle);
}

static bool holds(const char *path, const char *content)
{
	char got[64] = "";
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof(got) - 1);

	if (fd >= 0)
		close(fd);
	return n >= 0 && strcmp(got, content) == 0;
}

UNIT_TEST(is_for_its_owner_alone)
{
	struct stat st;

	umask(0);
	make("a.seam", "1");
	assert_int_equal(stat("a.seam", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat("a.seam/data", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

UNIT_TEST(keeps_the_one_before_as_old)
{
	make("a.seam", "1");
	make("a.seam", "2");
	make("a.seam//", "3");
	assert_true(holds("a.seam/data", "3"));
	assert_true(holds("a.seam.old/data", "2"));
}

static void refuses_with(const char *name, int code, const char *why)
{
	struct seam_err err = { 0 };
	struct seam_bundle bundle;

	assert_int_equal(seam_bundle_create(&bundle, name, &err), code);
	assert_non_null(strstr(err.cause[0], why));
}

static void refuses(const char *name)
{
	refuses_with(name, -EEXIST, "not a recording of yours");
}

static void put(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

UNIT_TEST(leaves_alone_what_is_no_bundle)
{
	int fd;

	make("real", "1");
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	fd = open("file", O_CREAT | O_WRONLY, 0600);
	close(fd);
	refuses("link");
	refuses("dangling");
	refuses("fifo");
	refuses("file");
	assert_true(holds("real/data", "1"));
}

UNIT_TEST(leaves_alone_a_folder_with_anything_else_in_it)
{
	make("a", "1");
	assert_int_equal(mkdir("a/elf/deep", 0700), 0);
	refuses("a");
	assert_int_equal(rmdir("a/elf/deep"), 0);
	assert_int_equal(rename("a/meta.json", "m"), 0);
	assert_int_equal(symlink("../m", "a/meta.json"), 0);
	refuses("a");
	assert_int_equal(rename("m", "a/meta.json"), 0);
	assert_int_equal(mkdir("a/other", 0700), 0);
	refuses("a");
	assert_int_equal(rmdir("a/other"), 0);
	/* names that are right, on things that are not */
	assert_int_equal(mkdir("a/kernel.sym.zst", 0700), 0);
	refuses("a");
	assert_int_equal(rmdir("a/kernel.sym.zst"), 0);
	close(open("a/xray", O_CREAT | O_WRONLY, 0600));
	refuses("a");
	assert_int_equal(unlink("a/xray"), 0);
	put("a/elf/notes.txt", "mine");
	refuses_with("a", -EEXIST, "it holds 'elf/notes.txt'");
	assert_int_equal(unlink("a/elf/notes.txt"), 0);
	put("a/elf/0123abcd", "");
	make("a", "2");
}

UNIT_TEST(a_folder_with_a_file_called_data_is_not_a_recording)
{
	assert_int_equal(mkdir("a", 0700), 0);
	refuses_with("a", -EEXIST, "it has no 'meta.json'");
	put("a/data", "of a thesis");
	refuses_with("a", -EEXIST, "it has no 'meta.json'");
	put("a/meta.json", "{\"title\":\"of a thesis\"}");
	refuses_with("a", -EEXIST, "its 'meta.json' is not Seam's");
	put("a/meta.json", "[]");
	refuses("a");
	put("a/meta.json", "");
	refuses("a");
	assert_true(holds("a/data", "of a thesis"));
	/* of a version that is still to come */
	put("a/meta.json", "{\"schema\":\"seam.bundle/7\"}");
	make("a", "1");
	assert_true(holds("a.old/data", "of a thesis"));
}

UNIT_TEST(what_keeps_us_from_looking_is_the_cause)
{
	char name[300];

	put("file", "");
	refuses_with("file/a", -ENOTDIR, "Not a directory");
	assert_int_equal(symlink("loop", "loop"), 0);
	refuses_with("loop/a", -ELOOP, "Too many levels");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refuses_with(name, -ENAMETOOLONG, "File name too long");
	refuses_with("nowhere/a", -ENOENT, "No such file");
}

UNIT_TEST(nothing_has_changed_until_a_recording_is_placed)
{
	struct seam_bundle bundle;

	make("a", "1");
	assert_int_equal(seam_bundle_create(&bundle, "a", NULL), 0);
	close(seam_bundle_file(&bundle, "data", NULL));
	assert_true(holds("a/data", "1"));
	assert_int_equal(access("a.old", F_OK), -1);
	seam_bundle_remove(&bundle);
	assert_int_equal(access(bundle.made, F_OK), -1);
}

UNIT_TEST(what_was_put_in_the_way_meanwhile_is_left_alone)
{
	struct seam_bundle bundle;

	assert_int_equal(seam_bundle_create(&bundle, "a", NULL), 0);
	assert_int_equal(mkdir("a", 0700), 0);
	put("a/letter", "mine");
	assert_int_equal(seam_bundle_place(&bundle, NULL), -EEXIST);
	seam_bundle_remove(&bundle);
	assert_true(holds("a/letter", "mine"));
}

UNIT_TEST(finds_where_it_was_moved_and_that_it_was_removed)
{
	struct seam_bundle bundle;
	char where[4096];

	make("a", "1");
	assert_int_equal(seam_bundle_create(&bundle, "a", NULL), 0);
	assert_int_equal(seam_bundle_place(&bundle, NULL), 0);
	assert_int_equal(seam_bundle_find(&bundle, where, sizeof(where)),
			 SEAM_BUNDLE_IN_PLACE);
	assert_int_equal(rename("a", "a.old2"), 0);
	assert_int_equal(seam_bundle_find(&bundle, where, sizeof(where)),
			 SEAM_BUNDLE_MOVED);
	assert_non_null(strstr(where, "/a.old2"));
	assert_int_equal(rmdir("a.old2"), 0);
	assert_int_equal(seam_bundle_find(&bundle, where, sizeof(where)),
			 SEAM_BUNDLE_REMOVED);
	seam_bundle_close(&bundle);
}

UNIT_TEST(removes_no_old_one_that_is_no_bundle)
{
	make("a", "1");
	assert_int_equal(mkdir("a.old", 0700), 0);
	put("a.old/data", "of a thesis");
	refuses("a");
	assert_true(holds("a.old/data", "of a thesis"));
	assert_true(holds("a/data", "1"));
}

static bool is_another_user;

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
	return __real_geteuid() + is_another_user;
}

UNIT_TEST(leaves_a_bundle_of_another_user_alone)
{
	make("a", "1");
	is_another_user = true;
	refuses("a");
	is_another_user = false;
	if (geteuid() == 0) {
		assert_int_equal(chown("a", 65534, 65534), 0);
		refuses("a");
	}
}

UNIT_TEST(does_not_write_where_something_was_planted)
{
	struct seam_bundle bundle;

	assert_int_equal(seam_bundle_create(&bundle, "a", NULL), 0);
	assert_int_equal(seam_bundle_place(&bundle, NULL), 0);
	assert_int_equal(symlink("/tmp/planted", "a/data.part"), 0);
	assert_int_equal(seam_bundle_file(&bundle, "data", NULL), -EEXIST);
	assert_int_equal(symlink("/tmp", "a/elf"), 0);
	assert_true(seam_bundle_folder(&bundle, "elf", NULL) < 0);
	seam_bundle_close(&bundle);
}

UNIT_TEST(a_recording_that_came_to_nothing_leaves_no_trace)
{
	struct seam_bundle bundle;

	make("a", "1");
	assert_int_equal(seam_bundle_create(&bundle, "a", NULL), 0);
	close(seam_bundle_file(&bundle, "data", NULL));
	assert_int_equal(seam_bundle_place(&bundle, NULL), 0);
	assert_true(holds("a.old/data", "1"));
	close(seam_bundle_folder(&bundle, "jit", NULL));
	put("a/jit/jit-1.dump", "");
	seam_bundle_remove(&bundle);
	assert_true(holds("a/data", "1"));
	assert_int_equal(access("a.old", F_OK), -1);
}

UNIT_MAIN(NULL, NULL, enter, drop_folder)
