/* SPDX-License-Identifier: MIT */
/* xray_basic.c - two tables and a loop; the contract is in xray_basic.h */
#include "wire/xray/xray_basic.h"

#include <errno.h>

#define F(record, member, text)						\
	SEAM_FIELD(struct seam_xray_basic_##record, member, text)

#define SPEC "LLVM 14, basic mode version 3"

const struct seam_record seam_xray_basic_call_record = SEAM_RECORD(
	"Function", SPEC,
	F(call, record_type, "0"),
	F(call, cpu, "CPU, its low 8 bits"),
	F(call, action, "0 Entry, 1 Exit, 2 Tail_Exit (since 2), 3 Entry_Args"),
	F(call, function_id, "function"),
	F(call, tsc, "ticks"),
	F(call, thread_id, "thread"),
	F(call, process_id, "process; since version 3"));

const struct seam_record seam_xray_basic_argument_record = SEAM_RECORD(
	"CallArgument", SPEC,
	F(argument, record_type, "1"),
	F(argument, cpu, "not meaningful"),
	F(argument, action, "not meaningful"),
	F(argument, function_id, "the same as in the record before"),
	F(argument, thread_id, "thread"),
	F(argument, process_id, "process; since version 3"),
	F(argument, argument, "value"));

#undef F

int seam_xray_basic_read(struct seam_bytes file, size_t offset,
			 enum seam_endian endian,
			 struct seam_xray_basic_record *record)
{
	size_t left = offset < file.size ? file.size - offset : 0;
	struct seam_cursor c, peek;
	uint16_t type;

	if (left < SEAM_XRAY_BASIC_BYTES)
		return -ENODATA;
	c = seam_cursor_make(file.data + offset, SEAM_XRAY_BASIC_BYTES, endian);
	peek = c;
	type = seam_cursor_u16(&peek);
	*record = (struct seam_xray_basic_record) {
		.offset = offset, .is_argument = type == 1,
	};
	if (type > 1)
		return -EBADMSG;
	if (type == 1)
		return seam_wire_read(&c, &seam_xray_basic_argument_record,
				      &record->argument);
	seam_wire_read(&c, &seam_xray_basic_call_record, &record->call);
	return record->call.action > SEAM_XRAY_ENTRY_ARGS ||
	       record->call.function_id < 0 ? -EBADMSG : 0;
}

void seam_xray_basic_decode(struct seam_bytes file, size_t *offset, size_t end,
			    enum seam_endian endian,
			    struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (*offset < end && batch->n < SEAM_XRAY_BATCH) {
		struct seam_xray_basic_record record;
		struct seam_xray_event *event = &batch->events[batch->n];

		if (seam_xray_basic_read(file, *offset, endian, &record))
			break;
		*offset += SEAM_XRAY_BASIC_BYTES;
		batch->n++;
		if (record.is_argument)
			*event = (struct seam_xray_event) {
				.tsc = record.argument.argument,
				.kind = SEAM_XRAY_ARGUMENT,
			};
		else
			*event = (struct seam_xray_event) {
				.tsc = record.call.tsc,
				.function = (uint32_t)record.call.function_id,
				.cpu = record.call.cpu,
				.kind = record.call.action,
			};
	}
}
