/* SPDX-License-Identifier: MIT */
/* perf_sideband.c - trailer and fields of a record; see perf_sideband.h */
#include "wire/perf/perf_sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

enum {
	BUILD_ID_POS = 36,	/* in the payload of an MMAP2 that has one */
	MAX_BUILD_ID = 20,
};

bool seam_perf_record_has_sample_id(uint32_t type)
{
	return type < SEAM_PERF_FIRST_TOOL && type != PERF_RECORD_SAMPLE;
}

size_t seam_perf_sample_id_bytes(const struct seam_perf_attr *attr)
{
	uint64_t fields = attr->sample_type &
		(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
		 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
		 PERF_SAMPLE_IDENTIFIER);

	if (!seam_perf_attr_has(attr, SEAM_PERF_ATTR_SAMPLE_ID_ALL))
		return 0;
	return 8 * (size_t)__builtin_popcountll(fields);
}

int seam_perf_sample_id_read(const struct seam_perf_attr *attr,
			     enum seam_endian endian,
			     struct seam_bytes *payload,
			     struct seam_perf_sample_id *out)
{
	size_t size = seam_perf_sample_id_bytes(attr);
	struct seam_cursor c;

	*out = (struct seam_perf_sample_id) {
		.pid = -1, .tid = -1, .cpu = UINT32_MAX,
	};
	if (size > payload->size)
		return -EBADMSG;
	if (size == 0)
		return 0;
	payload->size -= size;
	c = seam_cursor_make(payload->data + payload->size, size, endian);
	if (attr->sample_type & PERF_SAMPLE_TID) {
		out->pid = (int32_t)seam_cursor_u32(&c);
		out->tid = (int32_t)seam_cursor_u32(&c);
	}
	if (attr->sample_type & PERF_SAMPLE_TIME)
		out->time = seam_cursor_u64(&c);
	if (attr->sample_type & PERF_SAMPLE_ID)
		out->id = seam_cursor_u64(&c);
	if (attr->sample_type & PERF_SAMPLE_STREAM_ID)
		out->stream_id = seam_cursor_u64(&c);
	if (attr->sample_type & PERF_SAMPLE_CPU) {
		out->cpu = seam_cursor_u32(&c);
		seam_cursor_u32(&c);
	}
	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		out->id = seam_cursor_u64(&c);
	return c.error;
}

/* MMAP and the older MMAP2 have no protection; misc bit 13 marks data. */
static uint32_t prot_of(uint16_t misc)
{
	return misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ :
						   PROT_READ | PROT_EXEC;
}

/* All forms begin with the members of MMAP. */
union mapping_form {
	struct seam_perf_mmap mmap;
	struct seam_perf_mmap2 mmap2;
	struct seam_perf_mmap2_old old;
	struct seam_perf_mmap2_build_id with_id;
};

static void set_inode(struct seam_perf_mapping *out,
		      const struct seam_perf_mmap2_old *from)
{
	out->maj = from->maj;
	out->min = from->min;
	out->ino = from->ino;
	out->ino_generation = from->ino_generation;
}

static void set_build_id(struct seam_perf_mapping *out,
			 struct seam_bytes payload, size_t size)
{
	if (size == 0 || size > MAX_BUILD_ID)
		return;
	out->build_id = payload.data + BUILD_ID_POS;
	out->build_id_size = size;
}

int seam_perf_mapping_read(uint32_t type, uint16_t misc,
			   struct seam_bytes payload, enum seam_endian endian,
			   struct seam_perf_mapping *out)
{
	const struct seam_record *table =
		seam_perf_record_table_of(type, misc, payload, endian);
	union mapping_form m;

	if (seam_perf_record_read(table, payload, endian, &m))
		return -EBADMSG;
	*out = (struct seam_perf_mapping) {
		.pid = m.mmap.pid, .tid = m.mmap.tid, .addr = m.mmap.addr,
		.len = m.mmap.len, .pgoff = m.mmap.pgoff,
		.prot = prot_of(misc),
	};
	if (type == PERF_RECORD_MMAP) {
		out->filename = m.mmap.filename;
	} else if (table == seam_perf_record_table(type,
					PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		out->filename = m.with_id.filename;
		out->prot = m.with_id.prot;
		set_build_id(out, payload, m.with_id.build_id_size);
	} else if (table == seam_perf_record_table(type, 0)) {
		out->filename = m.mmap2.filename;
		out->prot = m.mmap2.prot;
		out->is_jit_symfile = out->prot & SEAM_PERF_PROT_JIT_SYMFILE;
		set_inode(out, &m.old);
	} else {
		out->filename = m.old.filename;
		set_inode(out, &m.old);
	}
	return 0;
}

int seam_perf_sideband_read(const struct seam_perf_attr *attr,
			    enum seam_endian endian,
			    const struct seam_perf_record *record,
			    struct seam_perf_sideband *out)
{
	struct seam_bytes payload = record->payload;

	out->type = record->type;
	out->misc = record->misc;
	if (!seam_perf_record_has_sample_id(record->type) ||
	    seam_perf_sample_id_read(attr, endian, &payload, &out->sample_id))
		return -EBADMSG;
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return seam_perf_mapping_read(record->type, record->misc,
					      payload, endian, &out->mapping);
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_AUX:
	case PERF_RECORD_KSYMBOL:
		return seam_perf_record_read(
			seam_perf_record_table(record->type, 0), payload,
			endian, &out->comm);
	}
	return 0;
}

void seam_perf_mmap2_set_build_id(struct seam_perf_mmap2_build_id *mapping,
				  const uint8_t *id, size_t size)
{
	uint8_t bytes[MAX_BUILD_ID] = { 0 };

	memcpy(bytes, id, size);
	mapping->build_id_size = (uint8_t)size;
	memcpy(&mapping->build_id_0, bytes, 4);
	memcpy(&mapping->build_id_1, bytes + 4, 8);
	memcpy(&mapping->build_id_2, bytes + 12, 8);
}

/* Fields of 8 bytes each, in their order; @to has room for all. */
static void write_sample_id(const struct seam_perf_attr *attr,
			    enum seam_endian endian,
			    const struct seam_perf_sample_id *id, uint8_t *to)
{
	/* two u32 are a u64 whose first half comes first */
	uint64_t pid = (uint32_t)id->pid, tid = (uint32_t)id->tid;
	bool big = endian == SEAM_BIG;
	const struct {
		uint64_t bit, value;
	} fields[] = {
		{ PERF_SAMPLE_TID, big ? pid << 32 | tid : tid << 32 | pid },
		{ PERF_SAMPLE_TIME, id->time },
		{ PERF_SAMPLE_ID, id->id },
		{ PERF_SAMPLE_STREAM_ID, id->stream_id },
		{ PERF_SAMPLE_CPU, (uint64_t)id->cpu << (big ? 32 : 0) },
		{ PERF_SAMPLE_IDENTIFIER, id->id },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(fields); i++) {
		if (!(attr->sample_type & fields[i].bit))
			continue;
		seam_wire_put_uint(to, fields[i].value, 8, endian);
		to += 8;
	}
}

size_t seam_perf_sideband_write(const struct seam_perf_attr *attr,
				enum seam_endian endian, uint32_t type,
				uint16_t misc, const void *fields,
				const struct seam_perf_sample_id *sample_id,
				uint8_t *buf, size_t cap)
{
	struct seam_perf_header header = { .type = type, .misc = misc };
	size_t trailer = seam_perf_sample_id_bytes(attr);
	size_t n = SEAM_PERF_HEADER_BYTES, size;

	if (cap < n)
		return 0;
	n += seam_wire_write(seam_perf_record_table(type, misc), fields,
			     endian, buf + n, cap - n);
	size = (n + 7) / 8 * 8 + trailer;
	if (size > cap || size > UINT16_MAX)
		return 0;
	memset(buf + n, 0, size - trailer - n);
	if (trailer)
		write_sample_id(attr, endian, sample_id,
				buf + size - trailer);
	header.size = (uint16_t)size;
	seam_wire_write(&seam_perf_header_record, &header, endian, buf,
			SEAM_PERF_HEADER_BYTES);
	return size;
}

bool seam_perf_mapping_is_memory(const char *filename)
{
	static const char *const names[] = {
		"//anon", "[anon", "/anon_hugepage", "[heap]", "[stack",
		"/dev/zero", "/memfd:", "/SYSV", "anon_inode:",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (strncmp(filename, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}
