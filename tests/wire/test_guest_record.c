/* SPDX-License-Identifier: MIT */
/* test_guest_record.c - guest and symbol records survive a trip, or are refused */
#include "unit.h"

#include "wire/guest/guest_decode.h"
#include "wire/guest/guest_encode.h"

enum { MAX_FRAMES = 8192, CAP = SEAM_GUEST_MAX_BYTES };

/* A guest record as a handler has it. */
struct made {
	struct seam_guest_head head;
	struct seam_guest_segment segments[SEAM_GUEST_MAX_SEGMENTS];
	struct seam_guest_frame frames[MAX_FRAMES];
	size_t n_frames;
	uint8_t bytes[CAP];
	size_t size;
};

static struct made made;

static void begin(void)
{
	memset(&made, 0, sizeof(made));
	made.head = (struct seam_guest_head) {
		.adapter = SEAM_GUEST_LUAJIT, .flags = SEAM_GUEST_NO_KERNEL,
		.table = 0x01020304, .vmstate = SEAM_VMSTATE_LFUNC,
		.host_end = SEAM_STACK_WITHOUT_CFI, .n_ticks = 3,
		.vm = UINT64_C(0x7f0011223344),
	};
}

/* A segment with frames of ids from @first_id on. */
static void add(uint16_t join, uint16_t n_replaced, uint16_t n_frames,
		uint32_t first_id)
{
	made.segments[made.head.n_segments++] = (struct seam_guest_segment) {
		.join = join, .n_replaced = n_replaced, .n_frames = n_frames,
		.thread = UINT64_C(0x4100000000) + join,
	};
	for (uint32_t i = 0; i < n_frames; i++)
		made.frames[made.n_frames++] = seam_guest_frame_make(
			i % SEAM_GUEST_FRAME_CUT, first_id + i, i);
}

static void encode(size_t cap)
{
	made.size = seam_guest_encode_sample(made.bytes, cap, &made.head,
					     made.segments, made.frames);
}

static struct seam_bytes bytes_of(const uint8_t *data, size_t size)
{
	return (struct seam_bytes) { data, size };
}

/* Encode again what @reader has, which must be those bytes. */
static void assert_same_bytes(struct seam_guest_reader reader,
			      struct seam_bytes bytes)
{
	static struct made again;
	struct seam_guest_part part;
	size_t n = 0;

	again.head = reader.head;
	again.n_frames = 0;
	while (seam_guest_next_part(&reader, &part)) {
		again.segments[n++] = part.segment;
		for (size_t i = 0; i < part.segment.n_frames; i++)
			again.frames[again.n_frames++] =
				seam_guest_frame_at(&part, i);
	}
	assert_int_equal(n, again.head.n_segments);
	again.size = seam_guest_encode_sample(again.bytes, CAP, &again.head,
					      again.segments, again.frames);
	assert_true(again.size <= bytes.size && bytes.size - again.size < 8);
	assert_memory_equal(again.bytes, bytes.data, again.size);
}

static void typical(void)
{
	begin();
	add(0, 1, 4, 100);
	add(3, 1, 0, 0);
	add(5, 2, 3, 200);
	add(SEAM_GUEST_NO_JOIN, 0, 2, 300);
	encode(CAP);
	assert_int_equal(made.size, 24 + 4 * 16 + 9 * 8);
}

UNIT_TEST(what_is_written_is_read_back)
{
	struct seam_guest_reader reader;
	struct seam_guest_part part;

	typical();
	assert_int_equal(seam_guest_read_sample(bytes_of(made.bytes, made.size),
						&reader, NULL), 0);
	assert_int_equal(reader.head.table, 0x01020304);
	assert_int_equal(reader.head.n_ticks, 3);
	assert_int_equal(reader.head.guest_end, SEAM_GUEST_COMPLETE);
	assert_int_equal(reader.head.vm, UINT64_C(0x7f0011223344));
	assert_true(seam_guest_next_part(&reader, &part));
	assert_int_equal(part.segment.n_frames, 4);
	assert_int_equal(seam_guest_frame_at(&part, 2).id, 102);
	assert_int_equal(seam_guest_frame_line(seam_guest_frame_at(&part, 2)),
			 2);
	assert_int_equal(seam_guest_frame_kind(seam_guest_frame_at(&part, 2)),
			 SEAM_GUEST_FRAME_BUILTIN);
	assert_true(seam_guest_next_part(&reader, &part));
	assert_int_equal(part.segment.n_frames, 0);
	assert_true(seam_guest_next_part(&reader, &part));
	assert_int_equal(part.segment.n_replaced, 2);
	assert_true(seam_guest_next_part(&reader, &part));
	assert_int_equal(part.segment.join, SEAM_GUEST_NO_JOIN);
	assert_false(seam_guest_next_part(&reader, &part));
}

static size_t put_table(const struct seam_record *table, const void *in,
			uint8_t *to)
{
	return seam_wire_write(table, in, SEAM_LITTLE, to, 64);
}

UNIT_TEST(the_handler_writes_what_the_tables_say)
{
	struct seam_guest_start start = {
		.version = SEAM_GUEST_VERSION, .kind = SEAM_GUEST_SAMPLE,
		.adapter = SEAM_GUEST_LUAJIT, .flags = SEAM_GUEST_NO_KERNEL,
		.table = 0x01020304,
	};
	uint8_t bytes[4096];
	size_t n = 0, frame = 0;

	typical();
	n += put_table(&seam_guest_start_table, &start, bytes + n);
	n += put_table(&seam_guest_head_table, &made.head, bytes + n);
	for (size_t i = 0; i < made.head.n_segments; i++) {
		n += put_table(&seam_guest_segment_table, &made.segments[i],
			       bytes + n);
		for (size_t k = 0; k < made.segments[i].n_frames; k++)
			n += put_table(&seam_guest_frame_table,
				       &made.frames[frame++], bytes + n);
	}
	assert_int_equal(n, made.size);
	assert_memory_equal(bytes, made.bytes, n);
}

static void make_symbol(struct seam_guest_symbol *s, size_t n_chunk,
			size_t n_name)
{
	*s = (struct seam_guest_symbol) {
		.adapter = SEAM_GUEST_LUAJIT, .table = 7, .id = 9, .start = 8,
		.line = 12, .last_line = 20, .address = UINT64_C(0x4123456789),
		.n_chunk = (uint16_t)n_chunk, .n_name = (uint8_t)n_name,
		.kind = SEAM_GUEST_FRAME_TRACE,
	};
	memset(s->chunk, 'c', sizeof(s->chunk));
	memset(s->name, 'n', sizeof(s->name));
}

UNIT_TEST(a_symbol_is_read_back_whatever_its_length)
{
	static uint8_t bytes[SEAM_GUEST_SYMBOL_BYTES];
	static struct seam_guest_symbol s, read;

	for (size_t n = 0; n <= SEAM_GUEST_MAX_CHUNK; n += n < 20 ? 1 : 251) {
		size_t n_name = n % (SEAM_GUEST_MAX_NAME + 1), size;

		make_symbol(&s, n, n_name);
		/* padding is written, not left over */
		memset(bytes, 0xff, sizeof(bytes));
		size = seam_guest_encode_symbol(bytes, &s);
		assert_int_equal(size % 4, 0);
		memset(&read, 0, sizeof(read));
		assert_int_equal(seam_guest_read_symbol(bytes_of(bytes, size),
							&read, NULL), 0);
		assert_int_equal(read.id, 9);
		assert_int_equal(read.start, 8);
		assert_int_equal(read.line, 12);
		assert_int_equal(read.last_line, 20);
		assert_int_equal(read.address, s.address);
		assert_int_equal(read.kind, s.kind);
		assert_int_equal(read.n_chunk, n);
		assert_int_equal(read.n_name, n_name);
		assert_memory_equal(read.chunk, s.chunk, n);
		assert_memory_equal(read.name, s.name, n_name);
	}
}

UNIT_TEST(texts_that_are_too_long_are_cut_and_marked)
{
	static uint8_t bytes[SEAM_GUEST_SYMBOL_BYTES];
	static struct seam_guest_symbol s, read;

	make_symbol(&s, 0, 0);
	s.n_chunk = UINT16_MAX;
	s.n_name = UINT8_MAX;
	assert_int_equal(seam_guest_encode_symbol(bytes, &s), sizeof(bytes));
	assert_int_equal(seam_guest_read_symbol(bytes_of(bytes, sizeof(bytes)),
						&read, NULL), 0);
	assert_int_equal(read.n_chunk, SEAM_GUEST_MAX_CHUNK);
	assert_int_equal(read.n_name, SEAM_GUEST_MAX_NAME);
	assert_int_equal(read.flags,
			 SEAM_GUEST_CHUNK_CUT | SEAM_GUEST_NAME_CUT);
}

UNIT_TEST(a_record_that_does_not_fit_is_not_written)
{
	static uint8_t bytes[2 * CAP];

	begin();
	add(0, 1, 10, 1);
	add(2, 1, 10, 101);
	encode(24 + 2 * 16 + 20 * 8 - 1);
	assert_int_equal(made.size, 0);
	encode(24 + 2 * 16 + 20 * 8);
	assert_int_equal(made.size, 24 + 2 * 16 + 20 * 8);
	encode(10);
	assert_int_equal(made.size, 0);
	begin();
	add(0, 1, 5000, 1);
	assert_int_equal(seam_guest_encode_sample(bytes, sizeof(bytes),
			&made.head, made.segments, made.frames), 0);
}

/* Read from a block of its own, so that a byte too far is found. */
static int read_copy(const uint8_t *data, size_t size,
		     struct seam_guest_reader *reader, uint8_t **copy,
		     struct seam_err *err)
{
	*copy = malloc(size ? size : 1);
	assert_non_null(*copy);
	memcpy(*copy, data, size);
	return seam_guest_read_sample(bytes_of(*copy, size), reader, err);
}

UNIT_TEST(a_record_that_ends_early_is_refused_at_every_byte)
{
	struct seam_guest_reader reader;
	uint8_t *copy;

	typical();
	for (size_t n = 0; n < made.size; n++) {
		struct seam_err err = { 0 };

		assert_int_equal(read_copy(made.bytes, n, &reader, &copy,
					   &err), -ENODATA);
		assert_non_null(strstr(err.cause[0], "at byte"));
		free(copy);
	}
}

UNIT_TEST(a_changed_bit_is_refused_or_read_as_it_is)
{
	size_t n_refused = 0;

	typical();
	for (size_t bit = 0; bit < 8 * made.size; bit++) {
		struct seam_guest_reader reader;
		uint8_t *copy;
		int r;

		made.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		r = read_copy(made.bytes, made.size, &reader, &copy, NULL);
		if (r == 0)
			assert_same_bytes(reader, bytes_of(copy, made.size));
		else
			assert_true(r == -EBADMSG || r == -ENODATA ||
				    r == -ENOTSUP);
		n_refused += r != 0;
		made.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		free(copy);
	}
	assert_true(n_refused > 100);
}

/* Change a byte of a good record: what is wrong is named with its place. */
static void assert_refused(size_t pos, uint8_t value, const char *what)
{
	struct seam_guest_reader reader;
	struct seam_err err = { 0 };
	char at[32];

	typical();
	made.bytes[pos] = value;
	assert_int_not_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size), &reader, &err), 0);
	if (!strstr(err.cause[0], what))
		fail_msg("'%s' is not in '%s'", what, err.cause[0]);
	snprintf(at, sizeof(at), "at byte %zu", pos);
	if (strcmp(what, "version=2") && !strstr(err.cause[0], at))
		fail_msg("'%s' is not in '%s'", at, err.cause[0]);
}

UNIT_TEST(what_contradicts_itself_is_refused_with_its_place)
{
	struct seam_guest_reader reader;

	assert_refused(0, 2, "version=2");
	assert_refused(1, SEAM_GUEST_SYMBOL, "kind=2");
	assert_refused(2, 0, "adapter=0");
	assert_refused(3, 0x80, "flags=128");
	assert_refused(8, SEAM_N_VMSTATES, "vmstate=10");
	assert_refused(9, SEAM_GUEST_N_ENDS, "guest_end=9");
	assert_refused(10, SEAM_STACK_N_ENDS, "host_end");
	assert_refused(12, 0, "n_ticks=0");
	assert_refused(30, SEAM_GUEST_N_ENDS, "end of segment=9");
	/* the second segment joins before the first ends */
	assert_refused(72, 0, "join=0");
	/* the last has no join, and replaces something */
	assert_refused(130, 1, "n_replaced=1");
	/* its first frame has no id, or a kind that is not known */
	assert_refused(47, 0x50, "frame kind=5");
	/* a table of no number */
	typical();
	made.head.table = 0;
	encode(CAP);
	assert_int_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size), &reader, NULL), -EBADMSG);
	/* two segments without a place in the callchain */
	typical();
	made.segments[2].join = SEAM_GUEST_NO_JOIN;
	made.segments[2].n_replaced = 0;
	encode(CAP);
	assert_int_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size), &reader, NULL), -EBADMSG);
}

UNIT_TEST(bytes_after_a_record_are_padding_or_refused)
{
	struct seam_guest_reader reader;

	typical();
	assert_int_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size + 7), &reader, NULL), 0);
	assert_int_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size + 8), &reader, NULL), -EBADMSG);
	made.bytes[made.size + 2] = 1;
	assert_int_equal(seam_guest_read_sample(
		bytes_of(made.bytes, made.size + 4), &reader, NULL), -EBADMSG);
}

UNIT_TEST(a_changed_symbol_is_refused_or_read_as_it_is)
{
	static uint8_t bytes[SEAM_GUEST_SYMBOL_BYTES];
	static uint8_t again[SEAM_GUEST_SYMBOL_BYTES];
	static struct seam_guest_symbol s;
	size_t size;

	make_symbol(&s, 9, 6);
	size = seam_guest_encode_symbol(bytes, &s);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		uint8_t *copy = malloc(size);

		memcpy(copy, bytes, size);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (!seam_guest_read_symbol(bytes_of(copy, size), &s, NULL)) {
			assert_true(seam_guest_encode_symbol(again, &s) <=
				    size);
			assert_memory_equal(again, copy, (size_t)36 +
					    s.n_chunk + s.n_name);
		}
		free(copy);
	}
	for (size_t n = 0; n < 36 + 9 + 6; n++) {
		uint8_t *copy = malloc(n + 1);

		memcpy(copy, bytes, n);
		assert_int_equal(seam_guest_read_symbol(bytes_of(copy, n), &s,
							NULL), -ENODATA);
		free(copy);
	}
}

/* A symbol record with room for texts that are too long. */
static void assert_symbol_refused(size_t pos, const void *value, size_t n,
				  const char *what)
{
	static struct seam_guest_symbol s;
	struct seam_err err = { 0 };
	size_t size = 4096;
	uint8_t *bytes = calloc(1, size);
	char at[32];

	make_symbol(&s, 0, 0);
	assert_int_equal(seam_guest_encode_symbol(bytes, &s), 36);
	memcpy(bytes + pos, value, n);
	assert_int_equal(seam_guest_read_symbol(bytes_of(bytes, size), &s,
						&err), -EBADMSG);
	snprintf(at, sizeof(at), "at byte %zu", pos);
	if (!strstr(err.cause[0], what) || !strstr(err.cause[0], at))
		fail_msg("'%s %s' is not in '%s'", what, at, err.cause[0]);
	free(bytes);
}

UNIT_TEST(a_symbol_that_breaks_a_limit_is_refused_with_its_place)
{
	static const uint8_t zero[4];

	assert_symbol_refused(3, "\x04", 1, "flags=4");
	assert_symbol_refused(4, zero, 4, "table=0");
	assert_symbol_refused(8, zero, 4, " id=0");
	assert_symbol_refused(32, "\x01\x04", 2, "n_chunk=1025");
	assert_symbol_refused(34, "\xc9", 1, "n_name=201");
	assert_symbol_refused(35, "\x04", 1, "kind=4");
}

UNIT_TEST(a_record_of_more_bytes_than_any_is_refused)
{
	static uint8_t bytes[SEAM_GUEST_MAX_BYTES + 8];
	struct seam_guest_reader reader;
	struct seam_err err = { 0 };

	assert_int_equal(seam_guest_read_sample(
		bytes_of(bytes, sizeof(bytes)), &reader, &err), -EBADMSG);
	assert_non_null(strstr(err.cause[0], "size=32776"));
}

/* @expected is in the line of a record in a dump. */
static void assert_printed(enum seam_guest_event event, struct seam_bytes raw,
			   const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct seam_line line = seam_line_begin(out, SEAM_LINE_JSON, 0,
						"sample", 8);

	seam_guest_print(&line, event, raw);
	seam_line_end(&line);
	fclose(out);
	if (!strstr(text, expected))
		fail_msg("%s", text);
	free(text);
}

UNIT_TEST(a_dump_has_the_fields_of_both_records)
{
	static uint8_t bytes[SEAM_GUEST_SYMBOL_BYTES];
	static struct seam_guest_symbol s;
	struct seam_bytes raw;

	begin();
	add(3, 1, 2, 100);
	encode(CAP);
	raw = bytes_of(made.bytes, made.size);
	assert_printed(SEAM_GUEST_EVENT_SAMPLES, raw, "\"vmstate\":\"LFUNC\"");
	assert_printed(SEAM_GUEST_EVENT_SAMPLES, raw, "\"frames\":["
		       "{\"id\":100,\"kind\":\"guest\",\"line\":0},"
		       "{\"id\":101,\"kind\":\"c\",\"line\":1}]}]}");
	assert_printed(SEAM_GUEST_EVENT_SAMPLES, bytes_of(made.bytes, 9),
		       "{\"damaged\":\"cannot read guest record: it ends");
	make_symbol(&s, 0, 0);
	memcpy(s.name, "name", s.n_name = 4);
	raw = bytes_of(bytes, seam_guest_encode_symbol(bytes, &s));
	assert_printed(SEAM_GUEST_EVENT_SYMBOLS, raw, "\"name\":\"name\"}");
}

UNIT_TEST(each_end_has_a_key_and_a_text_of_its_own)
{
	for (unsigned int i = 0; i < SEAM_GUEST_N_ENDS; i++) {
		assert_true(*seam_guest_end_text(i));
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(seam_guest_end_key(i),
						seam_guest_end_key(k));
	}
	assert_null(seam_guest_end_key(SEAM_GUEST_N_ENDS));
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
