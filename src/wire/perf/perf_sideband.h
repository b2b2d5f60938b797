/* SPDX-License-Identifier: MIT */
/*
 * perf_sideband.h - the kernel's records other than samples, decoded
 *
 * The side-band is what the kernel records about tasks and mappings, and about
 * its own rings: MMAP, COMM, FORK, EXIT, LOST, AUX.  Recorder and readers of
 * files decode it here: from a ring in the byte order of this machine, from a
 * file in the order of the file.
 *
 * Everything is borrowed from the record.
 *
 * Source: linux/perf_event.h, enum perf_event_type; struct sample_id there.
 */
#ifndef SEAM_PERF_SIDEBAND_H
#define SEAM_PERF_SIDEBAND_H

#include "wire/perf/perf_attr.h"
#include "wire/perf/perf_record.h"

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

#endif /* SEAM_PERF_SIDEBAND_H */
