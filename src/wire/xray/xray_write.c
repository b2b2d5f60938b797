/* SPDX-License-Identifier: MIT */
/* xray_write.c - encode records, collect a block, write it; see xray_write.h */
#include "wire/xray/xray_write.h"

#include <errno.h>
#include <stdlib.h>

size_t seam_xray_record_write(const struct seam_xray_format *format,
			      const struct seam_xray_record *record,
			      uint8_t *buf, size_t cap)
{
	const struct seam_record *table =
		seam_xray_record_table(record->state, format->version);
	size_t size = SEAM_XRAY_METADATA_BYTES + record->data.size;
	struct seam_xray_record copy = *record;

	if (record->state == SEAM_XRAY_AT_ENTRY ||
	    record->state == SEAM_XRAY_AT_EXIT) {
		copy.function_record.word = format->endian == SEAM_BIG ?
			(uint32_t)record->action << 28 | record->function :
			record->function << 4 | (uint32_t)record->action << 1;
		return seam_wire_write(table, &copy.buffer, format->endian,
				       buf, cap);
	}
	if (size > cap)
		return size;
	if (record->state == SEAM_XRAY_AT_CUSTOM ||
	    record->state == SEAM_XRAY_AT_TYPED)
		copy.marker.event_size = (int32_t)record->data.size;
	memset(buf, 0, SEAM_XRAY_METADATA_BYTES);
	buf[0] = seam_xray_marker(format, record->state);
	seam_wire_write(table, &copy.buffer, format->endian, buf + 1,
			SEAM_XRAY_METADATA_BYTES - 1);
	if (record->data.size)
		memcpy(buf + SEAM_XRAY_METADATA_BYTES, record->data.data,
		       record->data.size);
	return size;
}

static void put(struct seam_xray_writer *w,
		const struct seam_xray_record *record)
{
	size_t max = SEAM_XRAY_METADATA_BYTES + record->data.size;

	if (w->error)
		return;
	if (!SEAM_ARRAY_RESERVE(&w->block, max)) {
		w->error = -ENOMEM;
		return;
	}
	w->block.n += seam_xray_record_write(&w->format, record,
					     w->block.items + w->block.n, max);
}

static void emit(struct seam_xray_writer *w, const void *data, size_t size)
{
	if (!w->error && fwrite(data, 1, size, w->out) != size)
		w->error = errno ? -errno : -EIO;
}

static void end_block(struct seam_xray_writer *w)
{
	struct seam_xray_record extents = {
		.state = SEAM_XRAY_AT_EXTENTS, .extents.size = w->block.n,
	};
	uint8_t buf[SEAM_XRAY_METADATA_BYTES];

	if (w->block.n == 0)
		return;
	seam_xray_record_write(&w->format, &extents, buf, sizeof(buf));
	emit(w, buf, sizeof(buf));
	emit(w, w->block.items, w->block.n);
	w->block.n = 0;
}

void seam_xray_writer_init(struct seam_xray_writer *w, FILE *out,
			   uint64_t frequency_hz, uint64_t buffer_bytes)
{
	struct seam_xray_header header = {
		.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR,
		.flags = 3, .cycle_frequency = frequency_hz,
		.buffer_size = buffer_bytes,
	};
	uint8_t buf[SEAM_XRAY_HEADER_BYTES];

	*w = (struct seam_xray_writer) { .out = out };
	seam_xray_format_init(&w->format, header.version, SEAM_LITTLE);
	seam_wire_write(&seam_xray_header_record, &header, SEAM_LITTLE, buf,
			sizeof(buf));
	emit(w, buf, sizeof(buf));
}

static void put_cpu(struct seam_xray_writer *w, uint16_t cpu, uint64_t tsc)
{
	put(w, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU,
		.cpu = { .cpu_id = cpu, .absolute_tsc = tsc },
	});
	w->cpu = cpu;
	w->tsc = tsc;
}

void seam_xray_writer_block(struct seam_xray_writer *w,
			    const struct seam_xray_block_start *start)
{
	uint64_t us = start->wall_ns / 1000;

	end_block(w);
	put(w, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_BUFFER, .buffer.thread_id = start->tid,
	});
	put(w, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_WALL,
		.wall = { .seconds = (int64_t)(us / 1000000),
			  .microseconds = (int32_t)(us % 1000000) },
	});
	put(w, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_PID, .pid.pid = start->pid,
	});
	put_cpu(w, start->cpu, start->tsc);
}

/*
 * The delta to @tsc.  Deltas above INT32_MAX are legal, but llvm-xray and
 * compiler-rt write a new base instead, and so do we.
 */
static uint32_t delta_to(struct seam_xray_writer *w, uint64_t tsc, uint16_t cpu)
{
	uint64_t delta = tsc - w->tsc;

	if (cpu != w->cpu) {
		put_cpu(w, cpu, tsc);
	} else if (delta > INT32_MAX) {
		put(w, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_WRAP, .wrap.absolute_tsc = tsc,
		});
		w->tsc = tsc;
	}
	delta = tsc - w->tsc;
	w->tsc = tsc;
	return (uint32_t)delta;
}

void seam_xray_writer_put(struct seam_xray_writer *w,
			  const struct seam_xray_event *event,
			  const struct seam_xray_payload *payload)
{
	struct seam_xray_record record = {
		.action = event->kind,
		.function = event->function & SEAM_XRAY_MAX_FUNCTION,
	};

	switch ((enum seam_xray_kind)event->kind) {
	case SEAM_XRAY_ENTRY:
	case SEAM_XRAY_ENTRY_ARGS:
		record.state = SEAM_XRAY_AT_ENTRY;
		break;
	case SEAM_XRAY_EXIT:
	case SEAM_XRAY_TAIL_EXIT:
		record.state = SEAM_XRAY_AT_EXIT;
		break;
	case SEAM_XRAY_ARGUMENT:
		record.state = SEAM_XRAY_AT_ARGUMENT;
		record.argument.argument = event->tsc;
		put(w, &record);
		return;
	case SEAM_XRAY_CUSTOM:
	case SEAM_XRAY_TYPED:
		record.state = event->kind == SEAM_XRAY_TYPED ?
			       SEAM_XRAY_AT_TYPED : SEAM_XRAY_AT_CUSTOM;
		record.data = payload->data;
		record.marker.tsc_delta =
			(int32_t)delta_to(w, event->tsc, event->cpu);
		record.marker.event_type = payload->type;
		put(w, &record);
		return;
	}
	record.function_record.tsc_delta = delta_to(w, event->tsc, event->cpu);
	put(w, &record);
}

int seam_xray_writer_end(struct seam_xray_writer *w, struct seam_err *err)
{
	end_block(w);
	if (!w->error && fflush(w->out))
		w->error = -errno;
	free(w->block.items);
	w->block.items = NULL;
	w->block.n = w->block.cap = 0;
	if (w->error)
		return seam_err_set(err, w->error, "cannot write XRay log: %s",
				    strerror(-w->error));
	return 0;
}
