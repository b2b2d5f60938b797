/* SPDX-License-Identifier: MIT */
/*
 * guest_decode.h - read guest and symbol records
 *
 * The bytes are untrusted: they were written by a traced program.  A record
 * is checked whole before anything of it is returned; what cannot be checked
 * here, since it needs the sample's callchain, is whether joins lie in it.
 *
 *	struct seam_guest_reader reader;
 *	struct seam_guest_part part;
 *
 *	if (seam_guest_read_sample(sample.raw, &reader, err))
 *		...
 *	while (seam_guest_next_part(&reader, &part))
 *		for (size_t i = 0; i < part.segment.n_frames; i++)
 *			use(seam_guest_frame_at(&part, i));
 */
#ifndef SEAM_GUEST_DECODE_H
#define SEAM_GUEST_DECODE_H

#include "base/err.h"
#include "wire/guest/guest_record.h"
#include "wire/line.h"
#include "wire/wire.h"

/* A guest record; borrows the bytes. */
struct seam_guest_reader {
	struct seam_guest_head head;
	struct seam_cursor segments;	/* those not yet returned */
	uint8_t n_left;
};

struct seam_guest_part {
	struct seam_guest_segment segment;
	const uint8_t *frames;
};

/*
 * Check a guest record: @raw is a sample's RAW data, whose last 7 bytes or
 * fewer may be padding.  0; -ENODATA, it ends early; -EBADMSG, with the
 * offset in @raw; -ENOTSUP, another version.
 */
int seam_guest_read_sample(struct seam_bytes raw,
			   struct seam_guest_reader *reader,
			   struct seam_err *err);

/* The next segment, innermost first; false: there is none. */
bool seam_guest_next_part(struct seam_guest_reader *reader,
			  struct seam_guest_part *part);

/* Frame @i of a segment, less than its n_frames; leaf first. */
struct seam_guest_frame seam_guest_frame_at(const struct seam_guest_part *part,
					    size_t i);

/* Read and check a symbol record, likewise. */
int seam_guest_read_symbol(struct seam_bytes raw,
			   struct seam_guest_symbol *symbol,
			   struct seam_err *err);

/*
 * For dumps, where ids stay numbers: add a field of the name "guest", or
 * "symbol", to @line, of RAW data of @event:
 *
 *	{"adapter":1,"table":5,"vmstate":"LFUNC",...,"segments":[
 *	 {"join":0,...,"frames":[{"id":2,"kind":"guest","line":3}]}]}
 *	{"adapter":1,"table":5,"id":2,"kind":"guest",...,"name":"f"}
 *
 * A record that breaks the format is {"damaged":"why"}.  Names end at a NUL.
 */
void seam_guest_print(struct seam_line *line, enum seam_guest_event event,
		      struct seam_bytes raw);

/* How the fixed parts lie in the bytes. */
extern const struct seam_record seam_guest_start_table;
extern const struct seam_record seam_guest_head_table;
extern const struct seam_record seam_guest_segment_table;
extern const struct seam_record seam_guest_frame_table;
extern const struct seam_record seam_guest_symbol_table;

/* The first bytes of both records, as seam_guest_start_table has them. */
struct seam_guest_start {
	uint8_t version;
	uint8_t kind;		/* enum seam_guest_kind */
	uint8_t adapter;
	uint8_t flags;
	uint32_t table;
};

#endif /* SEAM_GUEST_DECODE_H */
