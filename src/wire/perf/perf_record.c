/* SPDX-License-Identifier: MIT */
/* perf_record.c - tables of every record, in the order of their types */
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>

/*
 * Field names are the ABI's, except where one could be taken for the record's
 * own in a dump: a type of BPF event, an offset in the AUX buffer.
 */
#define KERNEL "linux/perf_event.h, enum perf_event_type"
#define TOOL "tools/lib/perf/include/perf/event.h"

#define F(record, member, text)						\
	SEAM_FIELD(struct seam_perf_##record, member, text)

const struct seam_record seam_perf_header_record = SEAM_RECORD(
	"perf_event_header", KERNEL,
	F(header, type, "PERF_RECORD_*"),
	F(header, misc, "bits 0-2 CPU mode, the rest by type"),
	F(header, size, "bytes of the record, these 8 included"));

/* Common to all forms of a mapping. */
#define MAPPING(record)							\
	F(record, pid, "process; -1 for the kernel's own"),		\
	F(record, tid, "thread"),					\
	F(record, addr, "first address"),				\
	F(record, len, "bytes"),					\
	F(record, pgoff, "offset in the file, bytes")
#define INODE(record)							\
	F(record, maj, "device, major"),				\
	F(record, min, "device, minor"),				\
	F(record, ino, "inode"),					\
	F(record, ino_generation, "inode generation")

static const struct seam_record mmap_record = SEAM_RECORD("MMAP", KERNEL,
	MAPPING(mmap),
	F(mmap, filename, "path, or [vdso], [kernel.kallsyms]_text, //anon"));

static const struct seam_record mmap2_record = SEAM_RECORD("MMAP2", KERNEL,
	MAPPING(mmap2),
	INODE(mmap2),
	F(mmap2, prot, "PROT_* bits"),
	F(mmap2, flags, "MAP_* bits"),
	F(mmap2, filename, "path, or [vdso], //anon"));

static const struct seam_record mmap2_old_record = SEAM_RECORD("MMAP2", KERNEL,
	MAPPING(mmap2_old),
	INODE(mmap2_old),
	F(mmap2_old, filename, "path, or [vdso], //anon"));

static const struct seam_record mmap2_build_id_record = SEAM_RECORD(
	"MMAP2", KERNEL,
	MAPPING(mmap2_build_id),
	F(mmap2_build_id, build_id_size, "bytes of the build id, at most 20"),
	F(mmap2_build_id, reserved_1, "zero"),
	F(mmap2_build_id, reserved_2, "zero"),
	F(mmap2_build_id, build_id_0, "build id, bytes 0-3"),
	F(mmap2_build_id, build_id_1, "build id, bytes 4-11"),
	F(mmap2_build_id, build_id_2, "build id, bytes 12-19"),
	F(mmap2_build_id, prot, "PROT_* bits"),
	F(mmap2_build_id, flags, "MAP_* bits"),
	F(mmap2_build_id, filename, "path"));

static const struct seam_record comm_record = SEAM_RECORD("COMM", KERNEL,
	F(comm, pid, "process"),
	F(comm, tid, "thread"),
	F(comm, comm, "the thread's new name"));

static const struct seam_record task_record = SEAM_RECORD("FORK", KERNEL,
	F(task, pid, "process"),
	F(task, ppid, "its parent"),
	F(task, tid, "thread"),
	F(task, ptid, "thread that started it"),
	F(task, time, "of the event's clock"));

static const struct seam_record lost_record = SEAM_RECORD("LOST", KERNEL,
	F(lost, id, "of the event that found room again"),
	F(lost, lost, "records that found no room in the ring"));

struct seam_perf_throttle {
	uint64_t time, id, stream_id;
};

static const struct seam_record throttle_record = SEAM_RECORD(
	"THROTTLE", KERNEL,
	F(throttle, time, "of the event's clock"),
	F(throttle, id, "event"),
	F(throttle, stream_id, "event on its CPU"));

struct seam_perf_read {
	int32_t pid, tid;
	struct seam_bytes values;
};

static const struct seam_record read_record = SEAM_RECORD("READ", KERNEL,
	F(read, pid, "process"),
	F(read, tid, "thread"),
	F(read, values, "by read_format"));

static const struct seam_record aux_record = SEAM_RECORD("AUX", KERNEL,
	F(aux, aux_offset, "of the first byte, free-running"),
	F(aux, aux_size, "bytes"),
	F(aux, flags, "1 truncated, 2 overwrite, 4 partial, 8 collision"));

struct seam_perf_itrace_start {
	int32_t pid, tid;
};

static const struct seam_record itrace_start_record = SEAM_RECORD(
	"ITRACE_START", KERNEL,
	F(itrace_start, pid, "process"),
	F(itrace_start, tid, "thread"));

static const struct seam_record lost_samples_record = SEAM_RECORD(
	"LOST_SAMPLES", KERNEL,
	F(lost_samples, lost, "samples that were lost"));

struct seam_perf_switch_wide {
	int32_t next_prev_pid, next_prev_tid;
};

static const struct seam_record switch_wide_record = SEAM_RECORD(
	"SWITCH_CPU_WIDE", KERNEL,
	F(switch_wide, next_prev_pid, "process switched to or from"),
	F(switch_wide, next_prev_tid, "thread switched to or from"));

static const struct seam_record namespaces_record = SEAM_RECORD(
	"NAMESPACES", KERNEL,
	F(namespaces, pid, "process"),
	F(namespaces, tid, "thread"),
	F(namespaces, nr_namespaces, "entries"),
	F(namespaces, link_info,
	  "u64 dev, u64 ino: net uts ipc pid user mnt cgroup"));

static const struct seam_record ksymbol_record = SEAM_RECORD("KSYMBOL", KERNEL,
	F(ksymbol, addr, "first address"),
	F(ksymbol, len, "bytes"),
	F(ksymbol, ksym_type, "1 BPF program, 2 out-of-line code"),
	F(ksymbol, flags, "1: unregistered"),
	F(ksymbol, name, "symbol"));

struct seam_perf_bpf_event {
	uint16_t bpf_type, flags;
	uint32_t id;
	struct seam_bytes tag;
};

static const struct seam_record bpf_event_record = SEAM_RECORD(
	"BPF_EVENT", KERNEL,
	F(bpf_event, bpf_type, "1 load, 2 unload"),
	F(bpf_event, flags, "zero"),
	F(bpf_event, id, "of the program"),
	F(bpf_event, tag, "8 bytes"));

static const struct seam_record cgroup_record = SEAM_RECORD("CGROUP", KERNEL,
	F(cgroup, id, "as in samples"),
	F(cgroup, path, "from the cgroup file system's root"));

struct seam_perf_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	struct seam_bytes bytes;
};

static const struct seam_record text_poke_record = SEAM_RECORD(
	"TEXT_POKE", KERNEL,
	F(text_poke, addr, "kernel address"),
	F(text_poke, old_len, "bytes before"),
	F(text_poke, new_len, "bytes after"),
	F(text_poke, bytes, "old bytes, new bytes, padding"));

struct seam_perf_hw_id {
	uint64_t hw_id;
};

static const struct seam_record hw_id_record = SEAM_RECORD(
	"AUX_OUTPUT_HW_ID", KERNEL,
	F(hw_id, hw_id, "PMU's own"));

struct seam_perf_callchain_deferred {
	uint64_t cookie, nr;
	struct seam_bytes ips;
};

static const struct seam_record callchain_deferred_record = SEAM_RECORD(
	"CALLCHAIN_DEFERRED", KERNEL,
	F(callchain_deferred, cookie, "as in the sample"),
	F(callchain_deferred, nr, "entries"),
	F(callchain_deferred, ips, "u64 each"));

/* The perf tool's own, and what has no fields. */
struct seam_perf_blob {
	struct seam_bytes data;
};

static const struct seam_record blob_record = SEAM_RECORD("data", TOOL,
	F(blob, data, "see perf.data"));

struct seam_perf_tracing_data {
	uint32_t size;
};

static const struct seam_record tracing_data_record = SEAM_RECORD(
	"TRACING_DATA", TOOL,
	F(tracing_data, size, "bytes after the record, padded to 8"));

struct seam_perf_header_build_id {
	int32_t pid;
	uint32_t id_0;
	uint64_t id_1, id_2;
	uint8_t size, reserved_1;
	uint16_t reserved_2;
	const char *filename;
};

static const struct seam_record build_id_record = SEAM_RECORD("BUILD_ID", TOOL,
	F(header_build_id, pid, "process; -1 for files of the host"),
	F(header_build_id, id_0, "build id, bytes 0-3"),
	F(header_build_id, id_1, "build id, bytes 4-11"),
	F(header_build_id, id_2, "build id, bytes 12-19"),
	F(header_build_id, size,
	  "bytes of the build id, with misc bit 15; else 20"),
	F(header_build_id, reserved_1, "zero"),
	F(header_build_id, reserved_2, "zero"),
	F(header_build_id, filename, "path"));

struct seam_perf_counted {
	uint64_t nr;
	struct seam_bytes entries;
};

static const struct seam_record counted_record = SEAM_RECORD("ID_INDEX", TOOL,
	F(counted, nr, "entries"),
	F(counted, entries, "by type"));

struct seam_perf_auxtrace_info {
	uint32_t auxtrace_type, reserved;
	struct seam_bytes priv;
};

static const struct seam_record auxtrace_info_record = SEAM_RECORD(
	"AUXTRACE_INFO", TOOL,
	F(auxtrace_info, auxtrace_type,
	  "1 Intel PT, 2 BTS, 3 CoreSight, 4 Arm SPE, ..."),
	F(auxtrace_info, reserved, "zero"),
	F(auxtrace_info, priv, "u64 values of the decoder's own"));

static const struct seam_record auxtrace_record = SEAM_RECORD("AUXTRACE", TOOL,
	F(auxtrace, size, "bytes of trace after this record"),
	F(auxtrace, aux_offset, "of the first byte in the AUX buffer"),
	F(auxtrace, reference, "unique to the trace"),
	F(auxtrace, idx, "of the AUX ring"),
	F(auxtrace, tid, "-1 for a CPU's ring"),
	F(auxtrace, cpu, "-1 for a thread's ring"),
	F(auxtrace, reserved, "zero"));

struct seam_perf_event_update {
	uint64_t update_type, id;
	struct seam_bytes data;
};

static const struct seam_record event_update_record = SEAM_RECORD(
	"EVENT_UPDATE", TOOL,
	F(event_update, update_type, "0 unit, 1 scale, 2 name, 3 CPUs"),
	F(event_update, id, "event"),
	F(event_update, data, "the new value"));

struct seam_perf_time_conv {
	uint64_t time_shift, time_mult, time_zero;
	struct seam_bytes more;
};

static const struct seam_record time_conv_record = SEAM_RECORD(
	"TIME_CONV", TOOL,
	F(time_conv, time_shift, "of the TSC"),
	F(time_conv, time_mult, "of the TSC"),
	F(time_conv, time_zero, "ns at TSC 0"),
	F(time_conv, more, "cycles, mask, capabilities"));

struct seam_perf_header_feature {
	uint64_t feat_id;
	struct seam_bytes data;
};

static const struct seam_record header_feature_record = SEAM_RECORD(
	"FEATURE", TOOL,
	F(header_feature, feat_id, "HEADER_*"),
	F(header_feature, data, "as the feature's section"));

struct seam_perf_compressed2 {
	uint64_t data_size;
	struct seam_bytes data;
};

static const struct seam_record compressed2_record = SEAM_RECORD(
	"COMPRESSED2", TOOL,
	F(compressed2, data_size, "bytes of zstd data"),
	F(compressed2, data, "zstd stream, padded"));

static const struct seam_record nothing_record = {
	.name = "nothing", .spec = KERNEL,
};

_Static_assert(sizeof(struct seam_perf_mmap2) <= SEAM_PERF_MAX_RECORD &&
	       sizeof(struct seam_perf_mmap2_build_id) <= SEAM_PERF_MAX_RECORD,
	       "SEAM_PERF_MAX_RECORD is too small");

static const struct {
	const char *name;
	const struct seam_record *table;
} types[] = {
	[PERF_RECORD_MMAP] = { "MMAP", &mmap_record },
	[PERF_RECORD_LOST] = { "LOST", &lost_record },
	[PERF_RECORD_COMM] = { "COMM", &comm_record },
	[PERF_RECORD_EXIT] = { "EXIT", &task_record },
	[PERF_RECORD_THROTTLE] = { "THROTTLE", &throttle_record },
	[PERF_RECORD_UNTHROTTLE] = { "UNTHROTTLE", &throttle_record },
	[PERF_RECORD_FORK] = { "FORK", &task_record },
	[PERF_RECORD_READ] = { "READ", &read_record },
	[PERF_RECORD_SAMPLE] = { "SAMPLE", NULL },
	[PERF_RECORD_MMAP2] = { "MMAP2", &mmap2_record },
	[PERF_RECORD_AUX] = { "AUX", &aux_record },
	[PERF_RECORD_ITRACE_START] = { "ITRACE_START", &itrace_start_record },
	[PERF_RECORD_LOST_SAMPLES] = { "LOST_SAMPLES", &lost_samples_record },
	[PERF_RECORD_SWITCH] = { "SWITCH", &nothing_record },
	[PERF_RECORD_SWITCH_CPU_WIDE] = {
		"SWITCH_CPU_WIDE", &switch_wide_record },
	[PERF_RECORD_NAMESPACES] = { "NAMESPACES", &namespaces_record },
	[PERF_RECORD_KSYMBOL] = { "KSYMBOL", &ksymbol_record },
	[PERF_RECORD_BPF_EVENT] = { "BPF_EVENT", &bpf_event_record },
	[PERF_RECORD_CGROUP] = { "CGROUP", &cgroup_record },
	[PERF_RECORD_TEXT_POKE] = { "TEXT_POKE", &text_poke_record },
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = { "AUX_OUTPUT_HW_ID", &hw_id_record },
	[SEAM_PERF_CALLCHAIN_DEFERRED] = {
		"CALLCHAIN_DEFERRED", &callchain_deferred_record },
	[SEAM_PERF_HEADER_ATTR] = { "ATTR", &blob_record },
	[SEAM_PERF_HEADER_EVENT_TYPE] = { "EVENT_TYPE", &blob_record },
	[SEAM_PERF_HEADER_TRACING_DATA] = {
		"TRACING_DATA", &tracing_data_record },
	[SEAM_PERF_HEADER_BUILD_ID] = { "BUILD_ID", &build_id_record },
	[SEAM_PERF_FINISHED_ROUND] = { "FINISHED_ROUND", &nothing_record },
	[SEAM_PERF_ID_INDEX] = { "ID_INDEX", &counted_record },
	[SEAM_PERF_AUXTRACE_INFO] = {
		"AUXTRACE_INFO", &auxtrace_info_record },
	[SEAM_PERF_AUXTRACE] = { "AUXTRACE", &auxtrace_record },
	[SEAM_PERF_AUXTRACE_ERROR] = { "AUXTRACE_ERROR", &blob_record },
	[SEAM_PERF_THREAD_MAP] = { "THREAD_MAP", &counted_record },
	[SEAM_PERF_CPU_MAP] = { "CPU_MAP", &blob_record },
	[SEAM_PERF_STAT_CONFIG] = { "STAT_CONFIG", &counted_record },
	[SEAM_PERF_STAT] = { "STAT", &blob_record },
	[SEAM_PERF_STAT_ROUND] = { "STAT_ROUND", &blob_record },
	[SEAM_PERF_EVENT_UPDATE] = { "EVENT_UPDATE", &event_update_record },
	[SEAM_PERF_TIME_CONV] = { "TIME_CONV", &time_conv_record },
	[SEAM_PERF_HEADER_FEATURE] = { "FEATURE", &header_feature_record },
	[SEAM_PERF_COMPRESSED] = { "COMPRESSED", &blob_record },
	[SEAM_PERF_FINISHED_INIT] = { "FINISHED_INIT", &nothing_record },
	[SEAM_PERF_COMPRESSED2] = { "COMPRESSED2", &compressed2_record },
};

const char *seam_perf_record_name(uint32_t type)
{
	return type < SEAM_ARRAY_SIZE(types) ? types[type].name : NULL;
}

const struct seam_record *seam_perf_record_table(uint32_t type, uint16_t misc)
{
	if (type == PERF_RECORD_MMAP2 && misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return &mmap2_build_id_record;
	return type < SEAM_ARRAY_SIZE(types) ? types[type].table : NULL;
}

int seam_perf_record_read(const struct seam_record *table,
			  struct seam_bytes payload, enum seam_endian endian,
			  void *out)
{
	struct seam_cursor c = seam_cursor_over(payload, endian);

	return seam_wire_read(&c, table, out) ? -EBADMSG : 0;
}

enum {
	BUILD_ID_SIZE_POS = 32,	/* a byte, then three of zero; or maj */
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
		return &mmap2_record;
	return table == &mmap2_record && is_old_mmap2(payload, endian) ?
	       &mmap2_old_record : table;
}
