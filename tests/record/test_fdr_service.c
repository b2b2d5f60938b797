/* SPDX-License-Identifier: MIT */
/*
 * test_fdr_service.c - calls of programs, from their rings to the files
 *
 * The rings are made up, their bytes are chunk_made.h's.
 */

#include "base/clock.h"
#include "base/file.h"
#include "chunk_made.h"
#include "folder.h"
#include "record/services/fdr_service.h"
#include "wire/xray/xray_index.h"
#include "unit.h"

enum { PID = 4711 };

static struct seam_bundle bundle = { .dir = -1 };
static struct seam_fdr_service fdr;
static struct seam_trace_logs logs;
static struct chunk chunk;

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	bundle.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	seam_fdr_service_init(&fdr, 0);
	seam_trace_logs_init(&logs, &bundle, &fdr.clock);
	fdr.logs = &logs;
	return bundle.dir < 0;
}

static int tear_down(void **state)
{
	seam_trace_logs_fini(&logs);
	seam_fdr_service_fini(&fdr);
	close(bundle.dir);
	return drop_folder(state);
}

static struct seam_service_stream begin(uint32_t pid, uint32_t tid,
					uint64_t since_ns)
{
	struct seam_service_stream stream = {
		.service = &fdr.calls, .pid = pid, .tid = tid,
		.since_ns = since_ns,
	};

	assert_int_equal(fdr.calls.begin(&stream), 0);
	return stream;
}

static void end(struct seam_service_stream *stream, uint64_t n_lost)
{
	const struct seam_owner_counts counts = {
		.n_skipped = { [SEAM_TRACE_SKIPPED_FULL] = n_lost },
	};

	fdr.calls.end(stream, &counts);
}

/* A chunk in which the process says that it is another one. */
static void make_chunk(int32_t tid, uint64_t seed, size_t n)
{
	chunk_begin(&chunk, 1, tid, 3, 0, 100);
	while (n-- && chunk_random_record(&chunk, &seed))
		;
}

static void send(struct seam_service_stream *stream, size_t n)
{
	make_chunk((int32_t)stream->tid, stream->tid, n);
	fdr.calls.take_aux(stream, chunk.bytes, chunk.n);
}

static void announce(uint32_t pid, uint64_t since_ns,
		     const struct seam_xray_announcement *a)
{
	struct seam_service_stream stream = {
		.service = &fdr.functions, .pid = pid, .tid = pid,
		.since_ns = since_ns,
	};
	uint64_t record[1024];
	size_t size = seam_xray_write_announcement((uint8_t *)(record + 1),
						   sizeof(record) - 8, a);
	const struct seam_ring_header header = {
		.type = PERF_RECORD_SAMPLE, .size = (uint16_t)(size + 8),
	};

	assert_true(size > 0);
	memcpy(record, &header, sizeof(header));
	fdr.functions.take(&stream, (uint8_t *)record, size + 8);
}

static void announce_address(uint32_t pid, uint64_t since_ns, uint32_t image,
			     uint32_t id, uint64_t address)
{
	announce(pid, since_ns, &(struct seam_xray_announcement) {
		.addresses = { SEAM_XRAY_ANNOUNCED_FUNCTIONS, image, id, 1,
			       &address } });
}

/* The log's bytes, and its index. */
static struct seam_file read_log(const char *name,
				 struct seam_xray_index *index)
{
	struct seam_file file;
	char path[128];

	snprintf(path, sizeof(path), "%s/xray/%s", folder, name);
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	assert_int_equal(seam_xray_index_build(index, file.bytes, NULL), 0);
	assert_int_equal(index->problems.n, 0);
	return file;
}

UNIT_TEST(calls_are_in_the_log_of_their_process)
{
	struct seam_service_stream a = begin(PID, PID, 5), b;
	struct seam_xray_index index;
	struct seam_file file;
	uint64_t n = 0;

	b = begin(PID, PID + 1, 5);
	for (int i = 0; i < 3; i++) {
		send(&a, 100);
		n += chunk.n_records;
		send(&a, 100);
		n += chunk.n_records;
		send(&b, 50);
		n += chunk.n_records;
	}
	end(&a, 7);
	end(&b, 1);
	seam_trace_logs_finish(&logs, &(struct seam_trace_logs_caller) {
		.note = NULL });
	assert_int_equal(logs.counts.n_records, n);
	assert_int_equal(fdr.counts.n[SEAM_COUNT_CALLS_FULL], 8);
	assert_int_equal(fdr.counts.n[SEAM_COUNT_CALLS_THREADS], 2);
	file = read_log("4711.xray", &index);
	assert_int_equal(file.bytes.size, seam_trace_logs_bytes(&logs));
	assert_int_equal(index.blocks.n, 6);
	for (size_t i = 0; i < index.blocks.n; i++) {
		assert_int_equal(index.blocks.items[i].pid, PID);
		assert_int_equal(index.blocks.items[i].tid, PID + (int)i % 2);
		/* not before the program connected, nor later than now */
		assert_true(index.blocks.items[i].wall_ns <= seam_clock_ns());
	}
	seam_xray_index_fini(&index);
	seam_file_close(&file);
}

/* Of the chunk, of the recording so far, of the connection. */
UNIT_TEST(times_that_cannot_be_are_bounded)
{
	uint64_t now_ns = seam_clock_ns(), since_ns = now_ns - 1000000;
	const uint64_t walls_us[] = { 0, now_ns / 1000, UINT64_MAX / 2000 };
	struct seam_service_stream a = begin(PID, PID, since_ns);
	struct seam_xray_index index;
	struct seam_file file;

	for (int i = 0; i < 3; i++) {
		chunk_begin(&chunk, PID, PID + i, walls_us[i], 0, 100);
		chunk_call(&chunk, SEAM_XRAY_ENTRY, 1, 1);
		fdr.calls.take_aux(&a, chunk.bytes, chunk.n);
	}
	end(&a, 0);
	file = read_log("4711.xray", &index);
	assert_int_equal(index.blocks.n, 3);
	for (int i = 0; i < 3; i++)
		assert_in_range(index.blocks.items[i].wall_ns,
				since_ns / 1000 * 1000, seam_clock_ns());
	assert_int_equal(index.blocks.items[1].wall_ns, now_ns / 1000 * 1000);
	seam_xray_index_fini(&index);
	seam_file_close(&file);
}

UNIT_TEST(a_program_that_comes_later_has_another_log)
{
	struct seam_service_stream a = begin(PID, PID, 5);
	struct stat st;
	char path[128];

	send(&a, 10);
	end(&a, 0);
	a = begin(PID, PID, 6);
	send(&a, 10);
	end(&a, 0);
	assert_int_equal(logs.items.n, 2);
	snprintf(path, sizeof(path), "%s/xray/4711.2.xray", folder);
	assert_int_equal(stat(path, &st), 0);
	/* the first goes on where it was */
	a = begin(PID, PID + 3, 5);
	end(&a, 0);
	assert_int_equal(logs.items.n, 2);
}

UNIT_TEST(damage_costs_what_is_after_it)
{
	struct seam_service_stream a = begin(PID, PID, 5);

	make_chunk(2, 1, 100);
	memset(chunk.bytes + chunk.n, 0xff, 8);
	fdr.calls.take_aux(&a, chunk.bytes, chunk.n + 8);
	assert_int_equal(logs.counts.n_records, chunk.n_records);
	assert_int_equal(logs.counts.n_bad_bytes, 8);
	chunk.bytes[0] = 0;
	fdr.calls.take_aux(&a, chunk.bytes, chunk.n);
	assert_int_equal(logs.counts.n_bad_bytes, 8 + chunk.n);
	end(&a, 0);
}

UNIT_TEST(what_cannot_be_written_is_counted)
{
	struct seam_service_stream a;
	char path[128];

	/* a file is in the way of the log */
	snprintf(path, sizeof(path), "%s/xray", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/xray/4711.xray", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	a = begin(PID, PID, 5);
	send(&a, 100);
	end(&a, 0);
	assert_int_equal(logs.counts.n_records, 0);
	assert_int_equal(logs.counts.n_unwritten, chunk.n_records);
	assert_non_null(strstr(logs.why.cause[0], "xray/4711.xray"));
}

UNIT_TEST(what_is_not_announced_rightly_is_counted)
{
	struct seam_service_stream a = begin(PID, PID, 5);
	struct seam_ring_header header = { PERF_RECORD_SAMPLE, 0, 40 };
	uint64_t record[5] = { 0 };

	memcpy(record, &header, sizeof(header));
	fdr.functions.take(&a, (uint8_t *)record, sizeof(record));
	fdr.calls.take(&a, (uint8_t *)record, sizeof(record));
	assert_int_equal(fdr.counts.n[SEAM_COUNT_CALLS_BAD], 2);
	header.type = PERF_RECORD_LOST;
	memcpy(record, &header, sizeof(header));
	fdr.functions.take(&a, (uint8_t *)record, sizeof(record));
	assert_int_equal(fdr.counts.n[SEAM_COUNT_CALLS_BAD], 2);
	end(&a, 0);
}

/* ---- maps ---- */

static void announce_image(uint32_t pid)
{
	announce(pid, 5, &(struct seam_xray_announcement) { .image = {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE,
		.image = 1, .bias = 0x7000,
		.path = "/a/path\x1b\"", .build_id = { 0x98, 0xfe, 0x0c },
		.build_id_bytes = 3 } });
	announce_address(pid, 5, 1, 5, 0x1130);
	announce_address(pid, 5, 0, 6, 0x1000);
	announce_address(pid, 5, 0, 8, 0x2000);		/* not called */
}

static uint64_t write_maps(void)
{
	uint64_t n_functions;

	assert_int_equal(seam_trace_functions_write(&fdr.known, &logs, 0,
						    &n_functions, NULL), 0);
	return n_functions;
}

static bool has(struct seam_file file, const char *text)
{
	return memmem(file.bytes.data, file.bytes.size, text, strlen(text));
}

static void call_5_and_6(uint32_t pid)
{
	struct seam_service_stream stream = begin(pid, pid, 5);

	chunk_begin(&chunk, 1, 2, 3, 0, 100);
	chunk_call(&chunk, SEAM_XRAY_ENTRY, 5, 1);
	chunk_call(&chunk, SEAM_XRAY_ENTRY, 6, 1);
	chunk_call(&chunk, SEAM_XRAY_ENTRY, 7, 1);
	fdr.calls.take_aux(&stream, chunk.bytes, chunk.n);
	end(&stream, 0);
}

static struct seam_file read_map(uint32_t pid)
{
	struct seam_file file;
	char path[128];

	snprintf(path, sizeof(path), "%s/xray/%u.yaml", folder, pid);
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	return file;
}

/* Its own, and that of a child that has announced nothing. */
UNIT_TEST(functions_that_were_seen_have_file_build_id_and_address)
{
	announce_image(PID);
	call_5_and_6(PID);
	call_5_and_6(PID + 1);
	/* of both processes; what is not announced is each one's own */
	assert_int_equal(write_maps(), 2 + 2);
	for (uint32_t pid = PID; pid <= PID + 1; pid++) {
		struct seam_file file = read_map(pid);

		assert_true(has(file, "# image 5 \"/a/path\\u001b\\\"\" "
				"98fe0c\n# image 6 \"\"\n---\n- { id: 5, "
				"address: 0x1130, function: 0x1130, kind: "
				"function-enter"));
		assert_true(has(file, "- { id: 6, address: 0x1000"));
		assert_false(has(file, "id: 7"));
		assert_false(has(file, "id: 8"));
		seam_file_close(&file);
	}
}

UNIT_TEST(a_registered_function_has_its_name_in_the_map)
{
	struct seam_file file;

	announce(PID, 5, &(struct seam_xray_announcement) {
		.named = { SEAM_XRAY_ANNOUNCED_NAME, 5, "a \"b\"" } });
	call_5_and_6(PID);
	write_maps();
	file = read_map(PID);
	assert_true(has(file, "---\n- { id: 5, address: 0x0, function: 0x0, "
			"kind: function-enter, always-instrument: true, "
			"function-name: \"a \\\"b\\\"\", version: 2 }\n"));
	seam_file_close(&file);
}

/* Its parent's, or what its nearest ancestor with some has. */
UNIT_TEST(a_forked_child_has_its_parents_functions)
{
	static const uint32_t wanted[] = { 1, 1, 2, 2, 2, 1 };

	announce_address(10, 5, 0, 5, 0x1000);
	seam_trace_functions_fork(&fdr.known, 11, 10);
	seam_trace_functions_fork(&fdr.known, 12, 11);
	announce_address(12, 5, 0, 5, 0x2000);
	seam_trace_functions_fork(&fdr.known, 13, 12);
	/* the same id again and again: its last fork counts */
	for (uint32_t i = 0; i < 70000; i++)
		seam_trace_functions_fork(&fdr.known, 14, 11);
	seam_trace_functions_fork(&fdr.known, 14, 13);
	assert_int_equal(fdr.known.forks.n, 4);
	/* processes in a circle, by ids that were used again */
	seam_trace_functions_fork(&fdr.known, 20, 21);
	seam_trace_functions_fork(&fdr.known, 21, 20);
	/* 15 is not known, as when its record was lost */
	for (uint32_t pid = 10; pid < 16; pid++)
		call_5_and_6(pid);
	write_maps();
	for (uint32_t i = 0; i < 6; i++) {
		struct seam_file file = read_map(10 + i);
		char text[32];

		snprintf(text, sizeof(text), "address: %#x", wanted[i] << 12);
		assert_true(has(file, text));
		seam_file_close(&file);
	}
}

UNIT_TEST(event_types_have_names)
{
	struct seam_file file;
	char path[128];

	announce(PID, 5, &(struct seam_xray_announcement) {
		.named = { SEAM_XRAY_ANNOUNCED_EVENT_TYPE, 9, "a \"b\"" } });
	call_5_and_6(PID);
	write_maps();
	snprintf(path, sizeof(path), "%s/xray/4711.events", folder);
	assert_int_equal(seam_file_open(&file, path, NULL), 0);
	assert_int_equal(file.bytes.size, 12);
	assert_memory_equal(file.bytes.data, "9 \"a \\\"b\\\"\"\n", 12);
	seam_file_close(&file);
}

/* ---- the clock ---- */

UNIT_TEST(ties_stay_spread_and_in_order)
{
	static struct seam_tsc_clock clock;

	seam_tsc_clock_begin(&clock);
	assert_int_equal(seam_tsc_clock_hz(&clock), 0);
	assert_int_equal(seam_tsc_clock_ns(&clock, 5), 0);
	for (int i = 0; i < 3 * SEAM_TSC_MAX_TIES; i++) {
		clock.interval_ns = 0;
		seam_tsc_clock_step(&clock);
		assert_true(clock.n <= SEAM_TSC_MAX_TIES);
	}
	assert_true(clock.n >= SEAM_TSC_MAX_TIES / 2);
	for (size_t i = 1; i < clock.n; i++)
		assert_true(clock.ties[i].tsc > clock.ties[i - 1].tsc &&
			    clock.ties[i].ns > clock.ties[i - 1].ns);
}

UNIT_TEST(a_tick_has_the_time_of_the_ties_around_it)
{
	static struct seam_tsc_clock clock = {
		.n = 3, .ties = { { 1000, 500 }, { 3000, 1500 },
				  { 7000, 2500 } },
	};

	assert_int_equal(seam_tsc_clock_ns(&clock, 1000), 500);
	assert_int_equal(seam_tsc_clock_ns(&clock, 2000), 1000);
	assert_int_equal(seam_tsc_clock_ns(&clock, 3000), 1500);
	assert_int_equal(seam_tsc_clock_ns(&clock, 5000), 2000);
	assert_int_equal(seam_tsc_clock_ns(&clock, 11000), 3500);
	assert_int_equal(seam_tsc_clock_ns(&clock, 400), 200);
	assert_int_equal(seam_tsc_clock_hz(&clock), 3000000000);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
