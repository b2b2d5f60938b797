/* SPDX-License-Identifier: MIT */
/* perf_features.c - payloads one after the other; see perf_features.h */
#include "wire/perf/perf_features.h"

#include "wire/perf/perf_writer.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdlib.h>

enum {
	STRING_ALIGN = 64,	/* perf's NAME_ALIGN */
	HOST_KERNEL = -1,	/* the "pid" of the kernel in build ids */
	BUILD_ID_BYTES = 20,	/* room for one; its size follows it */
	CLOCK_DATA_VERSION = 1,
	/* PERF_RECORD_MISC_BUILD_ID_SIZE: the size is there */
	MISC_BUILD_ID_SIZE = 1 << 15,
};

static void put(struct seam_perf_features *f, const void *data, size_t size)
{
	f->no_memory |= !SEAM_ARRAY_EXTEND(&f->bytes, data, size);
}

static void put_u32(struct seam_perf_features *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

static void put_zeros(struct seam_perf_features *f, size_t n)
{
	static const uint8_t zeros[STRING_ALIGN];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		put(f, zeros, sizeof(zeros));
	put(f, zeros, n);
}

/* The text, its NUL and zeros up to a multiple of STRING_ALIGN. */
static size_t padded(size_t length)
{
	return (length / STRING_ALIGN + 1) * STRING_ALIGN;
}

static void put_string(struct seam_perf_features *f, const char *text)
{
	size_t length = strlen(text);

	put_u32(f, (uint32_t)padded(length));
	put(f, text, length);
	put_zeros(f, padded(length) - length);
}

static void begin(struct seam_perf_features *f, enum seam_perf_feature bit)
{
	assert((int)bit > f->last);
	f->last = (int)bit;
	f->start[bit] = f->bytes.n;
	f->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

void seam_perf_features_fini(struct seam_perf_features *f)
{
	free(f->bytes.items);
	*f = (struct seam_perf_features) { 0 };
}

void seam_perf_features_string(struct seam_perf_features *f,
			       enum seam_perf_feature bit, const char *text)
{
	if (!text || !*text)
		return;
	begin(f, bit);
	put_string(f, text);
}

void seam_perf_features_data(struct seam_perf_features *f,
			     enum seam_perf_feature bit, const void *data,
			     size_t size)
{
	begin(f, bit);
	put(f, data, size);
}

void seam_perf_features_build_id(struct seam_perf_features *f,
				 const char *name, struct seam_bytes id)
{
	size_t length = strlen(name);
	size_t id_bytes = id.size < BUILD_ID_BYTES ? id.size : BUILD_ID_BYTES;
	struct perf_event_header header = {
		.misc = PERF_RECORD_MISC_KERNEL | MISC_BUILD_ID_SIZE,
		.size = (uint16_t)(sizeof(header) + sizeof(int32_t) +
				   BUILD_ID_BYTES + 4 + padded(length)),
	};
	int32_t pid = HOST_KERNEL;
	uint8_t size[4] = { (uint8_t)id_bytes };

	if (id.size == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_BUILD_ID);
	put(f, &header, sizeof(header));
	put(f, &pid, sizeof(pid));
	put(f, id.data, id_bytes);
	put_zeros(f, BUILD_ID_BYTES - id_bytes);
	put(f, size, sizeof(size));
	put(f, name, length);
	put_zeros(f, padded(length) - length);
}

void seam_perf_features_cmdline(struct seam_perf_features *f,
				const char *const *words, size_t n)
{
	begin(f, SEAM_PERF_FEATURE_CMDLINE);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		put_string(f, words[i]);
}

void seam_perf_features_events(struct seam_perf_features *f,
			       const struct seam_perf_event *events, size_t n)
{
	uint8_t attr[SEAM_PERF_WRITER_ATTR_BYTES];

	begin(f, SEAM_PERF_FEATURE_EVENT_DESC);
	put_u32(f, (uint32_t)n);
	put_u32(f, SEAM_PERF_WRITER_ATTR_BYTES);
	for (size_t i = 0; i < n; i++) {
		seam_perf_attr_write(&events[i].attr, SEAM_NATIVE, attr,
				     sizeof(attr));
		put(f, attr, sizeof(attr));
		put_u32(f, (uint32_t)events[i].n_ids);
		put_string(f, events[i].name);
		put(f, events[i].ids, events[i].n_ids * sizeof(uint64_t));
	}
}

void seam_perf_features_pmus(struct seam_perf_features *f,
			     const struct seam_perf_pmu *pmus, size_t n)
{
	begin(f, SEAM_PERF_FEATURE_PMU_MAPPINGS);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		put_u32(f, pmus[i].type);
		put_string(f, pmus[i].name);
	}
}

void seam_perf_features_groups(struct seam_perf_features *f,
			       const struct seam_perf_group *groups, size_t n)
{
	if (n == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_GROUP_DESC);
	put_u32(f, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		put_string(f, "{anon}");
		put_u32(f, groups[i].leader);
		put_u32(f, groups[i].n_members);
	}
}

void seam_perf_features_auxtrace(struct seam_perf_features *f,
				 const uint64_t *pairs, size_t n)
{
	uint64_t count = n;

	if (n == 0)
		return;
	begin(f, SEAM_PERF_FEATURE_AUXTRACE);
	put(f, &count, sizeof(count));
	put(f, pairs, n * 2 * sizeof(*pairs));
}

void seam_perf_features_clock(struct seam_perf_features *f, uint32_t clock,
			      uint64_t wall_ns, uint64_t clock_ns)
{
	struct {
		uint32_t version, clock;
		uint64_t wall_ns, clock_ns;
	} data = { CLOCK_DATA_VERSION, clock, wall_ns, clock_ns };

	seam_perf_features_data(f, SEAM_PERF_FEATURE_CLOCK_DATA, &data,
				sizeof(data));
}
