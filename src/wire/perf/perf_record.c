/* SPDX-License-Identifier: MIT */
/* perf_record.c - tables of every record, in the order of their types */
#include "wire/perf/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

/*
 * Field names are the ABI's, except where one would read as the record's own
 * in a dump: a type of BPF event, an offset in the AUX area.
 */
#define KERNEL "linux/perf_event.h, enum perf_event_type"
#define TOOL "tools/lib/perf/include/perf/event.h"

#define TABLE(id, label, source)					\
	const struct seam_record id##_record = {			\
		.name = (label), .spec = (source),			\
		.fields = id##_fields,					\
		.n_fields = SEAM_ARRAY_SIZE(id##_fields),		\
	}

#define F(member, text) SEAM_FIELD(struct seam_perf_header, member, text)
static const struct seam_field header_fields[] = {
	F(type, "PERF_RECORD_*"),
	F(misc, "bits 0-2 CPU mode, the rest by type"),
	F(size, "bytes of the record, these 8 included"),
};
#undef F

const struct seam_record seam_perf_header_record = {
	.name = "perf_event_header", .spec = KERNEL,
	.fields = header_fields, .n_fields = SEAM_ARRAY_SIZE(header_fields),
};

#define F(member, text) SEAM_FIELD(struct seam_perf_mmap, member, text)
static const struct seam_field mmap_fields[] = {
	F(pid, "process; -1 for the kernel's own"),
	F(tid, "thread"),
	F(addr, "first address"),
	F(len, "bytes"),
	F(pgoff, "offset in the file, bytes"),
	F(filename, "path, or [vdso], [kernel.kallsyms]_text, //anon"),
};
#undef F
static TABLE(mmap, "MMAP", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_mmap2, member, text)
static const struct seam_field mmap2_fields[] = {
	F(pid, "process"),
	F(tid, "thread"),
	F(addr, "first address"),
	F(len, "bytes"),
	F(pgoff, "offset in the file, bytes"),
	F(maj, "device, major"),
	F(min, "device, minor"),
	F(ino, "inode"),
	F(ino_generation, "inode generation"),
	F(prot, "PROT_* bits"),
	F(flags, "MAP_* bits"),
	F(filename, "path, or [vdso], //anon"),
};
#undef F
static TABLE(mmap2, "MMAP2", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_mmap2_old, member, text)
static const struct seam_field mmap2_old_fields[] = {
	F(pid, "process"),
	F(tid, "thread"),
	F(addr, "first address"),
	F(len, "bytes"),
	F(pgoff, "offset in the file, bytes"),
	F(maj, "device, major"),
	F(min, "device, minor"),
	F(ino, "inode"),
	F(ino_generation, "inode generation"),
	F(filename, "path, or [vdso], //anon"),
};
#undef F
static TABLE(mmap2_old, "MMAP2", KERNEL);

#define F(member, text)							\
	SEAM_FIELD(struct seam_perf_mmap2_build_id, member, text)
static const struct seam_field mmap2_build_id_fields[] = {
	F(pid, "process"),
	F(tid, "thread"),
	F(addr, "first address"),
	F(len, "bytes"),
	F(pgoff, "offset in the file, bytes"),
	F(build_id_size, "bytes of the build id, at most 20"),
	F(reserved_1, "zero"),
	F(reserved_2, "zero"),
	F(build_id_0, "build id, bytes 0-3"),
	F(build_id_1, "build id, bytes 4-11"),
	F(build_id_2, "build id, bytes 12-19"),
	F(prot, "PROT_* bits"),
	F(flags, "MAP_* bits"),
	F(filename, "path"),
};
#undef F
static TABLE(mmap2_build_id, "MMAP2", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_comm, member, text)
static const struct seam_field comm_fields[] = {
	F(pid, "process"), F(tid, "thread"), F(comm, "the thread's new name"),
};
#undef F
static TABLE(comm, "COMM", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_task, member, text)
static const struct seam_field task_fields[] = {
	F(pid, "process"), F(ppid, "its parent"), F(tid, "thread"),
	F(ptid, "thread that started it"), F(time, "of the event's clock"),
};
#undef F
static TABLE(task, "FORK", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_lost, member, text)
static const struct seam_field lost_fields[] = {
	F(id, "of the event that found room again"),
	F(lost, "records that found no room in the ring"),
};
#undef F
static TABLE(lost, "LOST", KERNEL);

struct throttle {
	uint64_t time, id, stream_id;
};

#define F(member, text) SEAM_FIELD(struct throttle, member, text)
static const struct seam_field throttle_fields[] = {
	F(time, "of the event's clock"), F(id, "event"),
	F(stream_id, "event on its CPU"),
};
#undef F
static TABLE(throttle, "THROTTLE", KERNEL);

struct read_values {
	int32_t pid, tid;
	struct seam_bytes values;
};

#define F(member, text) SEAM_FIELD(struct read_values, member, text)
static const struct seam_field read_fields[] = {
	F(pid, "process"), F(tid, "thread"), F(values, "as read_format says"),
};
#undef F
static TABLE(read, "READ", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_aux, member, text)
static const struct seam_field aux_fields[] = {
	F(aux_offset, "of the first byte, free-running"),
	F(aux_size, "bytes"),
	F(flags, "1 truncated, 2 overwrite, 4 partial, 8 collision"),
};
#undef F
static TABLE(aux, "AUX", KERNEL);

struct pid_tid {
	int32_t pid, tid;
};

#define F(member, text) SEAM_FIELD(struct pid_tid, member, text)
static const struct seam_field itrace_start_fields[] = {
	F(pid, "process"), F(tid, "thread"),
};
#undef F
static TABLE(itrace_start, "ITRACE_START", KERNEL);

#define F(member, text)							\
	SEAM_FIELD(struct seam_perf_lost_samples, member, text)
static const struct seam_field lost_samples_fields[] = {
	F(lost, "samples that were lost"),
};
#undef F
static TABLE(lost_samples, "LOST_SAMPLES", KERNEL);

struct switch_wide {
	int32_t next_prev_pid, next_prev_tid;
};

#define F(member, text) SEAM_FIELD(struct switch_wide, member, text)
static const struct seam_field switch_wide_fields[] = {
	F(next_prev_pid, "process switched to or from"),
	F(next_prev_tid, "thread switched to or from"),
};
#undef F
static TABLE(switch_wide, "SWITCH_CPU_WIDE", KERNEL);

struct record_namespaces {
	int32_t pid, tid;
	uint64_t nr_namespaces;
	struct seam_bytes link_info;
};

#define F(member, text) SEAM_FIELD(struct record_namespaces, member, text)
static const struct seam_field namespaces_fields[] = {
	F(pid, "process"), F(tid, "thread"), F(nr_namespaces, "entries"),
	F(link_info, "u64 dev, u64 ino: net uts ipc pid user mnt cgroup"),
};
#undef F
static TABLE(namespaces, "NAMESPACES", KERNEL);

#define F(member, text) SEAM_FIELD(struct seam_perf_ksymbol, member, text)
static const struct seam_field ksymbol_fields[] = {
	F(addr, "first address"), F(len, "bytes"),
	F(ksym_type, "1 BPF program, 2 out-of-line code"),
	F(flags, "1: unregistered"), F(name, "symbol"),
};
#undef F
static TABLE(ksymbol, "KSYMBOL", KERNEL);

struct bpf_event {
	uint16_t bpf_type, flags;
	uint32_t id;
	struct seam_bytes tag;
};

#define F(member, text) SEAM_FIELD(struct bpf_event, member, text)
static const struct seam_field bpf_event_fields[] = {
	F(bpf_type, "1 load, 2 unload"), F(flags, "zero"),
	F(id, "of the program"), F(tag, "8 bytes"),
};
#undef F
static TABLE(bpf_event, "BPF_EVENT", KERNEL);

struct record_cgroup {
	uint64_t id;
	const char *path;
};

#define F(member, text) SEAM_FIELD(struct record_cgroup, member, text)
static const struct seam_field cgroup_fields[] = {
	F(id, "as in samples"), F(path, "from the cgroup file system's root"),
};
#undef F
static TABLE(cgroup, "CGROUP", KERNEL);

struct text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	struct seam_bytes bytes;
};

#define F(member, text) SEAM_FIELD(struct text_poke, member, text)
static const struct seam_field text_poke_fields[] = {
	F(addr, "kernel address"), F(old_len, "bytes before"),
	F(new_len, "bytes after"), F(bytes, "old bytes, new bytes, padding"),
};
#undef F
static TABLE(text_poke, "TEXT_POKE", KERNEL);

struct hw_id {
	uint64_t hw_id;
};

#define F(member, text) SEAM_FIELD(struct hw_id, member, text)
static const struct seam_field hw_id_fields[] = { F(hw_id, "PMU's own") };
#undef F
static TABLE(hw_id, "AUX_OUTPUT_HW_ID", KERNEL);

struct callchain_deferred {
	uint64_t cookie, nr;
	struct seam_bytes ips;
};

#define F(member, text) SEAM_FIELD(struct callchain_deferred, member, text)
static const struct seam_field callchain_deferred_fields[] = {
	F(cookie, "as in the sample"), F(nr, "entries"), F(ips, "u64 each"),
};
#undef F
static TABLE(callchain_deferred, "CALLCHAIN_DEFERRED", KERNEL);

/* The perf tool's own, and what has no fields. */
struct record_blob {
	struct seam_bytes data;
};

#define F(member, text) SEAM_FIELD(struct record_blob, member, text)
static const struct seam_field blob_fields[] = { F(data, "see perf.data") };
#undef F
static TABLE(blob, "data", TOOL);

struct tracing_data {
	uint32_t size;
};

#define F(member, text) SEAM_FIELD(struct tracing_data, member, text)
static const struct seam_field tracing_data_fields[] = {
	F(size, "bytes behind the record, padded to 8"),
};
#undef F
static TABLE(tracing_data, "TRACING_DATA", TOOL);

struct build_id {
	int32_t pid;
	uint32_t id_0;
	uint64_t id_1, id_2;
	uint8_t size, reserved_1;
	uint16_t reserved_2;
	const char *filename;
};

#define F(member, text) SEAM_FIELD(struct build_id, member, text)
static const struct seam_field build_id_fields[] = {
	F(pid, "process; -1 for files of the host"),
	F(id_0, "build id, bytes 0-3"),
	F(id_1, "build id, bytes 4-11"),
	F(id_2, "build id, bytes 12-19"),
	F(size, "bytes of the build id, with misc bit 15; else 20"),
	F(reserved_1, "zero"), F(reserved_2, "zero"), F(filename, "path"),
};
#undef F
static TABLE(build_id, "BUILD_ID", TOOL);

struct counted {
	uint64_t nr;
	struct seam_bytes entries;
};

#define F(member, text) SEAM_FIELD(struct counted, member, text)
static const struct seam_field counted_fields[] = {
	F(nr, "entries"), F(entries, "by type"),
};
#undef F
static TABLE(counted, "ID_INDEX", TOOL);

struct auxtrace_info {
	uint32_t auxtrace_type, reserved;
	struct seam_bytes priv;
};

#define F(member, text) SEAM_FIELD(struct auxtrace_info, member, text)
static const struct seam_field auxtrace_info_fields[] = {
	F(auxtrace_type, "1 Intel PT, 2 BTS, 3 CoreSight, 4 Arm SPE, ..."),
	F(reserved, "zero"), F(priv, "u64 values of the decoder's own"),
};
#undef F
static TABLE(auxtrace_info, "AUXTRACE_INFO", TOOL);

#define F(member, text) SEAM_FIELD(struct seam_perf_auxtrace, member, text)
static const struct seam_field auxtrace_fields[] = {
	F(size, "bytes of trace behind this record"),
	F(aux_offset, "of the first byte in the AUX area"),
	F(reference, "unique to the trace"),
	F(idx, "of the AUX ring"), F(tid, "-1 for a CPU's ring"),
	F(cpu, "-1 for a thread's ring"), F(reserved, "zero"),
};
#undef F
static TABLE(auxtrace, "AUXTRACE", TOOL);

struct event_update {
	uint64_t update_type, id;
	struct seam_bytes data;
};

#define F(member, text) SEAM_FIELD(struct event_update, member, text)
static const struct seam_field event_update_fields[] = {
	F(update_type, "0 unit, 1 scale, 2 name, 3 CPUs"), F(id, "event"),
	F(data, "the new value"),
};
#undef F
static TABLE(event_update, "EVENT_UPDATE", TOOL);

struct time_conv {
	uint64_t time_shift, time_mult, time_zero;
	struct seam_bytes more;
};

#define F(member, text) SEAM_FIELD(struct time_conv, member, text)
static const struct seam_field time_conv_fields[] = {
	F(time_shift, "of the TSC"), F(time_mult, "of the TSC"),
	F(time_zero, "ns at TSC 0"), F(more, "cycles, mask, capabilities"),
};
#undef F
static TABLE(time_conv, "TIME_CONV", TOOL);

struct header_feature {
	uint64_t feat_id;
	struct seam_bytes data;
};

#define F(member, text) SEAM_FIELD(struct header_feature, member, text)
static const struct seam_field header_feature_fields[] = {
	F(feat_id, "HEADER_*"), F(data, "as the feature's section"),
};
#undef F
static TABLE(header_feature, "FEATURE", TOOL);

struct compressed2 {
	uint64_t data_size;
	struct seam_bytes data;
};

#define F(member, text) SEAM_FIELD(struct compressed2, member, text)
static const struct seam_field compressed2_fields[] = {
	F(data_size, "bytes of zstd data"), F(data, "zstd stream, padded"),
};
#undef F
static TABLE(compressed2, "COMPRESSED2", TOOL);

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
	struct seam_cursor c = seam_cursor_make(payload.data, payload.size,
						endian);

	return seam_wire_read(&c, table, out) ? -EBADMSG : 0;
}

enum {
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
	struct seam_cursor c = seam_cursor_make(payload.data, payload.size,
						endian);
	uint32_t prot;

	seam_cursor_skip(&c, OLD_NAME_POS);
	prot = seam_cursor_u32(&c);
	seam_cursor_skip(&c, 4);		/* flags */
	return !seam_cursor_cstr(&c) ||
	       (prot & ~(uint32_t)PROT_BITS &&
		payload.data[OLD_NAME_POS] >= ' ');
}

const struct seam_record *
seam_perf_record_table_of(uint32_t type, uint16_t misc,
			  struct seam_bytes payload, enum seam_endian endian)
{
	const struct seam_record *table = seam_perf_record_table(type, misc);

	return table == &mmap2_record && is_old_mmap2(payload, endian) ?
	       &mmap2_old_record : table;
}
