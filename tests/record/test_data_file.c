/* SPDX-License-Identifier: MIT */
/* test_data_file.c - one file, its copy, and an event without a descriptor */
#include "record/perf/data_file.h"

#include "record/perf/auxtrace.h"
#include "wire/perf/perf_data.h"

#include "unit.h"

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

/* A record with @name. */
static void append(struct seam_data_file *file, const char *name)
{
	struct seam_synth synth = { .id = 9 };

	seam_synth_marker(&synth, 1, name, 0);
	assert_int_equal(seam_data_file_append(file, &synth, NULL), 0);
}

/* Both have the same bytes so far; then each has records of its own. */
UNIT_TEST(a_copy_goes_on_by_itself)
{
	struct seam_data_file file, copy = { .fd = -1 };
	struct seam_auxtrace_entry *slot;
	uint8_t bytes[2][4096];
	ssize_t n;

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

UNIT_TEST(what_is_reverted_counts_as_not_written)
{
	struct seam_data_file file;

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

UNIT_TEST(a_loss_is_of_a_full_ring_or_of_a_pause)
{
	struct seam_data_file file;

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
		assert_int_equal(file.writer.data_bytes, 8 + 8 + 32);
		seam_data_file_fini(&file);
	}
	ring.is_backward = false;
}

/* ---- an event of a program, beside events of the kernel ---- */

struct opened {
	struct seam_event_list events;
	struct seam_sources sources;
};

/* The events of a recording of this thread, open, @with_clock or without. */
static void open_events(struct opened *o, bool with_clock)
{
	struct seam_number_list *cpus = &o->sources.cpus;
	struct seam_event *first;

	*o = (struct opened) { 0 };
	first = seam_event_list_push(&o->events);
	if (with_clock)
		assert_int_equal(seam_event_parse(first, "cpu-clock:u", NULL),
				 0);
	else
		seam_event_init_program(first, "other", 4);
	first->attr.sample_period = 1000000;
	seam_event_init_program(seam_event_list_push(&o->events), "counter", 3);
	seam_sources_sideband(seam_event_list_push(&o->events));
	o->sources.events = o->events.items;
	o->sources.n_events = o->events.n;
	o->sources.sideband = SIDEBAND;
	o->sources.ring_bytes = 16 * 4096;
	assert_int_equal(seam_procfs_cpus(cpus, NULL), 0);
	*SEAM_ARRAY_PUSH(&o->sources.tids) = getpid();
	assert_int_equal(seam_sources_open(&o->sources, NULL), 0);
}

static void fini(struct opened *o)
{
	seam_sources_fini(&o->sources);
	seam_event_list_fini(&o->events);
}

UNIT_TEST(no_descriptor_and_no_ring_is_opened_for_it)
{
	struct opened o;
	size_t n_clock = 0;

	open_events(&o, true);
	for (size_t i = 0; i < o.sources.list.n; i++) {
		assert_int_not_equal(o.sources.list.items[i].event, PROGRAM);
		n_clock += o.sources.list.items[i].event == SAMPLED;
	}
	assert_int_equal(n_clock, o.sources.cpus.n);
	assert_int_equal(o.sources.rings.n, 2 * o.sources.cpus.n);
	fini(&o);
}

UNIT_TEST(alone_it_has_the_side_band_and_no_ring_of_samples)
{
	struct opened o;

	open_events(&o, false);
	assert_int_equal(o.sources.list.n, o.sources.cpus.n);
	for (size_t i = 0; i < o.sources.rings.n; i++)
		assert_int_equal(o.sources.rings.items[i].use,
				 SEAM_RING_OF_SIDEBAND);
	fini(&o);
}

UNIT_TEST(a_file_has_its_attr_and_its_id)
{
	struct opened o;
	struct seam_data_file file = { .fd = -1 };
	struct seam_perf_data data;
	int fd = memfd_create("data", MFD_CLOEXEC);
	uint8_t *bytes;
	off_t size;

	open_events(&o, true);
	assert_int_equal(seam_data_file_begin(&file, fd, &o.sources, NULL), 0);
	size = lseek(fd, 0, SEEK_END);
	bytes = malloc((size_t)size);
	assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
					     bytes, (size_t)size }, NULL), 0);
	assert_int_equal(data.events.n, N_EVENTS);
	for (size_t i = 0; i < o.sources.list.n; i++)
		assert_int_equal(seam_perf_data_event(&data,
				 o.sources.list.items[i].id),
				 o.sources.list.items[i].event);
	assert_int_equal(seam_perf_data_event(&data,
			 o.events.items[PROGRAM].program_id), PROGRAM);
	assert_true(data.events.items[PROGRAM].attr.sample_type &
		    PERF_SAMPLE_RAW);
	assert_int_equal(seam_perf_data_event(&data,
			 seam_sources_sideband_id(&o.sources)), SIDEBAND);
	/* readers refuse a file whose events disagree in these */
	for (size_t e = 0; e < N_EVENTS; e++) {
		assert_int_equal(data.events.items[e].attr.read_format,
				 data.events.items[SAMPLED].attr.read_format);
		assert_true(data.events.items[e].attr.sample_type &
			    PERF_SAMPLE_IDENTIFIER);
	}
	seam_perf_data_close(&data);
	free(bytes);
	seam_data_file_fini(&file);
	fini(&o);
}

UNIT_TEST(what_aux_records_say_is_counted)
{
	static const uint64_t flags[] = { 0, 1, 2, 4, 8, 15 };
	struct seam_counts losses = { 0 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(flags); i++)
		seam_auxtrace_count(&losses, &(struct seam_perf_aux) {
			.flags = flags[i] });
	assert_int_equal(losses.n[SEAM_COUNT_AUX_TRUNCATED], 2);
	assert_int_equal(losses.n[SEAM_COUNT_AUX_PARTIAL], 2);
	assert_int_equal(losses.n[SEAM_COUNT_AUX_COLLISION], 2);
}

UNIT_MAIN(NULL, NULL, set_up, NULL)
