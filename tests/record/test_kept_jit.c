/* SPDX-License-Identifier: MIT */
/* test_kept_jit.c - the map of the last process that there is room for */
#include "record/bundle/kept_jit.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"

static void finish_jobs(struct seam_helper *helper)
{
	struct pollfd ended = {
		.fd = seam_helper_fd(helper), .events = POLLIN,
	};

	while (seam_helper_collect(helper))
		poll(&ended, 1, 50);
}

static void the_map_of_the_last_of_all_processes_is_copied(void **state)
{
	static const char text[] = "1000 10 a\n";
	struct seam_helper *helper = seam_helper_new(NULL);
	struct seam_bundle bundle = {
		.dir = open(folder, O_RDONLY | O_DIRECTORY),
	};
	struct seam_kept_jit jit = { .bundle = &bundle };
	struct seam_kept_counts counts;
	char map[64], copy[128];
	int fd;

	(void)state;
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	unlink(map);	/* of a process that had this pid before */
	fd = open(map, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	/* no such processes */
	for (int i = 1; i < SEAM_KEPT_JIT_MAX_RUNTIMES; i++)
		seam_kept_jit_add(&jit, helper, INT32_MAX - i, "//anon");
	seam_kept_jit_add(&jit, helper, getpid(), "//anon");
	finish_jobs(helper);
	seam_kept_jit_begin(&jit, &bundle, &counts);
	for (size_t i = 0; i < jit.runtimes.n; i++)
		seam_kept_jit_copy(&jit, helper, i, UINT64_MAX, &counts);
	finish_jobs(helper);
	seam_kept_jit_end(&jit, &bundle, false, &counts);
	unlink(map);
	snprintf(copy, sizeof(copy), "%s/jit/perf-%d.map", folder, getpid());
	assert_int_equal(access(copy, F_OK), 0);
	assert_int_equal(counts.n_copied, 1);
	assert_int_equal(counts.n_bytes, strlen(text));
	seam_kept_jit_fini(&jit);
	seam_helper_free(helper);
	close(bundle.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_map_of_the_last_of_all_processes_is_copied,
			make_folder, drop_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
