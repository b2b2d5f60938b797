/* SPDX-License-Identifier: MIT */
/* test_data_file.c - one file, and a second one that begins as its copy */
#include "record/perf/data_file.h"


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLED, PROGRAM, SIDEBAND, N_EVENTS };

static struct seam_event events[N_EVENTS];
static struct seam_source list[] = {
	{ .fd = -1, .id = 7, .event = SAMPLED },
	{ .fd = -1, .id = 9, .event = SIDEBAND },
};
static struct seam_source_ring ring = { .cpu = 3, .fd = -1 };
static struct seam_sources sources;

static int set_up(void **state)
{
	(void)state;
	sources = (struct seam_sources) {
		.events = events, .n_events = N_EVENTS, .sideband = SIDEBAND,
		.list = { .items = list, .n = 2 },
		.rings = { .items = &ring, .n = 1 },
	};
	seam_event_init(&events[SAMPLED]);
	seam_event_init_program(&events[PROGRAM], "counter", 1);
	seam_sources_sideband(&events[SIDEBAND]);
	list[0].n_lost = 0;
	return 0;
}

static void begin(struct seam_data_file *file)
{
	*file = (struct seam_data_file) { .fd = -1 };
	assert_int_equal(seam_data_file_begin(file,
			 memfd_create("data", MFD_CLOEXEC), &sources, NULL),
			 0);
}

/* A COMM record of @name. */
static void append(struct seam_data_file *file, const char *name)
{
	struct seam_synth synth = { .id = 9 };

	seam_synth_comm(&synth, 1, 1, name);
	assert_int_equal(seam_data_file_append(file, &synth, NULL), 0);
}

static void an_event_without_a_descriptor_has_its_id(void **state)
{
	struct seam_data_file file;

	(void)state;
	begin(&file);
	assert_int_equal(file.n_events, N_EVENTS);
	assert_int_equal(file.events[SAMPLED].n_ids, 1);
	assert_int_equal(file.events[SAMPLED].ids[0], 7);
	assert_int_equal(file.events[PROGRAM].n_ids, 1);
	assert_true(file.events[PROGRAM].ids[0] == events[PROGRAM].program_id);
	assert_int_equal(file.events[SIDEBAND].ids[0], 9);
	assert_int_equal(seam_sources_sideband_id(&sources), 9);
	seam_data_file_fini(&file);
}

/* Both have the same bytes so far; then each has records of its own. */
static void a_copy_goes_on_by_itself(void **state)
{
	struct seam_data_file file, copy = { .fd = -1 };
	struct seam_auxtrace_entry *slot;
	uint8_t bytes[2][4096];
	ssize_t n;

	(void)state;
	begin(&file);
	append(&file, "first");
	file.counts.n_samples = file.by_event[SAMPLED].n_samples = 5;
	file.losses.n[SEAM_COUNT_THROTTLED] = 2;
	slot = SEAM_ARRAY_PUSH(&file.auxtraces);
	*slot = (struct seam_auxtrace_entry) { 512, 48 };
	assert_int_equal(seam_data_file_copy(&copy,
			 memfd_create("copy", MFD_CLOEXEC), &file, NULL), 0);
	n = pread(file.fd, bytes[0], sizeof(bytes[0]), 0);
	assert_true(n > 0);
	assert_int_equal(pread(copy.fd, bytes[1], sizeof(bytes[1]), 0), n);
	assert_memory_equal(bytes[0], bytes[1], (size_t)n);

	append(&copy, "second");
	copy.counts.n_samples++;
	copy.by_event[SAMPLED].n_samples++;
	copy.events[SAMPLED].ids[0] = 8;
	assert_true(copy.writer.data_bytes > file.writer.data_bytes);
	assert_int_equal(lseek(file.fd, 0, SEEK_END), n);
	assert_int_equal(file.counts.n_samples, 5);
	assert_int_equal(file.by_event[SAMPLED].n_samples, 5);
	assert_int_equal(file.events[SAMPLED].ids[0], 7);
	assert_int_equal(copy.losses.n[SEAM_COUNT_THROTTLED], 2);
	assert_int_equal(copy.auxtraces.items[0].offset, 512);
	seam_data_file_fini(&file);
	seam_data_file_fini(&copy);
}

static void what_is_reverted_counts_as_not_written(void **state)
{
	struct seam_data_file file;

	(void)state;
	begin(&file);
	file.n_records = 10;
	file.counts.n_samples = file.by_event[SAMPLED].n_samples = 4;
	seam_data_file_mark(&file);
	file.n_records += 3;
	file.counts.n_samples += 2;
	file.by_event[SAMPLED].n_samples += 2;
	seam_data_file_revert(&file);
	assert_int_equal(file.counts.n_samples, 4);
	assert_int_equal(file.by_event[SAMPLED].n_samples, 4);
	assert_int_equal(file.losses.n[SEAM_COUNT_UNWRITTEN], 3);
	seam_data_file_lost(&file);
	assert_int_equal(file.counts.n_samples, 0);
	assert_int_equal(file.losses.n[SEAM_COUNT_UNWRITTEN], 13);
	seam_data_file_fini(&file);
}

static void a_loss_is_of_a_full_ring_or_of_a_pause(void **state)
{
	struct seam_data_file file;

	(void)state;
	for (int backward = 0; backward < 2; backward++) {
		begin(&file);
		list[0].n_lost = 6;
		ring.is_backward = backward;
		assert_int_equal(seam_data_file_write_losses(&file, &sources,
				 false, NULL), 0);
		assert_int_equal(file.losses.n[SEAM_COUNT_PAUSED],
				 backward ? 6 : 0);
		assert_int_equal(file.losses.n[SEAM_COUNT_RING_FULL],
				 backward ? 0 : 6);
		assert_int_equal(file.by_event[SAMPLED].n_lost, 6);
		assert_int_equal(file.writer.data_bytes,
				 8 + 8 + 32);
		seam_data_file_fini(&file);
	}
	ring.is_backward = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			an_event_without_a_descriptor_has_its_id, set_up),
		cmocka_unit_test_setup(a_copy_goes_on_by_itself, set_up),
		cmocka_unit_test_setup(what_is_reverted_counts_as_not_written,
				       set_up),
		cmocka_unit_test_setup(a_loss_is_of_a_full_ring_or_of_a_pause,
				       set_up),
	};

	return cmocka_run_group_tests_name("data_file", tests, NULL, NULL);
}
