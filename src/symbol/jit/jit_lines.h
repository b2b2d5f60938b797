/* SPDX-License-Identifier: MIT */
/*
 * jit_lines.h - a DEBUG_INFO record to a line table
 *
 * Two things that writers do are undone here.
 *
 * Addresses: V8 and LLVM add 0x40 to every address of an entry, the size of
 * the ELF header that perf put before the code when they were written.  Others
 * do not (OpenJDK's agent, Erlang).  The first entries of all records of a dump
 * show whether it does: struct seam_jit_shift.
 *
 * Names: V8 overwrites the first 16 bytes of a stale file name.  The rest of
 * it, and its length, usually are those of a name that is intact in a
 * record nearby.
 *
 * For jit_events.h only.
 */
#ifndef SEAM_JIT_LINES_H
#define SEAM_JIT_LINES_H

#include "base/arena.h"
#include "symbol/jit/jit_code.h"
#include "wire/jit/jitdump.h"

enum { SEAM_JIT_SHIFT_BYTES = 0x40 };

/* Where the first entries of a dump's records are in their functions. */
struct seam_jit_shift {
	uint64_t n;		/* records with entries */
	uint64_t n_at_shift;	/* first entry exactly at 0x40 */
	uint64_t n_below;	/* first entry at 0 .. 0x3f */
};

/* Take one record into account. */
void seam_jit_shift_add(struct seam_jit_shift *shift,
			const struct seam_jitdump_debug_info *info,
			enum seam_endian endian);

/*
 * Bytes to subtract from every address: 0x40 where most records begin exactly
 * there and none before, else 0.
 */
uint64_t seam_jit_shift_bytes(const struct seam_jit_shift *shift);

struct seam_jit_line_table {
	struct seam_jit_line *items;
	size_t n;
	bool has_lost_names;	/* overwritten, and not found nearby */
};

/*
 * The rows of @infos[@at] that lie in [@start_addr, @start_addr + @size) once
 * @shift is taken off, sorted.  The other of the @n records are searched for
 * names.  Rows are in @arena.  0 or -ENOMEM.
 */
int seam_jit_lines_read(const struct seam_jitdump_debug_info *infos, size_t n,
			size_t at, enum seam_endian endian, uint64_t shift,
			uint64_t start_addr, uint64_t size,
			struct seam_arena *arena,
			struct seam_jit_line_table *table);

#endif /* SEAM_JIT_LINES_H */
