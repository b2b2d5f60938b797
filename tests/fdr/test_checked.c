/* SPDX-License-Identifier: MIT */
/* test_checked.c - what is recorded with min=, depth=, args= and triggers */
#include <pthread.h>
#include <sched.h>

#include "fdr/area_walk.h"
#include "fdr/checked_calls.h"
#include "fdr/patcher.h"
#include "fdr/source_local.h"
#include "unit.h"

#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/xray_functions.h"

enum { MAX_LOG = 1 << 17, MAX_SENT = 16 };

/* More than any call here takes, and less. */
static const uint64_t long_min = INT64_MAX, short_min = 1;

/* One test's log: of a thread of its own, so of an area of its own. */
static struct walk_record log_records[MAX_LOG];
static size_t n_log;

/* Triggers that were sent. */
static struct seam_xray_trigger sent[MAX_SENT];
static size_t n_sent;
static bool is_sending_refused;

static bool send_trigger(struct seam_fdr_area *area, const void *payload,
			 size_t bytes)
{
	struct seam_xray_announcement a;
	_Alignas(8) uint8_t copy[64];

	(void)area;
	if (is_sending_refused)
		return false;
	assert_in_range(bytes, 8, sizeof(copy));
	memcpy(copy, payload, bytes);
	assert_int_equal(seam_xray_read_announcement(
			(struct seam_bytes) { copy, bytes }, &a), 0);
	assert_true(n_sent < MAX_SENT);
	sent[n_sent++] = a.trigger;
	return true;
}

static void nothing(void)
{
}

static uint32_t id_of(void (*function)(void (*)(void)))
{
	return patcher_id((const void *)(uintptr_t)function);
}

/* Those of triggers(). */
static void mark_functions(void)
{
	seam_fdr_trigger_function(1, id_of(calls_chain));
	seam_fdr_trigger_function(0, id_of(calls_middle));
	seam_fdr_trigger_function(2, id_of(calls_middle));
}

static void *run(void *body)
{
	((void (*)(void))(uintptr_t)body)();
	return NULL;
}

/* Run @body in a thread, and read what it has recorded. */
static void record(const struct seam_fdr_options *options, void (*body)(void))
{
	const struct local_area *area;
	struct walk w = { 0 };
	pthread_t thread;

	n_sent = 0;
	assert_int_equal(seam_fdr_check_init(options), 0);
	if (options->n_triggers)
		mark_functions();
	assert_int_equal(pthread_create(&thread, NULL, run,
					(void *)(uintptr_t)body), 0);
	pthread_join(thread, NULL);
	area = local_areas;
	w.area = local_bytes_of(area);
	w.mask = area->size - 1;
	w.end = area->cursor & SEAM_RING_AUX_POSITION;
	for (n_log = 0; walk_next(&w, &log_records[n_log]); n_log++)
		assert_true(n_log + 1 < MAX_LOG);
	assert_ptr_equal(w.problem, NULL);
}

/* The log as a string: each function's letter, exits in lower case. */
static const char *letters(void)
{
	static char text[MAX_LOG + 1];
	const struct { uint32_t id; char letter; } names[] = {
		{ id_of(calls_leaf), 'L' }, { id_of(calls_middle), 'M' },
		{ id_of(calls_chain), 'C' }, { id_of(calls_hop), 'H' },
		{ id_of(calls_away), 'A' }, { id_of(calls_around_away), 'R' },
		{ patcher_id((const void *)(uintptr_t)calls_deep), 'D' },
		{ patcher_id((const void *)(uintptr_t)calls_six), 'S' },
	};
	size_t n = 0;

	for (size_t i = 0; i < n_log; i++) {
		char c = '?';

		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			if (names[k].id == log_records[i].function)
				c = names[k].letter;
		switch (log_records[i].kind) {
		case SEAM_XRAY_ENTRY: case SEAM_XRAY_ENTRY_ARGS: break;
		case SEAM_XRAY_EXIT: c |= 32; break;
		case SEAM_XRAY_TAIL_EXIT: c = '>'; break;
		case SEAM_XRAY_ARGUMENT: continue;
		default: c = '!';
		}
		text[n++] = c;
	}
	text[n] = 0;
	return text;
}

/* ---- min ---- */

/* Set in the middle of calls, so that no test depends on how long they take. */
static void min_is_short(void)
{
	seam_fdr_min_ticks = short_min;
}

static void body_chains(void)
{
	for (int i = 0; i < 1000; i++)
		calls_chain(nothing);
}

static void body_long_leaf(void)
{
	calls_chain(nothing);
	calls_chain(min_is_short);
	seam_fdr_min_ticks = long_min;
	calls_chain(nothing);
}

static void middle_is_long(void)
{
	calls_leaf(nothing);
	seam_fdr_min_ticks = short_min;
}

static void body_long_middle(void)
{
	calls_around_away(middle_is_long);
}

static void body_tail_calls(void)
{
	calls_hop(nothing);
	calls_around_away(nothing);
}

static void body_long_tail_calls(void)
{
	calls_hop(min_is_short);
	seam_fdr_min_ticks = long_min;
	calls_around_away(min_is_short);
}

static void event_like_an_entry(void)
{
	uint64_t words[1] = {
		seam_xray_word(id_of(calls_leaf), SEAM_XRAY_ENTRY) |
		UINT64_C(5) << 32,
	};

	seam_fdr_event(SEAM_XRAY_CUSTOM, 0, words, sizeof(words));
}

static void body_event(void)
{
	calls_leaf(event_like_an_entry);
}

/* Short calls go with their tail calls and callers; events and callers stay. */
UNIT_TEST(takes_short_calls_back_and_keeps_long_ones)
{
	static const struct { void (*body)(void); const char *log; } cases[] = {
		{ body_chains, "" }, { body_long_leaf, "CMLlmc" },
		{ body_long_middle, "Rr" }, { body_tail_calls, "" },
		{ body_long_tail_calls, "H>LlRA>r" }, { body_event, "L!l" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		record(&(struct seam_fdr_options) { .min_ns = long_min },
		       cases[i].body);
		assert_string_equal(letters(), cases[i].log);
	}
}

static void body_many_chunks(void)
{
	for (int i = 0; i < 9000; i++) {
		calls_chain(min_is_short);
		seam_fdr_min_ticks = long_min;
		for (int k = 0; k < i % 3; k++)
			calls_chain(nothing);
	}
}

/* Where a chunk ends within short calls, these stay. */
UNIT_TEST(takes_back_within_chunks_only)
{
	static const char calls[] = "CMLlmc";
	size_t n_chunks = 9000 * 6 * 8 / SEAM_XRAY_CHUNK_BYTES + 1;
	const char *text;

	record(&(struct seam_fdr_options) { .min_ns = long_min },
	       body_many_chunks);
	assert_in_range(n_log, 9000 * 6, 9000 * 6 + n_chunks * 6);
	text = letters();
	for (size_t n = 0, depth = 0; n < n_log; n++) {
		char c = text[n];

		if (c < 'a')
			assert_int_equal(c, calls[depth++]);
		else
			assert_int_equal(c - 32, calls[--depth]);
	}
}

/* ---- arguments ---- */

static void body_arguments(void)
{
	calls_six(UINT64_C(0x8877665544332211), 2, UINT64_MAX, 0,
		  UINT64_C(0x0d00000000000000), UINT64_C(0x1000000000000010));
}

UNIT_TEST(records_the_first_arguments)
{
	const uint64_t values[] = {
		UINT64_C(0x8877665544332211), 2, UINT64_MAX, 0,
		UINT64_C(0x0d00000000000000), UINT64_C(0x1000000000000010),
	};

	for (uint32_t n = 1; n <= 6; n++) {
		record(&(struct seam_fdr_options) { .n_arguments = n },
		       body_arguments);
		assert_string_equal(letters(), "Ss");
		assert_int_equal(n_log, n + 2);
		assert_int_equal(log_records[0].kind, SEAM_XRAY_ENTRY_ARGS);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(log_records[i + 1].kind,
					 SEAM_XRAY_ARGUMENT);
			assert_int_equal(log_records[i + 1].value, values[i]);
		}
	}
}

UNIT_TEST(takes_calls_with_arguments_back)
{
	static void (*const bodies[])(void) = {
		body_arguments, body_chains, body_tail_calls,
	};

	for (uint32_t n = 1; n <= 6; n++)
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(bodies); i++) {
			record(&(struct seam_fdr_options) {
				.min_ns = long_min, .n_arguments = n },
			       bodies[i]);
			assert_string_equal(letters(), "");
		}
}

/* As xray_log_args(1) has it, and -finstrument-functions. */
static void body_other_entries(void)
{
	const uint64_t arguments[] = { 7, 0, 0, 0, 0, 0 };
	const uint64_t frame = UINT64_C(1) << 40;
	uint32_t id = id_of(calls_leaf);

	seam_fdr_check_entry(seam_xray_word(id, SEAM_XRAY_ENTRY_ARGS), frame,
			     arguments);
	seam_fdr_check_end(seam_xray_word(id, SEAM_XRAY_EXIT), frame);
	seam_fdr_check_compiled(seam_xray_word(id, SEAM_XRAY_ENTRY), frame);
	seam_fdr_check_compiled(seam_xray_word(id, SEAM_XRAY_EXIT), frame);
}

UNIT_TEST(functions_may_have_other_arguments_than_asked_for)
{
	for (uint32_t n = 0; n <= 6; n++) {
		record(&(struct seam_fdr_options) { .n_arguments = n },
		       body_other_entries);
		assert_string_equal(letters(), "LlLl");
		assert_int_equal(n_log, 4 + (n ? n : 1));
		assert_int_equal(log_records[1].value, 7);
		record(&(struct seam_fdr_options) {
			.min_ns = long_min, .n_arguments = n },
		       body_other_entries);
		assert_string_equal(letters(), "");
	}
}

/* ---- depth ---- */

static void body_deep(void)
{
	calls_deep(20, nothing);
	calls_chain(nothing);
}

UNIT_TEST(records_down_to_a_depth)
{
	record(&(struct seam_fdr_options) { .depth = 2 }, body_deep);
	assert_string_equal(letters(), "DDddCMmc");
}

static jmp_buf out;

static void jump(void)
{
	longjmp(out, 1);
}

static void body_jumps(void)
{
	for (volatile int i = 0; i < 1000; i++)
		if (!setjmp(out))
			calls_deep(i % 7, jump);
	calls_chain(nothing);
}

UNIT_TEST(longjmp_does_not_shift_the_depth)
{
	size_t n;

	record(&(struct seam_fdr_options) { .depth = 2 }, body_jumps);
	n = strlen(letters());
	assert_int_equal(n, 1000 + 1000 - 143 + 4);
	assert_string_equal(letters() + n - 4, "CMmc");
}

/* ---- triggers ---- */

static void body_slow(void)
{
	calls_chain(nothing);
}

static struct seam_fdr_options triggers(bool is_flight)
{
	return (struct seam_fdr_options) {
		.triggers = {
			{ .kind = SEAM_TRIGGER_SLOW, .limit_ns = 1 },
			{ .kind = SEAM_TRIGGER_CALLS },
			{ .kind = SEAM_TRIGGER_SLOW,
			  .limit_ns = INT64_MAX },
		},
		.n_triggers = 3, .is_flight = is_flight,
	};
}

UNIT_TEST(a_slow_call_triggers)
{
	const struct seam_fdr_options options = triggers(false);
	const struct seam_xray_trigger *t = &sent[1];
	uint32_t id = id_of(calls_middle);

	record(&options, body_slow);
	assert_string_equal(letters(), "CMLlmc");
	assert_int_equal(n_sent, 2);
	assert_int_equal(sent[0].trigger, 1);
	assert_int_equal(sent[0].function, id_of(calls_chain));
	/* a slow path takes the time again */
	assert_in_range(sent[0].tsc, log_records[0].tsc, log_records[1].tsc);
	assert_int_equal(sent[0].ticks, 0);
	assert_int_equal(t->trigger, 0);
	assert_int_equal(t->function, id);
	assert_in_range(t->tsc, log_records[4].tsc, log_records[5].tsc);
	assert_in_range(t->tsc - t->ticks, log_records[1].tsc,
			log_records[2].tsc);
	assert_int_equal(t->number, sent[0].number + 1);
}

UNIT_TEST(another_start_has_triggers_of_its_own)
{
	const struct seam_fdr_options options = triggers(false);

	record(&options, body_slow);
	assert_int_equal(seam_fdr_triggers_of(id_of(calls_middle)), 5);
	/* the same, for other functions */
	assert_int_equal(seam_fdr_check_init(&options), 0);
	assert_int_equal(seam_fdr_triggers_of(id_of(calls_middle)), 0);
	assert_int_equal(seam_fdr_triggers_of(id_of(calls_chain)), 0);
}

/* Whether a thread whose area has 8 chunks may begin chunk @n. */
static bool may_begin(struct seam_fdr_state *state, uint64_t n)
{
	state->area.size = 8 * SEAM_XRAY_CHUNK_BYTES;
	return seam_fdr_may_begin_chunk(state, n * SEAM_XRAY_CHUNK_BYTES);
}

UNIT_TEST(a_thread_uses_half_of_its_area_until_a_trigger_is_copied)
{
	const struct seam_fdr_options options = triggers(true);
	struct seam_fdr_state one = { 0 }, two = { 0 };
	static _Atomic uint32_t resumed;

	seam_fdr_triggers_resume_at(&resumed);
	assert_true(may_begin(&one, 100));
	record(&options, body_slow);
	assert_int_equal(n_sent, 2);
	assert_int_equal(sent[0].number, 1);
	for (uint64_t at = 101; at < 105; at++)
		assert_true(may_begin(&one, at));
	assert_false(may_begin(&one, 105));
	assert_true(may_begin(&two, 7));
	/* the first is copied, and the second is not */
	resumed = 1;
	for (uint64_t at = 105; at < 109; at++)
		assert_true(may_begin(&one, at));
	assert_false(may_begin(&one, 109));
	resumed = 2;
	for (uint64_t at = 109; at < 200; at++)
		assert_true(may_begin(&one, at));
	record(&options, body_slow);
	for (uint64_t at = 200; at < 204; at++)
		assert_true(may_begin(&one, at));
	assert_false(may_begin(&one, 204));
	resumed = (uint32_t)SEAM_FDR_NO_MORE_SNAPSHOTS;
	assert_true(may_begin(&one, 204));
	seam_fdr_triggers_resume_at(NULL);
	record(&options, body_slow);
	assert_true(may_begin(&one, 300) && may_begin(&one, 310));
}

static void body_often(void)
{
	for (int i = 0; i < MAX_SENT / 2 - 1; i++)
		calls_chain(nothing);
}

/* A millisecond has more ticks of any processor. */
UNIT_TEST(a_function_beyond_the_table_of_triggers_has_none)
{
	static _Atomic uint16_t beyond[SEAM_FDR_MAX_TRIGGER_FUNCTION + 1];
	_Atomic uint16_t *table = seam_fdr_trigger_functions;

	seam_fdr_trigger_functions = beyond;
	seam_fdr_trigger_function(1, SEAM_FDR_MAX_TRIGGER_FUNCTION);
	seam_fdr_trigger_function(1, SEAM_FDR_MAX_TRIGGER_FUNCTION - 1);
	seam_fdr_trigger_functions = table;
	assert_int_equal(beyond[SEAM_FDR_MAX_TRIGGER_FUNCTION], 0);
	assert_int_equal(beyond[SEAM_FDR_MAX_TRIGGER_FUNCTION - 1], 2);
}

UNIT_TEST(a_trigger_is_sent_a_thousand_times_a_second_at_most)
{
	enum { SOME_TICKS = 100000 };
	const struct seam_fdr_options options = triggers(false);
	uint64_t next[3] = { 0 };

	record(&options, body_often);
	assert_true(n_sent >= 2);
	for (size_t i = 0; i < n_sent; i++) {
		assert_true(sent[i].tsc >= next[sent[i].trigger]);
		next[sent[i].trigger] = sent[i].tsc + SOME_TICKS;
	}
}

/* Where a trigger cannot be sent; and where the trace is full. */
UNIT_TEST(without_a_snapshot_nothing_freezes)
{
	static _Atomic uint32_t resumed;

	for (int is_flight = 0; is_flight < 2; is_flight++) {
		const struct seam_fdr_options options = triggers(is_flight);
		struct seam_fdr_state of_thread = { 0 };

		seam_fdr_triggers_resume_at(&resumed);
		is_sending_refused = is_flight;
		record(&options, body_slow);
		is_sending_refused = false;
		assert_int_equal(n_sent, is_flight ? 0 : 2);
		for (uint64_t at = 0; at < 20; at++)
			assert_true(may_begin(&of_thread, at));
	}
	seam_fdr_triggers_resume_at(NULL);
}

/* A call that a migration divides is kept: see checked.h. */
static void stay_on_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((unsigned int)sched_getcpu(), &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

int main(void)
{
	static struct seam_fdr_source source;

	stay_on_one_cpu();
	seam_fdr_rseq_init(false);
	source = source_local;
	source.send = send_trigger;
	if (seam_fdr_thread_init(&source))
		return 1;
	patcher_patch(&patcher_checked);
	return unit_run(NULL, NULL, NULL, NULL);
}
