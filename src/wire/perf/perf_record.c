/* SPDX-License-Identifier: MIT */
/*
 * perf_record.c - tables of every record; trailers, mappings
 *
 * Field names are the ABI's, except where one could be taken for the record's
 * own in a dump: a type of BPF event, an offset in the AUX buffer.
 */
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#define F(record, member) SEAM_FIELD(struct seam_perf_##record, member, NULL)
#define RECORD(label, ...) SEAM_RECORD(label, NULL, __VA_ARGS__)

const struct seam_record seam_perf_header_record = RECORD("header",
	F(header, type), F(header, misc), F(header, size));

/* Common to all forms of a mapping. */
#define MAPPING(record)							\
	F(record, pid), F(record, tid), F(record, addr),		\
	F(record, len), F(record, pgoff)
#define INODE(record)							\
	F(record, maj), F(record, min), F(record, ino),			\
	F(record, ino_generation)

static const struct seam_record mmap2_old_record = RECORD("MMAP2",
	MAPPING(mmap2_old), INODE(mmap2_old), F(mmap2_old, filename));

static const struct seam_record mmap2_build_id_record = RECORD("MMAP2",
	MAPPING(mmap2_build_id), F(mmap2_build_id, build_id_size),
	F(mmap2_build_id, reserved_1), F(mmap2_build_id, reserved_2),
	F(mmap2_build_id, build_id_0), F(mmap2_build_id, build_id_1),
	F(mmap2_build_id, build_id_2), F(mmap2_build_id, prot),
	F(mmap2_build_id, flags), F(mmap2_build_id, filename));

/* Records that are only dumped. */
struct seam_perf_throttle {		/* THROTTLE, UNTHROTTLE */
	uint64_t time, id, stream_id;
};

struct seam_perf_read {
	int32_t pid, tid;
	struct seam_bytes values;	/* by read_format */
};

struct seam_perf_itrace_start {
	int32_t pid, tid;
};

struct seam_perf_switch_wide {		/* switched to or from */
	int32_t next_prev_pid, next_prev_tid;
};

struct seam_perf_bpf_event {
	uint16_t bpf_type;		/* 1 load, 2 unload */
	uint16_t flags;
	uint32_t id;			/* of the program */
	struct seam_bytes tag;
};

struct seam_perf_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	struct seam_bytes bytes;	/* old ones, new ones, padding */
};

struct seam_perf_hw_id {
	uint64_t hw_id;
};

struct seam_perf_callchain_deferred {
	uint64_t cookie, nr;
	struct seam_bytes ips;
};

/* The perf tool's own. */
struct seam_perf_blob {
	struct seam_bytes data;
};

struct seam_perf_tracing_data {
	uint32_t size;		/* bytes after the record, padded to 8 */
};

struct seam_perf_header_build_id {
	int32_t pid;			/* -1 for files of the host */
	uint32_t id_0;			/* the build id, as in an MMAP2 */
	uint64_t id_1, id_2;
	uint8_t size;			/* of it, with misc bit 15; else 20 */
	uint8_t reserved_1;
	uint16_t reserved_2;
	const char *filename;
};

struct seam_perf_counted {
	uint64_t nr;
	struct seam_bytes entries;
};

struct seam_perf_auxtrace_info {
	uint32_t auxtrace_type;		/* 1 Intel PT, 2 BTS, ... */
	uint32_t reserved;
	struct seam_bytes priv;		/* u64 values of the decoder's own */
};

struct seam_perf_event_update {
	uint64_t update_type;		/* 0 unit, 1 scale, 2 name, 3 CPUs */
	uint64_t id;			/* of the event */
	struct seam_bytes data;
};

struct seam_perf_time_conv {		/* of the TSC */
	uint64_t time_shift, time_mult, time_zero;
	struct seam_bytes more;		/* cycles, mask, capabilities */
};

struct seam_perf_header_feature {
	uint64_t feat_id;
	struct seam_bytes data;		/* as the feature's section */
};

struct seam_perf_compressed2 {
	uint64_t data_size;		/* bytes of zstd data */
	struct seam_bytes data;
};

_Static_assert(sizeof(struct seam_perf_mmap2) <= SEAM_PERF_MAX_RECORD &&
	       sizeof(struct seam_perf_mmap2_build_id) <= SEAM_PERF_MAX_RECORD,
	       "SEAM_PERF_MAX_RECORD is too small");

#define TASK(label) RECORD(label, F(task, pid), F(task, ppid),		\
			   F(task, tid), F(task, ptid), F(task, time))
#define THROTTLE(label) RECORD(label, F(throttle, time), F(throttle, id),\
			       F(throttle, stream_id))
#define BLOB(label) RECORD(label, F(blob, data))
#define COUNTED(label) RECORD(label, F(counted, nr), F(counted, entries))

/* Records without fields have a name only, and so has SAMPLE. */
static const struct seam_record types[] = {
	[PERF_RECORD_MMAP] = RECORD("MMAP", MAPPING(mmap), F(mmap, filename)),
	[PERF_RECORD_LOST] = RECORD("LOST", F(lost, id), F(lost, lost)),
	[PERF_RECORD_COMM] = RECORD("COMM", F(comm, pid), F(comm, tid),
		F(comm, comm)),
	[PERF_RECORD_EXIT] = TASK("EXIT"),
	[PERF_RECORD_THROTTLE] = THROTTLE("THROTTLE"),
	[PERF_RECORD_UNTHROTTLE] = THROTTLE("UNTHROTTLE"),
	[PERF_RECORD_FORK] = TASK("FORK"),
	[PERF_RECORD_READ] = RECORD("READ", F(read, pid), F(read, tid),
		F(read, values)),
	[PERF_RECORD_SAMPLE] = { .name = "SAMPLE" },
	[PERF_RECORD_MMAP2] = RECORD("MMAP2", MAPPING(mmap2), INODE(mmap2),
		F(mmap2, prot), F(mmap2, flags), F(mmap2, filename)),
	[PERF_RECORD_AUX] = RECORD("AUX", F(aux, aux_offset), F(aux, aux_size),
		F(aux, flags)),
	[PERF_RECORD_ITRACE_START] = RECORD("ITRACE_START",
		F(itrace_start, pid), F(itrace_start, tid)),
	[PERF_RECORD_LOST_SAMPLES] = RECORD("LOST_SAMPLES",
		F(lost_samples, lost)),
	[PERF_RECORD_SWITCH] = { .name = "SWITCH" },
	[PERF_RECORD_SWITCH_CPU_WIDE] = RECORD("SWITCH_CPU_WIDE",
		F(switch_wide, next_prev_pid), F(switch_wide, next_prev_tid)),
	[PERF_RECORD_NAMESPACES] = RECORD("NAMESPACES", F(namespaces, pid),
		F(namespaces, tid), F(namespaces, nr_namespaces),
		F(namespaces, link_info)),
	[PERF_RECORD_KSYMBOL] = RECORD("KSYMBOL", F(ksymbol, addr),
		F(ksymbol, len), F(ksymbol, ksym_type), F(ksymbol, flags),
		F(ksymbol, name)),
	[PERF_RECORD_BPF_EVENT] = RECORD("BPF_EVENT", F(bpf_event, bpf_type),
		F(bpf_event, flags), F(bpf_event, id), F(bpf_event, tag)),
	[PERF_RECORD_CGROUP] = RECORD("CGROUP", F(cgroup, id), F(cgroup, path)),
	[PERF_RECORD_TEXT_POKE] = RECORD("TEXT_POKE", F(text_poke, addr),
		F(text_poke, old_len), F(text_poke, new_len),
		F(text_poke, bytes)),
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = RECORD("AUX_OUTPUT_HW_ID",
		F(hw_id, hw_id)),
	[SEAM_PERF_CALLCHAIN_DEFERRED] = RECORD("CALLCHAIN_DEFERRED",
		F(callchain_deferred, cookie), F(callchain_deferred, nr),
		F(callchain_deferred, ips)),
	[SEAM_PERF_HEADER_ATTR] = BLOB("ATTR"),
	[SEAM_PERF_HEADER_EVENT_TYPE] = BLOB("EVENT_TYPE"),
	[SEAM_PERF_HEADER_TRACING_DATA] = RECORD("TRACING_DATA",
		F(tracing_data, size)),
	[SEAM_PERF_HEADER_BUILD_ID] = RECORD("BUILD_ID",
		F(header_build_id, pid), F(header_build_id, id_0),
		F(header_build_id, id_1), F(header_build_id, id_2),
		F(header_build_id, size), F(header_build_id, reserved_1),
		F(header_build_id, reserved_2), F(header_build_id, filename)),
	[SEAM_PERF_FINISHED_ROUND] = { .name = "FINISHED_ROUND" },
	[SEAM_PERF_ID_INDEX] = COUNTED("ID_INDEX"),
	[SEAM_PERF_AUXTRACE_INFO] = RECORD("AUXTRACE_INFO",
		F(auxtrace_info, auxtrace_type), F(auxtrace_info, reserved),
		F(auxtrace_info, priv)),
	[SEAM_PERF_AUXTRACE] = RECORD("AUXTRACE", F(auxtrace, size),
		F(auxtrace, aux_offset), F(auxtrace, reference),
		F(auxtrace, idx), F(auxtrace, tid), F(auxtrace, cpu),
		F(auxtrace, reserved)),
	[SEAM_PERF_AUXTRACE_ERROR] = BLOB("AUXTRACE_ERROR"),
	[SEAM_PERF_THREAD_MAP] = COUNTED("THREAD_MAP"),
	[SEAM_PERF_CPU_MAP] = BLOB("CPU_MAP"),
	[SEAM_PERF_STAT_CONFIG] = COUNTED("STAT_CONFIG"),
	[SEAM_PERF_STAT] = BLOB("STAT"),
	[SEAM_PERF_STAT_ROUND] = BLOB("STAT_ROUND"),
	[SEAM_PERF_EVENT_UPDATE] = RECORD("EVENT_UPDATE",
		F(event_update, update_type), F(event_update, id),
		F(event_update, data)),
	[SEAM_PERF_TIME_CONV] = RECORD("TIME_CONV", F(time_conv, time_shift),
		F(time_conv, time_mult), F(time_conv, time_zero),
		F(time_conv, more)),
	[SEAM_PERF_HEADER_FEATURE] = RECORD("FEATURE",
		F(header_feature, feat_id), F(header_feature, data)),
	[SEAM_PERF_COMPRESSED] = BLOB("COMPRESSED"),
	[SEAM_PERF_FINISHED_INIT] = { .name = "FINISHED_INIT" },
	[SEAM_PERF_COMPRESSED2] = RECORD("COMPRESSED2",
		F(compressed2, data_size), F(compressed2, data)),
};

const char *seam_perf_record_name(uint32_t type)
{
	return type < SEAM_ARRAY_SIZE(types) ? types[type].name : NULL;
}

const struct seam_record *seam_perf_record_table(uint32_t type, uint16_t misc)
{
	if (type == PERF_RECORD_MMAP2 && misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return &mmap2_build_id_record;
	return type < SEAM_ARRAY_SIZE(types) && types[type].name &&
	       type != PERF_RECORD_SAMPLE ? &types[type] : NULL;
}

int seam_perf_record_read(const struct seam_record *table,
			  struct seam_bytes payload, enum seam_endian endian,
			  void *out)
{
	struct seam_cursor c = seam_cursor_over(payload, endian);

	return seam_wire_read(&c, table, out) ? -EBADMSG : 0;
}

enum {
	MAX_BUILD_ID = 20,
	BUILD_ID_SIZE_POS = 32,	/* a byte, then three of zero; or maj */
	BUILD_ID_POS = 36,
	OLD_NAME_POS = 56,	/* in the older MMAP2; of prot in the newer */
	/* All PROT_* bits of any architecture, those of growing stacks. */
	PROT_BITS = 0xff | 0x03000000 | SEAM_PERF_PROT_JIT_SYMFILE,
};

/*
 * Where the name begins in place of the protection, its letters have bits that
 * no protection has; an empty one leaves no room for a name after the flags.
 */
static bool is_old_mmap2(struct seam_bytes payload, enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(payload, endian);
	uint32_t prot;

	seam_cursor_skip(&c, OLD_NAME_POS);
	prot = seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* flags */
	return !seam_cursor_cstr(&c) ||
	       (prot & ~(uint32_t)PROT_BITS &&
		payload.data[OLD_NAME_POS] >= ' ');
}

/*
 * Whether a mapping that is marked to have a build id has one.  The kernel
 * leaves the mark in the records of all events after the first that wants build
 * ids, of whatever user.  A device's major number is there otherwise, hardly
 * above 20, and then its minor number, which has 20 bits; all ids of less than
 * 16 bytes are hashes.
 *
 * Source: Linux 5.12 to 6.18, kernel/events/core.c, perf_event_mmap_output():
 * type and size are restored, misc is not.
 */
static bool has_build_id(struct seam_bytes payload, enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(payload, endian);
	const uint8_t *size;
	uint32_t minor;

	seam_cursor_skip(&c, BUILD_ID_SIZE_POS);
	size = seam_cursor_bytes(&c, 4);
	minor = seam_cursor_u32(&c);
	if (c.error || size[0] > 20 || size[1] || size[2] || size[3])
		return false;
	return size[0] >= 16 || (size[0] && minor >> 20);
}

const struct seam_record *
seam_perf_record_table_of(uint32_t type, uint16_t misc,
			  struct seam_bytes payload, enum seam_endian endian)
{
	const struct seam_record *table = seam_perf_record_table(type, misc);

	if (table == &mmap2_build_id_record && !has_build_id(payload, endian))
		return &types[PERF_RECORD_MMAP2];
	return table == &types[PERF_RECORD_MMAP2] &&
	       is_old_mmap2(payload, endian) ? &mmap2_old_record : table;
}

/* -- the side-band ------------------------------------------------------ */

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

/* All forms begin with the members of MMAP. */
union mapping_form {
	struct seam_perf_mmap mmap;
	struct seam_perf_mmap2 mmap2;
	struct seam_perf_mmap2_old old;
	struct seam_perf_mmap2_build_id with_id;
};

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
		/* MMAP and the older MMAP2 have none; misc bit 13 marks data */
		.prot = misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ :
			PROT_READ | PROT_EXEC,
	};
	if (type == PERF_RECORD_MMAP) {
		out->filename = m.mmap.filename;
		return 0;
	}
	if (table == &mmap2_build_id_record) {
		out->filename = m.with_id.filename;
		out->prot = m.with_id.prot;
		out->flags = m.with_id.flags;
		out->build_id = payload.data + BUILD_ID_POS;
		out->build_id_size = m.with_id.build_id_size;
		return 0;
	}
	out->filename = m.old.filename;
	if (table == &types[PERF_RECORD_MMAP2]) {
		out->filename = m.mmap2.filename;
		out->prot = m.mmap2.prot;
		out->flags = m.mmap2.flags;
		out->is_jit_symfile = out->prot & SEAM_PERF_PROT_JIT_SYMFILE;
	}
	out->maj = m.old.maj;
	out->min = m.old.min;
	out->ino = m.old.ino;
	out->ino_generation = m.old.ino_generation;
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
	case PERF_RECORD_CGROUP:
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
