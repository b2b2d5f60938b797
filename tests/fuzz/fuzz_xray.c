/* SPDX-License-Identifier: MIT */
/*
 * fuzz_xray.c - any bytes as an XRay log
 *
 * Oracles: every byte of the file is in a header, in a block or counted as
 * lost; the fast way through a block gives what the table reader gives; a
 * log written again by our writer has as many events of each kind; calls
 * that were opened were closed, and self times add up to the roots' times;
 * in runs and one by one, a log has the same account.
 */
#include <sched.h>

#include "../trace_made.h"
#include "fuzz.h"
#include "account_row.h"
#include "export/exporter.h"
#include "model/xray/marked.h"

enum { N_KINDS = SEAM_XRAY_TYPED + 1 };

static void cover_every_byte(const struct seam_xray_index *index, size_t size)
{
	uint64_t covered = index->problems.lost_bytes - index->missing_bytes +
			   index->sections.n * SEAM_XRAY_HEADER_BYTES;
	uint64_t end = 0;

	for (size_t i = 0; i < index->blocks.n; i++) {
		const struct seam_xray_block *b = &index->blocks.items[i];

		must(b->begin >= end && b->end > b->begin && b->end <= size);
		end = b->end;
		covered += b->end - b->begin;
	}
	must(covered == size);
}

/* Events of a block as the tables read them, and where reading ended. */
static size_t count_slowly(const struct seam_xray_index *index,
			   const struct seam_xray_block *block, uint64_t *sum,
			   size_t *end)
{
	struct seam_xray_block_reader b;
	struct seam_xray_record record;
	size_t n = 0, last;

	seam_xray_block_open(&b, index, block);
	last = b.fdr.c.pos;
	while (seam_xray_next(&b.fdr, &record) > 0) {
		must(b.fdr.c.pos > last);
		last = b.fdr.c.pos;
		if (record.state == SEAM_XRAY_AT_ENTRY ||
		    record.state == SEAM_XRAY_AT_EXIT) {
			*sum += record.tsc * 31 + record.function * 7 +
				record.action;
			n++;
		}
	}
	*end = b.fdr.c.pos;
	return n;
}

static void both_ways_agree(const struct seam_xray_index *index,
			    const struct seam_xray_block *block)
{
	static struct seam_xray_batch batch;
	struct seam_xray_block_reader b;
	uint64_t slow = 0, fast = 0;
	size_t n_slow, n_fast = 0, end;
	int err;

	if (index->sections.items[block->section].header.log_type !=
	    SEAM_XRAY_FDR)
		return;
	n_slow = count_slowly(index, block, &slow, &end);
	seam_xray_block_open(&b, index, block);
	do {
		err = seam_xray_block_next(&b, &batch);
		for (size_t i = 0; i < batch.n; i++) {
			const struct seam_xray_event *e = &batch.events[i];

			if (e->kind > SEAM_XRAY_ENTRY_ARGS)
				continue;
			fast += e->tsc * 31 + e->function * 7 + e->kind;
			n_fast++;
		}
	} while (!err && batch.n);
	must(n_slow == n_fast && slow == fast);
	must(b.fdr.c.pos == end);
}

static bool count_kinds(const struct seam_trace *trace, uint64_t n[N_KINDS])
{
	static struct seam_xray_batch batch;
	bool has_fork = false;

	for (size_t s = 0; s < trace->streams.n; s++) {
		struct seam_trace_reader reader;
		uint64_t last = 0;
		size_t n_shadow;

		has_fork |= trace->streams.items[s].is_fork;
		seam_trace_read(&reader, trace, s);
		while (seam_trace_next(&reader, &batch, &n_shadow)) {
			must(n_shadow <= batch.n);
			for (size_t i = 0; i < batch.n; i++) {
				n[batch.events[i].kind]++;
				if (batch.events[i].kind == SEAM_XRAY_ARGUMENT)
					continue;
				must(batch.events[i].tsc >= last);
				last = batch.events[i].tsc;
			}
		}
	}
	return has_fork;
}

static void write_again(const struct seam_trace *trace,
			const uint64_t want[N_KINDS])
{
	struct seam_xray_problems problems = { 0 };
	uint64_t n[N_KINDS] = { 0 };
	struct seam_trace again;
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);

	must(out != NULL);
	if (seam_write_xray_log(&(struct seam_export) {
		.out = out, .trace = trace, .problems = &problems,
		.names = &(struct seam_xray_map) { 0 },
	    }, NULL) == 0) {
		fflush(out);
		must(trace_from_bytes(&again, (struct seam_bytes) {
		      (const uint8_t *)data, size }, NULL) == 0);
		must(again.logs.items[0].index.problems.n == 0);
		must(again.logs.items[0].index.n_extents == 0);
		count_kinds(&again, n);
		for (int k = 0; k < N_KINDS; k++)
			must(n[k] == want[k] || k == SEAM_XRAY_ARGUMENT);
		seam_trace_close(&again);
	}
	fclose(out);
	free(data);
}

static void add_up(const struct seam_trace *trace, size_t size)
{
	const struct seam_account_options options = {
		.edges = true, .n_slowest = 3,
	};
	struct seam_account account;
	uint64_t self = 0, roots = 0, n = 0;

	must(seam_account_build(&account, trace, &options, NULL) == 0);
	for (size_t i = 0; i < account.rows.n; i++) {
		const struct seam_account_row *row = &account.rows.items[i];

		must(row->count == 0 || row->min_ns <= row->max_ns);
		/* damaged clocks: sums of centuries do not fit 64 bits */
		if (row->max_ns > UINT64_MAX / size)
			goto out;
		must(row->self_ns <= row->sum_ns);
		must(row->total_ns <= row->sum_ns);
		self += row->self_ns;
	}
	for (size_t i = 0; i < account.edges.n; i++) {
		n += account.edges.items[i].count;
		if (account.edges.items[i].caller == SEAM_NONE)
			roots += account.edges.items[i].total_ns;
	}
	must(n == account.n_calls);
	/* a caller whose entry is missing takes earlier roots' time in */
	must(account.repairs[SEAM_REPAIR_ENTRY] || self == roots);
out:
	seam_account_fini(&account);
}

/* Marked intervals end after they begin, and are in their histogram. */
static void add_up_marks(const struct seam_trace *trace)
{
	struct seam_marked_sums sums;

	must(seam_marked_sums_build(&sums, trace, NULL) == 0);
	for (size_t i = 0; i < sums.account.rows.n; i++) {
		const struct seam_account_row *row = &sums.account.rows.items[i];
		uint64_t p50 = seam_account_quantile(&sums.account, row, 0.5);

		must(row->count > 0 && row->min_ns <= row->max_ns);
		must(row->min_ns <= p50 && p50 <= row->max_ns);
	}
	seam_marked_sums_fini(&sums);
}

static bool same_row(const struct seam_account_row *x,
		     const struct seam_account_row *y)
{
	return y && x->count == y->count && x->sum_ns == y->sum_ns &&
	       x->self_ns == y->self_ns && x->total_ns == y->total_ns &&
	       x->min_ns == y->min_ns && x->max_ns == y->max_ns;
}

static void demand_same(const struct seam_account *x,
			const struct seam_account *y)
{
	must(x->n_calls == y->n_calls);
	must(x->rows.n == y->rows.n);
	must(x->problems.n == y->problems.n);
	must(x->problems.lost_bytes == y->problems.lost_bytes);
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		must(x->repairs[i] == y->repairs[i]);
	for (size_t i = 0; i < x->rows.n; i++) {
		const struct seam_account_row *row = &x->rows.items[i];
		const struct seam_account_row *other =
			account_row(y, row->function);

		must(same_row(row, other));
		for (int q = 0; q <= 20; q++)
			must(seam_account_quantile(x, row, q / 20.0) ==
			     seam_account_quantile(y, other, q / 20.0));
	}
}

/*
 * Runs are not used for an account of the slowest calls, which takes all calls
 * one by one: it is the same account.
 */
static void ways_agree(const struct seam_trace *trace)
{
	struct seam_account runs, singly;

	must(seam_account_build(&runs, trace, &(struct seam_account_options) {
	      .n_slowest = 0 }, NULL) == 0);
	must(seam_account_build(&singly, trace,
				&(struct seam_account_options) {
	      .n_slowest = 1 }, NULL) == 0);
	must(singly.n_in_runs == 0);
	demand_same(&runs, &singly);
	seam_account_fini(&runs);
	seam_account_fini(&singly);
}

/*
 * On one CPU an account starts no threads: under the sanitizers these took
 * most of an input's time.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	cpu_set_t one;

	(void)argc;
	(void)argv;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_bytes bytes = { data, size };
	uint64_t n[N_KINDS] = { 0 };
	struct seam_trace trace;

	if (trace_from_bytes(&trace, bytes, NULL))
		return 0;
	cover_every_byte(&trace.logs.items[0].index, size);
	for (size_t i = 0; i < trace.logs.items[0].index.blocks.n; i++)
		both_ways_agree(&trace.logs.items[0].index,
				&trace.logs.items[0].index.blocks.items[i]);
	if (!count_kinds(&trace, n))
		write_again(&trace, n);
	add_up(&trace, size);
	add_up_marks(&trace);
	ways_agree(&trace);
	seam_trace_close(&trace);
	return 0;
}
