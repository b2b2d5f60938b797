/* SPDX-License-Identifier: MIT */
/* test_jit_find.c - planted files are not trusted, with the reason */
#include "symbol/jit/jit_find.h"

#include "folder.h"
#include "jit_dump.h"
#include "unit.h"

enum { PID = DUMP_PID };

static const char *in(const char *name)
{
	static char path[4][256];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", folder, name);
	return path[i];
}

/* A dump of process 42 with one function. */
static const char *plant(const char *name)
{
	static struct dump d;
	const char *path = in(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	d.size = 0;
	put_header(&d);
	put_load(&d, 10, "f", 0x1000, 16, 1);
	fwrite(d.bytes, d.size, 1, f);
	fclose(f);
	return path;
}

/* Of each test: the process that a file must belong to. */
static struct seam_jit_owner who;

static int set_up(void **state)
{
	who = (struct seam_jit_owner) {
		.pid = PID, .inner_pid = PID, .uid = getuid(),
	};
	return make_folder(state);
}

static int try_open(const char *path, struct seam_err *err)
{
	int fd = seam_jit_check(&who, SEAM_JIT_DUMP, path, open(path, O_RDONLY |
				O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), 1 << 20,
				err);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void expect_refusal(const char *path, int code, const char *reason)
{
	struct seam_err err = { 0 };

	assert_int_equal(try_open(path, &err), code);
	if (!strstr(err.cause[0], reason))
		fail_msg("'%s' does not say '%s'", err.cause[0], reason);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, drop_folder)

TEST(names_of_markers_are_known)
{
	int32_t pid = 0;

	assert_true(seam_jit_marker("/tmp/jit-123.dump", &pid));
	assert_int_equal(pid, 123);
	assert_true(seam_jit_marker("jit-124-99.dump", &pid));
	assert_int_equal(pid, 99);
	assert_false(seam_jit_marker("/tmp/jit-.dump", &pid));
	assert_false(seam_jit_marker("/tmp/jit-0.dump", &pid));
	assert_false(seam_jit_marker("/tmp/jit-12.dump.old", &pid));
	assert_false(seam_jit_marker("/tmp/jit-12-.dump", &pid));
	assert_false(seam_jit_marker("/tmp/xjit-12.dump", &pid));
	assert_false(seam_jit_marker("jit-99999999999.dump", &pid));
	assert_false(seam_jit_marker("/tmp/jit-12.dump/x", &pid));
}

TEST(a_correct_file_is_trusted)
{
	assert_int_equal(try_open(plant("jit-42.dump"), NULL), 0);
	assert_int_equal(try_open(in("none"), NULL), -ENOENT);
}

TEST(another_name_of_a_file_is_refused)
{
	char old[256], new[256];

	snprintf(old, sizeof(old), "%s", plant("jit-43.dump"));
	snprintf(new, sizeof(new), "%s", in("jit-44.dump"));
	assert_int_equal(link(old, new), 0);
	expect_refusal(new, -EPERM, "hard links");
	assert_int_equal(unlink(new), 0);
	assert_int_equal(unlink(old), 0);
}

TEST(links_fifos_and_folders_are_refused)
{
	assert_int_equal(symlink(plant("real"), in("link")), 0);
	expect_refusal(in("link"), -ELOOP, "symbolic link");
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	expect_refusal(in("fifo"), -EINVAL, "fifo");
	assert_int_equal(mkdir(in("dir"), 0700), 0);
	expect_refusal(in("dir"), -EINVAL, "folder");
	expect_refusal("/dev/null", -EINVAL, "device");
}

TEST(other_peoples_files_are_refused)
{
	const char *path = plant("jit-42.dump");
	struct seam_err err;

	if (geteuid()) { /* whose files cannot be given away */
		who.uid = geteuid() + 1;
		expect_refusal(path, -EPERM, "belongs to user");
		return;
	}
	assert_int_equal(chown(path, 1234, 1234), 0);
	expect_refusal(path, -EPERM, "belongs to user 1234");
	who.uid = 1234;
	assert_int_equal(try_open(path, &err), 0);
	/* not even root's: a user can have them mounted there */
	assert_int_equal(chown(path, 0, 0), 0);
	expect_refusal(path, -EPERM, "belongs to user 0");
}

TEST(files_that_others_may_write_are_refused)
{
	const char *path = plant("jit-42.dump");

	assert_int_equal(chmod(path, 0602), 0);
	expect_refusal(path, -EPERM, "others may write it (mode 0602)");
	assert_int_equal(chmod(path, 0660), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 0, 77), 0);
	if (geteuid() == 0 || getegid() != (gid_t)geteuid())
		expect_refusal(path, -EPERM, "mode 0660");
	else /* a group of one's own */
		assert_int_equal(try_open(path, NULL), 0);
}

TEST(a_file_older_than_the_process_is_stale)
{
	const char *path = plant("jit-42.dump");
	const struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	who.start_ns = (uint64_t)now.tv_sec * 1000000000;
	assert_int_equal(try_open(path, NULL), 0);
	who.start_ns += UINT64_C(100000000000);
	expect_refusal(path, -ESTALE, "before process 42 began");
	/* The kernel tells both times in ticks: a little earlier is not. */
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	who.start_ns = UINT64_C(1000020000000);
	assert_int_equal(try_open(path, NULL), 0);
	who.start_ns = UINT64_C(1000040000000);
	expect_refusal(path, -ESTALE, "before process 42 began");
}

TEST(a_dump_of_another_process_is_refused)
{
	const char *path = plant("jit-42.dump");
	int fd;

	who.inner_pid = 43;
	expect_refusal(path, -ESTALE, "of process 42, not 43");
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "hello, i am not a dump at all, no, not "
			       "me", 41), 41);
	close(fd);
	expect_refusal(path, -EBADMSG, "no magic number");
}

TEST(ten_gigabytes_of_nothing_are_refused)
{
	const char *path = plant("jit-42.dump");

	assert_int_equal(truncate(path, INT64_C(10) << 30), 0);
	expect_refusal(path, -EFBIG, "10737418240 bytes");
}

/* Search the dump that its runtime had at @path; it is @want, or not there. */
static void expect_found(const struct seam_jit_places *places, const char *path,
			 const char *want)
{
	struct seam_file file;
	struct seam_err err;
	char found[256];
	int r = seam_jit_find(places, &who, SEAM_JIT_DUMP, path, &file, found,
			      sizeof(found), &err);

	assert_int_equal(r, want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(found, want);
	/* a file that its runtime may still write is not mapped */
	assert_int_equal(file.mapped, want && want != path);
	seam_file_close(&file);
}

TEST(places_are_searched_in_their_order)
{
	static const char gone[] = "/none/jit-42.dump";
	char recording[256], recorded[256];
	struct seam_jit_places places = { .recording = recording };
	const char *paths[1];

	who.pid = 1042;		/* in a container it is 42 */
	snprintf(recording, sizeof(recording), "%s", in("perf.data"));
	snprintf(recorded, sizeof(recorded), "%s", plant("live-jit-42.dump"));
	expect_found(&places, gone, NULL);
	/* beside the recording, by the name that the runtime gave it */
	unlink(recorded);
	mkdir(in("live"), 0700);
	snprintf(recorded, sizeof(recorded), "%s", plant("live/jit-42.dump"));
	expect_found(&places, recorded, recorded);
	plant("jit-42.dump");
	expect_found(&places, gone, in("jit-42.dump"));
	mkdir(in("jit"), 0700);
	plant("jit/jit-1042.dump");
	places.bundle = folder;
	expect_found(&places, NULL, in("jit/jit-1042.dump"));
	paths[0] = plant("renamed");
	places.paths = paths;
	places.n_paths = 1;
	expect_found(&places, NULL, in("renamed"));
}

TEST(all_refusals_are_reported)
{
	struct seam_jit_places places = { .bundle = folder };
	struct seam_file file;
	struct seam_err err;
	char found[256];

	mkdir(in("jit"), 0700);
	mkfifo(in("jit/perf-42.map"), 0600);
	mkfifo(in("perf-42.map"), 0600);
	assert_int_equal(seam_jit_find(&places, &who, SEAM_JIT_MAP,
				       in("perf-42.map"), &file, found,
				       sizeof(found), &err), -EINVAL);
	assert_true(err.n_causes >= 2);
	assert_non_null(strstr(err.cause[0], "jit/perf-42.map"));
	assert_non_null(strstr(err.cause[err.n_causes - 1], "fifo"));
}

int main(void)
{
	umask(022);
	return unit_run(NULL, NULL, NULL, NULL);
}
