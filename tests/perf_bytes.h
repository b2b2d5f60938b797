/* SPDX-License-Identifier: MIT */
/*
 * perf_bytes.h - perf.data files made by hand, for tests
 *
 * A buffer that grows and knows the byte order of what is written to it;
 * on top of it, records and whole files.  Failures abort: it is a test.
 */
#ifndef SEAM_TESTS_PERF_BYTES_H
#define SEAM_TESTS_PERF_BYTES_H

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "wire/perf/perf_attr.h"
#include "wire/perf/perf_data.h"

struct bytes {
	uint8_t *data;
	size_t size, cap;
	enum seam_endian endian;
};

static inline void put(struct bytes *b, const void *data, size_t n)
{
	if (b->size + n > b->cap) {
		b->cap = 2 * (b->size + n);
		b->data = realloc(b->data, b->cap);
		if (!b->data)
			abort();
	}
	if (n)
		memcpy(b->data + b->size, data, n);
	b->size += n;
}

static inline void put_n(struct bytes *b, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> 8 * (b->endian == SEAM_LITTLE ? i :
					       n - 1 - i));
	put(b, bytes, n);
}

static inline void put_u16(struct bytes *b, uint64_t v) { put_n(b, v, 2); }
static inline void put_u32(struct bytes *b, uint64_t v) { put_n(b, v, 4); }
static inline void put_u64(struct bytes *b, uint64_t v) { put_n(b, v, 8); }

/* Overwrite @n bytes at @pos. */
static inline void set_n(struct bytes *b, size_t pos, uint64_t v, size_t n)
{
	size_t size = b->size;

	b->size = pos;
	put_n(b, v, n);
	b->size = size;
}

/* A name, NUL-terminated and padded to 8. */
static inline void put_name(struct bytes *b, const char *name)
{
	static const uint8_t zero[8];
	size_t n = strlen(name) + 1;

	put(b, name, n);
	put(b, zero, -n & 7);
}

/* begin_record() ... end_record(): the size is filled in at the end. */
static inline size_t begin_record(struct bytes *b, uint32_t type, uint16_t misc)
{
	size_t at = b->size;

	put_u32(b, type);
	put_u16(b, misc);
	put_u16(b, 0);
	return at;
}

static inline void end_record(struct bytes *b, size_t at)
{
	set_n(b, at + 6, b->size - at, 2);
}

/*
 * The events of these files: IDENTIFIER | IP | TID | TIME | CPU | PERIOD |
 * CALLCHAIN, sample_id_all, and a second event like it.
 */
#define TEST_SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |	\
			  PERF_SAMPLE_TID | PERF_SAMPLE_TIME |		\
			  PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |	\
			  PERF_SAMPLE_CALLCHAIN)
#define TEST_ID_1 0x1001
#define TEST_ID_2 0x1002

static inline void put_attr(struct bytes *b, uint64_t config,
			    uint64_t sample_type)
{
	uint64_t flags = UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL |
			 UINT64_C(1) << SEAM_PERF_ATTR_FREQ;
	uint64_t reversed = 0;

	for (int i = 0; i < 64; i++)
		reversed |= (flags >> i & 1) << (63 - i);
	put_u32(b, PERF_TYPE_SOFTWARE);
	put_u32(b, 128);
	put_u64(b, config);
	put_u64(b, 4000);
	put_u64(b, sample_type);
	put_u64(b, PERF_FORMAT_ID);
	put_u64(b, b->endian == SEAM_LITTLE ? flags : reversed);
	for (int i = 48; i < 128; i += 8)
		put_u64(b, 0);
}

/* pid, tid, time, cpu, id: the trailer of everything but samples. */
static inline void put_stamp(struct bytes *b, int32_t pid, int32_t tid,
			     uint64_t time)
{
	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)tid);
	put_u64(b, time);
	put_u32(b, 0);
	put_u32(b, 0);
	put_u64(b, TEST_ID_1);
}

static inline void put_comm(struct bytes *b, int32_t pid, int32_t tid,
			    const char *name, bool exec, uint64_t time)
{
	size_t at = begin_record(b, PERF_RECORD_COMM,
				 exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)tid);
	put_name(b, name);
	put_stamp(b, pid, tid, time);
	end_record(b, at);
}

static inline void put_mmap2(struct bytes *b, int32_t pid, uint64_t addr,
			     uint64_t len, uint64_t pgoff, const char *name,
			     uint64_t time)
{
	size_t at = begin_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)pid);
	put_u64(b, addr);
	put_u64(b, len);
	put_u64(b, pgoff);
	put_u32(b, 8);
	put_u32(b, 1);
	put_u64(b, 4711);
	put_u64(b, 0);
	put_u32(b, 5);
	put_u32(b, 2);
	put_name(b, name);
	put_stamp(b, pid, pid, time);
	end_record(b, at);
}

static inline void put_task(struct bytes *b, uint32_t type, int32_t pid,
			    int32_t ppid, int32_t tid, int32_t ptid,
			    uint64_t time)
{
	size_t at = begin_record(b, type, 0);

	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)ppid);
	put_u32(b, (uint32_t)tid);
	put_u32(b, (uint32_t)ptid);
	put_u64(b, time);
	put_stamp(b, pid, tid, time);
	end_record(b, at);
}

static inline void put_lost(struct bytes *b, uint64_t id, uint64_t n)
{
	size_t at = begin_record(b, PERF_RECORD_LOST, 0);

	put_u64(b, id);
	put_u64(b, n);
	put_stamp(b, 0, 0, 1);
	end_record(b, at);
}

/* A sample at @ip, of the context that @misc says, and its callchain. */
static inline void put_sample_at(struct bytes *b, uint64_t id, int32_t pid,
				 int32_t tid, uint64_t time, uint16_t misc,
				 uint64_t ip, const uint64_t *chain, size_t n)
{
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, misc);

	put_u64(b, id);
	put_u64(b, ip);
	put_u32(b, (uint32_t)pid);
	put_u32(b, (uint32_t)tid);
	put_u64(b, time);
	put_u32(b, 1);
	put_u32(b, 0);
	put_u64(b, 250000);
	put_u64(b, n);
	for (size_t i = 0; i < n; i++)
		put_u64(b, chain[i]);
	end_record(b, at);
}

/* The same at the first address of its callchain. */
static inline void put_sample(struct bytes *b, uint64_t id, int32_t pid,
			      int32_t tid, uint64_t time,
			      const uint64_t *chain, size_t n)
{
	bool has_marker = n > 0 && chain[0] >= (uint64_t)PERF_CONTEXT_MAX;

	put_sample_at(b, id, pid, tid, time, PERF_RECORD_MISC_USER,
		      n > has_marker ? chain[has_marker] : 0, chain, n);
}

/* The same of events that have PERF_SAMPLE_CGROUP as well. */
static inline void put_cgroup_sample(struct bytes *b, uint64_t id, int32_t pid,
				     int32_t tid, uint64_t time,
				     const uint64_t *chain, size_t n,
				     uint64_t cgroup)
{
	size_t at = b->size;

	put_sample(b, id, pid, tid, time, chain, n);
	put_u64(b, cgroup);
	end_record(b, at);
}

static inline void put_cgroup(struct bytes *b, uint64_t id, const char *path)
{
	size_t at = begin_record(b, PERF_RECORD_CGROUP, 0);

	put_u64(b, id);
	put_name(b, path);
	put_stamp(b, 0, 0, 1);
	end_record(b, at);
}

/*
 * A sample of events that have PERF_SAMPLE_READ as well: the counter @id
 * shows @value.
 */
static inline void put_read_sample(struct bytes *b, uint64_t id,
				   uint64_t value, uint64_t time)
{
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_u64(b, TEST_ID_1);
	put_u64(b, 0x401000);
	put_u32(b, 7);
	put_u32(b, 7);
	put_u64(b, time);
	put_u32(b, 1);
	put_u32(b, 0);
	put_u64(b, 250000);
	put_u64(b, value);
	put_u64(b, id);
	put_u64(b, 0);
	end_record(b, at);
}

/* Of a file of make_file(): one event only, with PERF_SAMPLE_READ as well. */
static inline void make_read_event(struct bytes *file)
{
	set_n(file, 32, 144, 8);
	set_n(file, 120 + 24, TEST_SAMPLE_TYPE | PERF_SAMPLE_READ, 8);
}

/* string of a feature: u32 length padded to 64, bytes. */
static inline void put_feature_string(struct bytes *b, const char *text)
{
	static const uint8_t zero[64];

	put_u32(b, 64);
	put(b, text, strlen(text) + 1);
	put(b, zero, 64 - strlen(text) - 1);
}

/*
 * A file in file mode around @data: two events, HOSTNAME and EVENT_DESC.
 * Returns it; free(.data).
 */
static inline struct bytes make_file(const struct bytes *data)
{
	struct bytes b = { .endian = data->endian };
	uint64_t flags = 1 << SEAM_PERF_FEATURE_HOSTNAME | 1 << SEAM_PERF_FEATURE_EVENT_DESC;
	size_t attrs_at, table_at, at;

	put(&b, b.endian == SEAM_LITTLE ? "PERFILE2" : "2ELIFREP", 8);
	put_u64(&b, 104);
	put_u64(&b, 128 + 16);
	attrs_at = 104 + 16;
	put_u64(&b, attrs_at);
	put_u64(&b, 2 * (128 + 16));
	put_u64(&b, attrs_at + 2 * (128 + 16));
	put_u64(&b, data->size);
	put_u64(&b, 0);
	put_u64(&b, 0);
	put_u64(&b, flags);
	for (int i = 0; i < 3; i++)
		put_u64(&b, 0);
	put_u64(&b, TEST_ID_1);
	put_u64(&b, TEST_ID_2);
	for (uint64_t i = 0; i < 2; i++) {
		put_attr(&b, i ? PERF_COUNT_SW_PAGE_FAULTS :
			 PERF_COUNT_SW_CPU_CLOCK, TEST_SAMPLE_TYPE);
		put_u64(&b, 104 + 8 * i);
		put_u64(&b, 8);
	}
	put(&b, data->data, data->size);
	table_at = b.size;
	for (int i = 0; i < 4; i++)
		put_u64(&b, 0);
	at = b.size;
	put_feature_string(&b, "testhost");
	set_n(&b, table_at, at, 8);
	set_n(&b, table_at + 8, b.size - at, 8);
	at = b.size;
	put_u32(&b, 2);
	put_u32(&b, 128);
	for (uint64_t i = 0; i < 2; i++) {
		put_attr(&b, i ? PERF_COUNT_SW_PAGE_FAULTS :
			 PERF_COUNT_SW_CPU_CLOCK, TEST_SAMPLE_TYPE);
		put_u32(&b, 1);
		put_feature_string(&b, i ? "faults" : "cpu-clock:u");
		put_u64(&b, i ? TEST_ID_2 : TEST_ID_1);
	}
	set_n(&b, table_at + 16, at, 8);
	set_n(&b, table_at + 24, b.size - at, 8);
	return b;
}

/* The same in pipe mode: everything as records. */
static inline struct bytes make_pipe(const struct bytes *data)
{
	struct bytes b = { .endian = data->endian };

	put(&b, b.endian == SEAM_LITTLE ? "PERFILE2" : "2ELIFREP", 8);
	put_u64(&b, 16);
	for (uint64_t i = 0; i < 2; i++) {
		size_t at = begin_record(&b, SEAM_PERF_HEADER_ATTR, 0);

		put_attr(&b, i ? PERF_COUNT_SW_PAGE_FAULTS :
			 PERF_COUNT_SW_CPU_CLOCK, TEST_SAMPLE_TYPE);
		put_u64(&b, i ? TEST_ID_2 : TEST_ID_1);
		end_record(&b, at);
	}
	for (uint64_t i = 0; i < 2; i++) {
		size_t at = begin_record(&b, SEAM_PERF_EVENT_UPDATE, 0);

		put_u64(&b, 2);
		put_u64(&b, i ? TEST_ID_2 : TEST_ID_1);
		put_name(&b, i ? "faults" : "cpu-clock:u");
		end_record(&b, at);
	}
	put(&b, data->data, data->size);
	return b;
}

/* Exactly as large as it is, so that a read too far is found. */
static inline struct seam_bytes exact(const void *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	return (struct seam_bytes) { copy, size };
}

static inline void free_exact(struct seam_bytes bytes)
{
	free((void *)(uintptr_t)bytes.data);
}

#endif /* SEAM_TESTS_PERF_BYTES_H */
