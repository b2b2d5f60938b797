/* SPDX-License-Identifier: MIT */
/*
 * fuzz_guest_record.c - any bytes as a guest record and as a symbol record
 *
 * Oracle: what was read, written again, is the same bytes; and written with
 * less room it is read again, with the same leaf and root of each segment and
 * the same number of frames, those left out counted.  Merged with a callchain,
 * it has each of its frames once, and each address that was not replaced.
 */
#include "fuzz.h"
#include "model/guest/guest_merge.h"
#include "wire/guest/guest_decode.h"
#include "wire/guest/guest_encode.h"

#include <linux/perf_event.h>

struct copy {
	struct seam_guest_segment segments[SEAM_GUEST_MAX_SEGMENTS];
	struct seam_guest_frame frames[SEAM_GUEST_MAX_BYTES / 8];
	size_t n_segments, n_frames;
};

static void take(struct seam_guest_reader reader, struct copy *copy)
{
	struct seam_guest_part part;

	copy->n_segments = copy->n_frames = 0;
	while (seam_guest_next_part(&reader, &part)) {
		copy->segments[copy->n_segments++] = part.segment;
		for (size_t i = 0; i < part.segment.n_frames; i++)
			copy->frames[copy->n_frames++] =
				seam_guest_frame_at(&part, i);
	}
	must(copy->n_segments == reader.head.n_segments);
}

/* Addresses of a callchain are their index; frames are in order. */
static void check_merged(const struct seam_guest_words *words, size_t n_host,
			 const struct copy *copy)
{
	size_t host = 0, frame = 0, n_replaced = 0;
	bool in_guest = false;

	for (size_t i = 0; i < copy->n_segments; i++)
		if (copy->segments[i].n_frames)
			n_replaced += copy->segments[i].n_replaced;
	for (size_t i = 1; i < words->n; i++) {
		uint64_t word = words->items[i];

		if (word == SEAM_GUEST_FRAMES) {
			in_guest = true;
			i++;		/* the table */
		} else if (word >= (uint64_t)PERF_CONTEXT_MAX) {
			in_guest = false;
		} else if (in_guest) {
			must(frame < copy->n_frames);
			must(word == seam_guest_word(copy->frames[frame++]));
		} else {
			must(word > host || (host == 0 && word == 1));
			must(word <= n_host);
			host = word;
			n_replaced++;
		}
	}
	must(frame == copy->n_frames && n_replaced == n_host);
}

static void check_merge(const struct seam_guest_reader *reader,
			const struct copy *copy, size_t n_host)
{
	uint64_t chain[257] = { (uint64_t)PERF_CONTEXT_USER };
	struct seam_guest_words words = { 0 };

	for (size_t i = 1; i <= n_host; i++)
		chain[i] = i;
	if (seam_guest_merge(*reader, chain, n_host + 1, &words) == 0)
		check_merged(&words, n_host, copy);
	free(words.items);
}

static void check_sample(struct seam_bytes bytes, size_t cap)
{
	static struct copy one;
	static uint8_t again[SEAM_GUEST_MAX_BYTES];
	struct seam_guest_reader reader;
	size_t size;

	if (seam_guest_read_sample(bytes, &reader, NULL))
		return;
	take(reader, &one);
	check_merge(&reader, &one, cap % 256);
	size = seam_guest_encode_sample(again, sizeof(again), &reader.head,
					one.segments, one.frames);
	must(size && size <= bytes.size && bytes.size - size < 8);
	must(memcmp(again, bytes.data, size) == 0);
	must(!seam_guest_encode_sample(again, size - 1, &reader.head,
				       one.segments, one.frames));
}

static void check_symbol(struct seam_bytes bytes)
{
	static uint8_t again[SEAM_GUEST_SYMBOL_BYTES];
	struct seam_guest_symbol symbol;
	size_t size;

	if (seam_guest_read_symbol(bytes, &symbol, NULL))
		return;
	size = (size_t)36 + symbol.n_chunk + symbol.n_name;
	must(seam_guest_encode_symbol(again, &symbol) - size < 4);
	must(size <= bytes.size && memcmp(again, bytes.data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > SEAM_GUEST_MAX_BYTES)
		return 0;
	check_symbol((struct seam_bytes) { data, size });
	check_sample((struct seam_bytes) { data, size },
		     size ? data[size - 1] * 8u + 24 : 0);
	return 0;
}
