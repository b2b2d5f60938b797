/* SPDX-License-Identifier: MIT */
/*
 * multiply.c - a short recording made long
 *
 *	multiply IN OUT N_SAMPLES
 *
 * Copies the perf.data file IN and repeats its samples, round after round,
 * each round later by the length of the recording, until there are
 * N_SAMPLES: what a reader of millions of samples is measured on, with the
 * stacks and symbols of a real program.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/file.h"
#include "wire/perf/perf_data.h"
#include "wire/perf/perf_stream.h"

static void die(const struct seam_err *err)
{
	seam_err_print(stderr, "multiply", err);
	exit(1);
}

/* Position of the time in a sample of this event, behind the header. */
static size_t time_at(const struct seam_perf_data *data,
		      const struct seam_perf_record *record)
{
	uint32_t event = seam_perf_data_event(data, seam_perf_sample_peek_id(
		&data->events.items[0].attr, data->endian, record->payload));

	return event == SEAM_NONE ? UINT16_MAX :
	       data->events.items[event].layout.time;
}

static uint64_t copy(FILE *out, const struct seam_perf_data *data,
		     bool samples, uint64_t later, uint64_t most,
		     uint64_t *span)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint64_t n = 0, first = 0, last = 0;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while (n < most && seam_perf_stream_next(&stream, &record, NULL) > 0) {
		size_t size = SEAM_PERF_HEADER_BYTES + record.payload.size;
		const uint8_t *p = record.payload.data -
				   SEAM_PERF_HEADER_BYTES;
		uint8_t buf[UINT16_MAX];
		uint64_t time;
		size_t at;

		if ((record.type == PERF_RECORD_SAMPLE) != samples ||
		    record.type == SEAM_PERF_FINISHED_ROUND)
			continue;
		memcpy(buf, p, size);
		at = samples ? time_at(data, &record) : UINT16_MAX;
		if (at != UINT16_MAX) {
			memcpy(&time, p + SEAM_PERF_HEADER_BYTES + at, 8);
			first = first ? first : time;
			last = time;
			time += later;
			memcpy(buf + SEAM_PERF_HEADER_BYTES + at, &time, 8);
		}
		fwrite(buf, 1, size, out);
		n++;
	}
	seam_perf_stream_fini(&stream);
	*span = last - first + 1000000;
	return n;
}

/* The sections behind the data, moved with it. */
static void copy_features(FILE *out, const struct seam_perf_data *data,
			  uint64_t new_end)
{
	const uint8_t *table = data->bytes.data + data->data_end;
	uint64_t moved = new_end - data->data_end;
	size_t n = 0;

	for (size_t i = 0; i < SEAM_PERF_N_FEATURES; i++) {
		uint64_t section[2];
		bool set = data->bytes.data[72 + i / 8] >> i % 8 & 1;

		if (!set)
			continue;
		memcpy(section, table + 16 * n++, 16);
		section[0] += moved;
		fwrite(section, 1, 16, out);
	}
	fwrite(table + 16 * n, 1,
	       data->bytes.size - data->data_end - 16 * n, out);
}

int main(int argc, char **argv)
{
	struct seam_err err = { 0 };
	struct seam_file file;
	struct seam_perf_data data;
	uint64_t want, n = 0, later = 0, span, end, size;
	FILE *out;

	if (argc != 4) {
		fprintf(stderr, "usage: multiply IN OUT N_SAMPLES\n");
		return 2;
	}
	if (seam_file_open(&file, argv[1], &err) ||
	    seam_perf_data_open(&data, file.bytes, &err))
		die(&err);
	out = fopen(argv[2], "wb");
	want = strtoull(argv[3], NULL, 10);
	if (!out || data.is_pipe) {
		fprintf(stderr, "multiply: cannot write '%s'\n", argv[2]);
		return 1;
	}
	fwrite(file.bytes.data, 1, data.data_begin, out);
	copy(out, &data, false, 0, UINT64_MAX, &span);
	while (n < want) {
		uint64_t more = copy(out, &data, true, later, want - n, &span);

		if (more == 0)
			break;
		n += more;
		later += span;
	}
	end = (uint64_t)ftell(out);
	copy_features(out, &data, end);
	size = end - data.data_begin;
	fseek(out, 48, SEEK_SET);
	fwrite(&size, 1, 8, out);
	seam_perf_data_close(&data);
	seam_file_close(&file);
	return fclose(out) ? 1 : 0;
}
