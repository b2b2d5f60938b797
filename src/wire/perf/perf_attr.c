/* SPDX-License-Identifier: MIT */
/* perf_attr.c - the attr's table and its growth; see perf_attr.h */
#include "wire/perf/perf_attr.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>

#define F(member) SEAM_FIELD(struct seam_perf_attr, member, NULL)
const struct seam_record seam_perf_attr_record = SEAM_RECORD(
	"perf_event_attr", NULL,
	F(type), F(size), F(config), F(sample_period), F(sample_type),
	F(read_format), F(flags), F(wakeup_events), F(bp_type), F(config1),
	F(config2), F(branch_sample_type), F(sample_regs_user),
	F(sample_stack_user), F(clockid), F(sample_regs_intr),
	F(aux_watermark), F(sample_max_stack), F(reserved_2),
	F(aux_sample_size), F(aux_action), F(sig_data), F(config3));
#undef F

static uint64_t reverse_bits(uint64_t v)
{
	uint64_t r = 0;

	for (int i = 0; i < 64; i++, v >>= 1)
		r = r << 1 | (v & 1);
	return r;
}

int seam_perf_attr_read(struct seam_cursor *c, enum seam_endian endian,
			struct seam_perf_attr *out, struct seam_err *err)
{
	uint8_t whole[SEAM_PERF_ATTR_VER8] = { 0 };
	struct seam_cursor peek = *c;
	const uint8_t *bytes;
	uint32_t size;

	seam_cursor_skip(&peek, offsetof(struct seam_perf_attr, size));
	size = seam_cursor_u32(&peek);
	if (size == 0)
		size = SEAM_PERF_ATTR_VER0;
	if (!peek.error && size < SEAM_PERF_ATTR_VER0) {
		seam_cursor_fail(c, -EBADMSG, c->pos);
		return seam_err_set(err, -EBADMSG,
				    "perf_event_attr: size=%" PRIu32
				    " is below 64", size);
	}
	bytes = seam_cursor_bytes(c, size);
	if (peek.error || !bytes) {
		seam_cursor_fail(c, -ENODATA, c->pos);
		return seam_err_set(err, -ENODATA,
				    "perf_event_attr: cut at byte %zu",
				    c->error_pos);
	}
	memcpy(whole, bytes, size < sizeof(whole) ? size : sizeof(whole));
	peek = seam_cursor_make(whole, sizeof(whole), endian);
	seam_wire_read(&peek, &seam_perf_attr_record, out);
	out->size = size;
	if (endian == SEAM_BIG)
		out->flags = reverse_bits(out->flags);
	return 0;
}

void seam_perf_attr_write(const struct seam_perf_attr *attr,
			  enum seam_endian endian, uint8_t *buf, size_t size)
{
	struct seam_perf_attr copy = *attr;
	uint8_t whole[SEAM_PERF_ATTR_VER8];

	assert(size <= sizeof(whole));
	if (endian == SEAM_BIG)
		copy.flags = reverse_bits(copy.flags);
	seam_wire_write(&seam_perf_attr_record, &copy, endian, whole,
			sizeof(whole));
	memcpy(buf, whole, size);
}

struct seam_perf_attr seam_perf_attr_of(const struct perf_event_attr *attr)
{
	struct seam_cursor c = seam_cursor_make((const uint8_t *)attr,
						sizeof(*attr), SEAM_NATIVE);
	struct seam_perf_attr copy = { 0 };

	seam_perf_attr_read(&c, SEAM_NATIVE, &copy, NULL);
	return copy;
}

/* Names as 'perf list' has them; Source: linux/perf_event.h, enum perf_*_id. */
static const char *const software[] = {
	"cpu-clock", "task-clock", "page-faults", "context-switches",
	"cpu-migrations", "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy", "bpf-output", "cgroup-switches",
};

static const char *const hardware[] = {
	"cycles", "instructions", "cache-references", "cache-misses",
	"branches", "branch-misses", "bus-cycles", "stalled-cycles-frontend",
	"stalled-cycles-backend", "ref-cycles",
};

static const char *cache_name(uint64_t config, char *buf, size_t cap)
{
	static const char *const caches[] = {
		"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch",
		"node",
	};
	static const char *const ops[] = { "load", "store", "prefetch" };
	size_t cache = config & 0xff, op = config >> 8 & 0xff;

	if (cache >= SEAM_ARRAY_SIZE(caches) || op >= SEAM_ARRAY_SIZE(ops))
		snprintf(buf, cap, "cache:%#" PRIx64, config);
	else if (config >> 16 & 0xff)
		snprintf(buf, cap, "%s-%s-misses", caches[cache], ops[op]);
	else
		snprintf(buf, cap, "%s-%ss", caches[cache], ops[op]);
	return buf;
}

const char *seam_perf_attr_name(const struct seam_perf_attr *attr, char *buf,
				size_t cap)
{
	uint64_t config = attr->config;

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		/* The upper half names a PMU on machines with several. */
		config &= UINT32_MAX;
		if (config < SEAM_ARRAY_SIZE(hardware))
			return hardware[config];
		break;
	case PERF_TYPE_SOFTWARE:
		if (config < SEAM_ARRAY_SIZE(software))
			return software[config];
		break;
	case PERF_TYPE_TRACEPOINT:
		snprintf(buf, cap, "tracepoint:%" PRIu64, config);
		return buf;
	case PERF_TYPE_HW_CACHE:
		return cache_name(config, buf, cap);
	case PERF_TYPE_RAW:
		snprintf(buf, cap, "r%" PRIx64, config);
		return buf;
	case PERF_TYPE_BREAKPOINT:
		snprintf(buf, cap, "mem:%#" PRIx64, attr->config1);
		return buf;
	}
	snprintf(buf, cap, "type%" PRIu32 "/config=%#" PRIx64 "/", attr->type,
		 config);
	return buf;
}

bool seam_perf_attr_is_clock(const struct seam_perf_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		attr->config == PERF_COUNT_SW_TASK_CLOCK);
}
