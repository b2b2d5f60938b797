/* SPDX-License-Identifier: MIT */
/* test_program_ring.c - what a service is called with, and that it is ended */
#include <pthread.h>

#include "base/clock.h"
#include "record/services/services.c"
#include "ring/producer/claim.h"
#include "unit.h"

/* A ring of this program, which is its own recorder. */
struct fixture {
	struct seam_services services;
	struct seam_service service;
	struct seam_link_target target;
	struct program_ring *ring;
	struct seam_ring_claim claim;
	uint32_t tid;		/* of the thread that has the ring */
	pthread_t thread;
	int pipe[2];		/* the thread ends when it is closed */
	uint8_t taken[64];	/* the last record */
	int n_previews, n_takes, n_ends;
	uint32_t ended_pid;
	int begin_result;
};

static struct fixture f;

static int begin(struct seam_service_stream *stream)
{
	(void)stream;
	return f.begin_result;
}

static bool take(struct seam_service_stream *stream, uint8_t *record,
		 size_t size)
{
	assert_int_equal(stream->pid, getpid());
	assert_int_equal(stream->tid, f.tid);
	assert_true(size <= sizeof(f.taken));
	memcpy(f.taken, record, size);
	f.n_takes++;
	return true;
}

static void preview(struct seam_service *service,
		    struct seam_service_stream *stream, const uint8_t *record,
		    size_t size)
{
	(void)service;
	(void)record;
	(void)size;
	stream->state = &f;
	f.n_previews++;
}

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	(void)counts;
	assert_ptr_equal(stream->state, f.n_previews ? &f : NULL);
	assert_ptr_equal(stream->service, &f.service);
	f.ended_pid = stream->pid;
	f.n_ends++;
}

static void connect_as(pid_t pid)
{
	seam_tree_process_unref(f.target.process);
	f.target.pid = pid;
	f.target.process = seam_task_tree_get(&f.services.tree, (uint32_t)pid,
					      UINT64_MAX);
}

static void open_ring(void)
{
	static const struct seam_ring_geometry geometry = {
		.n_slots = 1, .data_bytes = 4096,
	};
	struct seam_link_rings *rings = &f.target.rings[0];

	connect_as(getpid());
	f.target.connected_ns = f.target.rings_ns = seam_clock_ns();
	f.target.n_rings = 1;
	assert_int_equal(seam_owners_open(&rings->owners, &geometry, NULL), 0);
	assert_int_equal(seam_owners_prepare(&rings->owners, 1, NULL), 0);
	assert_int_equal(seam_ring_memory_claim(&rings->owners.memory,
						f.tid, &f.claim), 0);
	assert_int_equal(seam_owners_scan(&rings->owners), 1);
	f.ring = ring_get(&f.services, &f.target, rings, 0);
	assert_non_null(f.ring);
}

static void *wait_to_end(void *tid)
{
	uint32_t own = (uint32_t)gettid();
	char byte;

	assert_int_equal(write(*(int *)tid, &own, sizeof(own)), sizeof(own));
	return read(f.pipe[0], &byte, 1) == 0 ? NULL : &f;
}

/* The ring is that of another thread than the process's first. */
static void start_thread(void)
{
	int told[2];

	assert_int_equal(pipe(f.pipe), 0);
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pthread_create(&f.thread, NULL, wait_to_end,
					&told[1]), 0);
	assert_int_equal(read(told[0], &f.tid, sizeof(f.tid)), sizeof(f.tid));
	close(told[0]);
	close(told[1]);
}

static void end_thread(void)
{
	close(f.pipe[1]);
	assert_int_equal(pthread_join(f.thread, NULL), 0);
	close(f.pipe[0]);
}

/* The kernel records that @pid began @tid, of process @child. */
static void see_fork(pid_t child, pid_t tid, pid_t pid)
{
	const struct seam_perf_sideband record = {
		.type = PERF_RECORD_FORK, .sample_id.time = seam_clock_ns(),
		.task = { .pid = child, .tid = tid, .ppid = pid },
	};

	seam_task_tree_see(&f.services.tree, &record, record.sample_id.time);
	seam_task_tree_apply(&f.services.tree, UINT64_MAX);
}

static int setup(void **state)
{
	f = (struct fixture) {
		.service = {
			.event_id = 0x7357,
			.event = "seam:test", .sample_type = PERF_SAMPLE_TIME |
			PERF_SAMPLE_TID | PERF_SAMPLE_IDENTIFIER,
			.begin = begin, .take = take, .preview = preview,
			.end = end,
		},
	};
	f.services.items[0] = &f.service;
	f.services.record = malloc(RECORD_BYTES);
	assert_non_null(f.services.record);
	start_thread();
	open_ring();
	see_fork(getpid(), (pid_t)f.tid, getpid());
	return 0;
}

static int teardown(void **state)
{
	struct seam_link_rings *rings = &f.target.rings[0];

	end_thread();
	seam_owners_close(&rings->owners);
	seam_tree_process_unref(f.target.process);
	seam_services_fini(&f.services);
	return 0;
}

/* The program writes a sample, and the recorder has a round. */
static void round_with_sample(bool is_last)
{
	/* id, pid and tid, and time: not its own */
	const uint64_t fields[] = { 1, UINT64_C(0x100000001),
				    seam_clock_ns() };

	assert_int_equal(seam_ring_write(&f.claim.ring, PERF_RECORD_SAMPLE, 0,
					 fields, sizeof(fields)), 0);
	f.services.is_last = is_last;
	ring_copy(&f.services, f.ring);
	ring_preview(&f.services, f.ring);
	f.services.round_ns = seam_clock_ns();
	ring_take(&f.services, f.ring);
}

UNIT_TEST(a_sample_is_previewed_once_and_taken)
{
	round_with_sample(false);
	assert_int_equal(f.n_previews, 1);
	assert_int_equal(f.n_takes, 1);
	assert_int_equal(f.service.n_samples, 1);
	round_with_sample(true);
	assert_int_equal(f.n_ends, 1);
	assert_int_equal(f.ended_pid, getpid());
}

/* Whatever the program has written into it. */
UNIT_TEST(a_sample_is_of_its_rings_event_process_and_thread)
{
	const uint8_t *fields = f.taken + sizeof(struct seam_ring_header);
	uint32_t ids[2];
	uint64_t id;

	assert_int_not_equal(f.tid, getpid());
	round_with_sample(false);
	memcpy(&id, fields, sizeof(id));
	memcpy(ids, fields + sizeof(id), sizeof(ids));
	assert_int_equal(id, f.service.event_id);
	assert_int_equal(ids[0], getpid());
	assert_int_equal(ids[1], f.tid);
	/* and so it is written */
	assert_int_equal(f.services.round.bytes.n, 32);
	assert_memory_equal(f.services.round.bytes.items, f.taken, 32);
	round_with_sample(true);
	assert_int_equal(f.n_ends, 1);
}

/* What it superseded would be missing. */
UNIT_TEST(a_sample_of_another_clock_is_not_previewed)
{
	f.services.other_clock = true;
	round_with_sample(false);
	round_with_sample(true);
	assert_int_equal(f.n_previews, 0);
	assert_int_equal(f.n_takes, 0);
	assert_int_equal(f.service.n_bad, 2);
}

UNIT_TEST(a_service_that_cannot_begin_gets_no_record)
{
	f.begin_result = -ENOMEM;
	round_with_sample(false);
	round_with_sample(false);
	assert_int_equal(f.n_previews, 1);
	round_with_sample(true);
	assert_int_equal(f.n_takes, 0);
	assert_int_equal(f.n_ends, 0);
	assert_int_equal(f.service.n_unowned, 1);
}

UNIT_MAIN(NULL, NULL, setup, teardown)
