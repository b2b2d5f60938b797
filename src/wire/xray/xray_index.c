/* SPDX-License-Identifier: MIT */
/* xray_index.c - sections, blocks and their ends; see xray_index.h */
#include "wire/xray/xray_index.h"

#include <errno.h>
#include <stdlib.h>

/* -- decoding ----------------------------------------------------------- */

/*
 * A block to batches of events, fast
 *
 * Function records come by the hundred million, so they are read by a loop
 * of a few instructions over a range whose bounds were checked once.  All
 * other records go through seam_xray_next(), which is also the oracle that
 * tests hold this loop against.
 */

/* Any bit of these set: no function record, or an unknown action. */
#define NOT_PLAIN_LITTLE	UINT64_C(0x9)
#define NOT_PLAIN_BIG		UINT64_C(0xc0000000)

/* Events that are read one by one between two runs. */
#define SHORT_BATCH 16

/*
 * The word of a function record in the low half, its delta in the high one.
 */
static inline uint64_t load(const uint8_t *p, bool swap, bool big)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	if (swap)
		v = __builtin_bswap64(v);
	return big ? v >> 32 | v << 32 : v;
}

/*
 * Take function records from the front of [@p, @p + 8 * @n).  Returns how
 * many came before something else.  @swap and @big are constants in both
 * calls, so that each gets a loop of its own.
 */
static inline __attribute__((always_inline)) size_t
take_functions(const uint8_t *p, size_t n, uint64_t *tsc, uint16_t cpu,
	       struct seam_xray_event *out, bool swap, bool big)
{
	uint64_t stop = big ? NOT_PLAIN_BIG : NOT_PLAIN_LITTLE;
	uint64_t now = *tsc;
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t v = load(p + 8 * i, swap, big);

		if (v & stop)
			break;
		now += v >> 32;
		out[i] = (struct seam_xray_event) {
			.tsc = now,
			.function = big ? (uint32_t)v & SEAM_XRAY_MAX_FUNCTION :
					  (uint32_t)v >> 4,
			.cpu = cpu,
			.kind = big ? v >> 28 & 3 : v >> 1 & 3,
		};
	}
	*tsc = now;
	return i;
}

/* @n function records have been read, the last one of @kind. */
static void skip_functions(struct seam_xray_reader *r, size_t n,
			   unsigned int kind)
{
	r->state = kind == SEAM_XRAY_EXIT || kind == SEAM_XRAY_TAIL_EXIT ?
		   SEAM_XRAY_AT_EXIT : SEAM_XRAY_AT_ENTRY;
	seam_cursor_skip(&r->c, n * SEAM_XRAY_FUNCTION_BYTES);
}

static size_t take_run(struct seam_xray_reader *r,
		       struct seam_xray_event *out, size_t cap)
{
	const uint8_t *p = r->c.base + r->c.pos;
	size_t n = seam_cursor_left(&r->c) / SEAM_XRAY_FUNCTION_BYTES;

	if (n > cap)
		n = cap;
	if (!r->c.swap && r->format->endian == SEAM_LITTLE)
		n = take_functions(p, n, &r->tsc, r->cpu, out, false, false);
	else if (r->format->endian == SEAM_LITTLE)
		n = take_functions(p, n, &r->tsc, r->cpu, out, true, false);
	else
		n = take_functions(p, n, &r->tsc, r->cpu, out, r->c.swap,
				   true);
	if (n > 0)
		skip_functions(r, n, out[n - 1].kind);
	return n;
}

static void add_payload(struct seam_xray_batch *batch,
			struct seam_xray_event *event,
			const struct seam_xray_record *record)
{
	event->function = (uint32_t)batch->n_payloads;
	batch->payloads[batch->n_payloads++] = (struct seam_xray_payload) {
		.data = record->data, .type = record->marker.event_type,
	};
}

/* One record the long way, into at most one event. */
static void add_record(struct seam_xray_batch *batch,
		       const struct seam_xray_reader *r,
		       const struct seam_xray_record *record)
{
	struct seam_xray_event *event = &batch->events[batch->n];

	*event = (struct seam_xray_event) {
		.tsc = record->tsc, .cpu = r->cpu,
	};
	switch (record->state) {
	case SEAM_XRAY_AT_ENTRY:
	case SEAM_XRAY_AT_EXIT:
		event->kind = record->action;
		event->function = record->function;
		break;
	case SEAM_XRAY_AT_ARGUMENT:
		event->kind = SEAM_XRAY_ARGUMENT;
		event->tsc = record->argument.argument;
		break;
	case SEAM_XRAY_AT_CUSTOM:
		event->kind = SEAM_XRAY_CUSTOM;
		if (r->format->version == 4)
			event->cpu = record->marker.cpu_id;
		add_payload(batch, event, record);
		break;
	case SEAM_XRAY_AT_TYPED:
		event->kind = SEAM_XRAY_TYPED;
		add_payload(batch, event, record);
		break;
	default:
		return;
	}
	batch->n++;
}

/* A function record of any action is legal here. */
static bool in_body(const struct seam_xray_reader *r)
{
	return seam_xray_may_follow(r->format, r->state, SEAM_XRAY_AT_EXIT);
}

int seam_xray_decode(struct seam_xray_reader *r, struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (batch->n < r->max_batch &&
	       batch->n_payloads < SEAM_XRAY_PAYLOADS) {
		struct seam_xray_record record;
		int got;

		if (in_body(r))
			batch->n += take_run(r, batch->events + batch->n,
					     r->max_batch - batch->n);
		if (batch->n == r->max_batch)
			break;
		got = seam_xray_next(r, &record);
		if (got <= 0)
			return got;
		add_record(batch, r, &record);
	}
	return 0;
}

void seam_xray_short_batches(struct seam_xray_reader *r)
{
	if (!r->c.swap && r->format->endian == SEAM_LITTLE)
		r->max_batch = SHORT_BATCH;
}

bool seam_xray_run(struct seam_xray_reader *r, struct seam_xray_run *run)
{
	if (r->c.swap || r->format->endian != SEAM_LITTLE)
		return false;
	*run = (struct seam_xray_run) {
		.records = r->c.base + r->c.pos,
		.n = seam_cursor_left(&r->c) / SEAM_XRAY_FUNCTION_BYTES,
		.tsc = r->tsc,
	};
	return run->n > 0 && in_body(r);
}

void seam_xray_run_take(struct seam_xray_reader *r,
			const struct seam_xray_run *run, size_t n, uint64_t tsc)
{
	skip_functions(r, n, seam_xray_run_record(run, n - 1) >> 1 & 7);
	r->tsc = tsc;
}

/* -- basic mode --------------------------------------------------------- */

/*
 * Basic ("naive") mode logs, versions 1 to 3
 *
 * Records of 32 bytes, each with its thread and an absolute TSC.  Threads
 * write whole buffers, so records of one thread come in runs, in order.  An
 * argument is a record of its own that follows the entry it belongs to.
 *
 * Source: LLVM 14's writer (version 3); versions 1 and 2 lack tail exits and
 * process ids.
 */

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

/*
 * The events of the run [@*offset, @end), which
 * seam_xray_index_build() has checked, as seam_xray_decode(); moves *@offset.
 */
static void decode_basic(struct seam_bytes file, size_t *offset, size_t end,
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

/* A length beyond this is damage, and no measure of what is missing. */
#define MAX_BLOCK_BYTES (UINT64_C(1) << 40)

/* A block of version 1 is at least NewBuffer, WallClockTime, NewCPUId. */
#define MIN_BLOCK_BYTES (3 * SEAM_XRAY_METADATA_BYTES)

/* As many zeroes are no records, wherever they end. */
#define MAX_PADDING 4096

/* Seconds beyond this are damage; 2^33 s is 272 years. */
#define MAX_SECONDS (INT64_C(1) << 33)

/* Limits of Linux and of clocks, to recognize a header inside a file. */
#define MAX_PID		(UINT32_C(1) << 22)
#define MIN_HZ		UINT64_C(1000000)
#define MAX_HZ		UINT64_C(100000000000)

struct index_builder {
	struct seam_xray_index *index;
	struct seam_bytes file;
	const struct seam_xray_section *section;
	uint32_t section_id;
};

static bool has_marker(const struct index_builder *b,
		       const struct seam_xray_format *format, size_t at,
		       enum seam_xray_state state)
{
	unsigned int kind = (unsigned int)seam_xray_state_kind(state);

	return at >= b->file.size || b->file.data[at] ==
	       (format->endian == SEAM_BIG ? 0x80 | kind : kind << 1 | 1);
}

/*
 * How many of a block's first three markers, at distances of 16 bytes, are at
 * @at.  Function records that look like all three by chance are rare.  A file
 * may end inside.
 */
static unsigned int n_markers(const struct index_builder *b,
			      const struct seam_xray_format *format, size_t at)
{
	static const enum seam_xray_state first[] = {
		SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL, SEAM_XRAY_AT_CPU,
	};
	static const enum seam_xray_state later[] = {
		SEAM_XRAY_AT_EXTENTS, SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL,
	};
	const enum seam_xray_state *marks = format->version == 1 ?
					    first : later;
	unsigned int n = 0;

	for (size_t i = 0; i < 3; i++)
		n += has_marker(b, format, at + i * SEAM_XRAY_METADATA_BYTES,
				marks[i]);
	return n;
}

static bool is_block(const struct index_builder *b,
		     const struct seam_xray_format *format, size_t at)
{
	return at < b->file.size && n_markers(b, format, at) == 3;
}

/* Stricter than the format, so that other records rarely match. */
static bool is_call(const struct index_builder *b, size_t at,
		    enum seam_endian endian)
{
	struct seam_xray_basic_record record;

	return seam_xray_basic_read(b->file, at, endian, &record) == 0 &&
	       !record.is_argument && record.call.function_id > 0 &&
	       record.call.thread_id > 0 && record.call.thread_id < MAX_PID;
}

/*
 * The header of a log that was appended: with values that a writer produces,
 * followed by what must follow a header.
 */
static bool is_header(const struct index_builder *b, size_t at)
{
	size_t body = at + SEAM_XRAY_HEADER_BYTES;
	struct seam_xray_header header;
	struct seam_xray_format format;
	enum seam_endian endian;

	if (seam_xray_header_read(b->file, at, &header, &endian, NULL) ||
	    header.flags > 0xff ||
	    (header.cycle_frequency && header.cycle_frequency < MIN_HZ) ||
	    header.cycle_frequency > MAX_HZ)
		return false;
	if (body == b->file.size)
		return true;
	if (header.log_type == SEAM_XRAY_BASIC)
		return is_call(b, body, endian);
	seam_xray_format_init(&format, header.version, endian);
	/* or a log without a block, and the next one */
	return is_block(b, &format, body) ||
	       !seam_xray_header_read(b->file, body, &header, &endian, NULL);
}

static bool is_boundary(const struct index_builder *b, size_t at)
{
	return at == b->file.size || is_block(b, &b->section->format, at) ||
	       is_header(b, at);
}

/*
 * The next block at or after @from, or the end of the file.  A preamble that
 * is cut is ignored: it holds nothing, and other bytes match it too easily.
 */
static size_t next_block(const struct index_builder *b, size_t from)
{
	const struct seam_xray_format *format = &b->section->format;
	int kind = seam_xray_state_kind(format->version == 1 ?
					SEAM_XRAY_AT_BUFFER :
					SEAM_XRAY_AT_EXTENTS);
	int mark = format->endian == SEAM_BIG ? 0x80 | kind : kind << 1 | 1;
	size_t at = from;

	while (at < b->file.size) {
		const uint8_t *p = memchr(b->file.data + at, mark,
					  b->file.size - at);

		if (!p)
			break;
		at = (size_t)(p - b->file.data);
		if (b->file.size - at < MIN_BLOCK_BYTES)
			break;
		if (is_block(b, format, at))
			return at;
		at++;
	}
	return b->file.size;
}

/* The next block or header at or after @from, or the end of the file. */
static size_t next_boundary(const struct index_builder *b, size_t from)
{
	size_t at = next_block(b, from);

	return at < b->file.size && at >= from + SEAM_XRAY_HEADER_BYTES &&
	       is_header(b, at - SEAM_XRAY_HEADER_BYTES) ?
	       at - SEAM_XRAY_HEADER_BYTES : at;
}

/* @problem costs the bytes [@begin, @end), also where the file lacks them. */
static void add_problem(struct index_builder *b,
			const struct seam_xray_problem *problem, size_t begin,
			uint64_t end)
{
	struct seam_xray_problem p = *problem;

	p.lost_bytes = end - begin;
	if (end > b->file.size)
		b->index->missing_bytes += end - b->file.size;
	seam_xray_problems_add(&b->index->problems, &p);
}

/*
 * Whether zeroes follow, up to the next block or MAX_PADDING of them.  They
 * would parse as entries of function 0, which no program has.
 */
static bool is_padding(const struct index_builder *b, size_t at)
{
	size_t left = b->file.size - at;
	size_t end = at + (left < MAX_PADDING ? left : MAX_PADDING);

	while (at < end && b->file.data[at] == 0)
		at++;
	return at == end || is_boundary(b, at);
}

/*
 * Whether a block whose extents end at @at ends there: another one follows, of
 * whose markers one may be damaged, or another log, or what is unused.
 */
static bool may_end(const struct index_builder *b, size_t at)
{
	return is_boundary(b, at) || is_padding(b, at) ||
	       (b->file.size - at >= MIN_BLOCK_BYTES &&
		n_markers(b, &b->section->format, at) == 2);
}

static uint64_t wall_ns(const struct seam_xray_wall *wall)
{
	if (wall->seconds < 0 || wall->seconds > MAX_SECONDS ||
	    wall->microseconds < 0)
		return 0;
	return (uint64_t)wall->seconds * UINT64_C(1000000000) +
	       (uint64_t)wall->microseconds * 1000;
}

/*
 * How many of the bytes [@begin, @end) of a block are missing in a log that
 * ends at @size.  A block is not larger than a buffer: a larger length is
 * damaged, unless the header is.
 */
static uint64_t n_missing(const struct index_builder *b, uint64_t begin,
			  uint64_t end, uint64_t size)
{
	uint64_t max = b->section->header.buffer_size;

	if (end <= size)
		return 0;
	if (max >= MIN_BLOCK_BYTES && max >= size - begin &&
	    max < end - begin)
		end = begin + max;
	return end - begin > MAX_BLOCK_BYTES ? 0 : end - size;
}

/*
 * Read up to the first NewCPUId into @block.  *@extents_end is where the
 * block should end.  0, or the reader's problem.
 */
static int read_preamble(const struct index_builder *b,
			 struct seam_xray_reader *reader,
			 struct seam_xray_block *block, uint64_t *extents_end)
{
	struct seam_xray_record record;
	int got;

	while ((got = seam_xray_next(reader, &record)) > 0) {
		switch (record.state) {
		case SEAM_XRAY_AT_EXTENTS:
			if (__builtin_add_overflow(reader->c.pos,
						   record.extents.size,
						   extents_end))
				*extents_end = UINT64_MAX;
			reader->missing_bytes = n_missing(b, reader->c.pos,
				*extents_end, b->file.size);
			break;
		case SEAM_XRAY_AT_BUFFER:
			block->tid = record.buffer.thread_id;
			break;
		case SEAM_XRAY_AT_WALL:
			block->wall_ns = wall_ns(&record.wall);
			break;
		case SEAM_XRAY_AT_PID:
			block->pid = record.pid.pid;
			break;
		default:
			block->first_tsc = record.tsc;
			return 0;
		}
		block->is_empty = reader->c.pos == *extents_end &&
				  seam_xray_may_follow(reader->format,
						       record.state,
						       SEAM_XRAY_AT_END);
		if (block->is_empty && is_boundary(b, reader->c.pos))
			return 0;
	}
	return got;
}

/* Set whether the log ends inside @block, with the end that was found. */
static void set_cut(const struct index_builder *b,
		    struct seam_xray_block *block, uint64_t extents_end)
{
	size_t preamble = b->section->format.version == 1 ? 0 :
			  SEAM_XRAY_METADATA_BYTES;

	block->cut = extents_end > block->end &&
		     (block->end == b->file.size || is_header(b, block->end));
	if (block->cut)
		block->missing_bytes = n_missing(b, block->begin + preamble,
						 extents_end, block->end);
}

/* Take the block at @at.  Returns where to go on, or 0 for no memory. */
static size_t add_block(struct index_builder *b, size_t at)
{
	const struct seam_xray_format *format = &b->section->format;
	struct seam_xray_block block = {
		.begin = at, .section = b->section_id,
	};
	uint64_t size = b->section->header.buffer_size;
	uint64_t extents_end = size < MIN_BLOCK_BYTES ||
			       size > UINT64_MAX - at ? UINT64_MAX : at + size;
	struct seam_xray_reader reader;
	int err;

	seam_xray_reader_init(&reader, format, b->file, at, b->file.size, true);
	if (format->version == 1)
		reader.missing_bytes = n_missing(b, at, extents_end,
						 b->file.size);
	err = read_preamble(b, &reader, &block, &extents_end);
	if (err < 0) {
		size_t end = next_boundary(b, reader.c.pos + 1);

		add_problem(b, &reader.problem, at, err == -ENODATA ?
			    end + reader.missing_bytes : end);
		return end;
	}
	block.end = extents_end < b->file.size ? extents_end : b->file.size;
	block.cut = extents_end > b->file.size;
	if (block.cut || block.end < reader.c.pos || !may_end(b, block.end)) {
		block.end = next_boundary(b, reader.c.pos);
		set_cut(b, &block, extents_end);
		/* of version 1, the file may lack what was unused */
		if (block.end != extents_end && !block.missing_bytes &&
		    (!block.cut || format->version > 1))
			b->index->n_extents++;
	}
	return SEAM_ARRAY_ADD(&b->index->blocks, block) ? block.end : 0;
}

static int read_fdr(struct index_builder *b, size_t at, size_t *end)
{
	const struct seam_xray_format *format = &b->section->format;
	enum seam_xray_state start = format->version == 1 ?
		SEAM_XRAY_AT_BUFFER : SEAM_XRAY_AT_EXTENTS;
	bool is_first = true;

	for (; at < b->file.size; is_first = false) {
		struct seam_xray_problem problem = {
			.code = -EBADMSG, .offset = at,
			.text = "these bytes are no block",
		};

		if (!is_block(b, format, at)) {
			if (is_header(b, at))
				break;
			if (!is_first && !has_marker(b, format, at, start)) {
				at = next_boundary(b, at + 1);
				add_problem(b, &problem, problem.offset, at);
				continue;
			}
		}
		at = add_block(b, at);
		if (at == 0)
			return -ENOMEM;
	}
	*end = at;
	return 0;
}

/* Whether the argument @record belongs to the call before it, @before. */
static bool fits(const struct seam_xray_basic_record *record,
		 const struct seam_xray_basic_record *before)
{
	return before &&
	       (before->call.action == SEAM_XRAY_ENTRY ||
		before->call.action == SEAM_XRAY_ENTRY_ARGS) &&
	       record->argument.function_id == before->call.function_id &&
	       record->argument.thread_id == before->call.thread_id;
}

/* Put the call @record into the run it continues, or begin one. */
static int add_call(struct index_builder *b,
		    const struct seam_xray_basic_record *record)
{
	struct seam_xray_index *index = b->index;
	int32_t pid = b->section->header.version < 3 ? 0 :
		      (int32_t)record->call.process_id;
	int32_t tid = (int32_t)record->call.thread_id;
	struct seam_xray_block *block = index->blocks.n ?
		&index->blocks.items[index->blocks.n - 1] : NULL;

	if (!block || block->section != b->section_id || block->pid != pid ||
	    block->tid != tid || block->end != record->offset) {
		block = SEAM_ARRAY_PUSH(&index->blocks);
		if (!block)
			return -ENOMEM;
		*block = (struct seam_xray_block) {
			.begin = record->offset, .section = b->section_id,
			.pid = pid, .tid = tid, .first_tsc = record->call.tsc,
		};
	}
	block->end = record->offset + SEAM_XRAY_BASIC_BYTES;
	return 0;
}

static int read_basic(struct index_builder *b, size_t at, size_t *end)
{
	struct seam_xray_basic_record record, before;
	bool have_before = false;

	for (; at < b->file.size; at += SEAM_XRAY_BASIC_BYTES) {
		struct seam_xray_problem problem = {
			.offset = at, .text = "no record of basic mode",
			.code = seam_xray_basic_read(b->file, at,
				b->section->format.endian, &record),
		};

		if (!problem.code && record.is_argument &&
		    !fits(&record, have_before ? &before : NULL))
			problem.code = -EBADMSG;
		if (problem.code == -EBADMSG && is_header(b, at))
			break;
		if (problem.code) {
			size_t left = b->file.size - at;

			add_problem(b, &problem, at, at +
				    (left < SEAM_XRAY_BASIC_BYTES ? left :
				     SEAM_XRAY_BASIC_BYTES));
			have_before = false;
			if (left < SEAM_XRAY_BASIC_BYTES)
				at = b->file.size - SEAM_XRAY_BASIC_BYTES;
		} else if (record.is_argument) {
			b->index->blocks.items[b->index->blocks.n - 1].end =
				at + SEAM_XRAY_BASIC_BYTES;
		} else {
			if (add_call(b, &record))
				return -ENOMEM;
			before = record;
			have_before = true;
		}
	}
	*end = at;
	return 0;
}

static int read_section(struct index_builder *b, size_t *at,
			struct seam_err *err)
{
	struct seam_xray_section *section;
	enum seam_endian endian;
	int r;

	section = SEAM_ARRAY_PUSH(&b->index->sections);
	if (!section)
		return seam_err_no_memory(err);
	*section = (struct seam_xray_section) { .offset = *at };
	r = seam_xray_header_read(b->file, *at, &section->header, &endian, err);
	if (r)
		return r;
	seam_xray_format_init(&section->format, section->header.version,
			      endian);
	b->section = section;
	b->section_id = (uint32_t)(b->index->sections.n - 1);
	*at += SEAM_XRAY_HEADER_BYTES;
	r = section->header.log_type == SEAM_XRAY_FDR ? read_fdr(b, *at, at) :
	    read_basic(b, *at, at);
	return r ? seam_err_set(err, r, "out of memory") : 0;
}

int seam_xray_index_build(struct seam_xray_index *index,
			  struct seam_bytes file, struct seam_err *err)
{
	struct index_builder b = {
		.index = index, .file = file,
	};
	size_t at = 0;
	int r;

	*index = (struct seam_xray_index) { .file = file };
	do
		r = read_section(&b, &at, err);
	while (!r && at < file.size);
	if (r)
		seam_xray_index_fini(index);
	return r;
}

void seam_xray_index_fini(struct seam_xray_index *index)
{
	free(index->sections.items);
	free(index->blocks.items);
	*index = (struct seam_xray_index) { 0 };
}

void seam_xray_block_open(struct seam_xray_block_reader *reader,
			  const struct seam_xray_index *index,
			  const struct seam_xray_block *block)
{
	const struct seam_xray_section *section =
		&index->sections.items[block->section];

	reader->index = index;
	reader->block = block;
	reader->offset = block->begin;
	seam_xray_reader_init(&reader->fdr, &section->format, index->file,
			      block->begin, block->end, block->cut);
	reader->fdr.missing_bytes = block->missing_bytes;
}

static bool is_basic(const struct seam_xray_block_reader *reader)
{
	return reader->index->sections.items[reader->block->section]
	       .header.log_type == SEAM_XRAY_BASIC;
}

int seam_xray_block_next(struct seam_xray_block_reader *reader,
			 struct seam_xray_batch *batch)
{
	if (!is_basic(reader))
		return seam_xray_decode(&reader->fdr, batch);
	decode_basic(reader->index->file, &reader->offset,
		     reader->block->end,
		     reader->fdr.format->endian, batch);
	return 0;
}
