/* SPDX-License-Identifier: MIT */
/*
 * test_target_file.c - a program cannot have its recorder read, or wait for,
 * what it names
 *
 * Each test is a program (a child, another user's where we are root) and what
 * it has put at a path.  Those that need root pass without a check elsewhere:
 * an ordinary user's recorder has no rights that its programs lack.
 */
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "folder.h"
#include "record/proc/target_file.h"
#include "unit.h"

enum { OTHER = 65533 };		/* a user of whom nothing else is known */

static struct program {
	pid_t pid;
	int in;			/* closed: it ends */
	uint64_t mapped;	/* where, of a page */
} p;
static struct seam_target target;

/* What the program does before it waits for its end. */
static char path[4096], path2[4096];

static void nothing(void) { }
static void become_other(void)
{
	if (setgroups(0, NULL) || setgid(OTHER) || setuid(OTHER) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(9);
}

static void *map_path(void)
{
	int fd = open(path, O_RDONLY);

	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

static void start(void (*first)(void), void *(*map)(void))
{
	int in[2], out[2];

	assert_int_equal(pipe(in) | pipe(out), 0);
	p.pid = fork();
	if (p.pid == 0) {
		char byte;

		close(in[1]);
		first();
		p.mapped = map ? (uint64_t)(uintptr_t)map() : 0;
		if (write(out[1], &p.mapped, sizeof(p.mapped)) < 0 ||
		    read(in[0], &byte, 1) < 0)
			_exit(8);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(out[0], &p.mapped, sizeof(p.mapped)),
			 sizeof(p.mapped));
	close(out[0]);
	p.in = in[1];
}

static void end(void)
{
	close(p.in);
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	p.pid = 0;
}

/* The text of @name in the test's folder, made with @mode; its full name. */
static void put(char *full, const char *name, const char *text, mode_t mode)
{
	FILE *out;

	snprintf(full, 4096, "%s/%s", folder, name);
	out = fopen(full, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(full, mode), 0);
}

static void is_text(int fd, const char *text)
{
	char buf[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, text);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static int open_of(const char *name)
{
	struct seam_err err = { 0 };
	int fd;

	assert_int_equal(seam_target_open(&target, p.pid, &err), 0);
	fd = seam_target_open_path(&target, name, &err);
	assert_true(fd >= 0 || err.n_causes == 1);
	seam_target_close(&target);
	return fd;
}

static int open_mapping_of(void)
{
	int fd;

	assert_int_equal(seam_target_open(&target, p.pid, NULL), 0);
	fd = seam_target_open_mapping(&target, p.mapped, p.mapped + 4096, NULL);
	seam_target_close(&target);
	return fd;
}

UNIT_TEST(a_file_of_the_process_is_opened)
{
	put(path, "own", "text", 0600);
	start(nothing, NULL);
	is_text(open_of(path), "text");
	assert_int_equal(open_of("/no/such/file"), -ENOENT);
	assert_int_equal(open_of("relative"), -ENOENT);
}

UNIT_TEST(only_regular_files_are_opened)
{
	char name[4200];

	start(nothing, NULL);
	put(path, "real", "text", 0600);
	snprintf(name, sizeof(name), "%s.link", path);
	assert_int_equal(symlink(path, name), 0);
	assert_int_equal(open_of(name), -ELOOP);
	snprintf(name, sizeof(name), "%s.fifo", path);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(open_of(name), -EINVAL);
	assert_int_equal(open_of("/dev/null"), -EINVAL);
	assert_int_equal(open_of("/tmp"), -EINVAL);
	snprintf(name, sizeof(name), "/proc/%d/pagemap", p.pid);
	assert_int_equal(open_of(name), -EPERM);
	assert_int_equal(open_of("/proc/self/root/etc/passwd"), -ELOOP);
}

/* By the file that is mapped: another opening would keep the lease away. */
static void *map_with_lease(void)
{
	int fd = open(path, O_RDWR);

	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK))
		_exit(9);
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

UNIT_TEST(a_lease_is_not_waited_for)
{
	put(path, "leased", "text", 0600);
	start(nothing, map_with_lease);
	assert_int_equal(open_of(path), -EAGAIN);
	if (geteuid() == 0)
		assert_int_equal(open_mapping_of(), -EAGAIN);
}

UNIT_TEST(what_its_user_may_not_read_is_not_read_for_it)
{
	char name[4200];

	if (geteuid())
		return;
	start(become_other, NULL);
	put(path, "secret", "secret", 0600);
	assert_int_equal(open_of(path), -EACCES);
	assert_int_equal(chmod(path, 0644), 0);
	is_text(open_of(path), "secret");
	/* readable, in a folder that only root may enter */
	snprintf(name, sizeof(name), "%s.d", path);
	assert_int_equal(mkdir(name, 0700), 0);
	snprintf(name, sizeof(name), "%s.d/file", path);
	assert_int_equal(rename(path, name), 0);
	assert_int_equal(open_of(name), -EACCES);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(open(name, O_RDONLY | O_CLOEXEC) < 0, 0);
}

UNIT_TEST(a_program_that_may_be_run_but_not_read_is_not_read)
{
	if (geteuid())
		return;
	put(path, "run_only", "text", 0644);
	start(become_other, map_path);
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(open_mapping_of(), -EACCES);
	assert_int_equal(chmod(path, 0755), 0);
	is_text(open_mapping_of(), "text");
}

/*
 * The root of a chroot is no mount that could be made private; then @where
 * becomes one.  False where mounts in @where would be seen outside.
 */
static bool make_mounts_private(const char *where)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ||
		(mount(where, where, NULL, MS_BIND, NULL) == 0 &&
		 mount(NULL, where, NULL, MS_PRIVATE, NULL) == 0));
}

static void bind(void)
{
	if (!make_mounts_private(folder) ||
	    mount(path2, path, NULL, MS_BIND, NULL))
		_exit(9);
}

UNIT_TEST(what_is_mounted_on_a_file_is_not_opened)
{
	if (geteuid())
		return;
	put(path, "below", "below", 0644);
	put(path2, "above", "above", 0644);
	start(bind, NULL);
	assert_int_equal(open_of(path), -EXDEV);
	is_text(open_of(path2), "above");
}

static void mount_folder(void)
{
	int fd;

	if (!make_mounts_private(path) || mount("none", path, "tmpfs", 0, NULL))
		_exit(9);
	fd = open(path2, O_CREAT | O_WRONLY, 0600);
	if (write(fd, "inside", 6) != 6)
		_exit(9);
	close(fd);
}

static void change_root(void)
{
	if (chroot(folder) || chdir("/"))
		_exit(9);
}

/* A link in the target's file system means a file there, not one of ours. */
UNIT_TEST(links_do_not_lead_out_of_the_targets_root)
{
	char name[4200];

	if (geteuid())
		return;
	put(path, "outside", "outside", 0644);
	snprintf(name, sizeof(name), "%s/dir", folder);
	assert_int_equal(mkdir(name, 0755), 0);
	put(path, "dir/inside", "inside", 0644);
	snprintf(name, sizeof(name), "%s/up", folder);
	assert_int_equal(symlink("../../../../..", name), 0);
	snprintf(name, sizeof(name), "%s/to", folder);
	assert_int_equal(symlink("/dir", name), 0);
	start(change_root, NULL);
	is_text(open_of("/to/inside"), "inside");
	is_text(open_of("/up/dir/inside"), "inside");
	snprintf(name, sizeof(name), "/up%s/outside", folder);
	assert_int_equal(open_of(name), -ENOENT);
}

UNIT_TEST(a_file_system_of_its_own_is_read)
{
	if (geteuid())
		return;
	snprintf(path, sizeof(path), "%s/own", folder);
	snprintf(path2, sizeof(path2), "%s/own/inside", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	start(mount_folder, NULL);
	is_text(open_of(path2), "inside");
}

UNIT_TEST(a_mapping_is_opened_whatever_its_path_leads_to)
{
	if (geteuid())
		return;
	put(path, "mapped", "before", 0644);
	start(nothing, map_path);
	assert_int_equal(unlink(path), 0);
	put(path, "mapped", "after", 0644);
	is_text(open_mapping_of(), "before");
	is_text(open_of(path), "after");
}

UNIT_TEST(a_program_is_opened_after_it_was_deleted)
{
	char magic[5] = "";
	int fd;

	start(nothing, NULL);
	assert_int_equal(seam_target_open(&target, p.pid, NULL), 0);
	fd = seam_target_open_exe(&target, NULL);
	assert_int_equal(read(fd, magic, 4), 4);
	assert_string_equal(magic, "\177ELF");
	close(fd);
	seam_target_close(&target);
}

UNIT_TEST(a_number_that_was_used_again_is_another_process)
{
	start(nothing, NULL);
	assert_int_equal(seam_target_open(&target, p.pid, NULL), 0);
	end();
	assert_int_equal(seam_target_open_exe(&target, NULL), -ESRCH);
	seam_target_close(&target);
}

UNIT_TEST(of_a_process_that_ended_only_public_files_are_opened)
{
	start(nothing, NULL);
	end();
	assert_int_equal(seam_target_open(&target, p.pid, NULL), -ESRCH);
	put(path, "private", "text", 0600);
	if (geteuid() == 0)
		assert_true(seam_target_open_path(&target, path, NULL) < 0);
	put(path, "public", "text", 0644);
	is_text(seam_target_open_path(&target, path, NULL), "text");
	assert_int_equal(seam_target_open_exe(&target, NULL), -ESRCH);
	seam_target_close(&target);
}

UNIT_TEST(a_process_has_a_start_and_a_root)
{
	struct timespec now;

	start(nothing, NULL);
	clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(seam_target_open(&target, p.pid, NULL), 0);
	assert_int_equal(target.inner_pid, p.pid);
	assert_int_equal(target.uid, geteuid());
	assert_true(target.root >= 0);
	/* within a minute of now, on the same clock */
	assert_true(target.start_ns / 1000000000 + 60 > (uint64_t)now.tv_sec);
	assert_true(target.start_ns / 1000000000 < (uint64_t)now.tv_sec + 60);
	seam_target_close(&target);
	end();
	assert_int_equal(seam_target_open(&target, p.pid, NULL), -ESRCH);
	assert_int_equal(target.pid, p.pid);
	assert_int_equal(target.process, -1);
	seam_target_close(&target);
}

static int set_up(void **state)
{
	return make_folder(state) || chmod(folder, 0755);
}

static int tear_down(void **state)
{
	if (p.pid)
		end();
	umount2(path, MNT_DETACH);	/* shared with us, in a chroot */
	umount2(folder, MNT_DETACH);
	return drop_folder(state);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
