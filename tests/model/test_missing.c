/* SPDX-License-Identifier: MIT */
/*
 * test_missing.c - a file that changed after it was recorded gives no names
 *
 * Programs are built, their mapping is recorded by hand, and then they are
 * replaced in each of the ways in which that happens.
 */
#include "model/perf/load_perf.h"

#include <sys/utsname.h>

#include "../perf_bytes.h"
#include "../symbol/build.h"
#include "symbol/elf/build_id.h"
#include "symbol/kernel/kernel.h"
#include "unit.h"

static const char program[] =
	"int hot(int x) { return x * 3; }\n"
	"int main(int argc, char **argv) { (void)argv; return hot(argc); }\n";

static void build(const char *id, const char *name)
{
	build_write("p.c", program);
	build_run("gcc -O1 -Wl,--build-id=%s -o %s p.c", id, name);
}

static int enter(void **state)
{
	return build_enter(state);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct recorded {
	struct bytes file;
	uint64_t written_ns;
	const struct seam_manifest *manifest;
};

/* One sample in hot() of program @name, as it is now. */
static struct bytes records_of(const char *name, const char *mapped)
{
	uint64_t offset = build_offset(name, build_symbol(name, "hot"));
	uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, 0x400000 + offset };
	struct bytes b = { .endian = SEAM_LITTLE };
	struct stat st;
	size_t at;

	assert_int_equal(stat(build_path(name), &st), 0);
	at = begin_record(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put_u32(&b, 7);
	put_u32(&b, 7);
	put_u64(&b, 0x400000);
	put_u64(&b, 0x10000);
	put_u64(&b, 0);
	put_u32(&b, 8);
	put_u32(&b, 1);
	put_u64(&b, st.st_ino);
	put_u64(&b, 0);
	put_u32(&b, 5);
	put_u32(&b, 2);
	put_name(&b, mapped);
	put_stamp(&b, 7, 7, 10);
	end_record(&b, at);
	put_sample(&b, TEST_ID_1, 7, 7, 20, chain, 2);
	return b;
}

/*
 * A file of @b, which is taken: of this machine, for all that the file says, or
 * of one called testhost.
 */
static struct recorded record_data(struct bytes b, bool is_elsewhere)
{
	struct recorded r = { .manifest = NULL };

	r.file = is_elsewhere ? make_file(&b) : make_pipe(&b);
	free(b.data);
	/* Files have the time of the last tick. */
	usleep(20000);
	r.written_ns = now_ns();
	usleep(20000);
	return r;
}

static struct recorded record(const char *name, const char *mapped,
			      bool is_elsewhere)
{
	return record_data(records_of(name, mapped), is_elsewhere);
}

struct result {
	char name[256];		/* of the leaf */
	char notes[1024];
};

static struct result load(const struct recorded *r, const char *symfs)
{
	const char *roots[] = { symfs };
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) {
			.symfs = roots, .n_symfs = symfs != NULL });
	struct seam_file file = {
		.bytes = { r->file.data, r->file.size } };
	struct seam_err err = { 0 };
	struct result result = { 0 };
	struct seam_profile p;

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_perf(&p, &(struct seam_perf_input) {
		.data = &file, .written_ns = r->written_ns,
		.manifest = r->manifest,
	}, symbols, &err), 0);
	seam_symbols_free(symbols);
	snprintf(result.name, sizeof(result.name), "%s",
		 seam_profile_text(&p, p.functions.items[p.frames.items[
			p.stacks.items[p.samples.stack[0]].frame].function]
			.name));
	for (size_t i = 0; i < p.notes.n; i++) {
		size_t n = strlen(result.notes);

		snprintf(result.notes + n, sizeof(result.notes) - n, "%s\n",
			 seam_profile_text(&p, p.notes.items[i]));
	}
	seam_profile_fini(&p);
	return result;
}

static void check_changed(const struct recorded *r)
{
	struct result result = load(r, NULL);

	assert_int_equal(result.name[0], '[');
	assert_non_null(strstr(result.notes, "1 sample without names: "));
	assert_non_null(strstr(result.notes, " has changed since"));
}

UNIT_TEST(an_unchanged_file_without_a_build_id_has_names)
{
	struct recorded r;
	struct result result;

	build("none", "same");
	r = record("same", build_path("same"), false);
	result = load(&r, NULL);
	assert_string_equal(result.name, "hot");
	assert_null(strstr(result.notes, "without names"));
	free(r.file.data);
}

UNIT_TEST(a_replaced_file_has_none_and_that_is_noted)
{
	static const char *const ways[] = {
		"cp w w.new && mv w.new w",	/* another inode */
		"mv w w.old && cp -p w.old w",	/* with its old time */
		"cp w w.new && cat w.new > w",	/* the same, written anew */
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ways); i++) {
		struct recorded r;

		build("none", "w");
		r = record("w", build_path("w"), false);
		assert_string_equal(load(&r, NULL).name, "hot");
		build_run("%s", ways[i]);
		check_changed(&r);
		free(r.file.data);
		build_run("rm -f w*");
	}
}

/* They change the ctime of the inode, and one sets mtime to an older time. */
UNIT_TEST(what_leaves_inode_and_mtime_is_no_change)
{
	static const char *const ways[] = {
		"chmod 700 w", "ln w w.2", "rm w.2", "touch -a w",
		"mv w w.2 && mv w.2 w",
		"touch -d '2001-01-01' w",
	};
	struct recorded r;

	build("none", "w");
	r = record("w", build_path("w"), false);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(ways); i++) {
		build_run("%s", ways[i]);
		assert_string_equal(load(&r, NULL).name, "hot");
	}
	free(r.file.data);
	build_run("rm -f w*");
}

static uint64_t contents_of(const char *name)
{
	int fd = open(build_path(name), O_RDONLY);
	uint64_t id = seam_content_id_read(fd);

	close(fd);
	return id;
}

/* With a manifest the contents decide, on any machine. */
UNIT_TEST(contents_identify_a_file_where_they_were_recorded)
{
	struct seam_manifest_file files[2] = { { "/other", 1, 2 } };
	struct seam_manifest manifest = { .files = files, .n_files = 2 };
	struct recorded r;
	struct stat st;

	build("none", "c");
	r = record("c", build_path("c"), true);
	r.manifest = &manifest;
	assert_int_equal(stat(build_path("c"), &st), 0);
	files[1] = (struct seam_manifest_file) {
		build_path("c"), st.st_ino, contents_of("c"),
	};
	build_run("cp c c.2 && mv c.2 c");	/* another inode, and times */
	assert_string_equal(load(&r, NULL).name, "hot");
	files[1].content_id ^= 1;
	check_changed(&r);
	/* of another file, or inode: not known */
	files[1].content_id ^= 1;
	files[1].ino++;
	assert_int_equal(load(&r, NULL).name[0], '[');
	files[1].ino--;
	files[1].path = "/other";
	assert_int_equal(load(&r, NULL).name[0], '[');
	free(r.file.data);
}

UNIT_TEST(a_deleted_file_has_none)
{
	char mapped[4096];
	struct recorded r;

	build("none", "d");
	snprintf(mapped, sizeof(mapped), "%s (deleted)", build_path("d"));
	r = record("d", mapped, false);
	check_changed(&r);
	free(r.file.data);
}

/* Inodes and times of another machine mean nothing here. */
UNIT_TEST(a_file_of_another_machine_is_not_taken_from_here)
{
	struct recorded r;
	struct result result;

	build("none", "e");
	r = record("e", build_path("e"), true);
	result = load(&r, NULL);
	assert_int_equal(result.name[0], '[');
	assert_non_null(strstr(result.notes, "was recorded on another "
			       "machine"));
	/* Where its user says that it is. */
	build_run("mkdir -p root$(dirname '%s') && cp e root'%s'",
		  build_path("e"), build_path("e"));
	assert_string_equal(load(&r, build_path("root")).name, "hot");
	free(r.file.data);
}

/* As 'perf inject -b' writes it, after the first sample in the file. */
static void put_listed(struct bytes *b, const char *path, uint8_t id)
{
	size_t at = begin_record(b, SEAM_PERF_HEADER_BUILD_ID,
				 PERF_RECORD_MISC_USER);

	put_u32(b, UINT32_MAX);
	for (size_t i = 0; i < 20; i++)
		put_n(b, id, 1);
	put_u32(b, 0);
	put_name(b, path);
	end_record(b, at);
}

UNIT_TEST(a_build_id_that_a_record_lists_identifies_the_file)
{
	static const char id[] = "0x4242424242424242424242424242424242424242";

	for (int i = 0; i < 4; i++) {
		struct recorded r;
		struct bytes b;

		build(id, "l");
		b = records_of("l", build_path("l"));
		put_listed(&b, build_path("l"), i < 2 ? 0x42 : 0x43);
		r = record_data(b, i % 2);
		build_run("chmod 0711 l && touch l");
		if (i < 2)
			assert_string_equal(load(&r, NULL).name, "hot");
		else
			check_changed(&r);
		free(r.file.data);
	}
}

UNIT_TEST(a_damaged_build_id_is_a_loss_and_nothing_else)
{
	struct seam_file file = { 0 };
	struct seam_symbols *symbols;
	struct recorded r;
	struct seam_profile p;
	struct bytes b;

	build("none", "n");
	b = records_of("n", build_path("n"));
	put_listed(&b, build_path("n"), 0);	/* simpleperf's: none */
	r = record_data(b, false);
	assert_string_equal(load(&r, NULL).name, "hot");
	free(r.file.data);
	b = records_of("n", build_path("n"));
	put_u32(&b, SEAM_PERF_HEADER_BUILD_ID);
	put_u16(&b, 0);
	put_u16(&b, 16);
	put_u64(&b, 0);
	r = record_data(b, false);
	file.bytes = (struct seam_bytes) { r.file.data, r.file.size };
	symbols = seam_symbols_new(&(struct seam_symbols_options) { 0 });
	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_perf(&p, &(struct seam_perf_input) {
		.data = &file }, symbols, NULL), 0);
	assert_int_equal(p.samples.n, 1);
	assert_int_equal(seam_profile_n_lost(&p), 1);
	seam_profile_fini(&p);
	seam_symbols_free(symbols);
	free(r.file.data);
}

static void put_feature(struct bytes *b, uint64_t feature, const char *text)
{
	size_t at = begin_record(b, SEAM_PERF_HEADER_FEATURE, 0);

	put_u64(b, feature);
	put_feature_string(b, text);
	end_record(b, at);
}

/* A sample at the running kernel's @text_addr, of a machine of @host. */
static struct recorded record_kernel(const char *host, const char *release,
				     uint64_t text_addr)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL, text_addr };
	struct bytes b = { .endian = SEAM_LITTLE };
	size_t at;

	put_feature(&b, SEAM_PERF_FEATURE_HOSTNAME, host);
	put_feature(&b, SEAM_PERF_FEATURE_OSRELEASE, release);
	at = begin_record(&b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	put_u32(&b, UINT32_MAX);
	put_u32(&b, 0);
	put_u64(&b, text_addr);
	put_u64(&b, 0x1000000);
	put_u64(&b, text_addr);
	put_name(&b, "[kernel.kallsyms]_text");
	put_stamp(&b, -1, 0, 0);
	end_record(&b, at);
	put_sample(&b, TEST_ID_1, 7, 7, 20, chain, 2);
	return record_data(b, false);
}

/* perf records no build id of the kernel with -z and -B. */
UNIT_TEST(a_kernel_without_a_build_id_is_this_boots_or_unknown)
{
	struct seam_kernel_identity own;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(seam_kernel_identify(&own, NULL), 0);
	for (int i = 0; i < 5; i++) {
		struct recorded r = record_kernel(
			i == 1 ? "testhost" : name.nodename,
			i == 2 ? "1.2.3-testing" : name.release,
			own.text_addr + (i == 3 ? 0x200000 : 0));

		if (i == 4)	/* before this boot */
			r.written_ns = 1000000000;
		/* a user without rights sees no addresses */
		assert_int_equal(load(&r, NULL).name[0] != '[',
				 i == 0 && own.text_addr);
		free(r.file.data);
	}
}

int main(void)
{
	return unit_run(enter, build_leave, NULL, NULL);
}
