/* SPDX-License-Identifier: MIT */
/* test_xray_fdr.c - the grammar, the records, the two ways through a block */

#include "unit.h"
#include "xray_made.h"

/* The spec's grammar and its versions, as rules and not as rows. */
static bool is_legal(unsigned int version, int from, int to)
{
	bool from_body = from >= SEAM_XRAY_AT_CPU && from <= SEAM_XRAY_AT_TYPED;

	switch (to) {
	case SEAM_XRAY_AT_EXTENTS:
		return from == SEAM_XRAY_AT_START && version >= 2;
	case SEAM_XRAY_AT_BUFFER:
		return from == (version == 1 ? SEAM_XRAY_AT_START :
						SEAM_XRAY_AT_EXTENTS);
	case SEAM_XRAY_AT_WALL:
		return from == SEAM_XRAY_AT_BUFFER;
	case SEAM_XRAY_AT_PID:
		return from == SEAM_XRAY_AT_WALL && version >= 3;
	case SEAM_XRAY_AT_CPU:
		return from_body || from == SEAM_XRAY_AT_WALL ||
		       (from == SEAM_XRAY_AT_PID && version >= 3);
	case SEAM_XRAY_AT_ARGUMENT:
		return from == SEAM_XRAY_AT_ENTRY ||
		       from == SEAM_XRAY_AT_ARGUMENT;
	case SEAM_XRAY_AT_TYPED:
		return from_body && version >= 2;
	case SEAM_XRAY_AT_END_OF_BUFFER:
		return from_body && version == 1;
	case SEAM_XRAY_AT_END:
		if (version == 1)
			return from == SEAM_XRAY_AT_END_OF_BUFFER;
		return from_body || from == SEAM_XRAY_AT_WALL ||
		       (from == SEAM_XRAY_AT_PID && version >= 3);
	case SEAM_XRAY_AT_WRAP:
	case SEAM_XRAY_AT_ENTRY:
	case SEAM_XRAY_AT_EXIT:
	case SEAM_XRAY_AT_CUSTOM:
		return from_body;
	}
	return false;
}

static struct seam_xray_record record_of(int state)
{
	return (struct seam_xray_record) {
		.state = (enum seam_xray_state)state,
		.action = state == SEAM_XRAY_AT_EXIT ? SEAM_XRAY_EXIT :
						       SEAM_XRAY_ENTRY,
		.function = 7,
	};
}

/* The record that @bytes are after one of @from, at 1000 ticks. */
static int read_after(unsigned int version, enum seam_endian endian,
		      enum seam_xray_state from, struct seam_bytes bytes,
		      struct seam_xray_reader *reader,
		      struct seam_xray_record *record)
{
	static struct seam_xray_format format;

	seam_xray_format_init(&format, (uint16_t)version, endian);
	seam_xray_reader_init(reader, &format, bytes, 0, bytes.size, false);
	reader->state = from;
	reader->tsc = 1000;
	return seam_xray_next(reader, record);
}

/* A log in which @to follows @from, read; what the last step returned. */
static int try_pair(unsigned int version, enum seam_endian endian, int from,
		    int to, struct seam_xray_reader *reader)
{
	struct seam_xray_record record;
	struct made m = { 0 };
	struct seam_bytes bytes;
	int got;

	seam_xray_format_init(&m.format, (uint16_t)version, endian);
	if (to != SEAM_XRAY_AT_END) {
		record = record_of(to);
		made_record(&m, &record);
	}
	bytes = made_bytes(&m, m.size);
	got = read_after(version, endian, (enum seam_xray_state)from, bytes,
			 reader, &record);
	free((void *)(uintptr_t)bytes.data);
	made_free(&m);
	return got;
}

UNIT_TEST(accepts_each_legal_pair_and_no_other)
{
	unsigned int n_legal = 0, n_illegal = 0;

	for (unsigned int version = 1; version <= 5; version++)
		for (int from = 0; from < SEAM_XRAY_AT_END_OF_BUFFER; from++)
			for (int to = 1; to < SEAM_XRAY_N_STATES; to++) {
				struct seam_xray_reader reader;
				int got = try_pair(version, to & 1 ? SEAM_BIG :
						   SEAM_LITTLE, from, to,
						   &reader);

				if (is_legal(version, from, to)) {
					assert_int_equal(got, to !=
							 SEAM_XRAY_AT_END);
					n_legal++;
					continue;
				}
				assert_int_equal(got, -EBADMSG);
				assert_int_equal(reader.problem.offset, 0);
				assert_non_null(strstr(reader.problem.text,
					seam_xray_state_name(
					(enum seam_xray_state)from)));
				assert_non_null(strstr(reader.problem.text,
					seam_xray_state_name(
					(enum seam_xray_state)to)));
				n_illegal++;
			}
	assert_true(n_legal > 200);
	assert_true(n_illegal > 300);
}

UNIT_TEST(reads_function_records_bit_by_bit)
{
	static const struct {
		enum seam_endian endian;
		uint8_t bytes[8];
	} cases[] = {
		{ SEAM_LITTLE, { 0x56, 0x34, 0x12, 0x7a, 4, 3, 2, 0x81 } },
		{ SEAM_BIG, { 0x37, 0xa1, 0x23, 0x45, 0x81, 2, 3, 4 } },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		struct seam_bytes bytes = { cases[i].bytes, 8 };
		struct seam_xray_reader reader;
		struct seam_xray_record record;

		assert_int_equal(read_after(5, cases[i].endian,
					    SEAM_XRAY_AT_CPU, bytes, &reader,
					    &record), 1);
		assert_int_equal(record.action, SEAM_XRAY_ENTRY_ARGS);
		assert_int_equal(record.function, 0x7a12345);
		assert_int_equal(record.tsc, 1000 + UINT64_C(0x81020304));
	}
}

/* Bytes as the facts about each version have them, fields at their offsets. */
UNIT_TEST(reads_metadata_of_each_version)
{
	static const uint8_t le[][16] = {
		/* NewBuffer, tid in 4 bytes, rubbish behind */
		{ 0x01, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff },
		{ 0x09, 5, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0f, 0, 0xff },
		{ 0x13, 0x39, 0x30, 0, 0, 0xff },
		{ 0x05, 0x02, 0x01, 8, 7, 6, 5, 4, 3, 2, 1, 0xff },
		{ 0x07, 8, 7, 6, 5, 4, 3, 2, 1, 0xff },
		{ 0x0d, 1, 2, 3, 4, 5, 6, 7, 8, 0xff },
		{ 0x0f, 0x10, 0x20, 0, 0, 0, 0, 0, 0, 0xff },
	};
	struct seam_xray_reader reader;
	struct seam_xray_record r[SEAM_ARRAY_SIZE(le)];
	static const enum seam_xray_state from[] = {
		SEAM_XRAY_AT_EXTENTS, SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL,
		SEAM_XRAY_AT_PID, SEAM_XRAY_AT_CPU, SEAM_XRAY_AT_ENTRY,
		SEAM_XRAY_AT_START,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(le); i++)
		assert_int_equal(read_after(5, SEAM_LITTLE, from[i],
			(struct seam_bytes) { le[i], 16 }, &reader, &r[i]), 1);
	assert_int_equal(r[0].buffer.thread_id, 0x12345678);
	assert_int_equal(r[1].wall.seconds, 5);
	assert_int_equal(r[1].wall.microseconds, 1000000);
	assert_int_equal(r[2].pid.pid, 12345);
	assert_int_equal(r[3].cpu.cpu_id, 0x0102);
	assert_int_equal(r[3].tsc, UINT64_C(0x0102030405060708));
	assert_int_equal(r[4].tsc, UINT64_C(0x0102030405060708));
	assert_int_equal(r[5].argument.argument, UINT64_C(0x0807060504030201));
	assert_int_equal(r[6].extents.size, 0x2010);
}

struct event_case {
	unsigned int version;
	uint8_t bytes[19];
	uint64_t tsc, base;
	uint16_t type, cpu;
};

UNIT_TEST(reads_events_of_each_version)
{
	static const struct event_case cases[] = {
		{ 1, { 0x0b, 3, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 7, 7, 7,
		       'a', 'b', 'c' }, 0x109, 1000, 0, 0 },
		{ 3, { 0x0b, 3, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 7, 7, 7,
		       'a', 'b', 'c' }, 0x109, 1000, 0, 0 },
		{ 4, { 0x0b, 3, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 7, 1, 7,
		       'a', 'b', 'c' }, 0x109, 1000, 0, 0x107 },
		{ 5, { 0x0b, 3, 0, 0, 0, 9, 1, 0, 0, 5, 5, 5, 5, 7, 7, 7,
		       'a', 'b', 'c' }, 1000 + 0x109, 1000 + 0x109, 0, 0 },
		{ 2, { 0x11, 3, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 7, 1, 7,
		       'a', 'b', 'c' }, 0x109, 1000, 0x107, 0 },
		{ 5, { 0x11, 3, 0, 0, 0, 9, 1, 0, 0, 7, 1, 5, 5, 7, 7, 7,
		       'a', 'b', 'c' }, 1000 + 0x109, 1000 + 0x109, 0x107, 0 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		const struct event_case *c = &cases[i];
		struct seam_bytes bytes = { c->bytes, sizeof(c->bytes) };
		struct seam_xray_reader reader;
		struct seam_xray_record record;

		assert_int_equal(read_after(c->version, SEAM_LITTLE,
					    SEAM_XRAY_AT_CPU, bytes, &reader,
					    &record), 1);
		assert_int_equal(record.tsc, c->tsc);
		assert_int_equal(reader.tsc, c->base);
		assert_int_equal(record.marker.event_type, c->type);
		assert_int_equal(record.marker.cpu_id, c->cpu);
		assert_int_equal(record.data.size, 3);
		assert_memory_equal(record.data.data, "abc", 3);
	}
}

UNIT_TEST(refuses_events_larger_than_their_block)
{
	static const uint32_t sizes[] = { 4, 0x7fffffff, 0x80000000,
					  0xffffffff };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(sizes); i++) {
		uint8_t data[19] = { 0x0b };
		struct seam_bytes bytes = { data, sizeof(data) };
		struct seam_xray_reader reader;
		struct seam_xray_record record;

		for (unsigned int b = 0; b < 4; b++)
			data[1 + b] = (uint8_t)(sizes[i] >> 8 * b);
		assert_int_equal(read_after(5, SEAM_LITTLE, SEAM_XRAY_AT_CPU,
					    bytes, &reader, &record), -EBADMSG);
		assert_int_equal(reader.c.pos, 0);
		assert_int_equal(reader.problem.lost_bytes, sizeof(data));
	}
}

/* Everything that a block can hold, in every version. */
static void make_all(struct made *m, unsigned int version,
		     enum seam_endian endian)
{
	struct seam_bytes data = { (const uint8_t *)"odd", 3 };

	made_header(m, (uint16_t)version, SEAM_XRAY_FDR, endian, 1000000000,
		    4096);
	made_block(m, 10, 11, 5000000, 1, UINT64_C(0xfffffff0));
	for (uint32_t i = 0; i < 40; i++) {
		made_call(m, SEAM_XRAY_ENTRY_ARGS, 1 + i, 3);
		made_record(m, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_ARGUMENT,
			.argument.argument = UINT64_MAX - i });
		if (i % 8 == 0)
			made_record(m, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_CUSTOM, .data = data,
				.marker = { .absolute_tsc = 77, .cpu_id = 9,
					    .tsc_delta = 4 } });
		if (i % 8 == 1 && version > 1)
			made_record(m, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_TYPED, .data = data,
				.marker = { .absolute_tsc = 78, .tsc_delta = 4,
					    .event_type = 3 } });
		if (i % 8 == 2)
			made_record(m, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_WRAP,
				.wrap.absolute_tsc = UINT64_C(1) << 33 });
		if (i % 8 == 3)
			made_record(m, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_CPU,
				.cpu = { 2, UINT64_C(1) << 34 } });
		made_call(m, i % 2 ? SEAM_XRAY_EXIT : SEAM_XRAY_TAIL_EXIT,
			  1 + i, UINT32_MAX);
	}
	made_end(m, 4096, SEAM_XRAY_HEADER_BYTES);
}

/* The event that the table reader makes of a record; false when none. */
static bool event_of(const struct seam_xray_reader *reader,
		     const struct seam_xray_record *record,
		     struct seam_xray_event *event,
		     struct seam_xray_payload *payload)
{
	*event = (struct seam_xray_event) {
		.tsc = record->tsc, .cpu = reader->cpu,
	};
	switch (record->state) {
	case SEAM_XRAY_AT_ENTRY:
	case SEAM_XRAY_AT_EXIT:
		event->function = record->function;
		event->kind = record->action;
		return true;
	case SEAM_XRAY_AT_ARGUMENT:
		event->tsc = record->argument.argument;
		event->kind = SEAM_XRAY_ARGUMENT;
		return true;
	case SEAM_XRAY_AT_CUSTOM:
	case SEAM_XRAY_AT_TYPED:
		event->kind = record->state == SEAM_XRAY_AT_CUSTOM ?
			      SEAM_XRAY_CUSTOM : SEAM_XRAY_TYPED;
		if (reader->format->version == 4 &&
		    record->state == SEAM_XRAY_AT_CUSTOM)
			event->cpu = record->marker.cpu_id;
		payload->data = record->data;
		payload->type = record->marker.event_type;
		return true;
	default:
		return false;
	}
}

/* Hold the fast way against the tables over [@begin, @end) of @bytes. */
static void compare_ways(const struct seam_xray_format *format,
			 struct seam_bytes bytes, size_t begin, size_t end)
{
	static struct seam_xray_batch batch;
	struct seam_xray_reader fast, slow;
	struct seam_xray_record record;
	int err, got = 1;
	size_t at = 0;

	seam_xray_reader_init(&fast, format, bytes, begin, end, true);
	seam_xray_reader_init(&slow, format, bytes, begin, end, true);
	batch.n = 0;
	err = seam_xray_decode(&fast, &batch);
	while ((got = seam_xray_next(&slow, &record)) > 0) {
		struct seam_xray_payload payload = { 0 };
		struct seam_xray_event event;

		if (!event_of(&slow, &record, &event, &payload))
			continue;
		if (at == batch.n) {
			assert_int_equal(err, 0);
			err = seam_xray_decode(&fast, &batch);
			at = 0;
		}
		assert_true(at < batch.n);
		assert_int_equal(batch.events[at].tsc, event.tsc);
		assert_int_equal(batch.events[at].kind, event.kind);
		assert_int_equal(batch.events[at].cpu, event.cpu);
		if (event.kind == SEAM_XRAY_CUSTOM ||
		    event.kind == SEAM_XRAY_TYPED) {
			const struct seam_xray_payload *p = &batch.payloads[
				batch.events[at].function];

			assert_ptr_equal(p->data.data, payload.data.data);
			assert_int_equal(p->type, payload.type);
		} else {
			assert_int_equal(batch.events[at].function,
					 event.function);
		}
		at++;
	}
	assert_int_equal(at, batch.n);
	while (!err && batch.n) {
		err = seam_xray_decode(&fast, &batch);
		assert_int_equal(batch.n, 0);
	}
	assert_int_equal(err, got);
	assert_int_equal(fast.c.pos, slow.c.pos);
	if (err)
		assert_string_equal(fast.problem.text, slow.problem.text);
}

UNIT_TEST(both_ways_agree_wherever_a_block_is_cut)
{
	for (unsigned int i = 0; i < 10; i++) {
		struct made m = { 0 };

		make_all(&m, 1 + i / 2, i % 2 ? SEAM_BIG : SEAM_LITTLE);
		for (size_t size = SEAM_XRAY_HEADER_BYTES; size <= m.size;
		     size++) {
			struct seam_bytes bytes = made_bytes(&m, size);

			compare_ways(&m.format, bytes, SEAM_XRAY_HEADER_BYTES,
				     size);
			free((void *)(uintptr_t)bytes.data);
		}
		made_free(&m);
	}
}

UNIT_TEST(both_ways_agree_wherever_a_byte_is_flipped)
{
	static const uint8_t masks[] = { 0x01, 0x08, 0x40, 0x80, 0xff };

	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct made m = { 0 };

		make_all(&m, 5, (enum seam_endian)e);
		for (size_t i = SEAM_XRAY_HEADER_BYTES; i < m.size; i++) {
			for (size_t k = 0; k < SEAM_ARRAY_SIZE(masks); k++) {
				m.data[i] ^= masks[k];
				compare_ways(&m.format, (struct seam_bytes) {
						     m.data, m.size },
					     SEAM_XRAY_HEADER_BYTES, m.size);
				m.data[i] ^= masks[k];
			}
		}
		made_free(&m);
	}
}

UNIT_TEST(finds_byte_order_and_version_of_a_header)
{
	struct seam_xray_header header;
	enum seam_endian endian;
	struct seam_err err = { 0 };

	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		for (uint16_t version = 1; version <= 6; version++) {
			struct made m = { 0 };
			struct seam_bytes bytes;
			int r;

			made_header(&m, version, SEAM_XRAY_FDR,
				    (enum seam_endian)e, 2596118000, 1);
			bytes = (struct seam_bytes) { m.data, m.size };
			r = seam_xray_header_read(bytes, 0, &header, &endian,
						  &err);
			assert_int_equal(r, version == 6 ? -ENOTSUP : 0);
			assert_int_equal(endian, e);
			assert_int_equal(header.cycle_frequency, 2596118000);
			bytes.size--;
			assert_int_equal(seam_xray_header_read(bytes, 0,
					&header, &endian, NULL), -ENODATA);
			made_free(&m);
		}
	}
	assert_int_equal(seam_xray_header_read((struct seam_bytes) {
			(const uint8_t *)"PERFILE2PERFILE2PERFILE2PERFILE2",
			32 }, 0, &header, &endian, NULL), -EBADMSG);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
