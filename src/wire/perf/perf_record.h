/* SPDX-License-Identifier: MIT */
/*
 * perf_record.h - the records of a perf.data stream, one table each
 *
 * Records of the kernel (types below 64) come out of the ring.  Records of
 * the perf tool (64 and above) were added by the program that wrote the file.
 * The kernel's records except SAMPLE end in a trailer; perf_sideband.h reads
 * it, and the fields before it.
 *
 * PERF_RECORD_SAMPLE has no table: its layout depends on the event's
 * sample_type.  See perf_sample.h.
 *
 * Source: linux/perf_event.h, enum perf_event_type; for the tool's records
 * tools/lib/perf/include/perf/event.h of Linux 6.1, and of 6.16 for
 * COMPRESSED2.
 */
#ifndef SEAM_PERF_RECORD_H
#define SEAM_PERF_RECORD_H

#include "wire/wire.h"

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
	uint32_t build_id_0;	/* 20 bytes from here; see perf_sideband.c */
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

#endif /* SEAM_PERF_RECORD_H */
