/* SPDX-License-Identifier: MIT */
/* xray_log.c - streams into blocks; see exporter.h */
#include "export/exporter.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/xray/xray_write.h"

enum {
	MAX_BLOCKS = 16,
	MIN_BLOCK_BYTES = 64 * 1024,
};

static void begin_block(struct seam_xray_writer *w,
			struct seam_trace_reader *reader,
			const struct seam_xray_event *event)
{
	seam_xray_writer_block(w, &(struct seam_xray_block_start) {
		.pid = reader->stream->pid, .tid = reader->stream->tid,
		.wall_ns = seam_trace_time(reader, event->tsc),
		.tsc = event->tsc, .cpu = event->cpu,
	});
}

static void write_stream(struct seam_xray_writer *w,
			 struct seam_trace_reader *reader,
			 struct seam_xray_batch *batch)
{
	uint64_t want = reader->stream->n_bytes / (MAX_BLOCKS - 1) + 1;
	bool is_open = false;
	size_t n_shadow;

	if (want < MIN_BLOCK_BYTES)
		want = MIN_BLOCK_BYTES;
	while (!w->error && seam_trace_next(reader, batch, &n_shadow)) {
		for (size_t i = n_shadow; i < batch->n; i++) {
			const struct seam_xray_event *event = &batch->events[i];
			bool is_full = w->block.n >= want;

			if (event->kind == SEAM_XRAY_ARGUMENT && !is_open)
				continue;
			/* an argument stays with its entry */
			if (event->kind != SEAM_XRAY_ARGUMENT &&
			    (!is_open || is_full))
				begin_block(w, reader, event);
			is_open = true;
			seam_xray_writer_put(w, event, event->kind <=
					     SEAM_XRAY_ARGUMENT ? NULL :
					     &batch->payloads[event->function]);
		}
	}
}

int seam_write_xray_log(const struct seam_export *export, struct seam_err *err)
{
	const struct seam_trace *trace = export->trace;
	struct seam_xray_batch *batch;
	struct seam_xray_writer w;

	if (trace->clocks.n > 1)
		return seam_err_set(err, -ENOTSUP, "cannot join logs whose "
				    "clocks have different frequencies");
	if (export->names->others)
		return seam_err_set(err, -ENOTSUP, "cannot join logs of "
				    "several programs, which number their "
				    "functions alike: convert one at a time");
	batch = malloc(sizeof(*batch));
	if (!batch)
		return seam_err_no_memory(err);
	seam_xray_writer_init(&w, export->out, trace->clocks.n ?
			      trace->clocks.items[0].ticks.frequency_hz : 0,
			      MIN_BLOCK_BYTES);
	for (size_t i = 0; i < trace->streams.n; i++) {
		struct seam_trace_reader reader;

		seam_trace_read(&reader, trace, i);
		reader.raw = true;
		write_stream(&w, &reader, batch);
		seam_xray_problems_merge(export->problems, &reader.problems);
	}
	free(batch);
	return seam_xray_writer_end(&w, err);
}
