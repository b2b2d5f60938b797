/* SPDX-License-Identifier: MIT */
/*
 * process_maps.h - which executable mappings each process has now
 *
 * The side-band, applied in the order of time, keeps a list of mappings for
 * each process.  A fork shares its parent's list; a list that is shared is
 * copied when one of its users changes it, so that a sample can hold the list
 * of its moment while later records are applied.  A new mapping covers what was
 * mapped there before; the kernel reports no munmap().
 *
 * Everything is bounded, because unprivileged programs fork and map as they
 * like; what is left out is counted.  Threads: one.
 */
#ifndef SEAM_PROCESS_MAPS_H
#define SEAM_PROCESS_MAPS_H

#include "base/array.h"

enum {
	SEAM_PROCESS_MAPS_MAX = 65536,		/* processes */
	SEAM_PROCESS_MAX_MAPPINGS = 16384,	/* of one process */
	/* Of all processes: 32 MiB. */
	SEAM_PROCESS_MAPS_MAX_MAPPINGS = 1 << 20,
	SEAM_PROCESS_MAPS_LISTS = 4096,
	/* Mappings of processes that ended last: records may be late. */
	SEAM_PROCESS_MAPS_ENDED = 256,
};

/* [begin, end) of a process's memory, mapped from @offset of @file on. */
struct seam_process_mapping {
	uint64_t begin, end, offset;
	uint32_t file;			/* the caller's id; SEAM_NONE: none */
	uint32_t flags;			/* the caller's */
};

/* The mappings of one or more processes, ascending. */
struct seam_process_map {
	uint32_t n_users;
	uint32_t n, cap;
	uint32_t flags;			/* of all that were ever in it */
	struct seam_process_mapping items[];
};

struct seam_mapped_process {
	int32_t pid;			/* 0: a free slot */
	uint32_t next;			/* of .by_pid, + 1; 0: the last */
	bool has_ended;
	bool has_birth;			/* n_threads is exact */
	uint32_t n_threads;
	struct seam_process_map *map;	/* NULL: nothing is mapped */
};

/* Zeroed is valid and empty. */
struct seam_process_maps {
	/* A mapping of @file is in one list more (@n 1) or less; may be NULL. */
	void (*use)(void *context, uint32_t file, int n);
	void *context;
	SEAM_ARRAY(struct seam_mapped_process) processes;
	/* Lists of processes, + 1, by the pid's rest. */
	uint32_t by_pid[SEAM_PROCESS_MAPS_LISTS];
	SEAM_ARRAY(uint32_t) free;	/* slots */
	size_t n_mappings;		/* in all lists */
	uint32_t ended[SEAM_PROCESS_MAPS_ENDED];	/* slots, and 1 */
	size_t n_ended;
	uint64_t n_left_out;		/* mappings and processes */
};

/* Process @pid maps @mapping. */
void seam_process_maps_add(struct seam_process_maps *maps, int32_t pid,
			   const struct seam_process_mapping *mapping);

/* Task @pid was created by process @parent; if equal, a thread of it was. */
void seam_process_maps_fork(struct seam_process_maps *maps, int32_t pid,
			    int32_t parent);

/* Process @pid runs another program: nothing of the old one is mapped. */
void seam_process_maps_exec(struct seam_process_maps *maps, int32_t pid);

/*
 * A thread of process @pid has ended.  Whether it was the last one; false too
 * where that is not known.
 */
bool seam_process_maps_exit(struct seam_process_maps *maps, int32_t pid);

/*
 * The mappings of @pid, borrowed until the next change; seam_process_map_get()
 * keeps them.  NULL: none are known.
 */
struct seam_process_map *
seam_process_maps_find(const struct seam_process_maps *maps, int32_t pid);

/* Use @map, which then does not change; NULL is ok.  Returns @map. */
struct seam_process_map *seam_process_map_get(struct seam_process_map *map);
void seam_process_maps_put(struct seam_process_maps *maps,
			   struct seam_process_map *map);

/* The mapping at @addr, or NULL.  Cost: one binary search. */
const struct seam_process_mapping *
seam_process_map_at(const struct seam_process_map *map, uint64_t addr);

void seam_process_maps_fini(struct seam_process_maps *maps);

#endif /* SEAM_PROCESS_MAPS_H */
