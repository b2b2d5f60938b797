/* SPDX-License-Identifier: MIT */
/* test_program_event.c - an event with an attr and an id, and no descriptor */
#include "record/events/event.h"
#include "record/perf/data_file.h"
#include "record/perf/sources.h"
#include "wire/perf/perf_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { CLOCK, PROGRAM, SIDEBAND, N_EVENTS };

struct opened {
	struct seam_event_list events;
	struct seam_sources sources;
};

/* The events of a recording of this thread, open. */
static void open_events(struct opened *o)
{
	struct seam_number_list *cpus = &o->sources.cpus;

	*o = (struct opened) { 0 };
	assert_int_equal(seam_event_parse(seam_event_list_push(&o->events),
					  "cpu-clock:u", NULL), 0);
	o->events.items[CLOCK].attr.sample_period = 1000000;
	seam_event_init_program(seam_event_list_push(&o->events), "counter",
				3);
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

static void no_descriptor_and_no_ring_is_opened_for_it(void **state)
{
	struct opened o;
	size_t n_clock = 0;

	(void)state;
	open_events(&o);
	for (size_t i = 0; i < o.sources.list.n; i++) {
		assert_int_not_equal(o.sources.list.items[i].event, PROGRAM);
		n_clock += o.sources.list.items[i].event == CLOCK;
	}
	assert_int_equal(n_clock, o.sources.cpus.n);
	assert_int_equal(o.sources.rings.n, 2 * o.sources.cpus.n);
	fini(&o);
}

static void alone_it_has_the_side_band_and_no_ring_of_samples(void **state)
{
	struct opened o;

	(void)state;
	open_events(&o);
	seam_sources_fini(&o.sources);
	seam_event_init_program(&o.events.items[CLOCK], "other", 4);
	o.sources = (struct seam_sources) {
		.events = o.events.items, .n_events = o.events.n,
		.sideband = SIDEBAND,
		.ring_bytes = 16 * 4096,
	};
	assert_int_equal(seam_procfs_cpus(&o.sources.cpus, NULL), 0);
	*SEAM_ARRAY_PUSH(&o.sources.tids) = getpid();
	assert_int_equal(seam_sources_open(&o.sources, NULL), 0);
	assert_int_equal(o.sources.list.n, o.sources.cpus.n);
	for (size_t i = 0; i < o.sources.rings.n; i++)
		assert_int_equal(o.sources.rings.items[i].use,
				 SEAM_RING_OF_SIDEBAND);
	fini(&o);
}

static void a_file_has_its_attr_and_its_id(void **state)
{
	struct opened o;
	struct seam_data_file file = { .fd = -1 };
	struct seam_perf_data data;
	int fd = memfd_create("data", MFD_CLOEXEC);
	uint8_t *bytes;
	off_t size;

	(void)state;
	open_events(&o);
	assert_int_equal(seam_data_file_begin(&file, fd, &o.sources, NULL), 0);
	size = lseek(fd, 0, SEEK_END);
	bytes = malloc((size_t)size);
	assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
	assert_int_equal(seam_perf_data_open(&data, (struct seam_bytes) {
					     bytes, (size_t)size }, NULL), 0);
	assert_int_equal(data.events.n, N_EVENTS);
	assert_int_equal(data.events.items[CLOCK].n_ids, o.sources.cpus.n);
	assert_int_equal(data.events.items[PROGRAM].n_ids, 1);
	assert_int_equal(data.events.items[PROGRAM].ids[0],
			 o.events.items[PROGRAM].program_id);
	assert_true(data.events.items[PROGRAM].attr.sample_type &
		    PERF_SAMPLE_RAW);
	/* readers refuse a file whose events disagree in these */
	for (size_t e = 0; e < N_EVENTS; e++) {
		assert_int_equal(data.events.items[e].attr.read_format,
				 data.events.items[CLOCK].attr.read_format);
		assert_true(data.events.items[e].attr.sample_type &
			    PERF_SAMPLE_IDENTIFIER);
	}
	seam_perf_data_close(&data);
	free(bytes);
	seam_data_file_fini(&file);
	fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_descriptor_and_no_ring_is_opened_for_it),
		cmocka_unit_test(
			alone_it_has_the_side_band_and_no_ring_of_samples),
		cmocka_unit_test(a_file_has_its_attr_and_its_id),
	};

	return cmocka_run_group_tests_name("program_event", tests, NULL, NULL);
}
