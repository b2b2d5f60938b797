/* SPDX-License-Identifier: MIT */
/*
 * perf_record.h - the records of a perf.data stream, one table each
 *
 * Records of the kernel (types below 64) come out of the ring: samples, and the
 * side-band about tasks, mappings and its own rings, each with a trailer.
 * Recorder and readers of files decode the side-band here: from a ring in the
 * byte order of this machine, from a file in the order of the file.  Records of
 * the perf tool (64 and above) were added by the program that wrote the file.
 * Everything is borrowed from the record.
 *
 * PERF_RECORD_SAMPLE has no table: its layout depends on the event's
 * sample_type.  See perf_sample.h.
 *
 * Source: linux/perf_event.h, enum perf_event_type; for the tool's records
 * tools/lib/perf/include/perf/event.h of Linux 6.1, and of 6.16 for
 * COMPRESSED2.
 */
#pragma once

#include "wire/perf/perf_attr.h"

/* Types that linux/perf_event.h of Linux 6.1 does not have. */
enum seam_perf_type {
	SEAM_PERF_CALLCHAIN_DEFERRED = 22,	/* Linux 6.19 */
	SEAM_PERF_HEADER_ATTR = 64,
	SEAM_PERF_HEADER_EVENT_TYPE = 65,
	SEAM_PERF_HEADER_TRACING_DATA = 66,
	SEAM_PERF_HEADER_BUILD_ID = 67,
	SEAM_PERF_FINISHED_ROUND = 68,
	SEAM_PERF_ID_INDEX = 69,
	SEAM_PERF_AUXTRACE_INFO = 70,
	SEAM_PERF_AUXTRACE = 71,
	SEAM_PERF_AUXTRACE_ERROR = 72,
	SEAM_PERF_THREAD_MAP = 73,
	SEAM_PERF_CPU_MAP = 74,
	SEAM_PERF_STAT_CONFIG = 75,
	SEAM_PERF_STAT = 76,
	SEAM_PERF_STAT_ROUND = 77,
	SEAM_PERF_EVENT_UPDATE = 78,
	SEAM_PERF_TIME_CONV = 79,
	SEAM_PERF_HEADER_FEATURE = 80,
	SEAM_PERF_COMPRESSED = 81,
	SEAM_PERF_FINISHED_INIT = 82,
	SEAM_PERF_COMPRESSED2 = 83,
	SEAM_PERF_FIRST_TOOL = 64,
	SEAM_PERF_FIRST_SIMPLEPERF = 32768,	/* Android's own records */
};

/* The 8 bytes before each record. */
struct seam_perf_header {
	uint32_t type;
	uint16_t misc;
	uint16_t size;		/* header included */
};

enum { SEAM_PERF_HEADER_BYTES = 8 };

extern const struct seam_record seam_perf_header_record;

/* One record of a stream.  Everything is borrowed from the stream. */
struct seam_perf_record {
	uint32_t type;
	uint16_t misc;
	uint64_t offset;		/* of the header, in the file */
	struct seam_bytes payload;	/* after the header */
};

/*
 * The record in memory at @header, of this machine's byte order.  The caller
 * has checked that all of its bytes are there.
 */
static inline struct seam_perf_record seam_perf_record_at(const void *header)
{
	struct seam_perf_header h;

	memcpy(&h, header, sizeof(h));
	return (struct seam_perf_record) {
		.type = h.type, .misc = h.misc,
		.payload = { (const uint8_t *)header + sizeof(h),
			     h.size - sizeof(h) },
	};
}

struct seam_perf_mmap {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	const char *filename;
};

struct seam_perf_mmap2 {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	const char *filename;
};

/*
 * Set in prot by simpleperf: the mapping is of code that a JIT wrote.
 * Source: its map_flags::PROT_JIT_SYMFILE_MAP.
 */
enum { SEAM_PERF_PROT_JIT_SYMFILE = 0x4000 };

/*
 * Of kernels before 3.16, Android's 3.10 among them.
 * Source: Linux commit f972eb63b100, which added prot and flags.
 */
struct seam_perf_mmap2_old {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	const char *filename;
};

/* MMAP2 with misc bit 14: the build id in place of the inode. */
struct seam_perf_mmap2_build_id {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint8_t build_id_size, reserved_1;
	uint16_t reserved_2;
	uint32_t build_id_0;	/* 20 bytes from here; see perf_record.c */
	uint64_t build_id_1, build_id_2;
	uint32_t prot, flags;
	const char *filename;
};

struct seam_perf_comm {
	int32_t pid, tid;
	const char *comm;
};

struct seam_perf_task {		/* FORK and EXIT */
	int32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct seam_perf_lost {
	uint64_t id;		/* of the event that found room again */
	uint64_t lost;		/* records that found no room in the ring */
};

struct seam_perf_lost_samples {
	uint64_t lost;
};

struct seam_perf_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type;	/* 1 BPF program, 2 out-of-line code */
	uint16_t flags;		/* 1: unregistered */
	const char *name;
};

struct seam_perf_namespaces {
	int32_t pid, tid;
	uint64_t nr_namespaces;
	struct seam_bytes link_info;	/* u64 dev, u64 ino of each */
};

struct seam_perf_cgroup {
	uint64_t id;
	const char *path;
};

struct seam_perf_aux {
	uint64_t aux_offset, aux_size;	/* of the bytes, free-running */
	uint64_t flags;		/* 1 truncated, 2 overwrite, 4 partial, ... */
};

struct seam_perf_auxtrace {
	uint64_t size, aux_offset;	/* bytes of trace after this record */
	uint64_t reference;	/* unique to the trace */
	uint32_t idx;		/* of the AUX ring */
	int32_t tid;		/* -1 for a CPU's ring */
	uint32_t cpu, reserved;	/* -1 for a thread's ring */
};

/* Room for what any of the tables reads. */
enum { SEAM_PERF_MAX_RECORD = 96 };

/*
 * "MMAP2", "SAMPLE", "FINISHED_ROUND": as perf prints them after
 * PERF_RECORD_.  NULL for a type that we do not know.
 */
const char *seam_perf_record_name(uint32_t type);

/* The table of a type, or NULL for SAMPLE and for unknown types. */
const struct seam_record *seam_perf_record_table(uint32_t type, uint16_t misc);

/*
 * The same for the record with this @payload, without its trailer, where the
 * layout also depends on the age of the kernel.
 */
const struct seam_record *
seam_perf_record_table_of(uint32_t type, uint16_t misc,
			  struct seam_bytes payload, enum seam_endian endian);

/* Read @payload, without its trailer, by its table: 0 or -EBADMSG. */
int seam_perf_record_read(const struct seam_record *table,
			  struct seam_bytes payload, enum seam_endian endian,
			  void *out);

/* -- the side-band ------------------------------------------------------ */

/*
 * The trailer of sample_id_all: which thread, CPU and event a record is of,
 * and when it was written.
 */
struct seam_perf_sample_id {
	int32_t pid, tid;	/* -1 when not recorded */
	uint64_t time;		/* of the event's clock; 0 */
	uint64_t id;		/* which event; 0 */
	uint64_t stream_id;	/* 0 */
	uint32_t cpu;		/* UINT32_MAX */
};

/* MMAP and all forms of MMAP2 as one. */
struct seam_perf_mapping {
	int32_t pid, tid;
	uint64_t addr, len, pgoff;
	const uint8_t *build_id;	/* NULL when not recorded */
	size_t build_id_size;		/* at most 20 */
	uint32_t prot;		/* PROT_*; PROT_EXEC where not recorded */
	uint32_t flags;		/* MAP_*; 0 when not recorded */
	const char *filename;
	/*
	 * Code that a JIT wrote, by simpleperf: @filename has its symbols, by
	 * their addresses in memory.
	 */
	bool is_jit_symfile;
	uint32_t maj, min;		/* of the device; 0 when not recorded */
	uint64_t ino, ino_generation;	/* 0 when not recorded */
};

struct seam_perf_sideband {
	uint32_t type;			/* PERF_RECORD_* */
	uint16_t misc;
	struct seam_perf_sample_id sample_id;
	union {				/* by type; others: none */
		struct seam_perf_mapping mapping;	/* MMAP, MMAP2 */
		struct seam_perf_comm comm;
		struct seam_perf_task task;		/* FORK, EXIT */
		struct seam_perf_lost lost;
		struct seam_perf_lost_samples lost_samples;
		struct seam_perf_aux aux;
		struct seam_perf_ksymbol ksymbol;
		struct seam_perf_cgroup cgroup;
	};
};

/* Whether a record of @type ends in the trailer of sample_id_all. */
bool seam_perf_record_has_sample_id(uint32_t type);

/*
 * Whether a mapping with this name is of memory, which code of a JIT may be in,
 * and not of a file on a disk.
 * Source: names of the kernel, fs/proc/task_mmu.c, and of perf.
 */
bool seam_perf_mapping_is_memory(const char *filename);

/* Bytes of the trailer under @attr; 0 without sample_id_all. */
size_t seam_perf_sample_id_bytes(const struct seam_perf_attr *attr);

/*
 * Read the trailer and take it off the end of @payload.  Returns 0, or
 * -EBADMSG when the payload is too short to hold one.
 */
int seam_perf_sample_id_read(const struct seam_perf_attr *attr,
			     enum seam_endian endian,
			     struct seam_bytes *payload,
			     struct seam_perf_sample_id *out);

/*
 * Read MMAP or MMAP2; @payload is without its trailer.  Returns 0, -EBADMSG
 * when it does not hold what its type requires.
 */
int seam_perf_mapping_read(uint32_t type, uint16_t misc,
			   struct seam_bytes payload, enum seam_endian endian,
			   struct seam_perf_mapping *out);

/*
 * Read a whole @record of an event with @attr.  Returns 0, or -EBADMSG for one
 * that is damaged, for a sample, and for a record of the perf tool.
 *
 * Cost: 50 to 250 ns.
 */
int seam_perf_sideband_read(const struct seam_perf_attr *attr,
			    enum seam_endian endian,
			    const struct seam_perf_record *record,
			    struct seam_perf_sideband *out);

/* Set the build id of a mapping to be written: @size bytes, at most 20. */
void seam_perf_mmap2_set_build_id(struct seam_perf_mmap2_build_id *mapping,
				  const uint8_t *id, size_t size);

/* Room for any record with a path of PATH_MAX. */
enum { SEAM_PERF_SIDEBAND_MAX = 4096 + 256 };

/*
 * Write a record of @type as the kernel would for an event with @attr: header,
 * @fields by the type's table, zeros up to a multiple of 8, the trailer.
 * Returns its size in bytes, 0 when that is more than @cap or 64 KiB.
 */
size_t seam_perf_sideband_write(const struct seam_perf_attr *attr,
				enum seam_endian endian, uint32_t type,
				uint16_t misc, const void *fields,
				const struct seam_perf_sample_id *sample_id,
				uint8_t *buf, size_t cap);
