/* SPDX-License-Identifier: MIT */
/* guest_print.c - fields by name; see guest_print.h */
#include "wire/guest/guest_print.h"

#include "wire/guest/guest_counts.h"
#include "wire/guest/guest_decode.h"

static void put_frame(struct seam_line *line, struct seam_guest_frame frame)
{
	seam_line_open(line, NULL, '{');
	seam_line_u64(line, "id", frame.id);
	seam_line_string(line, "kind", seam_guest_frame_kind_name(
		(enum seam_guest_frame_kind)seam_guest_frame_kind(frame)));
	seam_line_u64(line, "line", seam_guest_frame_line(frame));
	seam_line_close(line, '}');
}

static void put_part(struct seam_line *line, const struct seam_guest_part *part)
{
	const struct seam_guest_segment *s = &part->segment;

	seam_line_open(line, NULL, '{');
	seam_line_u64(line, "join", s->join);
	seam_line_u64(line, "n_replaced", s->n_replaced);
	seam_line_string(line, "end", seam_guest_end_key(s->end));
	seam_line_hex(line, "thread", s->thread);
	seam_line_open(line, "frames", '[');
	for (size_t i = 0; i < s->n_frames; i++)
		put_frame(line, seam_guest_frame_at(part, i));
	seam_line_close(line, ']');
	seam_line_close(line, '}');
}

static int put_sample(struct seam_line *line, struct seam_bytes raw,
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
	seam_line_string(line, "host_end", seam_stack_end_key(head->host_end));
	seam_line_u64(line, "n_ticks", head->n_ticks);
	seam_line_hex(line, "vm", head->vm);
	seam_line_open(line, "segments", '[');
	while (seam_guest_next_part(&reader, &part))
		put_part(line, &part);
	seam_line_close(line, ']');
	return 0;
}

static void put_text(struct seam_line *line, const char *name, const char *text,
		     size_t size)
{
	seam_line_text(line, name, (struct seam_bytes) {
		(const uint8_t *)text, size });
}

static int put_symbol(struct seam_line *line, struct seam_bytes raw,
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
	seam_line_string(line, "kind", seam_guest_frame_kind_name(
		(enum seam_guest_frame_kind)s.kind));
	seam_line_u64(line, "start", s.start);
	seam_line_u64(line, "line", s.line);
	seam_line_u64(line, "last_line", s.last_line);
	seam_line_hex(line, "address", s.address);
	put_text(line, "chunk", s.chunk, s.n_chunk);
	put_text(line, "name", s.name, s.n_name);
	return 0;
}

void seam_guest_print(struct seam_line *line, enum seam_guest_event event,
		      struct seam_bytes raw)
{
	bool is_symbol = event == SEAM_GUEST_EVENT_SYMBOLS;
	struct seam_err err = { 0 };
	int r;

	seam_line_open(line, is_symbol ? "symbol" : "guest", '{');
	r = is_symbol ? put_symbol(line, raw, &err) :
			put_sample(line, raw, &err);
	if (r)
		seam_line_string(line, "damaged", err.cause[0]);
	seam_line_close(line, '}');
}
