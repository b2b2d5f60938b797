/* SPDX-License-Identifier: MIT */
/* test_manifest.c - meta.json, written and read back */
#include "wire/manifest.h"

#include "base/file.h"

#include "unit.h"

static const char *const words[] = { "seam", "record", "--", "a\"b\n" };
static const char *const events[] = { "cpu-clock", "dummy:HG" };
static const char *const left_out[] = { "kernel" };
static const struct seam_manifest_ring rings[] = {
	{ .cpu = 3, .tid = -1, .kind = "samples", .size_bytes = 4096,
	  .n_lost = 5 },
	{ .cpu = -1, .tid = 7, .kind = "area", .area_bytes = 1 << 20,
	  .n_records = 8, .n_bytes = 9 },
};

static const struct seam_manifest_event by_event[] = {
	{ "cpu-clock", 31, 0 }, { "dummy:HG", 0, 32 },
};
static const struct seam_manifest_trigger triggers[] = {
	{ "f>1ms", 33, 34, 35, 36, 37, 38 }, { .text = "g", .pid = 39 },
};
static const struct seam_tsc_tie ties[] = { { 1, 2 }, { 3, 5 } };
static const struct seam_manifest_file files[] = {
	{ "/usr/bin/go", 15, UINT64_C(0xfedcba9876543210) },
	{ "a\"b\n", 16, 1 },
};

static struct seam_manifest full = {
	.version = "seam 1", .complete = true,
	.words = words, .n_words = 4,
	.host = "vm", .release = "6.1", .arch = "x86_64", .boot_id = "b-i",
	.kernel_build_id = { 0x12, 0xab, 0xff }, .kernel_build_id_size = 3,
	.kernel_text_addr = UINT64_C(0xffffffff81000000),
	.vdso_build_id = { 0x01 }, .vdso_build_id_size = 1,
	.start_wall_ns = 1795168229926639405, .start_ns = 17,
	.duration_ns = 18, .events = events, .n_events = 2,
	.left_out = left_out, .n_left_out = 1,
	.files = files, .n_files = 2,
	.n_samples = 100, .rings = rings, .n_rings = 2,
	.by_event = by_event, .n_by_event = 2,
	.triggers = triggers, .n_triggers = 2, .ties = ties, .n_ties = 2,
	.overwrite = true, .snapshots = true, .kernel_clock = true,
	.stacks = {
		.n_ended = { 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72,
			     73, 74 },
		.n_empty = 79, .n_jvm = 80, .n_kernel_cut = 82, .n_32_bit = 83,
		.dump_bytes = 32768, .n_modules = 2, .modules = {
			{ 50, SEAM_STACK_WITHOUT_CFI, "/lib/a" },
			{ 13, SEAM_STACK_UNREADABLE, "/lib/a" },
		},
	},
};

/* Each count is distinct. */
static int set_counts(void **state)
{
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		full.counts.n[i] = 1000 + i;
	return 0;
}

/* The file's bytes, on the heap and no byte longer. */
static struct seam_bytes written(const struct seam_manifest *m)
{
	int fd = memfd_create("meta", MFD_CLOEXEC);
	uint8_t *data;
	off_t size;

	assert_int_equal(seam_manifest_write(fd, m, NULL), 0);
	size = lseek(fd, 0, SEEK_END);
	data = malloc((size_t)size);
	assert_int_equal(pread(fd, data, (size_t)size, 0), size);
	close(fd);
	return (struct seam_bytes) { data, (size_t)size };
}

static void release(struct seam_bytes bytes)
{
	free((void *)(uintptr_t)bytes.data);
}

UNIT_TEST(reads_back_what_it_wrote)
{
	struct seam_bytes json = written(&full);
	struct seam_manifest m;

	assert_int_equal(seam_manifest_read(&m, json, NULL), 0);
	release(json);
	assert_string_equal(m.version, "seam 1");
	assert_true(m.complete);
	assert_int_equal(m.n_words, 4);
	assert_string_equal(m.words[3], "a\"b\n");
	assert_string_equal(m.boot_id, "b-i");
	assert_string_equal(m.release, "6.1");
	assert_int_equal(m.kernel_build_id_size, 3);
	assert_memory_equal(m.kernel_build_id, full.kernel_build_id, 3);
	assert_true(m.kernel_text_addr == full.kernel_text_addr);
	assert_int_equal(m.vdso_build_id_size, 1);
	assert_true(m.start_wall_ns == full.start_wall_ns);
	assert_string_equal(m.events[1], "dummy:HG");
	assert_string_equal(m.left_out[0], "kernel");
	assert_int_equal(m.n_files, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(m.files[i].path, files[i].path);
		assert_int_equal(m.files[i].ino, files[i].ino);
		assert_true(m.files[i].content_id == files[i].content_id);
	}
	assert_memory_equal(&m.counts, &full.counts, sizeof(m.counts));
	seam_manifest_fini(&m);
}

UNIT_TEST(what_was_read_and_written_again_is_the_same_file)
{
	struct seam_bytes first = written(&full), second;
	struct seam_manifest again;

	assert_int_equal(seam_manifest_read(&again, first, NULL), 0);
	second = written(&again);
	assert_int_equal(second.size, first.size);
	assert_memory_equal(second.data, first.data, first.size);
	assert_memory_equal(&again.n_samples, &full.n_samples,
			    offsetof(struct seam_manifest, triggers) -
			    offsetof(struct seam_manifest, n_samples));
	seam_manifest_fini(&again);
	release(first);
	release(second);
}

static bool has_text(struct seam_bytes json, const char *text)
{
	return memmem(json.data, json.size, text, strlen(text));
}

UNIT_TEST(omits_optional_objects_in_which_nothing_was_counted)
{
	static const char *const optional[] = {
		"\"areas\"", "\"jit\"", "\"not_recorded\"", "\"kept\"",
		"\"late\"", "\"stacks\"",
	};
	struct seam_bytes all = written(&full);
	struct seam_bytes none = written(&(struct seam_manifest) { 0 });

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(optional); i++) {
		assert_true(has_text(all, optional[i]));
		assert_false(has_text(none, optional[i]));
	}
	assert_true(has_text(none, "\"ring_full\": 0"));
	assert_true(has_text(none, "\"monotonic_ns\": 0"));
	release(all);
	release(none);
}

/* A count may be anything; it must not cost the others. */
UNIT_TEST(a_count_beyond_all_bounds_is_read_as_the_largest)
{
	struct seam_manifest huge = full, again;
	struct seam_bytes json;

	huge.counts.n[SEAM_COUNT_JIT_LOST] = UINT64_MAX;
	huge.counts.n[SEAM_COUNT_RING_FULL] = (uint64_t)INT64_MAX + 1;
	json = written(&huge);
	assert_int_equal(seam_manifest_read(&again, json, NULL), 0);
	assert_true(again.counts.n[SEAM_COUNT_JIT_LOST] == INT64_MAX);
	assert_true(again.counts.n[SEAM_COUNT_RING_FULL] == INT64_MAX);
	assert_int_equal(again.n_samples, 100);
	seam_manifest_fini(&again);
	release(json);
}

UNIT_TEST(refuses_a_file_cut_at_any_byte)
{
	struct seam_bytes json = written(&full);

	/* the last byte is a newline, without which nothing is missing */
	for (size_t n = 0; n < json.size - 1; n++) {
		uint8_t *cut = malloc(n ? n : 1);
		struct seam_manifest m;

		memcpy(cut, json.data, n);
		assert_int_equal(seam_manifest_read(&m,
			(struct seam_bytes) { cut, n }, NULL), -EBADMSG);
		seam_manifest_fini(&m);
		free(cut);
	}
	release(json);
}

UNIT_TEST(survives_any_flipped_byte)
{
	struct seam_bytes json = written(&full);
	uint8_t *bytes = (void *)(uintptr_t)json.data;

	for (size_t i = 0; i < json.size; i++) {
		uint8_t was = bytes[i];

		for (int bit = 0; bit < 8; bit++) {
			struct seam_manifest m;
			int r;

			bytes[i] = (uint8_t)(was ^ 1 << bit);
			r = seam_manifest_read(&m, json, NULL);
			assert_true(r == 0 || r == -EBADMSG || r == -ENOTSUP);
			assert_true(m.kernel_build_id_size <= 20);
			seam_manifest_fini(&m);
		}
		bytes[i] = was;
	}
	release(json);
}

static int read_text(const char *text, struct seam_manifest *m)
{
	return seam_manifest_read(m, (struct seam_bytes) {
		(const uint8_t *)text, strlen(text) }, NULL);
}

UNIT_TEST(takes_what_is_missing_or_odd_as_nothing)
{
	struct seam_manifest m;

	assert_int_equal(read_text("{\"schema\":\"seam.bundle/1\","
		"\"command\":[1,\"x\",null],\"kernel\":{\"build_id\":\"xyz\","
		"\"text\":7},\"samples\":-1,\"host\":3,\"new\":{}}", &m), 0);
	assert_int_equal(m.n_words, 1);
	assert_string_equal(m.words[0], "x");
	assert_string_equal(m.boot_id, "");
	assert_int_equal(m.kernel_build_id_size, 0);
	assert_int_equal(m.kernel_text_addr, 0);
	assert_int_equal(m.n_samples, 0);
	assert_false(m.complete);
	seam_manifest_fini(&m);
}

UNIT_TEST(takes_no_build_id_that_is_too_long)
{
	struct seam_manifest m;

	assert_int_equal(read_text("{\"schema\":\"seam.bundle/1\",\"kernel\":"
		"{\"build_id\":\"000102030405060708090a0b0c0d0e0f101112131415\"}}",
		&m), 0);
	assert_int_equal(m.kernel_build_id_size, 0);
	seam_manifest_fini(&m);
}

/* When "complete" had those that the recorder had joined. */
UNIT_TEST(joined_stacks_of_earlier_recordings_are_not_complete)
{
	struct seam_manifest m;

	assert_int_equal(read_text("{\"schema\":\"seam.bundle/1\",\"stacks\":"
		"{\"ended\":{\"complete\":10,\"truncated\":3},"
		"\"joined\":4}}", &m), 0);
	assert_int_equal(m.stacks.n_ended[SEAM_STACK_COMPLETE], 6);
	assert_int_equal(m.stacks.n_ended[SEAM_STACK_JOINED], 4);
	assert_int_equal(m.stacks.n_ended[SEAM_STACK_TRUNCATED], 3);
	seam_manifest_fini(&m);
}

UNIT_TEST(refuses_other_schemas)
{
	struct seam_manifest m;

	assert_int_equal(read_text("{\"schema\":\"seam.bundle/2\"}", &m),
			 -ENOTSUP);
	assert_int_equal(read_text("[]", &m), -ENOTSUP);
	assert_int_equal(read_text("{}", &m), -ENOTSUP);
}

int main(void)
{
	return unit_run(set_counts, NULL, NULL, NULL);
}
