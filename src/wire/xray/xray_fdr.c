/* SPDX-License-Identifier: MIT */
/* xray_fdr.c - the grammar, the record tables, the reader over both */
#include "wire/xray/xray_fdr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#define BODY(from)							\
	{ from, SEAM_XRAY_AT_CPU, 1, 5 },				\
	{ from, SEAM_XRAY_AT_WRAP, 1, 5 },				\
	{ from, SEAM_XRAY_AT_ENTRY, 1, 5 },				\
	{ from, SEAM_XRAY_AT_EXIT, 1, 5 },				\
	{ from, SEAM_XRAY_AT_CUSTOM, 1, 5 },				\
	{ from, SEAM_XRAY_AT_TYPED, 2, 5 },				\
	{ from, SEAM_XRAY_AT_END_OF_BUFFER, 1, 1 },			\
	{ from, SEAM_XRAY_AT_END, 2, 5 }

/*
 * Source: XRay FDR format, version 1, "Format Grammar and Invariants"; LLVM
 * 14's writer for the versions since.  Wider than the spec in two places
 * that real writers use: an argument after a plain Entry (LLVM 5 and 6), and
 * a buffer into which nothing was recorded.
 */
const struct seam_xray_pair seam_xray_pairs[] = {
	{ SEAM_XRAY_AT_START, SEAM_XRAY_AT_BUFFER, 1, 1 },
	{ SEAM_XRAY_AT_START, SEAM_XRAY_AT_EXTENTS, 2, 5 },
	{ SEAM_XRAY_AT_EXTENTS, SEAM_XRAY_AT_BUFFER, 2, 5 },
	{ SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL, 1, 5 },
	{ SEAM_XRAY_AT_WALL, SEAM_XRAY_AT_PID, 3, 5 },
	{ SEAM_XRAY_AT_WALL, SEAM_XRAY_AT_CPU, 1, 5 },
	{ SEAM_XRAY_AT_WALL, SEAM_XRAY_AT_END, 2, 5 },
	{ SEAM_XRAY_AT_PID, SEAM_XRAY_AT_CPU, 3, 5 },
	{ SEAM_XRAY_AT_PID, SEAM_XRAY_AT_END, 3, 5 },
	BODY(SEAM_XRAY_AT_CPU),
	BODY(SEAM_XRAY_AT_WRAP),
	BODY(SEAM_XRAY_AT_ENTRY),
	{ SEAM_XRAY_AT_ENTRY, SEAM_XRAY_AT_ARGUMENT, 1, 5 },
	BODY(SEAM_XRAY_AT_EXIT),
	BODY(SEAM_XRAY_AT_ARGUMENT),
	{ SEAM_XRAY_AT_ARGUMENT, SEAM_XRAY_AT_ARGUMENT, 1, 5 },
	BODY(SEAM_XRAY_AT_CUSTOM),
	BODY(SEAM_XRAY_AT_TYPED),
	{ SEAM_XRAY_AT_END_OF_BUFFER, SEAM_XRAY_AT_END, 1, 1 },
};

const size_t seam_xray_n_pairs = SEAM_ARRAY_SIZE(seam_xray_pairs);

#define SPEC "XRay FDR format, version 1"
#define F(type, member, text) SEAM_FIELD(struct seam_xray_##type, member, text)
static const struct seam_record buffer_record = SEAM_RECORD(
	"NewBuffer", SPEC ", \"NewBuffer Records\"",
	F(buffer, thread_id, "thread; 2 bytes in the spec, 4 in all writers"));
static const struct seam_record wall_record = SEAM_RECORD(
	"WallClockTime", SPEC ", \"WallClockTime Records\"",
	F(wall, seconds, "s of CLOCK_MONOTONIC, in spite of the name"),
	F(wall, microseconds, "us to add"));
static const struct seam_record cpu_record = SEAM_RECORD(
	"NewCPUId", SPEC ", \"NewCpuId Records\"",
	F(cpu, cpu_id, "CPU from here on"),
	F(cpu, absolute_tsc, "ticks; new base of the deltas"));
static const struct seam_record wrap_record = SEAM_RECORD(
	"TSCWrap", SPEC ", \"TSCWrap Records\"",
	F(wrap, absolute_tsc, "ticks; new base of the deltas"));
static const struct seam_record argument_record = SEAM_RECORD(
	"CallArgument", SPEC ", \"CallArgument Records\"",
	F(argument, argument, "value, in the order of the parameters"));
static const struct seam_record extents_record = SEAM_RECORD(
	"BufferExtents", "LLVM 7, version 2",
	F(extents, size, "bytes of the block that follows"));
static const struct seam_record pid_record = SEAM_RECORD(
	"Pid", "LLVM 8, version 3",
	F(pid, pid, "process"));
static const struct seam_record function_record = SEAM_RECORD(
	"Function", SPEC ", \"Function Records\"",
	F(function, word, "function_id 28 bits, action 3, discriminant 1 (0)"),
	F(function, tsc_delta, "ticks since the base, which it moves"));
static const struct seam_record custom1_record = SEAM_RECORD(
	"CustomEventMarker", SPEC ", \"CustomEventMarker Records\"",
	F(marker, event_size, "bytes of data after this record"),
	F(marker, absolute_tsc, "ticks; the base stays as it is"));
static const struct seam_record custom4_record = SEAM_RECORD(
	"CustomEventMarker", "LLVM 8, version 4",
	F(marker, event_size, "bytes of data after this record"),
	F(marker, absolute_tsc, "ticks; the base stays as it is"),
	F(marker, cpu_id, "CPU of the event"));
static const struct seam_record custom5_record = SEAM_RECORD(
	"CustomEventMarker", "LLVM 8 to 14, version 5",
	F(marker, event_size, "bytes of data after this record"),
	F(marker, tsc_delta, "ticks since the base, which it moves"));
static const struct seam_record typed1_record = SEAM_RECORD(
	"TypedEventMarker", "LLVM 7, version 2 to 4",
	F(marker, event_size, "bytes of data after this record"),
	F(marker, absolute_tsc, "ticks; the base stays as it is"),
	F(marker, event_type, "number that the program registered"));
static const struct seam_record typed5_record = SEAM_RECORD(
	"TypedEventMarker", "LLVM 8 to 14, version 5",
	F(marker, event_size, "bytes of data after this record"),
	F(marker, tsc_delta, "ticks since the base, which it moves"),
	F(marker, event_type, "number that the program registered"));
#undef F

static const struct seam_record end_record = {
	.name = "EndOfBuffer", .spec = SPEC ", \"EndOfBuffer Records\"",
};

/* The record of each state. */
static const struct {
	const char *name;	/* in messages */
	const struct seam_record *table;
	int kind;		/* record_kind of a metadata record, or -1 */
} states[SEAM_XRAY_N_STATES] = {
	[SEAM_XRAY_AT_START] = { "start of block", NULL, -1 },
	[SEAM_XRAY_AT_EXTENTS] = { "BufferExtents", &extents_record, 7 },
	[SEAM_XRAY_AT_BUFFER] = { "NewBuffer", &buffer_record, 0 },
	[SEAM_XRAY_AT_WALL] = { "WallClockTime", &wall_record, 4 },
	[SEAM_XRAY_AT_PID] = { "Pid", &pid_record, 9 },
	[SEAM_XRAY_AT_CPU] = { "NewCPUId", &cpu_record, 2 },
	[SEAM_XRAY_AT_WRAP] = { "TSCWrap", &wrap_record, 3 },
	[SEAM_XRAY_AT_ENTRY] = { "function entry", &function_record, -1 },
	[SEAM_XRAY_AT_EXIT] = { "function exit", &function_record, -1 },
	[SEAM_XRAY_AT_ARGUMENT] = { "CallArgument", &argument_record, 6 },
	[SEAM_XRAY_AT_CUSTOM] = { "CustomEventMarker", &custom5_record, 5 },
	[SEAM_XRAY_AT_TYPED] = { "TypedEventMarker", &typed5_record, 8 },
	[SEAM_XRAY_AT_END_OF_BUFFER] = { "EndOfBuffer", &end_record, 1 },
	[SEAM_XRAY_AT_END] = { "end of block", NULL, -1 },
};

const char *seam_xray_state_name(enum seam_xray_state state)
{
	return states[state].name;
}

uint8_t seam_xray_marker(const struct seam_xray_format *format,
			 enum seam_xray_state state)
{
	int kind = states[state].kind;

	return (uint8_t)(format->endian == SEAM_BIG ? 0x80 | kind :
			 kind << 1 | 1);
}

const struct seam_record *seam_xray_record_table(enum seam_xray_state state,
						 unsigned int version)
{
	if (state == SEAM_XRAY_AT_CUSTOM && version < 5)
		return version == 4 ? &custom4_record : &custom1_record;
	if (state == SEAM_XRAY_AT_TYPED && version < 5)
		return &typed1_record;
	return states[state].table;
}

void seam_xray_format_init(struct seam_xray_format *format, uint16_t version,
			   enum seam_endian endian)
{
	*format = (struct seam_xray_format) {
		.version = version, .endian = endian,
	};
	for (size_t i = 0; i < seam_xray_n_pairs; i++) {
		const struct seam_xray_pair *pair = &seam_xray_pairs[i];

		if (version >= pair->first_version &&
		    version <= pair->last_version)
			format->next[pair->from] |= (uint16_t)(1u << pair->to);
	}
}

void seam_xray_reader_init(struct seam_xray_reader *reader,
			   const struct seam_xray_format *format,
			   struct seam_bytes file, size_t begin, size_t end,
			   bool cut)
{
	*reader = (struct seam_xray_reader) {
		.format = format,
		.c = seam_cursor_make(file.data, end, format->endian),
		.cut = cut, .max_batch = SEAM_XRAY_BATCH,
	};
	seam_cursor_skip(&reader->c, begin);
}

__attribute__((format(printf, 4, 5)))
static int fail(struct seam_xray_reader *r, int code, size_t offset,
		const char *fmt, ...)
{
	va_list args;

	r->problem.code = code;
	r->problem.offset = offset;
	r->problem.lost_bytes = r->c.size - offset + r->missing_bytes;
	va_start(args, fmt);
	vsnprintf(r->problem.text, sizeof(r->problem.text), fmt, args);
	va_end(args);
	return code;
}

/* A record that the block has no room for. */
static int fail_short(struct seam_xray_reader *r, size_t offset,
		      const char *what)
{
	if (r->cut)
		return fail(r, -ENODATA, offset,
			    "the file ends inside a block, in %s", what);
	return fail(r, -EBADMSG, offset, "%s crosses the end of its block",
		    what);
}

/* The state of a record whose first byte is @b; SEAM_XRAY_N_STATES: none. */
static enum seam_xray_state classify(const struct seam_xray_format *format,
				     uint8_t b)
{
	bool big = format->endian == SEAM_BIG;
	bool is_metadata = big ? b >> 7 : b & 1;
	unsigned int value = big ? b & 0x7f : b >> 1;
	unsigned int action = big ? value >> 4 : value & 7;

	if (!is_metadata)
		return action == SEAM_XRAY_ENTRY ||
		       action == SEAM_XRAY_ENTRY_ARGS ? SEAM_XRAY_AT_ENTRY :
		       action <= SEAM_XRAY_ENTRY_ARGS ? SEAM_XRAY_AT_EXIT :
		       SEAM_XRAY_N_STATES;
	for (int s = 0; s < SEAM_XRAY_N_STATES; s++)
		if (states[s].kind == (int)value)
			return (enum seam_xray_state)s;
	return SEAM_XRAY_N_STATES;
}

static void split_word(struct seam_xray_record *record, enum seam_endian endian)
{
	uint32_t word = record->function_record.word;

	if (endian == SEAM_BIG) {
		record->action = word >> 28 & 7;
		record->function = word & SEAM_XRAY_MAX_FUNCTION;
	} else {
		record->action = word >> 1 & 7;
		record->function = word >> 4;
	}
}

/* Advance the reader's TSC by the record, and set the record's. */
static void advance_tsc(struct seam_xray_reader *r,
			struct seam_xray_record *record)
{
	const struct seam_xray_marker *marker = &record->marker;

	switch (record->state) {
	case SEAM_XRAY_AT_CPU:
		r->cpu = record->cpu.cpu_id;
		r->tsc = record->cpu.absolute_tsc;
		break;
	case SEAM_XRAY_AT_WRAP:
		r->tsc = record->wrap.absolute_tsc;
		break;
	case SEAM_XRAY_AT_ENTRY:
	case SEAM_XRAY_AT_EXIT:
		r->tsc += record->function_record.tsc_delta;
		break;
	case SEAM_XRAY_AT_CUSTOM:
	case SEAM_XRAY_AT_TYPED:
		if (r->format->version < 5) {
			record->tsc = marker->absolute_tsc;
			return;
		}
		r->tsc += (uint64_t)(int64_t)marker->tsc_delta;
		break;
	default:
		break;
	}
	record->tsc = r->tsc;
}

static int read_payload(struct seam_xray_reader *r,
			struct seam_xray_record *record, size_t offset)
{
	int32_t size = record->marker.event_size;

	if (size < 0)
		return fail(r, -EBADMSG, offset, "event_size=%" PRId32, size);
	if ((size_t)size > seam_cursor_left(&r->c))
		return fail_short(r, offset, "an event's data");
	record->data.size = (size_t)size;
	record->data.data = seam_cursor_bytes(&r->c, (size_t)size);
	return 0;
}

static int read_body(struct seam_xray_reader *r,
		     struct seam_xray_record *record, size_t offset)
{
	bool is_function = states[record->state].kind < 0;
	size_t size = is_function ? SEAM_XRAY_FUNCTION_BYTES :
				    SEAM_XRAY_METADATA_BYTES;
	struct seam_cursor c;

	if (size > seam_cursor_left(&r->c))
		return fail_short(r, offset, seam_xray_state_name(record->state));
	if (!is_function) {
		seam_cursor_skip(&r->c, 1);
		size--;
	}
	c = seam_cursor_split(&r->c, size);
	seam_wire_read(&c, seam_xray_record_table(record->state,
						  r->format->version),
		       &record->buffer);
	if (is_function)
		split_word(record, r->format->endian);
	if (record->state == SEAM_XRAY_AT_CUSTOM ||
	    record->state == SEAM_XRAY_AT_TYPED)
		return read_payload(r, record, offset);
	return 0;
}

static int at_end(struct seam_xray_reader *r)
{
	/* what is missing after EndOfBuffer was unused */
	bool is_whole = r->missing_bytes == 0 ||
			r->state == SEAM_XRAY_AT_END_OF_BUFFER;

	if (r->state == SEAM_XRAY_AT_END ||
	    (is_whole &&
	     seam_xray_may_follow(r->format, r->state, SEAM_XRAY_AT_END))) {
		r->state = SEAM_XRAY_AT_END;
		return 0;
	}
	if (r->cut)
		return fail(r, -ENODATA, r->c.pos,
			    "the file ends inside a block, after %s",
			    seam_xray_state_name(r->state));
	return fail(r, -EBADMSG, r->c.pos, "end of block may not follow %s",
		    seam_xray_state_name(r->state));
}

int seam_xray_next(struct seam_xray_reader *r, struct seam_xray_record *record)
{
	struct seam_cursor mark = r->c;
	size_t offset = mark.pos;
	enum seam_xray_state to;
	int err;

	if (r->state == SEAM_XRAY_AT_END_OF_BUFFER)	/* the rest is unused */
		seam_cursor_skip(&r->c, seam_cursor_left(&r->c));
	if (seam_cursor_left(&r->c) == 0)
		return at_end(r);
	to = classify(r->format, r->c.base[offset]);
	if (to == SEAM_XRAY_N_STATES)
		return fail(r, -EBADMSG, offset,
			    "unknown record, first byte %#x, after %s",
			    r->c.base[offset], seam_xray_state_name(r->state));
	if (!seam_xray_may_follow(r->format, r->state, to))
		return fail(r, -EBADMSG, offset, "%s may not follow %s",
			    seam_xray_state_name(to),
			    seam_xray_state_name(r->state));
	*record = (struct seam_xray_record) { .offset = offset, .state = to };
	err = read_body(r, record, offset);
	if (err) {
		r->c = mark;
		return err;
	}
	advance_tsc(r, record);
	r->state = to;
	return 1;
}
