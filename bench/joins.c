/* SPDX-License-Identifier: MIT */
/*
 * joins.c - how often frames of other samples complete a stack wrongly
 *
 * joins_bench FILE KIB...  FILE was recorded with copies of 64 KiB of the
 * stack (--call-graph dwarf,65528), by one event.  Its samples are passed to
 * the recorder's unwinder as they are, then once for each KIB with copies cut
 * to so many KiB, in the order of time.  Files are opened by their paths.
 *
 * Prints for each KIB: the stacks, those that the shorter copy cuts, those that
 * are joined, and of these the ones whose frames are not those of the copy of
 * 64 KiB.  Where that one does not reach the root either, the frames that it
 * has are compared, and the rest is "open".
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "record/proc/mapped_file.h"
#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_stream.h"

enum { MAX_RECORD = 65536, MAX_CHAIN = 127 };

struct item {
	uint64_t time;
	uint32_t order;
	uint32_t sample;		/* its number; SEAM_NONE: side-band */
	const uint8_t *header;
	struct seam_perf_sideband sideband;
};

/* The user part of a chain. */
struct chain {
	size_t first, n;		/* in pcs */
	size_t n_joined;		/* of them, the outermost */
	bool is_known;		/* with copies of this size it has one */
	bool is_cut;			/* not joined either */
};

/* The chains of all samples with copies of one size. */
struct pass {
	struct chain *chains;
	SEAM_ARRAY(uint64_t) pcs;
	struct seam_live_stacks stacks;
	struct seam_stack_counts counts, before;
};

static struct seam_perf_data data;
static struct seam_perf_attr attr;
static SEAM_ARRAY(struct item) items;
static struct item **samples;		/* by their numbers */
static size_t n_samples;

static void die(const char *what)
{
	fprintf(stderr, "joins_bench: %s\n", what);
	exit(1);
}

/* The processes are gone: files are opened by their paths. */
__typeof__(seam_mapped_file_open) __wrap_seam_mapped_file_open;
int __wrap_seam_mapped_file_open(const struct seam_file_mapping *mapping,
				 const struct seam_file_identity *identity,
				 bool *is_protected)
{
	int fd = open(mapping->path, O_RDONLY | O_CLOEXEC);

	if (is_protected)
		*is_protected = true;
	if (fd >= 0 && !seam_mapped_file_is(fd, identity)) {
		close(fd);
		return -ENOENT;
	}
	return fd < 0 ? -errno : fd;
}

/* ---- the recording ---- */

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void add(const struct seam_perf_record *record)
{
	struct item item = {
		.order = (uint32_t)items.n, .sample = SEAM_NONE,
		.header = record->payload.data - SEAM_PERF_HEADER_BYTES,
	};
	struct seam_perf_sample sample;

	if (record->type == PERF_RECORD_SAMPLE) {
		if (seam_perf_sample_read(&attr, data.endian, record->payload,
					  &sample))
			return;
		item.time = sample.time;
		item.sample = 0;
		n_samples++;
	} else {
		if (seam_perf_sideband_read(&attr, data.endian, record,
					    &item.sideband))
			return;
		item.time = item.sideband.sample_id.time;
	}
	if (!SEAM_ARRAY_ADD(&items, item))
		die("no memory");
}

static void read_all(void)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint32_t n = 0;

	seam_perf_stream_init(&stream, data.bytes, data.endian,
			      data.data_begin, data.data_end, false);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0)
		add(&record);
	seam_perf_stream_fini(&stream);
	SEAM_ARRAY_SORT(&items, by_time);
	samples = calloc(n_samples + 1, sizeof(*samples));
	if (!samples)
		die("no memory");
	for (size_t i = 0; i < items.n; i++) {
		if (items.items[i].sample == SEAM_NONE)
			continue;
		items.items[i].sample = n;
		samples[n++] = &items.items[i];
	}
}

/* ---- one size of copies ---- */

/* The sample of thread @tid at @time; it may have waited for a file. */
static uint32_t number_of(int32_t tid, uint64_t time)
{
	struct seam_perf_sample sample;
	size_t low = 0, high = n_samples;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples[middle]->time < time)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n_samples && samples[low]->time == time; low++) {
		struct seam_perf_record record =
			seam_perf_record_at(samples[low]->header);

		if (!seam_perf_sample_read(&attr, data.endian, record.payload,
					   &sample) && sample.tid == tid)
			return (uint32_t)low;
	}
	return SEAM_NONE;
}

/* A sample that was unwound: keep its chain, and what was counted for it. */
static void keep(void *context, uint32_t event, const void *header)
{
	struct pass *pass = context;
	struct seam_stack_counts *now = &pass->counts, *before = &pass->before;
	struct seam_perf_record record = seam_perf_record_at(header);
	struct seam_perf_attr out = attr;
	struct seam_perf_sample sample;
	struct chain *chain;
	uint32_t number;
	size_t i = 0;

	(void)event;
	out.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
				       PERF_SAMPLE_STACK_USER);
	if (seam_perf_sample_read(&out, data.endian, record.payload, &sample))
		die("a damaged sample was written");
	number = number_of(sample.tid, sample.time);
	if (number == SEAM_NONE)
		die("another sample was written");
	chain = &pass->chains[number];
	chain->first = pass->pcs.n;
	chain->is_known = seam_stack_counts_total(now) !=
			  seam_stack_counts_total(before);
	chain->n_joined = now->n_frames[SEAM_STACK_BY_JOIN] -
			  before->n_frames[SEAM_STACK_BY_JOIN];
	chain->is_cut = now->n_ended[SEAM_STACK_TRUNCATED] !=
			before->n_ended[SEAM_STACK_TRUNCATED];
	while (i < sample.callchain.n &&
	       seam_perf_u64(&sample.callchain, i++) !=
		       (uint64_t)PERF_CONTEXT_USER)
		;
	for (; i < sample.callchain.n; i++, chain->n++)
		if (!SEAM_ARRAY_ADD(&pass->pcs,
				    seam_perf_u64(&sample.callchain, i)))
			die("no memory");
	*before = *now;
}

/* Write the sample with a shorter copy to @to. */
static void cut(const uint8_t *header, size_t dump_bytes, uint8_t *to)
{
	struct seam_perf_record record = seam_perf_record_at(header);
	struct seam_perf_sample sample;
	const uint8_t *payload = record.payload.data, *rest;
	uint64_t size = 0, used;
	uint8_t *out = to + SEAM_PERF_HEADER_BYTES;
	uint16_t bytes;

	if (seam_perf_sample_read(&attr, data.endian, record.payload, &sample))
		die("a damaged sample");
	memcpy(to, header, SEAM_PERF_HEADER_BYTES);
	memcpy(out, payload, sample.at.user_stack);
	memcpy(&size, payload + sample.at.user_stack, sizeof(size));
	rest = payload + sample.at.rest;
	out += sample.at.user_stack;
	if (size > dump_bytes)
		size = dump_bytes;
	memcpy(out, &size, sizeof(size));
	out += sizeof(size);
	if (size) {
		used = sample.user_stack.size < size ? sample.user_stack.size :
						       size;
		memcpy(out, payload + sample.at.user_stack + sizeof(size),
		       size);
		memcpy(out + size, &used, sizeof(used));
		out += size + sizeof(used);
	}
	memcpy(out, rest, (size_t)(payload + record.payload.size - rest));
	out += payload + record.payload.size - rest;
	bytes = (uint16_t)(out - to);
	memcpy(to + offsetof(struct seam_perf_header, size), &bytes,
	       sizeof(bytes));
}

/* Files are read before the next sample: what waits is no matter here. */
static void wait_for_files(struct seam_live_stacks *stacks)
{
	struct pollfd wait = { .events = POLLIN };

	while (seam_live_stacks_is_busy(stacks, &wait.fd)) {
		poll(&wait, 1, 1000);
		seam_live_stacks_begin_round(stacks, false);
	}
	seam_live_stacks_begin_round(stacks, false);
}

static void run(struct pass *pass, size_t dump_bytes)
{
	static uint64_t record[MAX_RECORD / 8];
	struct seam_perf_attr shorter = attr;

	shorter.sample_stack_user = (uint32_t)dump_bytes;
	pass->chains = calloc(n_samples + 1, sizeof(*pass->chains));
	if (!pass->chains ||
	    seam_live_stacks_init(&pass->stacks, &shorter, 1, MAX_CHAIN,
				  &pass->counts, NULL))
		die("no memory");
	pass->stacks.on_sample = keep;
	pass->stacks.context = pass;
	/* one after the other; what is joined later: bench/whole_stacks */
	pass->stacks.hold_ns = 0;
	for (size_t i = 0; i < items.n; i++) {
		const struct item *item = &items.items[i];

		if (item->sample == SEAM_NONE) {
			seam_live_stacks_sideband(&pass->stacks,
						  &item->sideband, true);
			continue;
		}
		cut(item->header, dump_bytes, (uint8_t *)record);
		seam_live_stacks_sample(&pass->stacks, 0, record);
		wait_for_files(&pass->stacks);
	}
	seam_live_stacks_begin_round(&pass->stacks, true);
	seam_live_stacks_fini(&pass->stacks);
}

/* ---- two sizes ---- */

enum join { RIGHT, WRONG, OPEN };

static enum join compare(const struct pass *pass, const struct chain *chain,
			 const struct pass *whole, const struct chain *truth)
{
	size_t n_true = truth->n - truth->n_joined;
	size_t n = chain->n < n_true ? chain->n : n_true;

	if (memcmp(&pass->pcs.items[chain->first],
		   &whole->pcs.items[truth->first], n * sizeof(uint64_t)))
		return WRONG;
	/* where the longer copy was cut as well, more frames may follow */
	if (truth->is_cut || truth->n_joined)
		return chain->n < n_true ? WRONG : OPEN;
	return chain->n == n_true ? RIGHT : WRONG;
}

static void print(const struct pass *pass, const struct pass *whole,
		  size_t dump_bytes)
{
	size_t n = 0, n_cut = 0, n_joins[3] = { 0 };

	for (size_t i = 0; i < n_samples; i++) {
		const struct chain *chain = &pass->chains[i];

		n += chain->is_known;
		n_cut += chain->is_cut || chain->n_joined;
		if (chain->n_joined)
			n_joins[compare(pass, chain, whole,
					&whole->chains[i])]++;
	}
	printf("%zu KiB: %zu stacks, %zu cut, %zu joined, %zu wrong, "
	       "%zu open\n",
	       dump_bytes >> 10, n, n_cut,
	       n_joins[RIGHT] + n_joins[WRONG] + n_joins[OPEN],
	       n_joins[WRONG], n_joins[OPEN]);
}

static void free_pass(struct pass *pass)
{
	free(pass->chains);
	free(pass->pcs.items);
}

int main(int argc, char **argv)
{
	static struct pass whole;
	struct seam_file file;

	if (argc < 3 || seam_file_open(&file, argv[1], NULL) ||
	    seam_perf_data_open(&data, file.bytes, NULL))
		die("cannot read the recording");
	attr = data.events.items[0].attr;
	read_all();
	run(&whole, attr.sample_stack_user);
	for (int i = 2; i < argc; i++) {
		struct pass pass = { .chains = NULL };
		size_t dump_bytes = strtoul(argv[i], NULL, 10) << 10;

		run(&pass, dump_bytes);
		print(&pass, &whole, dump_bytes);
		free_pass(&pass);
	}
	free_pass(&whole);
	free(samples);
	free(items.items);
	seam_perf_data_close(&data);
	seam_file_close(&file);
	return 0;
}
