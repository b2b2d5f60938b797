/* SPDX-License-Identifier: MIT */
/*
 * test_many_streams.c - logs of thousands of threads and sections
 *
 * Linked with --wrap: what a log can make many of must not be asked for, or
 * kept, once more for each.
 */

#include "../trace_made.h"
#include "../wire/xray_made.h"
#include "base/workers.h"
#include "model/perf/perf_scan.h"
#include "model/xray/account.h"
#include "model/xray/calls.h"
#include "model/xray/load_xray.h"
#include "unit.h"

static size_t n_asked;

unsigned int __real_seam_workers_count(void);
unsigned int __wrap_seam_workers_count(void);

unsigned int __wrap_seam_workers_count(void)
{
	n_asked++;
	return __real_seam_workers_count();
}

UNIT_TEST(a_large_file_is_read_in_parts_where_its_records_allow_it)
{
	const uint64_t large = UINT64_C(1) << 30;
	struct seam_perf_data data = { 0 };

	n_asked = 0;
	assert_int_equal(seam_perf_scan_parts(&data, 0, 1000), 1);
	assert_int_equal(n_asked, 0);
	assert_true(seam_perf_scan_parts(&data, 0, large) >= 1);
	assert_int_equal(n_asked, 1);
	data.is_pipe = true;
	assert_int_equal(seam_perf_scan_parts(&data, 0, large), 1);
	assert_int_equal(n_asked, 1);
}

/* A section in which threads @first to @first + @n - 1 make a call each. */
static void put_threads(struct made *m, int32_t pid, int32_t first, int32_t n)
{
	made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	for (int32_t tid = first; tid < first + n; tid++) {
		made_block(m, pid, tid, 10, 0, 1000);
		made_call(m, SEAM_XRAY_ENTRY, 1, 10);
		made_call(m, SEAM_XRAY_EXIT, 1, 10);
		made_end(m, 0, 0);
	}
}

static void open_trace(struct seam_trace *trace, const struct made *m)
{
	assert_int_equal(trace_from_bytes(trace, (struct seam_bytes) {
			m->data, m->size }, NULL), 0);
}

/* Each asking is a system call, and was a sum over all threads. */
UNIT_TEST(work_is_divided_once_not_for_each_thread)
{
	const struct seam_account_options options = { 0 };
	struct seam_account account;
	struct seam_trace trace;
	struct made m = { 0 };

	put_threads(&m, 1, 1, 3000);
	open_trace(&trace, &m);
	n_asked = 0;
	assert_int_equal(seam_account_build(&account, &trace, &options, NULL),
			 0);
	assert_int_equal(account.rows.items[0].count, 3000);
	assert_true(n_asked <= 3);
	seam_account_fini(&account);
	seam_trace_close(&trace);
	made_free(&m);
}

/* Three sections: two of one process, whose threads overlap by 500. */
UNIT_TEST(threads_are_distinguished_however_many)
{
	struct seam_profile profile;
	struct seam_trace trace;
	struct made m = { 0 };
	uint64_t n_calls[3000] = { 0 };

	put_threads(&m, 1, 1, 1000);
	made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	for (int32_t tid = 501; tid <= 2000; tid++) {
		made_block(&m, 1, tid, 20, 0, 2000);
		made_call(&m, SEAM_XRAY_ENTRY, 1, 10);
		made_call(&m, SEAM_XRAY_EXIT, 1, 10);
		made_end(&m, 0, 0);
	}
	put_threads(&m, 2, 1, 1000);
	open_trace(&trace, &m);
	assert_int_equal(seam_profile_init(&profile), 0);
	assert_int_equal(seam_load_xray(&profile, &trace, NULL, NULL, NULL), 0);
	assert_int_equal(profile.processes.n, 2);
	assert_int_equal(profile.threads.n, 3000);
	for (size_t i = 0; i < profile.samples.n; i++)
		n_calls[profile.samples.thread[i]]++;
	for (size_t i = 0; i < profile.threads.n; i++) {
		const struct seam_thread *t = &profile.threads.items[i];
		int32_t pid = profile.processes.items[t->process].pid;

		assert_int_equal(pid, i < 2000 ? 1 : 2);
		assert_int_equal(t->tid, i < 2000 ? i + 1 : i - 1999);
		assert_int_equal(n_calls[i], i >= 500 && i < 1000 ? 2 : 1);
	}
	seam_profile_fini(&profile);
	seam_trace_close(&trace);
	made_free(&m);
}

/* Each has a clock to be tied, which looks at all blocks. */
UNIT_TEST(more_clocks_than_machines_have_are_refused)
{
	for (uint64_t n = 64; n <= 65; n++) {
		struct made m = { 0 };
		struct seam_trace trace;
		struct seam_err err = { 0 };
		int r;

		for (uint64_t i = 0; i < 3 * n; i++) {
			made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE,
				    1000000000 + i % n, 0);
			made_block(&m, 1, 1 + (int32_t)i, 10, 0, 1000);
			made_call(&m, SEAM_XRAY_ENTRY, 1, 10);
			made_end(&m, 0, 0);
		}
		r = trace_from_bytes(&trace, (struct seam_bytes) {
				m.data, m.size }, &err);
		if (n == 64) {
			assert_int_equal(r, 0);
			assert_int_equal(trace.clocks.n, 64);
			assert_int_equal(trace.streams.n, 3 * 64);
		} else {
			assert_int_equal(r, -ENOTSUP);
			assert_non_null(strstr(err.cause[0], "64"));
		}
		seam_trace_close(&trace);
		made_free(&m);
	}
}

/* The longest row of places that are taken. */
static uint32_t longest_row(const struct seam_index *index)
{
	uint32_t longest = 0, row = 0;

	for (size_t at = 0; at <= index->mask; at++) {
		row = index->slots[at].id == SEAM_NONE ? 0 : row + 1;
		longest = row > longest ? row : longest;
	}
	return longest;
}

/*
 * Ids whose products with the golden ratio, a usual multiplier, are small:
 * by those they would stand in one row.
 */
UNIT_TEST(functions_are_found_whatever_their_ids)
{
	enum { N = 20000 };
	struct seam_calls calls = { 0 };
	uint32_t id = 0, inverse = UINT32_C(0x9e3779b1);
	uint32_t ids[N];

	for (int i = 0; i < 5; i++)
		inverse *= 2 - inverse * UINT32_C(0x9e3779b1);
	seam_calls_begin(&calls);
	for (uint32_t n = 0; n < N; id += inverse)
		if (id >= SEAM_CALLS_SMALL)
			ids[n++] = id;
	for (uint32_t n = 0; n < N; n++)
		seam_calls_slot(&calls, ids[n]);
	for (uint32_t n = 0; n < N; n++)
		assert_int_equal(seam_calls_function(&calls,
				 seam_calls_slot(&calls, ids[n])), ids[n]);
	assert_true(longest_row(&calls.functions.index) < N / 10);
	seam_calls_fini(&calls);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
