/* SPDX-License-Identifier: MIT */
/*
 * test_trace_functions.c - maps of programs that announce much, and their logs
 *
 * What well-behaved programs get is in test_fdr_service.c.
 */

#include "chunk_made.h"
#include "folder.h"
#include "record/trace/trace_functions.h"
#include "unit.h"

enum { N_FUNCTIONS = 6000, PID = 4711 };

static struct seam_bundle bundle = { .dir = -1 };
static struct seam_trace_functions known;
static struct seam_trace_logs logs;
static struct seam_tsc_clock ticks;
static struct chunk chunk;

static int set_up(void **state)
{
	if (make_folder(state))
		return -1;
	bundle.dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	seam_trace_logs_init(&logs, &bundle, &ticks);
	return bundle.dir < 0;
}

static int tear_down(void **state)
{
	seam_trace_functions_fini(&known);
	seam_trace_logs_fini(&logs);
	close(bundle.dir);
	return drop_folder(state);
}

static struct seam_trace_program program(uint32_t pid, uint64_t since_ns)
{
	return (struct seam_trace_program) { pid, since_ns };
}

static void announce_image(const struct seam_trace_program *p, uint32_t number)
{
	seam_trace_functions_add(&known, p, &(struct seam_xray_announcement) {
		.image = { .kind = SEAM_XRAY_ANNOUNCED_IMAGE, .image = number,
			   .build_id = { 0x98, 0xfe }, .build_id_bytes = 2,
			   .path = "/image" } });
}

static void announce_addresses(const struct seam_trace_program *p,
			       uint32_t number, uint32_t n)
{
	uint64_t addresses[SEAM_XRAY_MAX_ADDRESSES];

	for (uint32_t first = 1; first <= n; first += 4096) {
		uint32_t some = n + 1 - first < 4096 ? n + 1 - first : 4096;

		for (uint32_t i = 0; i < some; i++)
			addresses[i] = 16 * (first + i);
		seam_trace_functions_add(&known, p,
			&(struct seam_xray_announcement) {
				.addresses = { SEAM_XRAY_ANNOUNCED_FUNCTIONS,
					       number, first, some,
					       addresses } });
	}
}

static void announce_name(const struct seam_trace_program *p,
			  enum seam_xray_announcement_kind kind,
			  uint32_t number, const char *name)
{
	seam_trace_functions_add(&known, p, &(struct seam_xray_announcement) {
			.named = { kind, number, name } });
}

static void call(const struct seam_trace_program *p, uint32_t first,
		 uint32_t last)
{
	struct seam_program_log *log = seam_trace_logs_enter(&logs, p);

	assert_non_null(log);
	for (uint32_t id = first; id <= last;) {
		chunk_begin(&chunk, 1, 2, 3, 0, 100);
		while (id <= last && chunk_call(&chunk, SEAM_XRAY_ENTRY, id, 1))
			id++;
		seam_trace_logs_add(log, 2, chunk.bytes, chunk.n);
	}
	seam_trace_logs_leave(log);
}

static uint64_t size_of(const char *name)
{
	struct stat st = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/xray/%s", folder, name);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

UNIT_TEST(images_of_a_program_are_limited)
{
	struct seam_trace_program p = program(PID, 5);

	for (uint32_t i = 0; i < SEAM_TRACE_MAX_IMAGES + 9; i++)
		announce_image(&p, UINT32_MAX - i * 77);
	assert_int_equal(known.n_left_out, 9);
}

/* Each byte of a name is written as six, twice, in both logs. */
UNIT_TEST(maps_beside_all_logs_have_a_limit_together)
{
	char name[SEAM_XRAY_MAX_NAME], files[2][2][32];
	uint64_t bytes = 0, n_functions;

	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 0; i < 2; i++) {
		struct seam_trace_program p = program(PID + i, 5 + i);

		announce_image(&p, 1);
		announce_addresses(&p, 1, N_FUNCTIONS);
		for (uint32_t id = 1; id <= 2000; id++)
			announce_name(&p, SEAM_XRAY_ANNOUNCED_NAME,
				      N_FUNCTIONS + id, name);
		for (uint32_t type = 1; type <= 2000; type++)
			announce_name(&p, SEAM_XRAY_ANNOUNCED_EVENT_TYPE, type,
				      name);
		call(&p, 1, N_FUNCTIONS + 2000);
		snprintf(files[i][0], 32, "%u.yaml", PID + i);
		snprintf(files[i][1], 32, "%u.events", PID + i);
	}
	assert_int_equal(seam_trace_functions_write(&known, &logs, 2 << 20,
						    &n_functions, NULL), 0);
	for (int i = 0; i < 4; i++)
		bytes += size_of(files[i / 2][i % 2]);
	/* a line of event types may go beyond it */
	assert_in_range(bytes, 1 << 20, (2 << 20) + 2000);
	/* those of both programs are of the same file, or have no address */
	assert_int_equal(n_functions, N_FUNCTIONS + 1);
}

/* ---- logs ---- */

UNIT_TEST(ids_of_one_program_cost_no_names_of_another)
{
	const uint32_t most = SEAM_XRAY_MAX_FUNCTION;
	struct seam_trace_program honest = program(PID, 9);

	for (uint32_t i = 0; i < 3; i++) {
		struct seam_trace_program p = program(100 + i, 5);

		call(&p, most, most);
		call(&p, 7, 7);
		assert_true(seam_xray_has_seen(&logs.items.items[i]->seen, 7));
	}
	assert_in_range(logs.seen_bytes, 0, SEAM_TRACE_MAX_SEEN_BYTES);
	call(&honest, 60000, 60002);
	for (uint32_t id = 60000; id <= 60002; id++)
		assert_true(seam_xray_has_seen(&logs.items.items[3]->seen, id));
}

UNIT_TEST(a_log_that_cannot_be_begun_is_tried_again)
{
	struct seam_trace_program p = program(PID, 5);
	struct rlimit old, none;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	none = (struct rlimit) { 0, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &none);
	assert_null(seam_trace_logs_enter(&logs, &p));
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(logs.why.code, -EFBIG);
	call(&p, 1, 3);
	assert_int_equal(logs.counts.n_records, 3);
}

static bool is_over(void *context)
{
	++*(int *)context;
	return false;
}

static void note(void *context, const char *text)
{
	++*(int *)context;
	assert_non_null(strstr(text, "not joined: Interrupted system call"));
}

/* Its threads take turns; it is asked after each 4 MiB. */
UNIT_TEST(a_log_stays_as_it_is_where_joining_ends)
{
	struct seam_trace_program p = program(PID, 5);
	struct seam_program_log *log = seam_trace_logs_enter(&logs, &p);
	int n_calls = 0;
	const struct seam_trace_logs_caller caller = {
		.goes_on = is_over, .note = note, .context = &n_calls,
	};
	uint64_t bytes;
	struct stat st;
	char path[128];

	assert_non_null(log);
	for (int i = 0; i < 100; i++) {
		chunk_begin(&chunk, 1, 2 + i % 2, 3, 0, 100);
		while (chunk_call(&chunk, SEAM_XRAY_ENTRY, 1, 1))
			;
		seam_trace_logs_add(log, 2, chunk.bytes, chunk.n);
	}
	bytes = log->file.bytes;
	assert_true(log->file.n_blocks > SEAM_XRAY_LOG_BLOCKS);
	seam_trace_logs_leave(log);
	seam_trace_logs_finish(&logs, &caller);
	/* one question, one note */
	assert_int_equal(n_calls, 2);
	snprintf(path, sizeof(path), "xray/%s.xray", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), 0);
	assert_int_equal(st.st_size, bytes);
	snprintf(path, sizeof(path), "xray/%s.xray.part", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), -1);
	/* the next time it is whole */
	seam_trace_logs_finish(&logs, &(struct seam_trace_logs_caller) { 0 });
	snprintf(path, sizeof(path), "xray/%s.xray", log->name);
	assert_int_equal(fstatat(bundle.dir, path, &st, 0), 0);
	assert_true((uint64_t)st.st_size < bytes);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
