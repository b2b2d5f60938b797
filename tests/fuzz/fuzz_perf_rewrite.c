/* SPDX-License-Identifier: MIT */
/*
 * fuzz_perf_rewrite.c - any bytes as a recording that is written anew
 *
 * Oracle: with nothing added or left out a file that was not cut and whose
 * records are all whole comes out byte for byte; what is added is in the
 * copy, and the copy reads as many records as the file and those.
 */
#include "fuzz.h"
#include "export/inject/perf_rewrite.h"
#include "wire/perf/perf_stream.h"

#include <linux/perf_event.h>
#include <unistd.h>

/* Records, and whether some were packed; -1 when the walk failed. */
static int64_t count_records(const struct seam_perf_data *data, bool *is_packed)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	int64_t n = 0;
	int r;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while ((r = seam_perf_stream_next(&stream, &record, NULL)) > 0)
		n++;
	*is_packed = stream.unpacked != NULL;
	seam_perf_stream_fini(&stream);
	return r < 0 ? -1 : n;
}

struct copy {
	char *bytes;
	size_t size;
};

/* Into a file: a stream in memory forgets what is behind a seek. */
static int rewrite(struct seam_perf_rewrite *what, struct copy *copy)
{
	static FILE *out;
	int r;

	if (!out)
		out = tmpfile();
	must(out && ftruncate(fileno(out), 0) == 0);
	rewind(out);
	r = seam_perf_rewrite(what, out, NULL);
	copy->size = (size_t)ftello(out);
	copy->bytes = malloc(copy->size + 1);
	must(copy->bytes != NULL);
	must(pread(fileno(out), copy->bytes, copy->size, 0) ==
	     (ssize_t)copy->size);
	return r;
}

static void check_copy(const struct seam_perf_data *data)
{
	struct seam_perf_rewrite what = { .data = data };
	struct copy copy = { 0 };
	bool is_packed;
	int64_t n = count_records(data, &is_packed);

	if (rewrite(&what, &copy) == 0 && n >= 0 && !data->is_cut &&
	    !is_packed && data->data_end <= data->bytes.size) {
		must(copy.size == data->bytes.size);
		must(!memcmp(copy.bytes, data->bytes.data, copy.size));
	}
	free(copy.bytes);
}

static void check_added(const struct seam_perf_data *data)
{
	struct seam_perf_added added = {
		.time_ns = 1, .pid = 1, .addr = 0x1000, .len = 0x1000,
		.filename = "f",
	};
	struct seam_perf_rewrite what = {
		.data = data, .added = &added, .n_added = 1,
	};
	struct copy copy = { 0 };
	struct seam_perf_data again;
	bool is_packed;
	int64_t n = count_records(data, &is_packed);

	if (rewrite(&what, &copy) == 0 && n >= 0 && !is_packed &&
	    !data->is_pipe) {
		must(seam_perf_data_open(&again, (struct seam_bytes) {
				(uint8_t *)copy.bytes, copy.size }, NULL) == 0);
		must(again.ids.n == data->ids.n);
		must(count_records(&again, &is_packed) ==
		     n + (int64_t)what.n_written);
		seam_perf_data_close(&again);
	}
	free(copy.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct seam_perf_data data;

	if (seam_perf_data_open(&data, (struct seam_bytes) { bytes, size },
				NULL) == 0) {
		check_copy(&data);
		check_added(&data);
	}
	seam_perf_data_close(&data);
	return 0;
}
