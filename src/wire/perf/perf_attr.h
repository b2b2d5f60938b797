/* SPDX-License-Identifier: MIT */
/*
 * perf_attr.h - perf_event_attr as recordings hold it
 *
 * The kernel's structure grew over the years and carries its own size; a
 * file may hold any of its versions, in either byte order.  Here it is one
 * plain struct, complete and in the byte order of this machine, with zeros
 * where the file's version ends.
 *
 * Source: linux/perf_event.h, struct perf_event_attr; PERF_ATTR_SIZE_VER0
 * to VER8; config3 and aux_action as in Linux 6.18.
 */
#pragma once

#include "base/err.h"
#include "wire/wire.h"

enum {
	SEAM_PERF_ATTR_VER0 = 64,	/* the first and smallest size */
	SEAM_PERF_ATTR_VER8 = 136,	/* the largest size that we know */
};

/*
 * Bits of seam_perf_attr.flags, by their position in the bit field.  A file
 * of a big-endian machine counts them from the other end; here bit 0 is
 * "disabled" always.
 */
enum seam_perf_attr_flag {
	SEAM_PERF_ATTR_INHERIT = 1,
	SEAM_PERF_ATTR_FREQ = 10,
	SEAM_PERF_ATTR_SAMPLE_ID_ALL = 18,
	SEAM_PERF_ATTR_EXCLUDE_CALLCHAIN_USER = 22,
	SEAM_PERF_ATTR_USE_CLOCKID = 25,
	SEAM_PERF_ATTR_CONTEXT_SWITCH = 26,
	SEAM_PERF_ATTR_WRITE_BACKWARD = 27,
};

struct seam_perf_attr {
	uint32_t type;
	uint32_t size;
	uint64_t config;
	uint64_t sample_period;	/* or a frequency, with freq */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags;
	uint32_t wakeup_events;	/* or wakeup_watermark */
	uint32_t bp_type;
	uint64_t config1;	/* or bp_addr, kprobe_func, uprobe_path */
	uint64_t config2;	/* or bp_len, kprobe_addr, probe_offset */
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint32_t sample_stack_user;
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack;
	uint16_t reserved_2;
	uint32_t aux_sample_size;
	uint32_t aux_action;
	uint64_t sig_data;
	uint64_t config3;
};

extern const struct seam_record seam_perf_attr_record;

/*
 * Read the attr that begins at the next byte of @c and spans as many bytes
 * as its own size field (0 means VER0).  @c moves after it.
 * Returns 0, -ENODATA or -EBADMSG with the reason; bytes past VER8 are
 * skipped: they are of a newer kernel.
 */
int seam_perf_attr_read(struct seam_cursor *c, enum seam_endian endian,
			struct seam_perf_attr *out, struct seam_err *err);

/*
 * Write the first @size bytes of @attr as they are on a machine of byte order
 * @endian.  At most SEAM_PERF_ATTR_VER8.
 */
void seam_perf_attr_write(const struct seam_perf_attr *attr,
			  enum seam_endian endian, uint8_t *buf, size_t size);

/* An attr of the kernel's structure, as perf_event_open() takes it. */
struct perf_event_attr;
struct seam_perf_attr seam_perf_attr_of(const struct perf_event_attr *attr);

static inline bool seam_perf_attr_has(const struct seam_perf_attr *attr,
				      enum seam_perf_attr_flag flag)
{
	return attr->flags >> flag & 1;
}

/*
 * The name that perf gives an event without one in the file: "cpu-clock",
 * "cycles", "tracepoint:443", "r1b2", ...  Literal, or written to @buf.
 */
const char *seam_perf_attr_name(const struct seam_perf_attr *attr, char *buf,
				size_t cap);

/* Whether the event counts nanoseconds of a clock. */
bool seam_perf_attr_is_clock(const struct seam_perf_attr *attr);
