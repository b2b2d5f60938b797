/* SPDX-License-Identifier: MIT */
/* test_folder_walk.c - what is below a folder is visited, and nothing else */

#include "base/folder_walk.h"
#include "unit.h"

static char folder[] = "/tmp/seam-walk-XXXXXX";
static int dir;
static char seen[4096];			/* "path/depth " of each */

static int note(void *context, const struct seam_walk_entry *entry)
{
	const char *skipped = context;
	size_t n = strlen(seen);
	struct stat st;

	assert_int_equal(fstatat(entry->folder, entry->name, &st,
				 AT_SYMLINK_NOFOLLOW), 0);
	assert_true(st.st_ino == entry->st.st_ino);
	snprintf(seen + n, sizeof(seen) - n, "%s@%u ", entry->path,
		 entry->depth);
	if (skipped && strcmp(entry->path, skipped) == 0)
		return SEAM_WALK_SKIP;
	return skipped && strcmp(skipped, "end") == 0 ? -EINTR : SEAM_WALK_ON;
}

static int walk(unsigned int max_depth, const char *skipped)
{
	seen[0] = '\0';
	return seam_walk(dir, max_depth, note, (void *)(uintptr_t)skipped);
}

static int make_tree(void **state)
{
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(dir, "a", 0700), 0);
	assert_int_equal(mkdirat(dir, "a/b", 0700), 0);
	close(openat(dir, "a/b/c", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlinkat("..", dir, "a/b/up"), 0);
	assert_int_equal(mkfifoat(dir, "a/fifo", 0600), 0);
	return 0;
}

static int remove_tree(void **state)
{
	unlinkat(dir, "a/b/c", 0);
	unlinkat(dir, "a/b/up", 0);
	unlinkat(dir, "a/b", AT_REMOVEDIR);
	unlinkat(dir, "a/fifo", 0);
	unlinkat(dir, "a", AT_REMOVEDIR);
	return rmdir(folder);
}

UNIT_TEST(each_entry_is_visited_once_and_no_link_followed)
{
	assert_int_equal(walk(9, NULL), 0);
	assert_int_equal(strncmp(seen, "a@1 ", 4), 0);
	assert_non_null(strstr(seen, " a/b@2 "));
	assert_non_null(strstr(seen, " a/fifo@2 "));
	assert_non_null(strstr(seen, " a/b/c@3 "));
	assert_non_null(strstr(seen, " a/b/up@3 "));
	assert_int_equal(strlen(seen), strlen("a@1 a/b@2 a/fifo@2 a/b/c@3 "
					      "a/b/up@3 "));
}

UNIT_TEST(a_walk_is_as_deep_as_wanted)
{
	assert_int_equal(walk(1, NULL), 0);
	assert_string_equal(seen, "a@1 ");
	assert_int_equal(walk(2, NULL), 0);
	assert_null(strstr(seen, "@3"));
	assert_non_null(strstr(seen, "a/b@2"));
}

UNIT_TEST(a_visit_skips_a_folder_or_ends_the_walk)
{
	assert_int_equal(walk(9, "a/b"), 0);
	assert_null(strstr(seen, "@3"));
	assert_non_null(strstr(seen, "a/fifo@2"));
	assert_int_equal(walk(9, "end"), -EINTR);
	assert_string_equal(seen, "a@1 ");
}

/* With descriptors for two levels; root may read all folders. */
UNIT_TEST(what_cannot_be_read_does_not_hide_the_rest)
{
	struct rlimit old, few;
	int next = dup(dir);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)next + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(walk(9, NULL), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_null(strstr(seen, "@3"));
	assert_non_null(strstr(seen, "a/fifo@2"));
	assert_non_null(strstr(seen, "a/b@2"));
	assert_int_equal(seam_walk(-1, 9, note, NULL), -EBADF);
}

UNIT_MAIN(make_tree, remove_tree, NULL, NULL)
