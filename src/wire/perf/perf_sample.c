/* SPDX-License-Identifier: MIT */
/* perf_sample.c - the fields of a sample, in their order; perf_sample.h */
#include "wire/perf/perf_sample.h"

#include <errno.h>
#include <linux/perf_event.h>

/* Linux 6.8; not in the headers of Debian 12. */
#define BRANCH_COUNTERS (UINT64_C(1) << 19)

static struct seam_perf_u64s take_u64s(struct seam_cursor *c, uint64_t n)
{
	struct seam_perf_u64s list = { .swap = c->swap };

	list.n = seam_cursor_count(c, n, 8);
	list.data = seam_cursor_bytes(c, list.n * 8);
	if (!list.data)
		list.n = 0;
	return list;
}

static struct seam_bytes take_bytes(struct seam_cursor *c, uint64_t n)
{
	struct seam_bytes bytes = { 0 };

	bytes.size = seam_cursor_count(c, n, 1);
	bytes.data = seam_cursor_bytes(c, bytes.size);
	return bytes;
}

static uint64_t count_bits(uint64_t v)
{
	return (uint64_t)__builtin_popcountll(v);
}

/* How many u64 a READ has; the group form begins with their number. */
static uint64_t count_read(const struct seam_perf_attr *attr,
			   struct seam_cursor peek)
{
	uint64_t format = attr->read_format;
	uint64_t times = format & (PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + count_bits(format & (PERF_FORMAT_ID |
						 PERF_FORMAT_LOST));
	uint64_t nr;

	if (!(format & PERF_FORMAT_GROUP))
		return each + count_bits(times);
	nr = seam_cursor_u64(&peek);
	/* A number that cannot fit fails in take_u64s(), not here. */
	return nr > UINT32_MAX ? UINT64_MAX :
	       1 + count_bits(times) + nr * each;
}

static void read_branches(const struct seam_perf_attr *attr,
			  struct seam_cursor *c, struct seam_perf_sample *out)
{
	uint64_t nr = seam_cursor_u64(c);

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		out->branch_hw_index = seam_cursor_u64(c);
	nr = seam_cursor_count(c, nr, 24);
	out->branches = take_u64s(c, 3 * nr);
	if (attr->branch_sample_type & BRANCH_COUNTERS)
		take_u64s(c, nr);
}

static void read_regs(uint64_t mask, struct seam_cursor *c,
		      struct seam_perf_regs *out)
{
	out->abi = seam_cursor_u64(c);
	out->mask = mask;
	if (out->abi)
		out->values = take_u64s(c, count_bits(mask));
}

static void read_user_stack(struct seam_cursor *c, struct seam_bytes *out)
{
	uint64_t size = seam_cursor_u64(c);
	uint64_t valid;

	if (size == 0)
		return;
	*out = take_bytes(c, size);
	valid = seam_cursor_u64(c);
	if (valid < out->size)
		out->size = (size_t)valid;
}

/* Up to the callchain: fields of fixed size, and READ. */
static void read_head(const struct seam_perf_attr *attr, struct seam_cursor *c,
		      struct seam_perf_sample *out)
{
	uint64_t has = attr->sample_type;

	if (has & PERF_SAMPLE_IDENTIFIER)
		out->id = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_IP)
		out->ip = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_TID) {
		out->pid = (int32_t)seam_cursor_u32(c);
		out->tid = (int32_t)seam_cursor_u32(c);
	}
	if (has & PERF_SAMPLE_TIME)
		out->time = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_ADDR)
		out->addr = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_ID)
		out->id = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_STREAM_ID)
		out->stream_id = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_CPU) {
		out->cpu = seam_cursor_u32(c);
		seam_cursor_u32(c);
	}
	if (has & PERF_SAMPLE_PERIOD)
		out->period = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_READ)
		out->read = take_u64s(c, count_read(attr, *c));
}

static void read_tail(const struct seam_perf_attr *attr, struct seam_cursor *c,
		      struct seam_perf_sample *out)
{
	uint64_t has = attr->sample_type;

	out->at.callchain = c->pos;
	if (has & PERF_SAMPLE_CALLCHAIN)
		out->callchain = take_u64s(c, seam_cursor_u64(c));
	if (has & PERF_SAMPLE_RAW)
		out->raw = take_bytes(c, seam_cursor_u32(c));
	if (has & PERF_SAMPLE_BRANCH_STACK)
		read_branches(attr, c, out);
	out->at.user_regs = c->pos;
	if (has & PERF_SAMPLE_REGS_USER)
		read_regs(attr->sample_regs_user, c, &out->user_regs);
	out->at.user_stack = c->pos;
	if (has & PERF_SAMPLE_STACK_USER)
		read_user_stack(c, &out->user_stack);
	out->at.rest = c->pos;
	if (has & PERF_SAMPLE_WEIGHT_TYPE)
		out->weight = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_DATA_SRC)
		out->data_src = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_TRANSACTION)
		out->transaction = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_REGS_INTR)
		read_regs(attr->sample_regs_intr, c, &out->intr_regs);
	if (has & PERF_SAMPLE_PHYS_ADDR)
		out->phys_addr = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_CGROUP)
		out->cgroup = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_DATA_PAGE_SIZE)
		out->data_page_size = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_CODE_PAGE_SIZE)
		out->code_page_size = seam_cursor_u64(c);
	if (has & PERF_SAMPLE_AUX)
		out->aux = take_bytes(c, seam_cursor_u64(c));
}

int seam_perf_sample_read(const struct seam_perf_attr *attr,
			  enum seam_endian endian, struct seam_bytes payload,
			  struct seam_perf_sample *out)
{
	struct seam_cursor c = seam_cursor_over(payload, endian);

	*out = (struct seam_perf_sample) {
		.pid = -1, .tid = -1, .cpu = UINT32_MAX,
	};
	read_head(attr, &c, out);
	read_tail(attr, &c, out);
	return c.error ? -EBADMSG : 0;
}

uint64_t seam_perf_sample_peek_id(const struct seam_perf_attr *attr,
				  enum seam_endian endian,
				  struct seam_bytes payload)
{
	static const uint64_t before_id[] = {
		PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR,
	};
	struct seam_cursor c = seam_cursor_over(payload, endian);

	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		return seam_cursor_u64(&c);
	if (!(attr->sample_type & PERF_SAMPLE_ID))
		return 0;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(before_id); i++)
		if (attr->sample_type & before_id[i])
			seam_cursor_u64(&c);
	return seam_cursor_u64(&c);
}

/* The fields up to the callchain, in their order, without READ. */
struct seam_perf_layout seam_perf_layout_make(const struct seam_perf_attr *attr,
					      enum seam_endian endian)
{
	struct seam_perf_layout l = {
		.id = UINT16_MAX, .ip = UINT16_MAX, .tid = UINT16_MAX,
		.time = UINT16_MAX, .cpu = UINT16_MAX, .period = UINT16_MAX,
		.chain = UINT16_MAX,
	};
	uint16_t other;
	const struct {
		uint64_t bit;
		uint16_t *place;
	} fields[] = {
		{ PERF_SAMPLE_IDENTIFIER, &l.id },
		{ PERF_SAMPLE_IP, &l.ip },
		{ PERF_SAMPLE_TID, &l.tid },
		{ PERF_SAMPLE_TIME, &l.time },
		{ PERF_SAMPLE_ADDR, &other },
		{ PERF_SAMPLE_ID, &l.id },
		{ PERF_SAMPLE_STREAM_ID, &other },
		{ PERF_SAMPLE_CPU, &l.cpu },
		{ PERF_SAMPLE_PERIOD, &l.period },
		{ PERF_SAMPLE_CALLCHAIN, &l.chain },
	};
	struct seam_cursor probe = seam_cursor_make(NULL, 0, endian);

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(fields); i++) {
		if (!(attr->sample_type & fields[i].bit))
			continue;
		*fields[i].place = l.fixed_bytes;
		l.fixed_bytes = (uint16_t)(l.fixed_bytes + 8);
	}
	/*
	 * READ varies in size; the other byte order needs swaps; with user
	 * registers a callchain comes from the copied stack too.
	 */
	l.is_usable = !probe.swap && !(attr->sample_type &
		(PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER));
	l.has_raw = attr->sample_type & PERF_SAMPLE_RAW;
	l.has_cgroup = attr->sample_type & PERF_SAMPLE_CGROUP;
	/* what varies in size before the cgroup */
	if (l.has_cgroup && attr->sample_type &
	    (PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER |
	     PERF_SAMPLE_REGS_INTR))
		l.is_usable = false;
	l.cgroup_skip = (uint8_t)(8 * __builtin_popcountll(attr->sample_type &
		(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT |
		 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
		 PERF_SAMPLE_PHYS_ADDR)));
	return l;
}

bool seam_perf_layout_cgroup(const struct seam_perf_layout *layout,
			     struct seam_bytes payload,
			     struct seam_perf_core *out)
{
	size_t at = layout->has_raw ?
		    (size_t)(out->raw.data + out->raw.size - payload.data) :
		    layout->fixed_bytes + 8 * out->n_chain;

	at += layout->cgroup_skip;
	if (at + sizeof(out->cgroup) > payload.size)
		return false;
	memcpy(&out->cgroup, payload.data + at, sizeof(out->cgroup));
	return true;
}

/* -- user registers ----------------------------------------------------- */

#if defined(__x86_64__)
#define OWN_ARCH "x86_64"
#elif defined(__aarch64__)
#define OWN_ARCH "aarch64"
#else
#define OWN_ARCH ""
#endif

/* The value of the kernel's register @number, which is in the mask. */
static uint64_t value_of(const struct seam_perf_regs *regs, unsigned int number)
{
	uint64_t below = regs->mask & ((UINT64_C(1) << number) - 1);
	size_t i = (size_t)__builtin_popcountll(below);

	return i < regs->values.n ? seam_perf_u64(&regs->values, i) : 0;
}

bool seam_perf_registers_x86_64(const struct seam_perf_regs *regs,
				uint64_t columns[SEAM_PERF_X86_64_COLUMNS],
				uint64_t *known)
{
	/* the kernel's number of each column */
	static const uint8_t numbers[SEAM_PERF_X86_64_COLUMNS] = {
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
	};
	const uint64_t needed = UINT64_C(1) << SEAM_PERF_X86_64_PC |
				UINT64_C(1) << SEAM_PERF_X86_64_SP;

	*known = 0;
	for (size_t i = 0; i < SEAM_PERF_X86_64_COLUMNS; i++) {
		bool has = regs->abi == PERF_SAMPLE_REGS_ABI_64 &&
			   regs->mask >> numbers[i] & 1;

		columns[i] = has ? value_of(regs, numbers[i]) : 0;
		*known |= (uint64_t)has << i;
	}
	return (*known & needed) == needed &&
	       (columns[SEAM_PERF_X86_64_PC] || columns[SEAM_PERF_X86_64_SP]);
}

/*
 * The kernel's number of the program counter, or -1.  A file without an
 * architecture, because its writer was killed, counts as one of this machine,
 * as in perf.
 */
static int pc_number(const char *arch)
{
	static const struct { const char *begin; int number; } machines[] = {
		{ "x86_64", 8 }, { "i386", 8 }, { "i486", 8 }, { "i586", 8 },
		{ "i686", 8 }, { "aarch64", 32 }, { "arm", 15 },
		{ "riscv", 0 }, { "loongarch", 0 }, { "ppc", 32 },
		{ "s390", 33 }, { "mips", 0 },
	};

	if (!arch)
		arch = OWN_ARCH;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(machines); i++)
		if (strncmp(arch, machines[i].begin,
			    strlen(machines[i].begin)) == 0)
			return machines[i].number;
	return -1;
}

uint64_t seam_perf_registers_pc(const struct seam_perf_regs *regs,
				const char *arch)
{
	int number = regs->abi ? pc_number(arch) : -1;

	return number >= 0 && regs->mask >> number & 1 ?
	       value_of(regs, (unsigned int)number) : 0;
}
