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
#pragma once

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

/* ---- how many guest records were complete, and why others not ---- */

/* Zeroed is valid and empty. */
struct seam_guest_counts {
	uint64_t n_guest[SEAM_GUEST_N_ENDS];	/* by guest_end */
	uint64_t n_host[SEAM_STACK_N_ENDS];	/* by host_end */
	/* both complete; without a VM on the stack, the host's alone */
	uint64_t n_complete;
	uint64_t n_ticks;	/* that all of them represent */
	uint64_t n_bad;		/* records that break the format; not above */
};

/* Whether no frame is missing, of guest or host. */
static inline bool seam_guest_is_whole(const struct seam_guest_head *head)
{
	return (head->guest_end == SEAM_GUEST_COMPLETE ||
		head->guest_end == SEAM_GUEST_ABSENT) &&
	       head->host_end == SEAM_STACK_COMPLETE;
}

/* Count a record, which was checked. */
static inline void seam_guest_counts_add(struct seam_guest_counts *counts,
					 const struct seam_guest_head *head)
{
	counts->n_guest[head->guest_end]++;
	counts->n_host[head->host_end]++;
	counts->n_complete += seam_guest_is_whole(head);
	counts->n_ticks += head->n_ticks;
}

/* Add the counts of @from. */
void seam_guest_counts_merge(struct seam_guest_counts *counts,
			     const struct seam_guest_counts *from);

/* How many records were counted, those that break the format left out. */
uint64_t seam_guest_counts_total(const struct seam_guest_counts *counts);

/* A name for JSON, and for people: "unsettled", "the VM was changing...". */
const char *seam_guest_end_key(enum seam_guest_end end);
const char *seam_guest_end_text(enum seam_guest_end end);

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
