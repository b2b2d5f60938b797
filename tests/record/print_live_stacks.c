/* SPDX-License-Identifier: MIT */
/*
 * print_live_stacks.c - the samples of a recording as the recorder would have
 * unwound them, for test_stack_dumps.py
 *
 * print_live_stacks FILE, recorded by perf with --call-graph dwarf from one
 * process.  Records are passed in the order of time, as of this process: files
 * are opened as it sees them.  Prints "TID TIME_NS" for each sample, then a
 * line for each user address, leaf first.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_stream.h"

struct item {
	uint64_t time;
	size_t order;
	const uint8_t *header;
	uint16_t size;
	bool is_sample;
	struct seam_perf_sideband sideband;
};

static struct seam_perf_data data;
static SEAM_ARRAY(struct item) items;
static struct seam_live_stacks stacks;
static struct seam_stack_counts counts;

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void add(const struct seam_perf_record *record,
		const struct seam_perf_attr *attr)
{
	struct item item = {
		.order = items.n, .header = record->payload.data - 8,
		.size = (uint16_t)(record->payload.size + 8),
		.is_sample = record->type == PERF_RECORD_SAMPLE,
	};
	struct seam_perf_sample sample;

	if (item.is_sample) {
		if (seam_perf_sample_read(attr, data.endian, record->payload,
					  &sample))
			return;
		item.time = sample.time;
	} else {
		if (seam_perf_sideband_read(attr, data.endian, record,
					    &item.sideband))
			return;
		item.time = item.sideband.sample_id.time;
	}
	if (!SEAM_ARRAY_ADD(&items, item))
		abort();
}

static void read_all(const struct seam_perf_attr *attr)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;

	seam_perf_stream_init(&stream, data.bytes, data.endian,
			      data.data_begin, data.data_end, false);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0)
		add(&record, attr);
	seam_perf_stream_fini(&stream);
	SEAM_ARRAY_SORT(&items, by_time);
}

/* A sample that was unwound; @context is the attr of the file. */
static void print(void *context, uint32_t event, const void *header)
{
	struct seam_perf_record record = seam_perf_record_at(header);
	struct seam_perf_attr attr = *(const struct seam_perf_attr *)context;
	struct seam_perf_sample sample;
	bool is_user = false;

	(void)event;
	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
					PERF_SAMPLE_STACK_USER);
	attr.sample_type |= PERF_SAMPLE_RAW;
	if (seam_perf_sample_read(&attr, data.endian, record.payload, &sample))
		abort();
	printf("%" PRId32 " %" PRIu64 "\n", sample.tid, sample.time);
	for (size_t i = 0; i < sample.callchain.n; i++) {
		uint64_t pc = seam_perf_u64(&sample.callchain, i);

		if (is_user)
			printf(" %" PRIx64 "\n", pc);
		is_user |= pc == (uint64_t)PERF_CONTEXT_USER;
	}
}

/* Of mappings and exec, as of this process. */
static void take_sideband(struct seam_perf_sideband *r)
{
	bool is_exec = r->type == PERF_RECORD_COMM &&
		       r->misc & PERF_RECORD_MISC_COMM_EXEC;

	if (is_exec)
		r->comm.pid = r->comm.tid = getpid();
	else if (r->type == PERF_RECORD_MMAP2 && r->mapping.pid != -1)
		r->mapping.pid = r->mapping.tid = getpid();
	else
		return;
	seam_live_stacks_sideband(&stacks, r, true);
}

static void take_sample(const struct item *item, size_t pid_at)
{
	static uint64_t copy[65536 / 8];
	struct pollfd wait = { .events = POLLIN };
	uint32_t pid = (uint32_t)getpid();

	memcpy(copy, item->header, item->size);
	memcpy((uint8_t *)copy + 8 + pid_at, &pid, sizeof(pid));
	seam_live_stacks_sample(&stacks, 0, copy);
	while (seam_live_stacks_is_busy(&stacks, &wait.fd)) {
		poll(&wait, 1, 1000);
		seam_live_stacks_begin_round(&stacks, false);
	}
	seam_live_stacks_begin_round(&stacks, false);
}

int main(int argc, char **argv)
{
	struct seam_perf_attr attr;
	struct seam_file file;

	if (argc < 2 || seam_file_open(&file, argv[1], NULL) ||
	    seam_perf_data_open(&data, file.bytes, NULL))
		return 1;
	attr = data.events.items[0].attr;
	read_all(&attr);
	if (seam_live_stacks_init(&stacks, &attr, 1, 127, &counts, NULL))
		return 1;
	stacks.on_sample = print;
	stacks.context = &attr;
	for (size_t i = 0; i < items.n; i++)
		if (items.items[i].is_sample)
			take_sample(&items.items[i],
				    data.events.items[0].layout.tid);
		else
			take_sideband(&items.items[i].sideband);
	seam_live_stacks_begin_round(&stacks, true);
	for (int i = 0; i < SEAM_STACK_N_ENDS; i++)
		fprintf(stderr, "%s %" PRIu64 "\n",
			seam_stack_ends[i].key,
			counts.n_ended[i]);
	seam_live_stacks_fini(&stacks);
	free(items.items);
	seam_perf_data_close(&data);
	seam_file_close(&file);
	return 0;
}
