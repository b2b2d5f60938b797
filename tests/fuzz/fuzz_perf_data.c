/* SPDX-License-Identifier: MIT */
/*
 * fuzz_perf_data.c - any bytes as a perf.data file, or as the records of one
 *
 * The first byte picks: the input is a whole file, or it is put into a good
 * one, in either byte order and either mode.  Oracles: a walk makes progress
 * and stays inside; the fast reader of samples agrees with the whole one; RAW
 * data about a walk are written as they were read; a scan in three parts gives
 * what a scan in one gives.
 */

#include "fuzz.h"
#include "../perf_bytes.h"
#include "model/perf/perf_scan.h"
#include "wire/perf/perf_print.h"
#include "wire/perf/perf_stream.h"
#include "wire/perf/unwound.h"

/* A record that is read can be read to its end, and is written again. */
static void check_unwound(struct seam_bytes raw)
{
	static uint64_t cfas[65536];
	static uint8_t again[SEAM_UNWOUND_MAX_BYTES];
	struct seam_unwound a, b;
	size_t n;

	if (seam_unwound_read(raw, &a) || a.n_cfas > 1000)
		return;
	for (uint64_t i = 0; i < a.n_cfas; i++)
		cfas[i] = seam_unwound_next(&a);
	must(a.cfas.error == 0);
	n = seam_unwound_write(again, a.end, a.n_frames, cfas, a.n_cfas);
	must(seam_unwound_read((struct seam_bytes) { again + 4, n - 4 },
			       &b) == 0);
	must(b.n_frames == a.n_frames && b.n_cfas == a.n_cfas);
	for (uint64_t i = 0; i < b.n_cfas; i++)
		must(seam_unwound_next(&b) == cfas[i]);
}

static void check_sample(const struct seam_perf_data *data,
			 const struct seam_perf_record *record)
{
	for (size_t i = 0; i < data->events.n; i++) {
		const struct seam_perf_event *event = &data->events.items[i];
		struct seam_perf_sample whole;
		struct seam_perf_core core;

		if (!seam_perf_layout_read(&event->layout, record->payload,
					   &core) ||
		    seam_perf_sample_read(&event->attr, data->endian,
					  record->payload, &whole))
			continue;
		must(core.ip == whole.ip && core.time == whole.time &&
		     core.pid == whole.pid && core.tid == whole.tid &&
		     core.n_chain == whole.callchain.n &&
		     core.raw.size == whole.raw.size);
		check_unwound(whole.raw);
	}
}

static void walk(const struct seam_perf_data *data)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint64_t last = 0;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while (seam_perf_stream_next(&stream, &record, NULL) > 0) {
		must(record.offset >= last);
		must(stream.pos <= data->bytes.size);
		last = record.offset;
		if (record.type == PERF_RECORD_SAMPLE)
			check_sample(data, &record);
	}
	seam_perf_stream_fini(&stream);
}

static void scan(const struct seam_perf_data *data)
{
	struct seam_perf_scan one, parts[3];
	size_t at = 0;

	must(seam_perf_scan(data, data->bytes, data->data_begin,
			    data->data_end, &one, 1, SEAM_SCAN_SAMPLES) == 0);
	if (data->data_end - data->data_begin > 64 &&
	    one.error == 0 && !data->is_pipe) {
		must(seam_perf_scan(data, data->bytes, data->data_begin,
				    data->data_end, parts, 3,
				    SEAM_SCAN_SAMPLES) == 0);
		for (size_t i = 0; i < 3; i++) {
			for (size_t k = 0; k < parts[i].samples.n; k++, at++)
				must(one.samples.time_ns[at] ==
				     parts[i].samples.time_ns[k] ||
				     one.samples.n == 0);
			seam_perf_scan_fini(&parts[i]);
		}
		must(at == one.samples.n);
	}
	seam_perf_scan_fini(&one);
}

static void use(struct seam_bytes file)
{
	static FILE *nowhere;
	struct seam_perf_data data;
	uint64_t n_damaged;
	char command[64];

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (seam_perf_data_open(&data, file, NULL) == 0) {
		walk(&data);
		scan(&data);
		seam_perf_data_command(&data, command, sizeof(command));
		seam_perf_print(nowhere, &data, data.bytes, data.data_begin,
				data.data_end, file.size % 2 ? SEAM_LINE_JSON :
				SEAM_LINE_TEXT, NULL, &n_damaged, NULL);
	}
	seam_perf_data_close(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct bytes records = { 0 }, file;
	uint8_t how;

	if (size == 0)
		return 0;
	how = input[0];
	if (how & 4) {
		use((struct seam_bytes) { input + 1, size - 1 });
		return 0;
	}
	records.endian = how & 1 ? SEAM_BIG : SEAM_LITTLE;
	put(&records, input + 1, size - 1);
	file = how & 2 ? make_pipe(&records) : make_file(&records);
	use((struct seam_bytes) { file.data, file.size });
	free(file.data);
	free(records.data);
	return 0;
}
