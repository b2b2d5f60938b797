/* SPDX-License-Identifier: MIT */
/* jit_dump.h - dumps made for tests, record by record */
#ifndef SEAM_TESTS_JIT_DUMP_H
#define SEAM_TESTS_JIT_DUMP_H

#include "wire/jit/jitdump.h"

#include <stdlib.h>

enum { DUMP_BYTES = 64 * 1024, DUMP_PID = 42 };

/* Zeroed: empty, in little-endian order. */
struct dump {
	enum seam_endian endian;
	size_t size;
	uint8_t bytes[DUMP_BYTES];
};

static inline struct seam_bytes dump_bytes(const struct dump *d)
{
	return (struct seam_bytes) { d->bytes, d->size };
}

/* All of these return where the record is. */
static inline size_t put(struct dump *d, const struct seam_record *table,
			 const void *record)
{
	size_t at = d->size;

	d->size += seam_wire_write(table, record, d->endian, d->bytes + at,
				   sizeof(d->bytes) - at);
	if (d->size > sizeof(d->bytes))
		abort();
	return at;
}

static inline size_t put_header(struct dump *d)
{
	return put(d, &seam_jitdump_header_table,
		   &(struct seam_jitdump_header) {
			.magic = SEAM_JITDUMP_MAGIC, .version = 1,
			.total_size = 40, .elf_mach = 62, .pid = DUMP_PID,
			.timestamp = 5,
		   });
}

/* Code that begins with "xor eax, eax; ret"; at most 4096 bytes. */
static inline size_t put_load(struct dump *d, uint64_t time, const char *name,
			      uint64_t addr, uint64_t size, uint64_t index)
{
	static const uint8_t code[4096] = { 0x31, 0xc0, 0xc3 };

	return put(d, &seam_jitdump_load_table, &(struct seam_jitdump_load) {
		.total_size = (uint32_t)(56 + strlen(name) + 1 + size),
		.timestamp = time, .pid = DUMP_PID, .tid = 43, .vma = addr,
		.code_addr = addr, .code_size = size, .code_index = index,
		.name = name, .code = { code, (size_t)size },
	});
}

static inline size_t put_move(struct dump *d, uint64_t time, uint64_t from,
			      uint64_t to, uint64_t size, uint64_t index)
{
	return put(d, &seam_jitdump_move_table, &(struct seam_jitdump_move) {
		.id = 1, .total_size = 64, .timestamp = time,
		.pid = DUMP_PID, .tid = 43, .vma = to, .old_code_addr = from,
		.new_code_addr = to, .code_size = size, .code_index = index,
	});
}

/* Entry i: address @first + i, line 10 + i, file @names[i]. */
static inline size_t put_debug(struct dump *d, uint64_t code_addr,
			       uint64_t first, const char *const *names,
			       size_t n)
{
	uint8_t entries[1024];
	size_t size = 0;

	for (size_t i = 0; i < n; i++)
		size += seam_wire_write(&seam_jitdump_debug_entry_table,
			&(struct seam_jitdump_debug_entry) {
				.code_addr = first + i,
				.line = (uint32_t)(10 + i),
				.discrim = 3, .name = names[i],
			}, d->endian, entries + size, sizeof(entries) - size);
	return put(d, &seam_jitdump_debug_info_table,
		   &(struct seam_jitdump_debug_info) {
			.id = 2, .total_size = (uint32_t)(32 + size),
			.timestamp = 6, .code_addr = code_addr, .nr_entry = n,
			.entries = { entries, size },
		   });
}

/* 27 bytes of tables, the last 20 of them the header, padded to 32. */
static inline size_t put_unwinding(struct dump *d)
{
	static const uint8_t table[32] = { [7] = 1, 0x1b, 3, 0x3b };

	return put(d, &seam_jitdump_unwinding_info_table,
		   &(struct seam_jitdump_unwinding_info) {
			.id = 4, .total_size = 40 + 32, .timestamp = 6,
			.unwind_data_size = 27, .eh_frame_hdr_size = 20,
			.unwinding_data = { table, sizeof(table) },
		   });
}

static inline size_t put_prefix(struct dump *d, uint32_t id, uint32_t size)
{
	return put(d, &seam_jitdump_prefix_table,
		   &(struct seam_jitdump_prefix) {
			.id = id, .total_size = size, .timestamp = 9 });
}

#endif /* SEAM_TESTS_JIT_DUMP_H */
