/* SPDX-License-Identifier: MIT */
/* made_frames.h - .eh_frame and its table of contents made by hand */
#ifndef MADE_FRAMES_H
#define MADE_FRAMES_H

#include <string.h>

#include "wire/eh_frame.h"

enum { ENTRIES_ADDR = 0x10000, HEADER_ADDR = 0x8000, CODE = 0x1000 };

struct made {
	struct seam_eh_frame frame;
	uint8_t entries[1 << 18], header[1 << 16];
	size_t n, n_rows;
};

static inline void put32(uint8_t *at, uint64_t value)
{
	uint32_t word = (uint32_t)value;

	memcpy(at, &word, sizeof(word));
}

/* A CIE: CFA = rsp + 8, the return address at CFA - 8; plain addresses. */
static inline void put_cie(struct made *made)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		0x0b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	};

	memset(made, 0, sizeof(*made));
	memcpy(made->entries, cie, sizeof(cie));
	made->n = sizeof(cie);
}

/* An FDE for @range bytes from @start on; its place. */
static inline size_t put_fde(struct made *made, uint64_t start, uint32_t range,
			     const char *program, size_t size)
{
	uint8_t *at = made->entries + made->n;
	size_t offset = made->n;

	put32(at, 13 + size);
	put32(at + 4, made->n + 4);
	put32(at + 8, start);
	put32(at + 12, range);
	at[16] = 0;
	memcpy(at + 17, program, size);
	made->n += 17 + size;
	return offset;
}

static inline void put_row(struct made *made, uint64_t start, size_t offset)
{
	uint8_t *at = made->header + 12 + 8 * made->n_rows++;

	put32(at, start - HEADER_ADDR);
	put32(at + 4, ENTRIES_ADDR + offset - HEADER_ADDR);
}

static inline const struct seam_eh_frame *finish(struct made *made)
{
	static const uint8_t start[] = { 1, 0x03, 0x03, 0x3b };

	memcpy(made->header, start, sizeof(start));
	put32(made->header + 8, made->n_rows);
	made->frame = (struct seam_eh_frame) {
		.entries = { made->entries, made->n },
		.entries_addr = ENTRIES_ADDR,
		.header = { made->header, 12 + 8 * made->n_rows },
		.header_addr = HEADER_ADDR, .address_bytes = 8,
	};
	return &made->frame;
}

#define FDE(made, start, range, text)					\
	put_row(made, start,						\
		put_fde(made, start, range, text, sizeof(text) - 1))

#endif /* MADE_FRAMES_H */
