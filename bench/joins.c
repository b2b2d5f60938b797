/* SPDX-License-Identifier: MIT */
/*
 * joins.c - how often frames of other samples complete a stack wrongly
 *
 * joins_bench FILE KIB...  FILE was recorded with copies of 64 KiB of the
 * stack (--call-graph dwarf,65528), by one event.  It is loaded as it is, then
 * once for each KIB as if the kernel had copied so many KiB.
 *
 * Prints for each KIB: the stacks, those that the shorter copy cuts, those that
 * are joined, and of these the ones whose frames are not those of the copy of
 * 64 KiB.  Where that one does not reach the root either, the frames that it
 * has are compared, and the rest is "open".
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "model/load.h"
#include "wire/perf/perf_data.h"
#include "wire/perf/perf_sample.h"
#include "wire/perf/perf_stream.h"

static void die(const char *what)
{
	fprintf(stderr, "joins_bench: %s\n", what);
	exit(1);
}

/* In @bytes, a copy of the file of @data: no copy has more than @max bytes. */
static void shorten(const struct seam_perf_data *data, uint8_t *bytes,
		    uint64_t max)
{
	const struct seam_perf_attr *attr = &data->events.items[0].attr;
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	struct seam_perf_sample sample;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0) {
		size_t at = (size_t)(record.payload.data - data->bytes.data);

		if (record.type == PERF_RECORD_SAMPLE &&
		    seam_perf_sample_read(attr, data->endian, record.payload,
					  &sample) == 0 &&
		    sample.user_stack.size > max)
			memcpy(bytes + at + sample.at.rest - sizeof(max), &max,
			       sizeof(max));
	}
	seam_perf_stream_fini(&stream);
}

/* Load the @size bytes at @bytes. */
static void load(struct seam_profile *profile, const uint8_t *bytes,
		 size_t size)
{
	const struct seam_load_options options = { .symbols.no_lines = true };
	int fd = memfd_create("joins", MFD_CLOEXEC);
	char path[64];

	for (size_t done = 0; done < size; ) {
		ssize_t n = write(fd, bytes + done, size - done);

		if (n <= 0)
			die("cannot copy the file");
		done += (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (seam_profile_init(profile) ||
	    seam_load(profile, path, &options, NULL))
		die("cannot read the file");
	close(fd);
}

static const struct seam_frame *frame_of(const struct seam_profile *p,
					 uint32_t stack)
{
	return &p->frames.items[p->stacks.items[stack].frame];
}

static bool is_mark(const struct seam_profile *p, uint32_t stack)
{
	return strcmp(seam_profile_text(p, p->functions.items[
			frame_of(p, stack)->function].name), "[joined]") == 0;
}

/*
 * The frames of @joined beside those of @whole: 0 equal, 1 equal as far as
 * @whole goes, -1 others.
 */
static int compare(const struct seam_profile *a, uint32_t joined,
		   const struct seam_profile *b, uint32_t whole)
{
	for (; joined; joined = a->stacks.items[joined].parent) {
		if (is_mark(a, joined))
			continue;
		if (!whole || is_mark(b, whole))
			return 1;
		if (frame_of(a, joined)->addr != frame_of(b, whole)->addr)
			return -1;
		whole = b->stacks.items[whole].parent;
	}
	return whole ? -1 : 0;
}

static void measure(const struct seam_profile *cut,
		    const struct seam_profile *whole, const char *kib)
{
	const struct seam_samples *s = &cut->samples;
	size_t n_cut = 0, n_joined = 0, n_wrong = 0, n_open = 0;

	for (size_t i = 0; i < s->n && s->end; i++) {
		int r;

		n_cut += s->end[i] == SEAM_STACK_JOINED ||
			 seam_stack_end_is_cut(s->end[i]);
		if (s->end[i] != SEAM_STACK_JOINED)
			continue;
		r = compare(cut, s->stack[i], whole, whole->samples.stack[i]);
		n_joined++;
		n_wrong += r < 0;
		n_open += r > 0;
	}
	printf("%s KiB: %zu stacks, %zu cut, %zu joined, %zu wrong, %zu open\n",
	       kib, s->n, n_cut, n_joined, n_wrong, n_open);
}

int main(int argc, char **argv)
{
	struct seam_perf_data data = { 0 };
	struct seam_profile whole, cut;
	struct seam_file file;
	uint8_t *bytes;

	if (argc < 3 || seam_file_open(&file, argv[1], NULL) ||
	    seam_perf_data_open(&data, file.bytes, NULL) ||
	    data.events.n == 0)
		die("FILE KIB..., FILE with copies of stacks");
	load(&whole, file.bytes.data, file.bytes.size);
	for (int i = 2; i < argc; i++) {
		bytes = malloc(file.bytes.size);
		if (!bytes)
			die("no memory");
		memcpy(bytes, file.bytes.data, file.bytes.size);
		shorten(&data, bytes, strtoull(argv[i], NULL, 10) << 10);
		load(&cut, bytes, file.bytes.size);
		measure(&cut, &whole, argv[i]);
		seam_profile_fini(&cut);
		free(bytes);
	}
	seam_profile_fini(&whole);
	seam_perf_data_close(&data);
	seam_file_close(&file);
	return 0;
}
