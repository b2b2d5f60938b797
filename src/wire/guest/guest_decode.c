/* SPDX-License-Identifier: MIT */
/* guest_decode.c - bytes to structs, checked; see guest_decode.h */
#include "wire/guest/guest_decode.h"

#include <endian.h>
#include <errno.h>

#define SPEC "seam, doc/formats/guest.md"
#define F(record, member, text)						\
	SEAM_FIELD(struct seam_guest_##record, member, text)

const struct seam_record seam_guest_start_table = SEAM_RECORD(
	"start", SPEC,
	F(start, version, "1"),
	F(start, kind, "1: guest record; 2: symbol record"),
	F(start, adapter, "the VM: 1, LuaJIT"),
	F(start, flags, "of the record, below"),
	F(start, table, "in which ids are valid; not 0"));

const struct seam_record seam_guest_head_table = SEAM_RECORD(
	"guest record", SPEC,
	F(head, vmstate, "of the innermost VM; 255: none"),
	F(head, guest_end, "how the walk over the guest's frames ended"),
	F(head, host_end, "how the walk over the host's frames ended"),
	F(head, n_segments, "segments that follow"),
	F(head, n_ticks, "ticks that the sample represents; not 0"),
	F(head, vm, "address that identifies the VM; 0: none"));

const struct seam_record seam_guest_segment_table = SEAM_RECORD(
	"segment", SPEC,
	F(segment, join, "index in the callchain's user part; 65535: none"),
	F(segment, n_replaced, "entries of the callchain from there on"),
	F(segment, n_frames, "frames that follow"),
	F(segment, end, "as guest_end, of this segment"),
	F(segment, thread, "address that identifies the coroutine"));

const struct seam_record seam_guest_frame_table = SEAM_RECORD(
	"frame", SPEC,
	F(frame, id, "of a symbol; of a cut: frames left out; not 0"),
	F(frame, place, "bits 28-31: kind; 0-27: line, 0: not known"));

const struct seam_record seam_guest_symbol_table = SEAM_RECORD(
	"symbol record", SPEC,
	F(symbol, id, "not 0"),
	F(symbol, start, "of a trace: id of the function it starts in"),
	F(symbol, line, "of the definition; of a trace: its first"),
	F(symbol, last_line, "of the definition; 0: not known"),
	F(symbol, address, "of prototype or code; number of a trace"),
	F(symbol, n_chunk, "bytes of the chunk's name, at most 1024"),
	F(symbol, n_name, "bytes of the function's name, at most 200"),
	F(symbol, kind, "of frames with this id"));

/* Name the value that does not fit, and where it is. */
static int bad(struct seam_err *err, const char *what, uint64_t value,
	       size_t pos)
{
	return seam_err_set(err, -EBADMSG,
			    "cannot read guest record: %s=%llu at byte %zu",
			    what, (unsigned long long)value, pos);
}

static int ended(const struct seam_cursor *c, struct seam_err *err)
{
	return seam_err_set(err, -ENODATA,
			    "cannot read guest record: it ends at byte %zu",
			    c->error_pos);
}

/* Positions of fields, for messages. */
enum {
	POS_KIND = 1, POS_ADAPTER = 2, POS_FLAGS = 3, POS_TABLE = 4,
	POS_VMSTATE = 8, POS_GUEST_END = 9, POS_HOST_END = 10, POS_TICKS = 12,
	POS_ID = 8, POS_CHUNK = 32, POS_NAME = 34, POS_SYMBOL_KIND = 35,
};

/* Read the start, and reject all that are not of @kind. */
static int read_start(struct seam_cursor *c, enum seam_guest_kind kind,
		      uint8_t known_flags, struct seam_guest_start *start,
		      struct seam_err *err)
{
	if (c->size > SEAM_GUEST_MAX_BYTES + 7)
		return bad(err, "size", c->size, 0);
	if (seam_wire_read(c, &seam_guest_start_table, start))
		return ended(c, err);
	if (start->version != SEAM_GUEST_VERSION)
		return seam_err_set(err, -ENOTSUP,
				    "cannot read guest record: version=%u",
				    start->version);
	if (start->kind != kind)
		return bad(err, "kind", start->kind, POS_KIND);
	if (!start->adapter)
		return bad(err, "adapter", 0, POS_ADAPTER);
	if (start->flags & ~known_flags)
		return bad(err, "flags", start->flags, POS_FLAGS);
	if (!start->table)
		return bad(err, "table", 0, POS_TABLE);
	return 0;
}

/* What is left of the record is at most padding. */
static int check_rest(struct seam_cursor *c, struct seam_err *err)
{
	size_t size = seam_cursor_left(c);
	const uint8_t *rest = seam_cursor_bytes(c, size);

	if (size > 7)
		return bad(err, "bytes after its end", size, c->pos - size);
	for (size_t i = 0; i < size; i++)
		if (rest[i])
			return bad(err, "padding", rest[i], c->pos - size + i);
	return 0;
}

struct seam_guest_frame seam_guest_frame_at(const struct seam_guest_part *part,
					    size_t i)
{
	struct seam_guest_frame frame;

	memcpy(&frame, part->frames + sizeof(frame) * i, sizeof(frame));
	return (struct seam_guest_frame) {
		le32toh(frame.id), le32toh(frame.place),
	};
}

/* The segment at @pos; segments are in order: it begins at @first or later. */
static int check_part(const struct seam_guest_part *part, uint32_t first,
		      bool is_last, size_t pos, struct seam_err *err)
{
	const struct seam_guest_segment *s = &part->segment;
	bool has_join = s->join != SEAM_GUEST_NO_JOIN;

	if (has_join ? s->join < first : !is_last)
		return bad(err, "join", s->join, pos);
	if (!has_join && s->n_replaced)
		return bad(err, "n_replaced", s->n_replaced, pos + 2);
	if (s->end >= SEAM_GUEST_N_ENDS)
		return bad(err, "end of segment", s->end, pos + 6);
	pos += 16;
	for (size_t i = 0; i < s->n_frames; i++, pos += 8) {
		struct seam_guest_frame frame = seam_guest_frame_at(part, i);
		uint32_t kind = seam_guest_frame_kind(frame);

		if (!frame.id)
			return bad(err, "frame id", 0, pos);
		if (kind >= SEAM_GUEST_N_FRAME_KINDS)
			return bad(err, "frame kind", kind, pos + 7);
	}
	return 0;
}

/* Check all segments; @reader is a copy that is used up. */
static int check_segments(struct seam_guest_reader reader, struct seam_err *err)
{
	struct seam_cursor *c = &reader.segments;
	struct seam_guest_part part;
	uint32_t first = 0;

	for (size_t pos = c->pos; seam_guest_next_part(&reader, &part);
	     pos = c->pos) {
		int res = check_part(&part, first, !reader.n_left, pos, err);

		if (res)
			return res;
		first = (uint32_t)part.segment.join + part.segment.n_replaced;
	}
	return c->error ? ended(c, err) : check_rest(c, err);
}

int seam_guest_read_sample(struct seam_bytes raw,
			   struct seam_guest_reader *reader,
			   struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(raw, SEAM_LITTLE);
	struct seam_guest_start start;
	struct seam_guest_head *head = &reader->head;
	int res = read_start(&c, SEAM_GUEST_SAMPLE, SEAM_GUEST_SAMPLE_FLAGS,
			     &start, err);

	if (res)
		return res;
	if (seam_wire_read(&c, &seam_guest_head_table, head))
		return ended(&c, err);
	head->adapter = start.adapter;
	head->flags = start.flags;
	head->table = start.table;
	reader->segments = c;
	reader->n_left = head->n_segments;
	if (head->vmstate >= SEAM_N_VMSTATES &&
	    head->vmstate != SEAM_VMSTATE_NONE)
		return bad(err, "vmstate", head->vmstate, POS_VMSTATE);
	if (head->guest_end >= SEAM_GUEST_N_ENDS)
		return bad(err, "guest_end", head->guest_end, POS_GUEST_END);
	if (head->host_end >= SEAM_STACK_N_ENDS)
		return bad(err, "host_end", head->host_end, POS_HOST_END);
	if (!head->n_ticks)
		return bad(err, "n_ticks", 0, POS_TICKS);
	return check_segments(*reader, err);
}

bool seam_guest_next_part(struct seam_guest_reader *reader,
			  struct seam_guest_part *part)
{
	struct seam_cursor *c = &reader->segments;

	if (!reader->n_left)
		return false;
	reader->n_left--;
	if (seam_wire_read(c, &seam_guest_segment_table, &part->segment))
		return false;
	part->frames = seam_cursor_bytes(c, (size_t)8 * part->segment.n_frames);
	return !c->error;
}

int seam_guest_read_symbol(struct seam_bytes raw,
			   struct seam_guest_symbol *symbol,
			   struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(raw, SEAM_LITTLE);
	const uint8_t *chunk, *name;
	struct seam_guest_start start;
	int res = read_start(&c, SEAM_GUEST_SYMBOL, SEAM_GUEST_SYMBOL_FLAGS,
			     &start, err);

	if (res)
		return res;
	symbol->adapter = start.adapter;
	symbol->flags = start.flags;
	symbol->table = start.table;
	if (seam_wire_read(&c, &seam_guest_symbol_table, symbol))
		return ended(&c, err);
	if (!symbol->id)
		return bad(err, "id", 0, POS_ID);
	if (symbol->n_chunk > SEAM_GUEST_MAX_CHUNK)
		return bad(err, "n_chunk", symbol->n_chunk, POS_CHUNK);
	if (symbol->n_name > SEAM_GUEST_MAX_NAME)
		return bad(err, "n_name", symbol->n_name, POS_NAME);
	if (symbol->kind >= SEAM_GUEST_FRAME_CUT)
		return bad(err, "kind", symbol->kind, POS_SYMBOL_KIND);
	chunk = seam_cursor_bytes(&c, symbol->n_chunk);
	name = seam_cursor_bytes(&c, symbol->n_name);
	if (c.error)
		return ended(&c, err);
	memcpy(symbol->chunk, chunk, symbol->n_chunk);
	memcpy(symbol->name, name, symbol->n_name);
	return check_rest(&c, err);
}

/* ---- counts ---- */

/* For JSON, and for people. */
static const char *const ends[SEAM_GUEST_N_ENDS][2] = {
	[SEAM_GUEST_COMPLETE] = { "complete", "complete" },
	[SEAM_GUEST_ABSENT] = { "absent", "no VM on the stack" },
	[SEAM_GUEST_CUT] = {
		"cut", "too deep: frames in the middle left out" },
	[SEAM_GUEST_NOT_FOUND] = {
		"not_found", "a VM's frame without its state" },
	[SEAM_GUEST_INVALID] = {
		"invalid", "a VM's state that contradicts itself" },
	[SEAM_GUEST_UNSETTLED] = {
		"unsettled", "the VM was changing its frames" },
	[SEAM_GUEST_UNREADABLE] = {
		"unreadable", "memory that could not be read" },
	[SEAM_GUEST_NO_PROGRESS] = {
		"no_progress", "a chain of frames without end" },
	[SEAM_GUEST_HOST_ENDED] = {
		"host_ended", "the host's stack ended before" },
};

void seam_guest_counts_merge(struct seam_guest_counts *counts,
			     const struct seam_guest_counts *from)
{
	for (size_t i = 0; i < SEAM_GUEST_N_ENDS; i++)
		counts->n_guest[i] += from->n_guest[i];
	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		counts->n_host[i] += from->n_host[i];
	counts->n_complete += from->n_complete;
	counts->n_ticks += from->n_ticks;
	counts->n_bad += from->n_bad;
}

uint64_t seam_guest_counts_total(const struct seam_guest_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SEAM_GUEST_N_ENDS; i++)
		n += counts->n_guest[i];
	return n;
}

const char *seam_guest_end_key(enum seam_guest_end end)
{
	return end < SEAM_GUEST_N_ENDS ? ends[end][0] : NULL;
}

const char *seam_guest_end_text(enum seam_guest_end end)
{
	return end < SEAM_GUEST_N_ENDS ? ends[end][1] : NULL;
}

/* ---- for people ---- */

static const char *kind_name(uint32_t kind)
{
	static const char *const names[SEAM_GUEST_N_FRAME_KINDS] = {
		"guest", "c", "builtin", "trace", "cut",
	};

	return kind < SEAM_GUEST_N_FRAME_KINDS ? names[kind] : NULL;
}

static void print_frame(struct seam_line *line, struct seam_guest_frame frame)
{
	seam_line_open(line, NULL, '{');
	seam_line_u64(line, "id", frame.id);
	seam_line_string(line, "kind", kind_name(
			 seam_guest_frame_kind(frame)));
	seam_line_u64(line, "line", seam_guest_frame_line(frame));
	seam_line_close(line, '}');
}

static void print_part(struct seam_line *line,
		       const struct seam_guest_part *part)
{
	const struct seam_guest_segment *s = &part->segment;

	seam_line_open(line, NULL, '{');
	seam_line_u64(line, "join", s->join);
	seam_line_u64(line, "n_replaced", s->n_replaced);
	seam_line_string(line, "end", seam_guest_end_key(s->end));
	seam_line_hex(line, "thread", s->thread);
	seam_line_open(line, "frames", '[');
	for (size_t i = 0; i < s->n_frames; i++)
		print_frame(line, seam_guest_frame_at(part, i));
	seam_line_close(line, ']');
	seam_line_close(line, '}');
}

static int print_sample(struct seam_line *line, struct seam_bytes raw,
		      struct seam_err *err)
{
	struct seam_guest_reader reader;
	struct seam_guest_part part;
	const struct seam_guest_head *head = &reader.head;
	const char *state;
	int r = seam_guest_read_sample(raw, &reader, err);

	if (r)
		return r;
	state = seam_vmstate_name(head->vmstate);
	seam_line_u64(line, "adapter", head->adapter);
	seam_line_hex(line, "flags", head->flags);
	seam_line_hex(line, "table", head->table);
	seam_line_string(line, "vmstate", state ? state : "none");
	seam_line_string(line, "guest_end",
			 seam_guest_end_key(head->guest_end));
	seam_line_string(line, "host_end", seam_stack_ends[head->host_end].key);
	seam_line_u64(line, "n_ticks", head->n_ticks);
	seam_line_hex(line, "vm", head->vm);
	seam_line_open(line, "segments", '[');
	while (seam_guest_next_part(&reader, &part))
		print_part(line, &part);
	seam_line_close(line, ']');
	return 0;
}

static int print_symbol(struct seam_line *line, struct seam_bytes raw,
		      struct seam_err *err)
{
	struct seam_guest_symbol s;
	int r = seam_guest_read_symbol(raw, &s, err);

	if (r)
		return r;
	seam_line_u64(line, "adapter", s.adapter);
	seam_line_hex(line, "flags", s.flags);
	seam_line_hex(line, "table", s.table);
	seam_line_u64(line, "id", s.id);
	seam_line_string(line, "kind", kind_name(s.kind));
	seam_line_u64(line, "start", s.start);
	seam_line_u64(line, "line", s.line);
	seam_line_u64(line, "last_line", s.last_line);
	seam_line_hex(line, "address", s.address);
	seam_line_text(line, "chunk", (struct seam_bytes) {
		(const uint8_t *)s.chunk, s.n_chunk });
	seam_line_text(line, "name", (struct seam_bytes) {
		(const uint8_t *)s.name, s.n_name });
	return 0;
}

void seam_guest_print(struct seam_line *line, enum seam_guest_event event,
		      struct seam_bytes raw)
{
	bool is_symbol = event == SEAM_GUEST_EVENT_SYMBOLS;
	struct seam_err err = { 0 };
	int r;

	seam_line_open(line, is_symbol ? "symbol" : "guest", '{');
	r = is_symbol ? print_symbol(line, raw, &err) :
			print_sample(line, raw, &err);
	if (r)
		seam_line_string(line, "damaged", err.cause[0]);
	seam_line_close(line, '}');
}
