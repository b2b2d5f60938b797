/* SPDX-License-Identifier: MIT */
/*
 * manifest.h - meta.json, the description of a bundle
 *
 * It holds what perf.data has no place for: the boot and the kernel that the
 * addresses belong to, and losses by cause.  Readers ignore unknown members; a
 * missing one reads as 0, "" or false.
 *
 *	{"schema":"seam.bundle/1","version":"seam 0.1.0","complete":true,
 *	 "overwrite":false,"snapshots":false,
 *	 "command":["seam","record","--","make"],
 *	 "host":{"name","release","arch","boot_id"},
 *	 "kernel":{"build_id":"48dc..","text":"0xffffffff81000000"},
 *	 "vdso":{"build_id":"9f3a.."},
 *	 "clock":"CLOCK_MONOTONIC",
 *	 "start":{"wall_ns","monotonic_ns"}, "duration_ns",
 *	 "events":["cpu-clock","dummy:HG"], "left_out":["kernel"],
 *	 "samples", and each count of wire/counts.h: "throttled",
 *	 "lost":{...}, "areas":{...}, "jit":{...}, "guest":{...}, "calls":{...},
 *	 "not_recorded":{...}, "kept":{...}, "late":{...}, "off_cpu":{...},
 *	 "xray":{"ties":[[tsc,monotonic_ns],...]},
 *	 "stacks":{"ended":{"complete",...},"empty","jvm","dump_bytes",
 *	           "files":[{"path","end","stacks"}]},
 *	 "files":[{"path","inode","contents":"0x5b1c.."}],
 *	 "triggers":[{"trigger","pid","tid","tsc","time_ns","duration_ns",
 *	              "function"}],
 *	 "lost_by_event":[{"event","samples","lost"}],
 *	 "rings":[{"cpu","tid","bytes","area_bytes","records","drained_bytes",
 *	           "lost","kind":"samples"|"sideband"|"switches"|"stacks"|
 *	                         "area"}]}
 *
 * The clock is "perf", the kernel's own, where there are AUX buffers ("areas").
 * A ring has a cpu, a tid, or both.  Of the counts "lost" and "throttled" are
 * always there, other sections where anything was counted.  "stacks" is there
 * where user stacks were unwound while recording (stack_counts.h).  "files" has
 * the mapped files without a build id and a hash of their contents
 * (seam_content_id_read()): elf/ may have a copy under this hash.  Addresses are
 * strings, because a JSON number is a double to many readers.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "base/tsc.h"
#include "wire/counts.h"
#include "wire/stack_counts.h"

enum { SEAM_MANIFEST_BUILD_ID = 20 };

/* A mapped file without a build id. */
struct seam_manifest_file {
	const char *path;	/* as it was recorded */
	uint64_t ino;
	uint64_t content_id;
};

struct seam_manifest_ring {
	int cpu;		/* -1: of one thread on all CPUs */
	int tid;		/* -1: of all threads */
	const char *kind;	/* "samples", "sideband", "switches", ... */
	uint64_t size_bytes;
	uint64_t area_bytes;	/* of its AUX buffer; 0: none */
	uint64_t n_records;	/* drained */
	uint64_t n_bytes;	/* of those */
	uint64_t n_lost;	/* by LOST records in it */
};

struct seam_manifest_event {
	const char *name;
	uint64_t n_samples;
	uint64_t n_lost;
};

struct seam_manifest_trigger {
	const char *text;	/* as the user gave it */
	uint64_t pid, tid;
	uint64_t tsc;		/* the same moment in xray/PID.xray */
	uint64_t time_ns;	/* and by CLOCK_MONOTONIC */
	uint64_t duration_ns;	/* of the call; 0: not known */
	uint64_t function;	/* its id; 0: none */
};

struct seam_manifest {
	const char *version;	/* of its writer: "seam 0.1.0" */
	bool complete;		/* the recording was ended, not killed */
	bool overwrite;		/* it keeps the newest samples only */
	bool snapshots;		/* its recorder makes them on request */
	const char *const *words;	/* the command line */
	size_t n_words;

	const char *host;
	const char *release;	/* of the kernel */
	const char *arch;
	const char *boot_id;
	uint8_t kernel_build_id[SEAM_MANIFEST_BUILD_ID];
	size_t kernel_build_id_size;
	uint64_t kernel_text_addr;
	uint8_t vdso_build_id[SEAM_MANIFEST_BUILD_ID];
	size_t vdso_build_id_size;

	bool kernel_clock;	/* times are of the kernel's own clock */
	uint64_t start_wall_ns;	/* the same moment on CLOCK_REALTIME */
	uint64_t start_ns;	/* and on CLOCK_MONOTONIC */
	uint64_t duration_ns;
	const char *const *events;
	size_t n_events;
	const struct seam_manifest_file *files;
	size_t n_files;
	const char *const *left_out;
	size_t n_left_out;

	uint64_t n_samples;
	struct seam_counts counts;
	struct seam_stack_counts stacks;
	const struct seam_manifest_trigger *triggers;	/* of this snapshot */
	size_t n_triggers;
	const struct seam_tsc_tie *ties;	/* ascending */
	size_t n_ties;
	const struct seam_manifest_event *by_event;
	size_t n_by_event;
	const struct seam_manifest_ring *rings;
	size_t n_rings;

	void *owner;		/* of the strings, after a read */
};

/*
 * Replace the contents of @fd, which stays open: when a recording starts, so
 * that a killed one can be recognized, and when it is complete.  0 or -errno.
 */
int seam_manifest_write(int fd, const struct seam_manifest *manifest,
			struct seam_err *err);

/*
 * Whether @json is a manifest of any version: 0, -EBADMSG when it is not, or
 * -ENOMEM.
 */
int seam_manifest_check(struct seam_bytes json, struct seam_err *err);

/*
 * Read a manifest; freed by seam_manifest_fini().  -EBADMSG: not JSON;
 * -ENOTSUP: of an unknown version.
 */
int seam_manifest_read(struct seam_manifest *manifest, struct seam_bytes json,
		       struct seam_err *err);

/*
 * "trigger 'f>10ms': 12.3 ms in thread 4711, 1.284 s after the start", escaped.
 * @start_ns: of the manifest.
 */
void seam_manifest_trigger_describe(char *buf, size_t cap,
				    const struct seam_manifest_trigger *trigger,
				    uint64_t start_ns);

/*
 * Why a recording has no end, "the recording was not ended: ..."; NULL: it has
 * one, or @manifest was not read.
 */
const char *seam_manifest_unended(const struct seam_manifest *manifest);

/* Valid on a zeroed manifest, and on one that was not read. */
void seam_manifest_fini(struct seam_manifest *manifest);
