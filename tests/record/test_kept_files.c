/* SPDX-License-Identifier: MIT */
/* test_kept_files.c - each file that is left out is counted by its cause */
#include "record/bundle/kept_files.h"

#include <linux/perf_event.h>
#include <poll.h>

#include "base/text.h"
#include "folder.h"
#include "symbol/elf/build_id.h"
#include "unit.h"

/* No such processes. */
enum { PID = INT32_MAX - 8, PAGE = 4096 };

/* Mapping number @i of @pid: file @name, with a build id if it is not 0. */
static struct seam_perf_sideband mapping(int pid, uint32_t i, const char *name,
					 uint32_t build_id)
{
	struct seam_perf_sideband record = {
		.type = PERF_RECORD_MMAP2,
		.mapping = {
			.pid = pid, .tid = pid, .addr = (i + 1) * PAGE,
			.len = PAGE, .prot = PROT_EXEC, .filename = name,
			.build_id_size = build_id ? sizeof(build_id) : 0,
		},
	};
	static uint8_t bytes[SEAM_MAPPED_BUILD_ID];

	memcpy(bytes, &build_id, sizeof(build_id));
	record.mapping.build_id = bytes;
	return record;
}

static bool wait_for(void *context, int fd, int timeout_ms)
{
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	(void)context;
	poll(&ended, 1, timeout_ms);
	return true;
}

static struct seam_kept_counts copy(struct seam_kept_files *kept)
{
	struct seam_bundle bundle = {
		.dir = open(folder, O_RDONLY | O_DIRECTORY),
	};
	const struct seam_kept_destination to = {
		.bundle = &bundle, .budget_bytes = UINT64_MAX,
		.wait = wait_for,
	};
	struct seam_kept_files_counts counts;

	seam_kept_files_copy(kept, &to, &counts);
	/* no job closes what it borrowed */
	assert_int_equal(close(bundle.dir), 0);
	return counts.files;
}

UNIT_TEST(files_beyond_the_descriptors_are_too_many_not_gone)
{
	enum { MORE = 5 };
	struct seam_kept_files kept = { 0 };
	struct seam_kept_counts counts;
	char name[32];

	for (uint32_t i = 0; i < SEAM_KEPT_MAX_HELD + MORE; i++) {
		struct seam_perf_sideband record;

		snprintf(name, sizeof(name), "/no/such/file%u", i);
		record = mapping(PID + i % 2, i, name, i + 1);
		seam_kept_files_sideband(&kept, &record);
	}
	counts = copy(&kept);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_GONE], SEAM_KEPT_MAX_HELD);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_TOO_MANY], MORE);
	seam_kept_files_fini(&kept);
}

/* By build id, and by inode where there is none. */
UNIT_TEST(a_file_is_in_the_list_once_for_each_path)
{
	struct seam_kept_files kept = { 0 };
	char name[32];

	for (uint32_t i = 0; i < 16; i++) {
		struct seam_perf_sideband record;

		snprintf(name, sizeof(name), "/no/such/path%u", i / 2 % 4);
		record = mapping(PID, i, name, i % 2 ? 7 : 0);
		record.mapping.ino = i % 2 ? 0 : 7;
		seam_kept_files_sideband(&kept, &record);
	}
	assert_int_equal(kept.files.n, 8);
	seam_kept_files_fini(&kept);
}

/* A copy of this program in the test's folder, with @more bytes after it. */
static void put_program(char path[128], const char *name, int more, mode_t mode)
{
	char command[512];

	snprintf(path, 128, "%s/%s", folder, name);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && "
		 "head -c %d /dev/zero >> %s", getpid(), path, more, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Program @name, which is mapped, and gone afterwards if @is_gone. */
struct kept_program {
	const char *name;
	mode_t mode;
	int more;
	bool is_gone;
};

/*
 * Which of @programs is elf/BUILDID, by its bytes after the program; -1: there
 * is none.
 */
static int kept_of(const struct kept_program *programs, size_t n,
		   struct seam_kept_counts *counts)
{
	struct seam_kept_files kept = { 0 };
	uint8_t id[SEAM_MAPPED_BUILD_ID];
	struct seam_perf_sideband r;
	struct stat whole, copied;
	char path[128], text[2 * sizeof(id) + 1];
	int fd = open("/proc/self/exe", O_RDONLY);

	fstat(fd, &whole);
	r = mapping(getpid(), 0, path, 1);
	r.mapping.build_id = id;
	r.mapping.build_id_size = seam_build_id_read(fd, 0, id);
	close(fd);
	assert_int_not_equal(r.mapping.build_id_size, 0);
	for (size_t i = 0; i < n; i++) {
		put_program(path, programs[i].name, programs[i].more,
			    programs[i].mode);
		seam_kept_files_sideband(&kept, &r);
		while (seam_helper_collect(kept.helper))
			usleep(100);
		if (programs[i].is_gone)
			unlink(path);
	}
	*counts = copy(&kept);
	snprintf(path, sizeof(path), "%s/elf/%s", folder,
		 seam_text_hex(text, id, r.mapping.build_id_size));
	fd = stat(path, &copied);
	seam_kept_files_fini(&kept);
	return fd < 0 ? -1 : (int)(copied.st_size - whole.st_size);
}

/* Files that all may write to stand for those that others own. */
UNIT_TEST(the_copy_of_a_build_id_is_of_a_protected_file)
{
	static const struct kept_program gone[] = {
		{ "forged", 0666, 1, true }, { "true", 0644, 2, true },
		{ "again", 0666, 3, true },
	}, at_path[] = {
		{ "forged", 0666, 1, true }, { "there", 0644, 2, false },
	};
	struct seam_kept_counts counts;

	assert_int_equal(kept_of(gone, 3, &counts), 2);
	assert_int_equal(counts.n_copied, 1);
	drop_folder(state);
	make_folder(state);
	assert_int_equal(kept_of(at_path, 2, &counts), 2);
}

UNIT_TEST(of_others_that_differ_none_is_copied)
{
	static const struct kept_program programs[] = {
		{ "a", 0666, 1, true }, { "b", 0666, 2, true },
		{ "c", 0666, 2, true },
	}, equal[] = {
		{ "a", 0666, 1, true }, { "b", 0666, 1, true },
	};
	struct seam_kept_counts counts;

	assert_int_equal(kept_of(programs, 3, &counts), -1);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_REFUSED], 2);
	assert_int_equal(kept_of(equal, 2, &counts), 1);
	assert_int_equal(counts.n_left_out[SEAM_KEPT_REFUSED], 0);
}

UNIT_TEST(files_are_hit_by_the_pages_of_samples)
{
	const struct seam_perf_attr attr = { .sample_type = PERF_SAMPLE_IP };
	/* in page 3, at the end of page 5, in the kernel */
	static const uint64_t ips[] = {
		3 * PAGE + 7, 6 * PAGE - 1, 3 * PAGE + 9, UINT64_MAX - 8 * PAGE,
	};
	struct seam_kept_files kept = { .keeps_hits = true };
	char name[32];

	for (uint32_t i = 0; i < 8; i++) {
		struct seam_perf_sideband record;

		snprintf(name, sizeof(name), "/no/such/file%u", i);
		record = mapping(PID, i, name, i + 1);
		seam_kept_files_sideband(&kept, &record);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ips); i++)
		seam_kept_files_sample(&kept, &attr, (struct seam_bytes) {
			(const uint8_t *)&ips[i], sizeof(ips[i]) });
	assert_int_equal(kept.pages.n, 2);
	copy(&kept);
	/* file i is in page i + 1 */
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(kept.files.items[i].is_hit, i == 2 || i == 4);
	assert_int_equal(kept.n_hits_left_out, 0);
	seam_kept_files_fini(&kept);
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
