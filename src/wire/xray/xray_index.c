/* SPDX-License-Identifier: MIT */
/* xray_index.c - sections, blocks and their ends; see xray_index.h */
#include "wire/xray/xray_index.h"

#include <errno.h>
#include <stdlib.h>

/* -- decoding ----------------------------------------------------------- */

/*
 * Function records come by the hundred million, so in little-endian logs they
 * are read by a loop of a few instructions over a range whose bounds were
 * checked once.  All other records go through seam_xray_next(), which is also
 * the oracle that tests hold this loop against.
 */

/* Any bit of these set: no function record, or an unknown action. */
#define NOT_PLAIN	UINT64_C(0x9)

/* @n function records have been read, the last one of @kind, at @tsc. */
static void skip_functions(struct seam_xray_reader *r, size_t n,
			   unsigned int kind, uint64_t tsc)
{
	r->state = kind == SEAM_XRAY_EXIT || kind == SEAM_XRAY_TAIL_EXIT ?
		   SEAM_XRAY_AT_EXIT : SEAM_XRAY_AT_ENTRY;
	r->tsc = tsc;
	seam_cursor_skip(&r->c, n * SEAM_XRAY_FUNCTION_BYTES);
}

/* Function records up to something else.  Returns how many. */
static size_t take_run(struct seam_xray_reader *r,
		       struct seam_xray_event *out, size_t cap)
{
	struct seam_xray_run run;
	const uint16_t cpu = r->cpu;
	const uint8_t *p;
	uint64_t tsc;
	size_t i, n;

	if (!seam_xray_run(r, &run))
		return 0;
	p = run.records;
	n = run.n < cap ? run.n : cap;
	tsc = run.tsc;
	for (i = 0; i < n; i++, p += SEAM_XRAY_FUNCTION_BYTES) {
		uint64_t v;

		memcpy(&v, p, sizeof(v));
		if (v & NOT_PLAIN)
			break;
		tsc += v >> 32;
		out[i] = (struct seam_xray_event) {
			.tsc = tsc, .function = (uint32_t)v >> 4, .cpu = cpu,
			.kind = v >> 1 & 3,
		};
	}
	if (i > 0)
		skip_functions(r, i, out[i - 1].kind, tsc);
	return i;
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
		break;
	case SEAM_XRAY_AT_TYPED:
		event->kind = SEAM_XRAY_TYPED;
		break;
	default:
		return;
	}
	batch->n++;
	if (event->kind < SEAM_XRAY_CUSTOM)
		return;
	event->function = (uint32_t)batch->n_payloads;
	batch->payloads[batch->n_payloads++] = (struct seam_xray_payload) {
		.data = record->data, .type = record->marker.event_type,
	};
}

int seam_xray_decode(struct seam_xray_reader *r, struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (batch->n < r->max_batch &&
	       batch->n_payloads < SEAM_XRAY_PAYLOADS) {
		struct seam_xray_record record;
		int got;

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

bool seam_xray_run(struct seam_xray_reader *r, struct seam_xray_run *run)
{
	*run = (struct seam_xray_run) {
		.records = r->c.base + r->c.pos,
		.n = seam_cursor_left(&r->c) / SEAM_XRAY_FUNCTION_BYTES,
		.tsc = r->tsc,
	};
	return run->n > 0 && r->format->endian == SEAM_LITTLE &&
	       seam_xray_may_follow(r->format, r->state, SEAM_XRAY_AT_EXIT);
}

void seam_xray_run_take(struct seam_xray_reader *r,
			const struct seam_xray_run *run, size_t n, uint64_t tsc)
{
	skip_functions(r, n, seam_xray_run_record(run, n - 1) >> 1 & 7, tsc);
}

/* -- basic mode --------------------------------------------------------- */

/*
 * Basic ("naive") mode, versions 1 to 3: records of 32 bytes, each with its
 * thread and an absolute TSC.  Threads write whole buffers, so records of one
 * thread come in runs, in order.  An argument is a record of its own that
 * follows the entry it belongs to.
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

/* -- sections and blocks ------------------------------------------------- */

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

/* The last section is the one that is read. */
static const struct seam_xray_section *
section_of(const struct seam_xray_index *x)
{
	return &x->sections.items[x->sections.n - 1];
}

static bool has_marker(const struct seam_xray_index *x,
		       const struct seam_xray_format *format, size_t at,
		       enum seam_xray_state state)
{
	return at >= x->file.size ||
	       x->file.data[at] == seam_xray_marker(format, state);
}

/* A block's first record. */
static enum seam_xray_state first_of(const struct seam_xray_format *format)
{
	return format->version == 1 ? SEAM_XRAY_AT_BUFFER :
				      SEAM_XRAY_AT_EXTENTS;
}

/*
 * How many of a block's first three markers, at distances of 16 bytes, are at
 * @at.  Function records that look like all three by chance are rare.  A file
 * may end inside.
 */
static unsigned int n_markers(const struct seam_xray_index *x,
			      const struct seam_xray_format *format, size_t at)
{
	static const enum seam_xray_state marks[] = {
		SEAM_XRAY_AT_EXTENTS, SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL,
		SEAM_XRAY_AT_CPU,
	};
	size_t first = format->version == 1;
	unsigned int n = 0;

	for (size_t i = 0; i < 3; i++)
		n += has_marker(x, format, at + i * SEAM_XRAY_METADATA_BYTES,
				marks[first + i]);
	return n;
}

static bool is_block(const struct seam_xray_index *x,
		     const struct seam_xray_format *format, size_t at)
{
	return at < x->file.size && n_markers(x, format, at) == 3;
}

/*
 * The header of a log that was appended: with values that a writer produces,
 * followed by what must follow a header.  Stricter than the format, so that
 * other records rarely match.
 */
static bool is_header(const struct seam_xray_index *x, size_t at)
{
	size_t body = at + SEAM_XRAY_HEADER_BYTES;
	struct seam_xray_basic_record record;
	struct seam_xray_header header;
	struct seam_xray_format format;
	enum seam_endian endian;

	if (seam_xray_header_read(x->file, at, &header, &endian, NULL) ||
	    header.flags > 0xff ||
	    (header.cycle_frequency && header.cycle_frequency < MIN_HZ) ||
	    header.cycle_frequency > MAX_HZ)
		return false;
	if (body == x->file.size)
		return true;
	if (header.log_type == SEAM_XRAY_BASIC)
		return !seam_xray_basic_read(x->file, body, endian, &record) &&
		       !record.is_argument && record.call.function_id > 0 &&
		       record.call.thread_id > 0 &&
		       record.call.thread_id < MAX_PID;
	seam_xray_format_init(&format, header.version, endian);
	/* or a log without a block, and the next one */
	return is_block(x, &format, body) ||
	       !seam_xray_header_read(x->file, body, &header, &endian, NULL);
}

static bool is_boundary(const struct seam_xray_index *x, size_t at)
{
	return at == x->file.size ||
	       is_block(x, &section_of(x)->format, at) || is_header(x, at);
}

/*
 * The next block at or after @from, or the header before it, or the end of the
 * file.  A preamble that is cut is ignored: it holds nothing, and other bytes
 * match it too easily.
 */
static size_t next_boundary(const struct seam_xray_index *x, size_t from)
{
	const struct seam_xray_format *format = &section_of(x)->format;
	int mark = seam_xray_marker(format, first_of(format));

	for (size_t at = from; at < x->file.size; at++) {
		const uint8_t *p = memchr(x->file.data + at, mark,
					  x->file.size - at);

		if (!p)
			break;
		at = (size_t)(p - x->file.data);
		if (x->file.size - at < MIN_BLOCK_BYTES)
			break;
		if (!is_block(x, format, at))
			continue;
		return at >= from + SEAM_XRAY_HEADER_BYTES &&
		       is_header(x, at - SEAM_XRAY_HEADER_BYTES) ?
		       at - SEAM_XRAY_HEADER_BYTES : at;
	}
	return x->file.size;
}

/*
 * Whether a block whose extents end at @at ends there: another one follows, of
 * whose markers one may be damaged, or another log, or zeroes that are unused.
 * These would parse as entries of function 0, which no program has.
 */
static bool may_end(const struct seam_xray_index *x, size_t at)
{
	size_t end = at;

	if (is_boundary(x, at) ||
	    (x->file.size - at >= MIN_BLOCK_BYTES &&
	     n_markers(x, &section_of(x)->format, at) == 2))
		return true;
	while (end < x->file.size && end - at < MAX_PADDING &&
	       x->file.data[end] == 0)
		end++;
	return end - at == MAX_PADDING || is_boundary(x, end);
}

/* @problem costs the bytes [@begin, @end), also where the file lacks them. */
static void add_problem(struct seam_xray_index *x,
			const struct seam_xray_problem *problem, size_t begin,
			uint64_t end)
{
	struct seam_xray_problem p = *problem;

	p.lost_bytes = end - begin;
	if (end > x->file.size)
		x->missing_bytes += end - x->file.size;
	seam_xray_problems_add(&x->problems, &p);
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
static uint64_t n_missing(const struct seam_xray_index *x, uint64_t begin,
			  uint64_t end, uint64_t size)
{
	uint64_t max = section_of(x)->header.buffer_size;

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
static int read_preamble(const struct seam_xray_index *x,
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
			reader->missing_bytes = n_missing(x, reader->c.pos,
				*extents_end, x->file.size);
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
		if (block->is_empty && is_boundary(x, reader->c.pos))
			return 0;
	}
	return got;
}

/*
 * The block's end is not where its extents end: find it, and whether the log
 * ends inside the block.
 */
static void correct_end(struct seam_xray_index *x,
			struct seam_xray_block *block, size_t preamble_end,
			uint64_t extents_end)
{
	bool has_extents = section_of(x)->format.version > 1;

	block->end = next_boundary(x, preamble_end);
	block->cut = extents_end > block->end &&
		     (block->end == x->file.size || is_header(x, block->end));
	if (block->cut)
		block->missing_bytes = n_missing(x, block->begin +
			(has_extents ? SEAM_XRAY_METADATA_BYTES : 0),
			extents_end, block->end);
	/* of version 1, the file may lack what was unused */
	if (block->end != extents_end && !block->missing_bytes &&
	    (!block->cut || has_extents))
		x->n_extents++;
}

/* Take the block at @at.  Returns where to go on, or 0 for no memory. */
static size_t add_block(struct seam_xray_index *x, size_t at)
{
	const struct seam_xray_section *section = section_of(x);
	struct seam_xray_block block = {
		.begin = at, .section = (uint32_t)(x->sections.n - 1),
	};
	uint64_t size = section->header.buffer_size;
	uint64_t extents_end = size < MIN_BLOCK_BYTES ||
			       size > UINT64_MAX - at ? UINT64_MAX : at + size;
	struct seam_xray_reader reader;
	int err;

	seam_xray_reader_init(&reader, &section->format, x->file, at,
			      x->file.size, true);
	if (section->format.version == 1)
		reader.missing_bytes = n_missing(x, at, extents_end,
						 x->file.size);
	err = read_preamble(x, &reader, &block, &extents_end);
	if (err < 0) {
		size_t end = next_boundary(x, reader.c.pos + 1);

		add_problem(x, &reader.problem, at, err == -ENODATA ?
			    end + reader.missing_bytes : end);
		return end;
	}
	block.end = extents_end;
	if (extents_end > x->file.size || extents_end < reader.c.pos ||
	    !may_end(x, extents_end))
		correct_end(x, &block, reader.c.pos, extents_end);
	return SEAM_ARRAY_ADD(&x->blocks, block) ? block.end : 0;
}

static int read_fdr(struct seam_xray_index *x, size_t at, size_t *end)
{
	const struct seam_xray_format *format = &section_of(x)->format;
	bool is_first = true;

	for (; at < x->file.size; is_first = false) {
		struct seam_xray_problem problem = {
			.code = -EBADMSG, .offset = at,
			.text = "these bytes are no block",
		};

		if (!is_block(x, format, at)) {
			if (is_header(x, at))
				break;
			if (!is_first &&
			    !has_marker(x, format, at, first_of(format))) {
				at = next_boundary(x, at + 1);
				add_problem(x, &problem, problem.offset, at);
				continue;
			}
		}
		at = add_block(x, at);
		if (at == 0)
			return -ENOMEM;
	}
	*end = at;
	return 0;
}

/* Whether the argument @record belongs to the call @before. */
static bool fits(const struct seam_xray_basic_record *record,
		 const struct seam_xray_basic_call *before)
{
	return (before->action == SEAM_XRAY_ENTRY ||
		before->action == SEAM_XRAY_ENTRY_ARGS) &&
	       record->argument.function_id == before->function_id &&
	       record->argument.thread_id == before->thread_id;
}

/* Put the call @record into the run it continues, or begin one. */
static int add_call(struct seam_xray_index *x,
		    const struct seam_xray_basic_record *record)
{
	uint32_t section = (uint32_t)(x->sections.n - 1);
	int32_t pid = section_of(x)->header.version < 3 ? 0 :
		      (int32_t)record->call.process_id;
	int32_t tid = (int32_t)record->call.thread_id;
	struct seam_xray_block *block = x->blocks.n ?
		&x->blocks.items[x->blocks.n - 1] : NULL;

	if (!block || block->section != section || block->pid != pid ||
	    block->tid != tid || block->end != record->offset) {
		block = SEAM_ARRAY_PUSH(&x->blocks);
		if (!block)
			return -ENOMEM;
		*block = (struct seam_xray_block) {
			.begin = record->offset, .section = section,
			.pid = pid, .tid = tid, .first_tsc = record->call.tsc,
		};
	}
	block->end = record->offset + SEAM_XRAY_BASIC_BYTES;
	return 0;
}

static int read_basic(struct seam_xray_index *x, size_t at, size_t *end)
{
	/* no argument belongs to an exit */
	static const struct seam_xray_basic_call none = {
		.action = SEAM_XRAY_EXIT,
	};
	struct seam_xray_basic_call before = none;
	struct seam_xray_basic_record record;
	size_t size;

	for (; at < x->file.size; at += size) {
		size_t left = x->file.size - at;
		struct seam_xray_problem problem = {
			.offset = at, .text = "no record of basic mode",
			.code = seam_xray_basic_read(x->file, at,
				section_of(x)->format.endian, &record),
		};

		size = left < SEAM_XRAY_BASIC_BYTES ? left :
		       SEAM_XRAY_BASIC_BYTES;
		if (!problem.code && record.is_argument &&
		    !fits(&record, &before))
			problem.code = -EBADMSG;
		if (problem.code == -EBADMSG && is_header(x, at))
			break;
		if (problem.code) {
			add_problem(x, &problem, at, at + size);
			before = none;
		} else if (record.is_argument) {
			x->blocks.items[x->blocks.n - 1].end = at + size;
		} else {
			if (add_call(x, &record))
				return -ENOMEM;
			before = record.call;
		}
	}
	*end = at;
	return 0;
}

static int read_section(struct seam_xray_index *x, size_t *at,
			struct seam_err *err)
{
	struct seam_xray_section section = { .offset = *at };
	enum seam_endian endian;
	int r = seam_xray_header_read(x->file, *at, &section.header, &endian,
				      err);

	if (r)
		return r;
	seam_xray_format_init(&section.format, section.header.version, endian);
	if (!SEAM_ARRAY_ADD(&x->sections, section))
		return seam_err_no_memory(err);
	*at += SEAM_XRAY_HEADER_BYTES;
	r = section.header.log_type == SEAM_XRAY_FDR ? read_fdr(x, *at, at) :
	    read_basic(x, *at, at);
	return r ? seam_err_no_memory(err) : 0;
}

int seam_xray_index_build(struct seam_xray_index *index,
			  struct seam_bytes file, struct seam_err *err)
{
	size_t at = 0;
	int r;

	*index = (struct seam_xray_index) { .file = file };
	do
		r = read_section(index, &at, err);
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

/* -- a block -------------------------------------------------------------- */

/*
 * The events of the run that @reader is in, which seam_xray_index_build() has
 * checked, as seam_xray_decode().
 */
static void decode_basic(struct seam_xray_block_reader *reader,
			 struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (reader->offset < reader->block->end &&
	       batch->n < SEAM_XRAY_BATCH) {
		struct seam_xray_basic_record record;
		struct seam_xray_event *event = &batch->events[batch->n];

		if (seam_xray_basic_read(reader->index->file, reader->offset,
					 reader->fdr.format->endian, &record))
			break;
		reader->offset += SEAM_XRAY_BASIC_BYTES;
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

int seam_xray_block_next(struct seam_xray_block_reader *reader,
			 struct seam_xray_batch *batch)
{
	if (reader->index->sections.items[reader->block->section]
	    .header.log_type == SEAM_XRAY_FDR)
		return seam_xray_decode(&reader->fdr, batch);
	decode_basic(reader, batch);
	return 0;
}
