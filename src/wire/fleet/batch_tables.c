/* SPDX-License-Identifier: MIT */
/* batch_tables.c - the list of tables, as batches have them; see its header */
#include "wire/fleet/batch_tables.h"

#include "base/clock.h"

#define COLUMN(name, type, place, record, member) \
	{ name, SEAM_NATIVE_##type, SEAM_COLUMN_##place, \
	  offsetof(struct record, member), SEAM_COLUMN_NO_LIST, false, false }
#define SIGNED(name, record, member) \
	{ name, SEAM_NATIVE_I32, SEAM_COLUMN_ROW, \
	  offsetof(struct record, member), SEAM_COLUMN_NO_LIST, false, true }
#define FLAG(name, record, member) \
	{ name, SEAM_NATIVE_U8, SEAM_COLUMN_ROW, \
	  offsetof(struct record, member), SEAM_COLUMN_NO_LIST, true, false }
#define LIST(name, type, place, record, member, list) \
	{ name, SEAM_NATIVE_##type, SEAM_COLUMN_##place, \
	  offsetof(struct record, member), SEAM_COLUMN_##list, false, false }
#define COUNT(name, table) \
	{ name, SEAM_NATIVE_U64, SEAM_COLUMN_COUNT, SEAM_TABLE_##table, \
	  SEAM_COLUMN_NO_LIST, false, false }

/* Columns of each row that are not its own. */
#define DAY { "day", SEAM_NATIVE_DATE, SEAM_COLUMN_DAY, 0, \
	      SEAM_COLUMN_NO_LIST, false, false }
#define AGENT COLUMN("agent", U64, BATCH, seam_batch, id.agent)
#define SEQ COLUMN("seq", U64, BATCH, seam_batch, id.seq)
#define SERVICE COLUMN("service", STRING, ORIGIN, seam_batch_origin, service)
#define HOST COLUMN("host", STRING, ORIGIN, seam_batch_origin, host)
#define RECORDING \
	COLUMN("recording", STRING, ORIGIN, seam_batch_origin, recording)
#define LABELS \
	LIST("labels", STRINGS, ORIGIN, seam_batch_origin, labels, LABELS)

static const struct seam_batch_column frame_columns[] = {
	AGENT,
	COLUMN("frame_id", U64, ROW, seam_batch_frame, id),
	COLUMN("layer", U8, ROW, seam_batch_frame, layer),
	FLAG("is_named", seam_batch_frame, is_named),
	FLAG("is_inlined", seam_batch_frame, is_inlined),
	COLUMN("func", STRING, ROW, seam_batch_frame, function),
	COLUMN("file", STRING, ROW, seam_batch_frame, file),
	COLUMN("line", U32, ROW, seam_batch_frame, line),
	COLUMN("module", STRING, ROW, seam_batch_frame, module),
	COLUMN("build_id", STRING, ROW, seam_batch_frame, build_id),
	COLUMN("offset", U64, ROW, seam_batch_frame, offset),
};

static const struct seam_batch_column stack_columns[] = {
	AGENT,
	{ "seen", SEAM_NATIVE_DATE, SEAM_COLUMN_DAY, 0, SEAM_COLUMN_NO_LIST,
	  false, false },
	COLUMN("stack_id", U64, ROW, seam_batch_stack, id),
	LIST("frames", NUMBERS, ROW, seam_batch_stack, first, FRAME_IDS),
};

static const struct seam_batch_column sample_columns[] = {
	DAY, SERVICE,
	COLUMN("event", STRING, ROW, seam_batch_sample, event),
	COLUMN("ts_ns", U64, ROW, seam_batch_sample, ts_ns),
	HOST, LABELS, RECORDING, AGENT, SEQ,
	COLUMN("kind", U8, ROW, seam_batch_sample, kind),
	COLUMN("unit", U8, ROW, seam_batch_sample, unit),
	SIGNED("pid", seam_batch_sample, pid),
	SIGNED("tid", seam_batch_sample, tid),
	COLUMN("process", STRING, ROW, seam_batch_sample, process),
	COLUMN("thread", STRING, ROW, seam_batch_sample, thread),
	COLUMN("stack_id", U64, ROW, seam_batch_sample, stack),
	COLUMN("count", U64, ROW, seam_batch_sample, count),
	COLUMN("value", U64, ROW, seam_batch_sample, value),
};

static const struct seam_batch_column call_columns[] = {
	DAY, SERVICE,
	COLUMN("ts_ns", U64, ROW, seam_batch_calls, ts_ns),
	HOST, LABELS, RECORDING, AGENT, SEQ,
	SIGNED("pid", seam_batch_calls, pid),
	COLUMN("process", STRING, ROW, seam_batch_calls, process),
	COLUMN("frame_id", U64, ROW, seam_batch_calls, frame),
	COLUMN("count", U64, ROW, seam_batch_calls, count),
	COLUMN("min_ns", U64, ROW, seam_batch_calls, min_ns),
	COLUMN("max_ns", U64, ROW, seam_batch_calls, max_ns),
	COLUMN("sum_ns", U64, ROW, seam_batch_calls, sum_ns),
	COLUMN("total_ns", U64, ROW, seam_batch_calls, total_ns),
	COLUMN("self_ns", U64, ROW, seam_batch_calls, self_ns),
	LIST("buckets", SHORTS, ROW, seam_batch_calls, first, BUCKETS),
	LIST("counts", NUMBERS, ROW, seam_batch_calls, first, BUCKET_COUNTS),
};

static const struct seam_batch_column loss_columns[] = {
	DAY, SERVICE,
	COLUMN("ts_ns", U64, ROW, seam_batch_loss, ts_ns),
	HOST, LABELS, RECORDING, AGENT, SEQ,
	COLUMN("cause", STRING, ROW, seam_batch_loss, cause),
	COLUMN("source", STRING, ROW, seam_batch_loss, source),
	COLUMN("records", U64, ROW, seam_batch_loss, records),
	COLUMN("bytes", U64, ROW, seam_batch_loss, bytes),
};

static const struct seam_batch_column batch_columns[] = {
	DAY, AGENT, SEQ, SERVICE, HOST, LABELS, RECORDING,
	COLUMN("from_ns", U64, BATCH, seam_batch, from_ns),
	COLUMN("to_ns", U64, BATCH, seam_batch, to_ns),
	COUNT("n_frames", FRAMES),
	COUNT("n_stacks", STACKS),
	COUNT("n_samples", SAMPLES),
	COUNT("n_calls", CALLS),
	COUNT("n_losses", LOSSES),
};

#define TABLE(columns) columns, SEAM_ARRAY_SIZE(columns)

const struct seam_batch_table seam_batch_tables[SEAM_N_BATCH_TABLES] = {
	[SEAM_TABLE_FRAMES] = {
		"frames", TABLE(frame_columns), "frame_id", true, false,
		SIZE_MAX,
	},
	[SEAM_TABLE_STACKS] = {
		"stacks", TABLE(stack_columns), "stack_id", true, false,
		SIZE_MAX,
	},
	[SEAM_TABLE_SAMPLES] = {
		"samples", TABLE(sample_columns), "service, event, ts_ns",
		false, true, offsetof(struct seam_batch_sample, origin),
	},
	[SEAM_TABLE_CALLS] = {
		"calls", TABLE(call_columns), "service, ts_ns", false, true,
		offsetof(struct seam_batch_calls, origin),
	},
	[SEAM_TABLE_LOSSES] = {
		"losses", TABLE(loss_columns), "service, ts_ns", false, true,
		offsetof(struct seam_batch_loss, origin),
	},
	[SEAM_TABLE_BATCHES] = {
		"batches", TABLE(batch_columns), "agent, seq", true, true,
		SIZE_MAX,
	},
};

size_t seam_batch_n_rows(const struct seam_batch *batch,
			 enum seam_batch_table_id table)
{
	switch (table) {
	case SEAM_TABLE_FRAMES: return batch->frames.n;
	case SEAM_TABLE_STACKS: return batch->stacks.n;
	case SEAM_TABLE_SAMPLES: return batch->samples.n;
	case SEAM_TABLE_CALLS: return batch->calls.n;
	case SEAM_TABLE_LOSSES: return batch->losses.n;
	default: return 1;
	}
}

uint16_t seam_batch_day(uint64_t utc_ns)
{
	uint64_t days = utc_ns / SEAM_NS_PER_S / (24 * 60 * 60);

	return days < UINT16_MAX ? (uint16_t)days : UINT16_MAX;
}
