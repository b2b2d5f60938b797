/* SPDX-License-Identifier: MIT */
/*
 * records.c - the layout of records, written by hand
 *
 * These run for every function that a JIT makes, so they store fields directly
 * instead of walking the tables of wire/jit/jitdump.c.  A test compares both.
 * Byte order is the machine's own.
 *
 * Mistakes of other writers that are avoided here: unused fields of the header
 * are 0, both addresses of a load are set, its code is the last of its record,
 * debug and unwinding information come directly before their load, file names
 * are always spelled out, and lines have the addresses of the code, not those
 * in an ELF file.
 */
#include <elf.h>
#include <string.h>

#include "base/clock.h"
#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

enum { LOAD_BYTES = 56, DEBUG_BYTES = 32, ENTRY_BYTES = 16, UNWIND_BYTES = 40,
       MOVE_BYTES = 64 };

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__i386__)
enum { MACHINE = EM_386 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#elif defined(__arm__)
enum { MACHINE = EM_ARM };
#elif defined(__riscv)
enum { MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { MACHINE = EM_PPC64 };
#elif defined(__s390x__)
enum { MACHINE = EM_S390 };
#elif defined(__loongarch__)
enum { MACHINE = 258 };		/* EM_LOONGARCH, not in every elf.h */
#else
#error "no e_machine for this architecture"
#endif

static uint8_t *put_u32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

static uint8_t *put_u64(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t size)
{
	if (size)
		memcpy(to, bytes, size);
	return to + size;
}

static uint8_t *put_prefix(uint8_t *to, uint32_t id, size_t size,
			   uint64_t time_ns)
{
	to = put_u32(to, id);
	to = put_u32(to, (uint32_t)size);
	return put_u64(to, time_ns);
}

static const char *name_of(const struct seam_jitdump_code *code)
{
	return code->name ? code->name : "";
}

/* ---- perf map ---- */

static uint8_t *put_hex(uint8_t *to, uint64_t v)
{
	int digits = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	for (int i = digits - 1; i >= 0; i--)
		*to++ = (uint8_t)"0123456789abcdef"[v >> 4 * i & 15];
	return to;
}

static size_t put_line(uint8_t *to, const struct seam_jitdump_code *code,
		       uint64_t addr)
{
	uint8_t *p = put_hex(to, addr);

	*p++ = ' ';
	p = put_hex(p, code->size);
	*p++ = ' ';
	/* The name is the end of the line: it must not contain a line end. */
	for (const char *name = name_of(code); *name; name++)
		*p++ = *name == '\n' || *name == '\r' ? ' ' : (uint8_t)*name;
	*p++ = '\n';
	return (size_t)(p - to);
}

/* @line with another address. */
static size_t put_line_at(uint8_t *to, const uint8_t *line, size_t size,
			  uint64_t addr)
{
	const uint8_t *rest = memchr(line, ' ', size);
	uint8_t *p = put_hex(to, addr);

	if (rest)
		p = put_bytes(p, rest, size - (size_t)(rest - line));
	return (size_t)(p - to);
}

/* ---- dump ---- */

static size_t debug_bytes(const struct seam_jitdump_code *code)
{
	size_t size = code->n_lines ? DEBUG_BYTES : 0;
	const char *file = "";

	for (size_t i = 0; i < code->n_lines; i++) {
		file = code->lines[i].file ? code->lines[i].file : file;
		size += ENTRY_BYTES + strlen(file) + 1;
	}
	return size;
}

static size_t unwinding_bytes(const struct seam_jitdump_code *code)
{
	const struct seam_jitdump_unwinding *u = code->unwinding;

	return u ? UNWIND_BYTES + (size_t)u->eh_frame_size +
		   (size_t)u->eh_frame_hdr_size : 0;
}

size_t seam_writer_code_bytes(const struct seam_jitdump *dump,
			      const struct seam_jitdump_code *code)
{
	size_t name = strlen(name_of(code)), size;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return 2 * SEAM_WRITER_MAX_HEX + 3 + name;
	if (code->size > UINT32_MAX || name > UINT32_MAX ||
	    code->n_lines > UINT32_MAX / ENTRY_BYTES ||
	    (code->unwinding && (code->unwinding->eh_frame_size > UINT32_MAX ||
	     code->unwinding->eh_frame_hdr_size > UINT32_MAX)))
		return 0;
	size = debug_bytes(code) + unwinding_bytes(code) + LOAD_BYTES + name +
	       1 + (size_t)code->size;
	return size > UINT32_MAX ? 0 : size;
}

static uint8_t *put_debug(uint8_t *to, const struct seam_jitdump_code *code,
			  uint64_t addr, uint64_t time_ns)
{
	const char *file = "";

	to = put_prefix(to, SEAM_JITDUMP_DEBUG_INFO, debug_bytes(code),
			time_ns);
	to = put_u64(to, addr);
	to = put_u64(to, code->n_lines);
	for (size_t i = 0; i < code->n_lines; i++) {
		const struct seam_jitdump_line *line = &code->lines[i];

		file = line->file ? line->file : file;
		to = put_u64(to, addr + line->offset);
		to = put_u32(to, line->line);
		to = put_u32(to, line->column);
		to = put_bytes(to, file, strlen(file) + 1);
	}
	return to;
}

/* In the specification the header is first; perf reads it last. */
static uint8_t *put_unwinding(uint8_t *to, const struct seam_jitdump_code *code,
			      uint64_t time_ns)
{
	const struct seam_jitdump_unwinding *u = code->unwinding;

	to = put_prefix(to, SEAM_JITDUMP_UNWINDING_INFO, unwinding_bytes(code),
			time_ns);
	to = put_u64(to, u->eh_frame_size + u->eh_frame_hdr_size);
	to = put_u64(to, u->eh_frame_hdr_size);
	to = put_u64(to, u->mapped_size);
	to = put_bytes(to, u->eh_frame, (size_t)u->eh_frame_size);
	return put_bytes(to, u->eh_frame_hdr, (size_t)u->eh_frame_hdr_size);
}

size_t seam_writer_put_code(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_jitdump_code *code, uint64_t id,
			    uint64_t addr)
{
	size_t name = strlen(name_of(code)) + 1;
	uint8_t *p = to;
	uint64_t now;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return put_line(to, code, addr);
	now = seam_clock_ns();
	if (code->n_lines)
		p = put_debug(p, code, addr, now);
	if (code->unwinding)
		p = put_unwinding(p, code, now);
	p = put_prefix(p, SEAM_JITDUMP_LOAD,
		       LOAD_BYTES + name + (size_t)code->size, now);
	p = put_u32(p, (uint32_t)dump->own->pid);
	p = put_u32(p, (uint32_t)dump->own->tid);
	p = put_u64(p, addr);
	p = put_u64(p, addr);
	p = put_u64(p, code->size);
	p = put_u64(p, id);
	p = put_bytes(p, name_of(code), name);
	p = put_bytes(p, code->bytes, (size_t)code->size);
	return (size_t)(p - to);
}

size_t seam_writer_put_header(const struct seam_jitdump *dump, uint8_t *to)
{
	uint8_t *p = to;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return 0;
	p = put_u32(p, SEAM_JITDUMP_MAGIC);
	p = put_u32(p, SEAM_JITDUMP_VERSION);
	p = put_u32(p, SEAM_JITDUMP_HEADER_BYTES);
	p = put_u32(p, MACHINE);
	p = put_u32(p, 0);
	p = put_u32(p, (uint32_t)dump->own->pid);
	p = put_u64(p, seam_clock_ns());
	p = put_u64(p, 0);
	return (size_t)(p - to);
}

size_t seam_writer_put_move(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_writer_entry *from, uint64_t id,
			    uint64_t new_addr)
{
	uint8_t *p = put_prefix(to, SEAM_JITDUMP_MOVE, MOVE_BYTES,
				seam_clock_ns());

	p = put_u32(p, (uint32_t)dump->own->pid);
	p = put_u32(p, (uint32_t)dump->own->tid);
	p = put_u64(p, new_addr);
	p = put_u64(p, from->addr);
	p = put_u64(p, new_addr);
	p = put_u64(p, from->code_size);
	p = put_u64(p, id);
	return (size_t)(p - to);
}

size_t seam_writer_put_close(uint8_t *to)
{
	put_prefix(to, SEAM_JITDUMP_CLOSE, SEAM_JITDUMP_PREFIX_BYTES,
		   seam_clock_ns());
	return SEAM_JITDUMP_PREFIX_BYTES;
}

/* Move a debug record, which has absolute addresses of lines, to @addr. */
static void shift_lines(uint8_t *record, size_t size, uint64_t addr)
{
	uint64_t by = addr - seam_u64_at(record + 16);
	uint64_t n = seam_u64_at(record + 24);
	size_t pos = DEBUG_BYTES;

	if (!by)
		return;
	put_u64(record + 16, addr);
	while (n-- && size - pos > ENTRY_BYTES) {
		put_u64(record + pos, seam_u64_at(record + pos) + by);
		pos += ENTRY_BYTES;
		pos += strnlen((const char *)record + pos, size - pos - 1) + 1;
	}
}

size_t seam_writer_put_again(const struct seam_jitdump *dump, uint8_t *to,
			     const uint8_t *from, size_t size, uint64_t addr)
{
	uint64_t now = seam_clock_ns();
	uint8_t *record = to, *end = to + size;
	size_t record_size;

	if (dump->format == SEAM_JITDUMP_FORMAT_MAP)
		return put_line_at(to, from, size, addr);
	memcpy(to, from, size);
	for (; end - record >= LOAD_BYTES; record += record_size) {
		uint32_t id = seam_u32_at(record);

		record_size = seam_u32_at(record + 4);
		/* The program can write over it. */
		if (record_size < DEBUG_BYTES ||
		    record_size > (size_t)(end - record))
			break;
		put_u64(record + 8, now);
		if (id == SEAM_JITDUMP_DEBUG_INFO)
			shift_lines(record, record_size, addr);
		if (id == SEAM_JITDUMP_LOAD) {
			put_u32(record + 16, (uint32_t)dump->own->pid);
			put_u32(record + 20, (uint32_t)dump->own->tid);
			put_u64(record + 24, addr);
			put_u64(record + 32, addr);
		}
	}
	return size;
}
