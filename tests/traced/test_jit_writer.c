/* SPDX-License-Identifier: MIT */
/* test_jit_writer.c - what is written, and the promises to the program */
#include <seam/jitdump.h>

#include <pthread.h>
#include <sys/mount.h>

#include "traced/jit/writer.h"
#include "wire/jit/perf_map.h"
#include "unit.h"

#include "jit_written.h"

UNIT_TEST(what_is_loaded_is_read_back)
{
	static const struct seam_jitdump_line lines[] = {
		{ .offset = 0, .line = 7, .column = 3, .file = "a.lua" },
		{ .offset = 2, .line = 8 },
		{ .offset = 4, .line = 1, .file = "b.lua" },
	};
	static const struct seam_jitdump_unwinding unwinding = {
		.eh_frame = bytes, .eh_frame_size = 1,
		.eh_frame_hdr = bytes, .eh_frame_hdr_size = 4,
		.mapped_size = 8,
	};
	struct seam_jitdump_code codes[] = {
		{ .name = "f", .bytes = bytes, .size = 5, .addr = 0x1000,
		  .lines = lines, .n_lines = 3, .unwinding = &unwinding },
		{ .name = "nothing", .addr = 0x2000 },
		{ .bytes = bytes, .size = 1 },
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_debug_entry entry;
	struct seam_jitdump_lines walk;
	struct seam_jitdump_record rec;
	struct reading r;
	struct stat st;

	assert_int_equal(seam_jitdump_load(dump, codes, 3), 0);
	assert_int_equal(stat(seam_jitdump_path(dump), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	read_path(&r, seam_jitdump_path(dump));
	assert_int_equal(r.reader.header.pid, getpid());
	assert_int_equal(r.reader.header.version, 1);
	rec = next(&r, SEAM_JITDUMP_DEBUG_INFO);
	assert_int_equal(rec.debug_info.code_addr, 0x1000);
	walk = seam_jitdump_lines_make(&rec.debug_info, r.reader.endian);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_int_equal(entry.code_addr, 0x1000);
	assert_int_equal(entry.discrim, 3);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_string_equal(entry.name, "a.lua");
	assert_int_equal(entry.code_addr, 0x1002);
	assert_true(seam_jitdump_line(&walk, &entry));
	assert_string_equal(entry.name, "b.lua");
	assert_false(seam_jitdump_line(&walk, &entry));
	rec = next(&r, SEAM_JITDUMP_UNWINDING_INFO);
	assert_int_equal(rec.unwinding_info.unwinding_data.size, 5);
	assert_int_equal(rec.unwinding_info.mapped_size, 8);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "f");
	assert_int_equal(rec.load.vma, 0x1000);
	assert_int_equal(rec.load.code_index, codes[0].id);
	assert_memory_equal(rec.load.code.data, bytes, 5);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_int_equal(rec.load.code_size, 0);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_string_equal(rec.load.name, "");
	assert_int_equal(rec.load.code_addr, (uintptr_t)bytes);
	read_end(&r);
	seam_jitdump_close(dump);
}

/* Each record, written again from its table, is the same bytes. */
UNIT_TEST(the_layout_by_hand_equals_that_of_the_tables)
{
	static const struct seam_jitdump_line line = { 1, 2, 3, "file.lua" };
	static const struct seam_jitdump_unwinding unwinding = {
		bytes, 1, bytes, 4, 0 };
	struct seam_jitdump_code code = {
		.name = "f", .bytes = bytes, .size = 5, .lines = &line,
		.n_lines = 1, .unwinding = &unwinding,
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_record rec;
	uint8_t again[256];
	struct reading r;
	size_t n = 0, size;

	assert_int_equal(seam_jitdump_load(dump, &code, 1), 0);
	assert_int_equal(seam_jitdump_move(dump, code.id, 0x9999), 0);
	read_path(&r, seam_jitdump_path(dump));
	size = seam_wire_write(&seam_jitdump_header_table, &r.reader.header,
			       r.reader.endian, again, sizeof(again));
	assert_int_equal(size, r.reader.header.total_size);
	assert_memory_equal(again, r.file.bytes.data, size);
	for (; seam_jitdump_next(&r.reader, &rec); n++) {
		size = seam_wire_write(seam_jitdump_table(rec.id), &rec.prefix,
				       r.reader.endian, again, sizeof(again));
		assert_int_equal(size, rec.prefix.total_size);
		assert_memory_equal(again, r.file.bytes.data + rec.pos, size);
	}
	assert_int_equal(n, 4);
	read_end(&r);
	seam_jitdump_close(dump);
}

UNIT_TEST(moves_close_and_unload)
{
	struct seam_jitdump *dump = open_dump();
	uint64_t id = load(dump, "f", 0x1000);
	char path[128];
	struct seam_jitdump_record rec;
	struct reading r;

	snprintf(path, sizeof(path), "%s", seam_jitdump_path(dump));
	assert_int_equal(seam_jitdump_move(dump, id, 0x2000), 0);
	assert_int_equal(seam_jitdump_move(dump, id, 0x3000), 0);
	assert_int_equal(seam_jitdump_unload(dump, id), 0);
	assert_int_equal(seam_jitdump_unload(dump, id), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, id, 1), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, 99, 1), -ENOENT);
	assert_int_equal(seam_jitdump_move(dump, 0, 1), -ENOENT);
	seam_jitdump_close(dump);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	rec = next(&r, SEAM_JITDUMP_MOVE);
	assert_int_equal(rec.move.old_code_addr, 0x1000);
	assert_int_equal(rec.move.new_code_addr, 0x2000);
	assert_int_equal(rec.move.code_size, sizeof(bytes));
	rec = next(&r, SEAM_JITDUMP_MOVE);
	assert_int_equal(rec.move.old_code_addr, 0x2000);
	assert_int_equal(rec.move.code_index, id);
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- the memory of the queue ---- */

static bool has_pattern(const struct seam_writer_block *block, uint8_t byte)
{
	for (uint32_t i = 0; i < block->size; i++)
		if (block->bytes[i] != byte)
			return false;
	return true;
}

static size_t n_chunks(const struct seam_writer_memory *m)
{
	size_t n = 0;

	for (const void *const *chunk = (const void *)m->chunks; chunk;
	     chunk = *chunk)
		n++;
	return n;
}

/* Sizes of 1 to 50,000 bytes: those above 16 KiB are mappings of their own. */
UNIT_TEST(blocks_do_not_overlap_and_are_used_again)
{
	enum { N = 64, N_STEPS = 20000 };
	struct seam_writer_block *blocks[N] = { NULL };
	struct seam_writer_memory m = { 0 };
	size_t n_half = 0;
	uint32_t seed = 1;

	for (uint32_t step = 0; step < N_STEPS; step++) {
		uint32_t i = (seed = seed * 1664525 + 1013904223) >> 26;
		size_t size = (seed >> 8 & 7) ? 1 + seed % 1000 :
			      1 + seed % 50000;

		if (blocks[i]) {
			assert_true(has_pattern(blocks[i], (uint8_t)i));
			seam_writer_free(&m, blocks[i]);
		}
		blocks[i] = seam_writer_alloc(&m, size);
		assert_non_null(blocks[i]);
		blocks[i]->size = (uint32_t)size;
		memset(blocks[i]->bytes, (int)i, size);
		n_half = step == N_STEPS / 2 ? n_chunks(&m) : n_half;
	}
	/* What half of the steps needed is nearly enough for all. */
	assert_true(n_chunks(&m) < 2 * n_half);
	for (int i = 0; i < N; i++)
		if (blocks[i])
			seam_writer_free(&m, blocks[i]);
}

/* ---- threads ---- */

enum { N_THREADS = 4, N_CALLS = 500 };

static void *load_many(void *context)
{
	for (int i = 0; i < N_CALLS; i++)
		load(context, "threaded", 0x1000);
	return NULL;
}

UNIT_TEST(threads_do_not_mix_their_records)
{
	struct seam_jitdump *dump = open_dump();
	bool seen[N_THREADS * N_CALLS + 1] = { false };
	pthread_t threads[N_THREADS];
	uint64_t last_ns = 0;
	struct reading r;

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, load_many, dump);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	read_path(&r, seam_jitdump_path(dump));
	for (int i = 0; i < N_THREADS * N_CALLS; i++) {
		struct seam_jitdump_record rec = next(&r, SEAM_JITDUMP_LOAD);

		assert_true(rec.load.code_index <= N_THREADS * N_CALLS);
		assert_false(seen[rec.load.code_index]);
		seen[rec.load.code_index] = true;
		assert_true(rec.load.timestamp >= last_ns);
		last_ns = rec.load.timestamp;
	}
	read_end(&r);
	seam_jitdump_close(dump);
}

/* ---- trouble ---- */

/*
 * From now on there is room for @size_bytes only, in a small file system over
 * the folder; or, for a user who may not mount, for half as many in each file.
 * Returns the error of a write that does not fit.
 */
static int leave_room_for(rlim_t size_bytes)
{
	char size[32];

	snprintf(size, sizeof(size), "size=%lu", (unsigned long)size_bytes);
	if (mount("none", folder, "tmpfs", 0, size) == 0)
		return -ENOSPC;
	assert_int_equal(errno, EPERM);
	limit_files(size_bytes / 2);
	return -EFBIG;
}

/* The marker of a dump is still mapped from the file system. */
static void give_room_back(void)
{
	limit_files(RLIM_INFINITY);
	if (umount2(folder, MNT_DETACH))
		assert_int_not_equal(geteuid(), 0);
}

UNIT_TEST(a_full_disk_costs_records_and_nothing_else)
{
	enum { N = 4000 };
	struct seam_jitdump *dump;
	uint64_t n, lost;
	char path[128];
	FILE *ballast;

	leave_room_for(256 * 1024);
	dump = open_dump();
	snprintf(path, sizeof(path), "%s/ballast", folder);
	ballast = fopen(path, "w");
	for (int i = 0; i < 100 * 1024; i++)
		fputc(0, ballast);
	fclose(ballast);
	errno = 4711;
	for (int i = 0; i < N; i++)
		load(dump, "f", 0x1000);
	assert_int_equal(errno, 4711);
	lost = seam_jitdump_lost(dump);
	count_loads(seam_jitdump_path(dump), &n);
	assert_true(lost > 0);
	assert_int_equal(n + lost, N);
	/* Room comes back. */
	unlink(path);
	limit_files(RLIM_INFINITY);
	load(dump, "f", 0x1000);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(seam_jitdump_lost(dump), lost);
	assert_int_equal(n + lost, N + 1);
	seam_jitdump_close(dump);
	give_room_back();
}

/*
 * Half of the next write reaches the file, whose size is its limit then:
 * another thread has just set that.
 */
static bool is_write_cut;

ssize_t __real_writev(int fd, const struct iovec *parts, int n);
ssize_t __wrap_writev(int fd, const struct iovec *parts, int n);

ssize_t __wrap_writev(int fd, const struct iovec *parts, int n)
{
	ssize_t done;

	if (!is_write_cut)
		return __real_writev(fd, parts, n);
	is_write_cut = false;
	done = write(fd, parts[0].iov_base, parts[0].iov_len / 2);
	limit_files((rlim_t)lseek(fd, 0, SEEK_END));
	return done;
}

UNIT_TEST(a_write_that_a_limit_cut_leaves_whole_records)
{
	struct seam_jitdump *dump = open_dump();
	uint64_t n;

	load(dump, "before", 0x1000);
	is_write_cut = true;
	load(dump, "cut", 0x2000);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(n, 1);
	limit_files(RLIM_INFINITY);
	load(dump, "after", 0x3000);
	count_loads(seam_jitdump_path(dump), &n);
	assert_int_equal(n, 2);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	seam_jitdump_close(dump);
}

static bool ftruncate_fails;

int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);

int __wrap_ftruncate64(int fd, off_t size)
{
	if (!ftruncate_fails)
		return __real_ftruncate64(fd, size);
	errno = EIO;
	return -1;
}

UNIT_TEST(a_file_that_cannot_be_truncated_is_closed)
{
	uint8_t *large = calloc(1, 200 * 1024);
	struct seam_jitdump_code code = {
		.bytes = large,
		.size = 200 * 1024,
	};
	struct seam_jitdump *dump;
	int fd, full;

	full = leave_room_for(64 * 1024);
	dump = open_dump();
	fd = dump->file.fd;
	ftruncate_fails = true;
	assert_int_equal(seam_jitdump_load(dump, &code, 1), full);
	ftruncate_fails = false;
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(seam_jitdump_load(dump, &code, 1), -EBADF);
	assert_int_equal(seam_jitdump_lost(dump), 2);
	seam_jitdump_close(dump);
	give_room_back();
	free(large);
}

UNIT_TEST(an_open_that_fails_leaves_nothing)
{
	struct seam_jitdump_options options = { .folder = folder };
	struct seam_jitdump *dump;
	char command[256];
	int before = dup(0);

	close(before);
	limit_files(10);
	assert_int_equal(seam_jitdump_open(&dump, &options), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_null(dump);
	snprintf(command, sizeof(command),
		 "! grep -q '%s' /proc/%d/maps && "
		 "test $(ls %s | wc -l) = 0",
		 folder, getpid(), folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(dup(0), before);
	close(before);
}

/* Our descriptor may refer to another file by now. */
UNIT_TEST(a_reused_descriptor_is_not_written_to)
{
	struct seam_jitdump *dump = open_dump();
	int fd = dump->file.fd, other;
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/precious", folder);
	close(fd);
	other = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(other, fd);
	load(dump, "f", 0x1000);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	seam_jitdump_close(dump);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(other);
}

UNIT_TEST(a_stale_file_is_replaced_and_a_used_one_is_not)
{
	struct seam_jitdump_options options = { .folder = folder };
	struct seam_jitdump *dump, *second;
	char path[128], victim[128];
	struct reading r;
	struct stat st;

	snprintf(victim, sizeof(victim), "%s/victim", folder);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	close(open(victim, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink(victim, path), 0);
	dump = open_dump();
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(seam_jitdump_open(&second, &options), -EEXIST);
	assert_null(second);
	load(dump, "f", 0x1000);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	read_end(&r);
	seam_jitdump_close(dump);
	dump = open_dump();	/* over our own, closed one */
	seam_jitdump_close(dump);
	options.folder = "/nowhere";
	assert_int_equal(seam_jitdump_open(&dump, &options), -ENOENT);
}

/* The longest path is used; a longer one is not, and nothing is after it. */
UNIT_TEST(a_path_that_is_too_long_is_refused)
{
	static struct {
		struct seam_writer_file file;
		char after[64];
	} f;
	static char where[2 * SEAM_WRITER_PATH_BYTES];

	for (size_t more = 0; more < 40; more++) {
		/* "/jit-7.dump" has 11 bytes, and a path its NUL */
		size_t size = SEAM_WRITER_PATH_BYTES - 12 + more;
		int r;

		memset(where, '/', size);
		memcpy(where, folder, strlen(folder));
		where[size] = '\0';
		memset(&f, 'x', sizeof(f));
		r = seam_writer_create_file(&f.file, SEAM_JITDUMP_FORMAT_DUMP,
					    7, where);
		assert_int_equal(r, more ? -ENAMETOOLONG : 0);
		if (r == 0) {
			assert_int_equal(strlen(f.file.path),
					 SEAM_WRITER_PATH_BYTES - 1);
			seam_writer_close_file(&f.file);
			assert_int_equal(unlink(f.file.path), 0);
		}
		for (size_t i = 0; i < sizeof(f.after); i++)
			assert_int_equal(f.after[i], 'x');
	}
}

UNIT_TEST(the_marker_is_mapped_executable_and_stays)
{
	struct seam_jitdump *dump = open_dump();
	char command[256];

	snprintf(command, sizeof(command),
		 "grep -q 'r-xp.*%s/jit-%d.dump' /proc/%d/maps", folder,
		 getpid(), getpid());
	assert_int_equal(system(command), 0);
	seam_jitdump_close(dump);
	assert_int_equal(system(command), 0);
}

UNIT_TEST(code_larger_than_the_buffer_is_written_whole)
{
	size_t size = 3 * SEAM_WRITER_BUFFER_BYTES + 5;
	uint8_t *large = calloc(1, size);
	struct seam_jitdump_code codes[] = {
		{ .name = "small", .bytes = large, .size = 10 },
		{ .name = "large", .bytes = large, .size = size },
		{ .name = "small", .bytes = large, .size = 10 },
		{ .name = "none", .bytes = large, .size = UINT64_C(1) << 33 },
	};
	struct seam_jitdump *dump = open_dump();
	struct seam_jitdump_record rec;
	struct reading r;

	assert_int_equal(seam_jitdump_load(dump, codes, 4), -EFBIG);
	assert_int_equal(seam_jitdump_lost(dump), 1);
	read_path(&r, seam_jitdump_path(dump));
	next(&r, SEAM_JITDUMP_LOAD);
	rec = next(&r, SEAM_JITDUMP_LOAD);
	assert_int_equal(rec.load.code.size, size);
	next(&r, SEAM_JITDUMP_LOAD);
	read_end(&r);
	seam_jitdump_close(dump);
	free(large);
}

UNIT_TEST(buffered_records_are_written_by_flush_and_close)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_DUMP, 1);
	char path[128];
	struct reading r;
	uint64_t n;

	snprintf(path, sizeof(path), "%s", seam_jitdump_path(dump));
	load(dump, "f", 0x1000);
	count_loads(path, &n);
	assert_int_equal(n, 0);
	assert_int_equal(seam_jitdump_flush(dump), 0);
	count_loads(path, &n);
	assert_int_equal(n, 1);
	load(dump, "g", 0x2000);
	seam_jitdump_close(dump);
	read_path(&r, path);
	next(&r, SEAM_JITDUMP_LOAD);
	next(&r, SEAM_JITDUMP_LOAD);
	next(&r, SEAM_JITDUMP_CLOSE);
	read_end(&r);
}

/* ---- maps ---- */

static void expect_entry(struct seam_perf_map_reader *r, uint64_t addr,
			 const char *name)
{
	struct seam_perf_map_entry entry;

	assert_true(seam_perf_map_next(r, &entry));
	assert_int_equal(entry.start_addr, addr);
	assert_int_equal(entry.size, sizeof(bytes));
	assert_int_equal(entry.name.size, strlen(name));
	assert_memory_equal(entry.name.data, name, strlen(name));
}

UNIT_TEST(a_map_has_a_line_for_each_place)
{
	struct seam_jitdump *dump = open_as(SEAM_JITDUMP_FORMAT_MAP, 0);
	struct seam_jitdump_code nothing = { .name = "nothing", .addr = 1 };
	struct seam_perf_map_reader r;
	struct seam_perf_map_entry entry;
	struct seam_file file;
	char path[256];
	uint64_t id;

	id = load(dump, "a name\nof two lines", 0xf);
	assert_int_equal(seam_jitdump_load(dump, &nothing, 1), 0);
	assert_int_equal(seam_jitdump_move(dump, id, 0x123456789abcdef0), 0);
	assert_int_equal(seam_jitdump_move(dump, nothing.id, 5), 0);
	in_child(call_once, dump);
	assert_int_equal(seam_file_open(&file, seam_jitdump_path(dump), NULL),
			 0);
	r = seam_perf_map_begin(file.bytes);
	expect_entry(&r, 0xf, "a name of two lines");
	expect_entry(&r, 0x123456789abcdef0, "a name of two lines");
	assert_false(seam_perf_map_next(&r, &entry));
	assert_int_equal(r.n_bad, 0);
	seam_file_close(&file);
	find_child_file(path, sizeof(path));
	assert_non_null(strstr(path, "/perf-"));
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	r = seam_perf_map_begin(file.bytes);
	expect_entry(&r, 0x123456789abcdef0, "a name of two lines");
	expect_entry(&r, 0x7000, "own");
	assert_false(seam_perf_map_next(&r, &entry));
	seam_file_close(&file);
	assert_int_equal(seam_jitdump_lost(dump), 0);
	seam_jitdump_close(dump);
}

UNIT_TEST(no_dump_is_a_dump_that_does_nothing)
{
	struct seam_jitdump_code code = { .name = "f" };

	assert_int_equal(seam_jitdump_load(NULL, &code, 1), 0);
	assert_int_equal(seam_jitdump_move(NULL, 1, 1), 0);
	assert_int_equal(seam_jitdump_unload(NULL, 1), 0);
	assert_int_equal(seam_jitdump_flush(NULL), 0);
	assert_int_equal(seam_jitdump_lost(NULL), 0);
	assert_string_equal(seam_jitdump_path(NULL), "");
	seam_jitdump_close(NULL);
}

UNIT_MAIN(NULL, NULL, make_folder, drop_folder)
