/* SPDX-License-Identifier: MIT */
/*
 * area_walk.h - the records of an area, one by one, in tests
 *
 * Written from the text of wire/xray/xray_chunk.h alone, so that it does not
 * repeat the mistakes of the code under test.
 */
#ifndef SEAM_TESTS_FDR_AREA_WALK_H
#define SEAM_TESTS_FDR_AREA_WALK_H

#include "wire/xray/xray_chunk.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct walk_record {
	enum seam_xray_kind kind;
	uint32_t function;
	uint64_t tsc, value;		/* value: of an argument */
	uint32_t cpu, bytes;
	uint16_t type;
	const uint8_t *payload;
};

struct walk {
	const uint8_t *area;
	uint64_t mask, at, end;
	uint64_t tsc;
	uint32_t cpu, tid, pid;
	uint64_t n_cpu, n_wrap, n_chunks;
	const char *problem;
};

static uint64_t walk_word(const struct walk *w, uint64_t at)
{
	uint64_t word;

	memcpy(&word, w->area + (at & w->mask), 8);
	return word;
}

static bool walk_bad(struct walk *w, const char *why)
{
	if (!w->problem)
		w->problem = why;
	return false;
}

static bool walk_preamble(struct walk *w)
{
	uint64_t word[8];

	if (w->end - w->at < SEAM_XRAY_PREAMBLE_BYTES)
		return walk_bad(w, "half a preamble");
	for (int i = 0; i < 8; i++)
		word[i] = walk_word(w, w->at + 8 * (uint64_t)i);
	if ((word[0] & 0xff) != 1 || (word[2] & 0xff) != 9 ||
	    (word[4] & 0xff) != 19 || (word[6] & 0xff) != 5)
		return walk_bad(w, "no preamble");
	w->tid = (uint32_t)(word[0] >> 8);
	w->pid = (uint32_t)(word[4] >> 8);
	w->cpu = (uint16_t)(word[6] >> 8);
	w->tsc = word[6] >> 24 | word[7] << 40;
	w->at += SEAM_XRAY_PREAMBLE_BYTES;
	w->n_chunks++;
	return true;
}

/* Steps over NewCPUId and TSCWrap.  False at the end, and with a problem. */
static bool walk_next(struct walk *w, struct walk_record *r)
{
	for (;;) {
		uint64_t a, b;

		if (w->at >= w->end)
			return w->at > w->end ? walk_bad(w, "past the end") :
						false;
		if (w->at % SEAM_XRAY_CHUNK_BYTES == 0) {
			if (!walk_preamble(w))
				return false;
			continue;
		}
		a = walk_word(w, w->at);
		if (a == 0) {
			uint64_t end = 1 +
				(w->at | (SEAM_XRAY_CHUNK_BYTES - 1));

			for (; w->at < end; w->at += 8)
				if (walk_word(w, w->at))
					return walk_bad(w, "after the end of "
							"a chunk");
			continue;
		}
		if (!(a & 1)) {
			w->at += 8;
			w->tsc += a >> 32;
			*r = (struct walk_record) {
				.kind = (a >> 1) & 7, .tsc = w->tsc,
				.function = (uint32_t)a >> 4, .cpu = w->cpu,
			};
			if (r->kind > SEAM_XRAY_ENTRY_ARGS || !r->function)
				return walk_bad(w, "no function record");
			return true;
		}
		b = walk_word(w, w->at + 8);
		w->at += 16;
		switch (a & 0xff) {
		case 5:
			w->cpu = (uint16_t)(a >> 8);
			w->tsc = a >> 24 | b << 40;
			w->n_cpu++;
			if (b >> 24)
				return walk_bad(w, "bytes after NewCPUId");
			continue;
		case 7:
			w->tsc = a >> 8 | b << 56;
			w->n_wrap++;
			if (b >> 8)
				return walk_bad(w, "bytes after TSCWrap");
			continue;
		case 13:
			*r = (struct walk_record) {
				.kind = SEAM_XRAY_ARGUMENT, .tsc = w->tsc,
				.value = a >> 8 | b << 56,
			};
			if (b >> 8)
				return walk_bad(w, "bytes after an argument");
			return true;
		case 11: case 17:
			w->tsc += (uint32_t)(a >> 40 | b << 24);
			*r = (struct walk_record) {
				.kind = (a & 0xff) == 11 ? SEAM_XRAY_CUSTOM :
							   SEAM_XRAY_TYPED,
				.tsc = w->tsc, .cpu = w->cpu,
				.bytes = (uint32_t)(a >> 8),
				.type = (uint16_t)(b >> 8),
				.payload = w->area + (w->at & w->mask),
			};
			w->at += seam_xray_payload_room(r->bytes);
			return true;
		default:
			return walk_bad(w, "unknown metadata");
		}
	}
}

#endif /* SEAM_TESTS_FDR_AREA_WALK_H */
