/* SPDX-License-Identifier: MIT */
/*
 * simpleperf_bytes.h - features of simpleperf made by hand, for tests
 *
 * Each function adds one entry; @is_proto: of FILE2, else of FILE.
 */
#ifndef SEAM_TESTS_SIMPLEPERF_BYTES_H
#define SEAM_TESTS_SIMPLEPERF_BYTES_H

#include "perf_bytes.h"
#include "wire/perf/simpleperf.h"

struct made_symbol {
	uint64_t vaddr;
	uint32_t size;
	const char *name;
};

static inline void put_uleb(struct bytes *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		put_n(b, (v & 0x7f) | 0x80, 1);
	put_n(b, v, 1);
}

static inline void put_number(struct bytes *b, uint64_t field, uint64_t v)
{
	put_uleb(b, field << 3);
	put_uleb(b, v);
}

static inline void put_part(struct bytes *b, uint64_t field, const void *data,
			    size_t size)
{
	put_uleb(b, field << 3 | 2);
	put_uleb(b, size);
	put(b, data, size);
}

static inline void put_proto_entry(struct bytes *b, const char *path,
				   uint32_t type, uint64_t min_vaddr,
				   uint64_t offset,
				   const struct made_symbol *symbols, size_t n)
{
	struct bytes part = { .endian = SEAM_LITTLE };

	put_part(b, 1, path, strlen(path));
	put_number(b, 2, type);
	put_number(b, 3, min_vaddr);
	for (size_t i = 0; i < n; i++) {
		part.size = 0;
		put_number(&part, 1, symbols[i].vaddr);
		put_number(&part, 2, symbols[i].size);
		put_part(&part, 3, symbols[i].name, strlen(symbols[i].name));
		put_part(b, 4, part.data, part.size);
	}
	if (offset != UINT64_MAX) {
		part.size = 0;
		put_number(&part, 1, offset);
		put_part(b, 6, part.data, part.size);
	}
	free(part.data);
}

static inline void put_plain_entry(struct bytes *b, const char *path,
				   uint32_t type, uint64_t min_vaddr,
				   uint64_t offset,
				   const struct made_symbol *symbols, size_t n)
{
	put(b, path, strlen(path) + 1);
	put_u32(b, type);
	put_u64(b, min_vaddr);
	put_u32(b, n);
	for (size_t i = 0; i < n; i++) {
		put_u64(b, symbols[i].vaddr);
		put_u32(b, symbols[i].size);
		put(b, symbols[i].name, strlen(symbols[i].name) + 1);
	}
	if (offset != UINT64_MAX)
		put_u64(b, offset);
}

static inline void put_entry(struct bytes *b, bool is_proto, const char *path,
			     uint32_t type, uint64_t min_vaddr,
			     uint64_t offset,
			     const struct made_symbol *symbols, size_t n)
{
	size_t at = b->size;

	put_u32(b, 0);
	(is_proto ? put_proto_entry : put_plain_entry)(b, path, type,
		min_vaddr, offset, symbols, n);
	set_n(b, at, b->size - at - 4, 4);
}

#endif /* SEAM_TESTS_SIMPLEPERF_BYTES_H */
