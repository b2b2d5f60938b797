/* SPDX-License-Identifier: MIT */
/*
 * perf_sample.h - PERF_RECORD_SAMPLE, whose layout depends on sample_type
 *
 * Two readers of one record.  seam_perf_sample_read() takes any sample of
 * any event in either byte order and gives all of it.  A recording of
 * millions is read through a seam_perf_layout, made once for an event: it
 * finds the fields of a profile in a few loads, and returns false for a
 * layout that it does not support.  A test compares the two byte by byte.
 *
 * Source: linux/perf_event.h, comment at PERF_RECORD_SAMPLE, for the order
 * of the fields; kernel/events/core.c, perf_output_sample(), for CGROUP
 * after PHYS_ADDR and AUX being last.
 */
#pragma once

#include "wire/perf/perf_attr.h"

/* u64 values in the record: of any alignment, in the file's order. */
struct seam_perf_u64s {
	const uint8_t *data;
	size_t n;
	bool swap;
};

static inline uint64_t seam_perf_u64(const struct seam_perf_u64s *list,
				     size_t i)
{
	uint64_t v;

	memcpy(&v, list->data + 8 * i, sizeof(v));
	return list->swap ? __builtin_bswap64(v) : v;
}

struct seam_perf_regs {
	uint64_t abi;		/* 0 none, 1 32-bit, 2 64-bit */
	uint64_t mask;		/* which registers, from the attr */
	struct seam_perf_u64s values;
};

/*
 * All of a sample.  Absent fields are zero; cpu UINT32_MAX, pid and tid -1.
 * Everything is borrowed from the record.
 */
struct seam_perf_sample {
	uint64_t id;		/* IDENTIFIER, else ID; 0 */
	uint64_t ip, time, addr, stream_id, period;
	int32_t pid, tid;
	uint32_t cpu;
	struct seam_perf_u64s read;	/* values by read_format */
	struct seam_perf_u64s callchain;
	struct seam_bytes raw;
	uint64_t branch_hw_index;
	struct seam_perf_u64s branches;	/* from, to, flags of each */
	struct seam_perf_regs user_regs, intr_regs;
	struct seam_bytes user_stack;	/* as long as it is valid (dyn_size) */
	uint64_t weight, data_src, transaction, phys_addr, cgroup;
	uint64_t data_page_size, code_page_size;
	struct seam_bytes aux;
	/* Where fields are, or would be, in the payload. */
	struct {
		size_t callchain, user_regs, user_stack;
		size_t rest;	/* what follows the user's stack */
	} at;
};

/*
 * Read a whole sample.  Returns 0 or -EBADMSG when a count in it does not
 * fit the record; *@out then holds what came before.
 */
int seam_perf_sample_read(const struct seam_perf_attr *attr,
			  enum seam_endian endian, struct seam_bytes payload,
			  struct seam_perf_sample *out);

/*
 * The id of a sample when several events share a stream, before its event is
 * known: @attr may be that of any event, because the id has the same place in
 * all.  0 when the record has none.
 */
uint64_t seam_perf_sample_peek_id(const struct seam_perf_attr *attr,
				  enum seam_endian endian,
				  struct seam_bytes payload);

/* The fields of a sample that a profile needs. */
struct seam_perf_core {
	uint64_t id, ip, time, period;
	int32_t pid, tid;
	uint32_t cpu;
	const uint8_t *chain;	/* n_chain u64 of this machine's order */
	size_t n_chain;
	struct seam_bytes raw;
	uint64_t cgroup;	/* its id; 0: not recorded */
};

/* Where these fields lie; UINT16_MAX for a field that is not there. */
struct seam_perf_layout {
	uint16_t id, ip, tid, time, cpu, period, chain;
	uint16_t fixed_bytes;	/* all that is before the callchain */
	bool is_usable;		/* false: use seam_perf_sample_read() */
	bool has_raw;		/* after the callchain */
	bool has_cgroup;	/* after both and cgroup_skip bytes */
	uint8_t cgroup_skip;
};

struct seam_perf_layout seam_perf_layout_make(const struct seam_perf_attr *attr,
					      enum seam_endian endian);

static inline uint64_t seam_perf_layout_u64(const uint8_t *p, uint16_t pos,
					    uint64_t absent)
{
	uint64_t v;

	if (pos == UINT16_MAX)
		return absent;
	memcpy(&v, p + pos, sizeof(v));
	return v;
}

static inline uint32_t seam_perf_layout_u32(const uint8_t *p, uint16_t pos)
{
	uint32_t v = UINT32_MAX;

	if (pos != UINT16_MAX)
		memcpy(&v, p + pos, sizeof(v));
	return v;
}

/* Read RAW data at @pos.  False when the record does not hold them. */
static inline bool seam_perf_layout_raw(struct seam_bytes payload, size_t pos,
					struct seam_bytes *raw)
{
	uint32_t size;

	if (payload.size - pos < sizeof(size))
		return false;
	memcpy(&size, payload.data + pos, sizeof(size));
	*raw = (struct seam_bytes) { payload.data + pos + sizeof(size), size };
	return size <= payload.size - pos - sizeof(size);
}

/* Read the cgroup, which is after what is in @out.  False: it is not there. */
bool seam_perf_layout_cgroup(const struct seam_perf_layout *layout,
			     struct seam_bytes payload,
			     struct seam_perf_core *out);

/* What is after the callchain, at @pos; false when it is not there. */
static inline bool seam_perf_layout_tail(const struct seam_perf_layout *layout,
					 struct seam_bytes payload, size_t pos,
					 struct seam_perf_core *out)
{
	if (layout->has_raw && !seam_perf_layout_raw(payload, pos, &out->raw))
		return false;
	return !layout->has_cgroup ||
	       seam_perf_layout_cgroup(layout, payload, out);
}

/* False when the record does not fit the layout. */
static inline bool seam_perf_layout_read(const struct seam_perf_layout *layout,
					 struct seam_bytes payload,
					 struct seam_perf_core *out)
{
	const uint8_t *p = payload.data;
	uint64_t n_chain;

	if (!layout->is_usable || payload.size < layout->fixed_bytes)
		return false;
	out->id = seam_perf_layout_u64(p, layout->id, 0);
	out->ip = seam_perf_layout_u64(p, layout->ip, 0);
	out->time = seam_perf_layout_u64(p, layout->time, 0);
	out->period = seam_perf_layout_u64(p, layout->period, 0);
	out->cpu = seam_perf_layout_u32(p, layout->cpu);
	out->pid = (int32_t)seam_perf_layout_u32(p, layout->tid);
	out->tid = (int32_t)seam_perf_layout_u32(p + 4, layout->tid);
	out->chain = NULL;
	out->n_chain = 0;
	out->raw = (struct seam_bytes) { 0 };
	out->cgroup = 0;
	if (layout->chain == UINT16_MAX)
		return seam_perf_layout_tail(layout, payload,
					     layout->fixed_bytes, out);
	n_chain = seam_perf_layout_u64(p, layout->chain, 0);
	if (n_chain > (payload.size - layout->fixed_bytes) / 8)
		return false;
	out->chain = p + layout->fixed_bytes;
	out->n_chain = (size_t)n_chain;
	return seam_perf_layout_tail(layout, payload, layout->fixed_bytes +
				     8 * out->n_chain, out);
}

/* -- user registers ----------------------------------------------------- */

/*
 * A sample has the values of the registers in its event's mask, in the order of
 * the kernel's numbers.  These differ from DWARF's numbers, the columns of call
 * frame information, which all of Seam uses.
 *
 * Source: arch/.../include/uapi/asm/perf_regs.h; System V ABI for AMD64 1.0,
 * figure 3.36.
 */
enum {
	SEAM_PERF_X86_64_COLUMNS = 17,	/* rax rdx rcx rbx ... r15, rip */
	SEAM_PERF_X86_64_PC = 16,	/* its column */
	SEAM_PERF_X86_64_SP = 7,
};

/*
 * The mask (sample_regs_user) that has all columns of x86-64: 0xff01ff. Flags
 * and segment registers are no part of it.
 */
#define SEAM_PERF_X86_64_MASK UINT64_C(0xff01ff)

/*
 * Set columns[i] for each register in @regs, and bit i of *@known; the others
 * are 0.  False where no stack can be unwound from them: they are of a 32-bit
 * task, or absent, or without program counter and stack pointer; or both of
 * these are 0, as the kernel has them within an exec.
 */
bool seam_perf_registers_x86_64(const struct seam_perf_regs *regs,
				uint64_t columns[SEAM_PERF_X86_64_COLUMNS],
				uint64_t *known);

/*
 * The user's program counter on a machine of architecture @arch, a name as
 * uname has it; NULL: of this machine.  0: not known, or not in @regs.
 */
uint64_t seam_perf_registers_pc(const struct seam_perf_regs *regs,
				const char *arch);
