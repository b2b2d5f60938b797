/* SPDX-License-Identifier: MIT */
/*
 * live_jit.h - the code of JITs and its unwinding rules, while it is recorded
 *
 * JITDUMP records that a connected JIT announces, some with UNWINDING_INFO, are
 * compiled as they arrive, and found by process, address and time.  The rules
 * of which code is in force are those of symbol/jit/jit_code.h: until other
 * code covers its first byte, or it is moved; a child has its parent's as of
 * the fork; an exec ends it.
 *
 * Exact is what was announced before it ran: the recorder copies the rings of
 * programs first, and then takes samples up to the time of that copy
 * (record/drain.h).  Code that needs several records of a ring, and the
 * first round of a program whose owner has to be searched, are known one round
 * later; until then such code is left by its frame pointer.
 *
 * All of it is untrusted, and spoils the stacks of its own process only.
 * Bounded: where code does not fit, the process that has the most begins anew,
 * and is counted; so does one whose moves cost more than their bytes allow.
 *
 * Threads: one.  Cost: 0.5 us a piece of code; 20 ns to find one.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/walk/walk.h"

enum {
	SEAM_LIVE_JIT_MAX_PROCESSES = 1024,
	/* Code is found by parts of so many bytes, as a power of two ... */
	SEAM_LIVE_JIT_PART_BITS = 8,
	SEAM_LIVE_JIT_MAX_LINKS = 1 << 20,	/* ... of all processes */
	SEAM_LIVE_JIT_MAX_OF_PART = 64,		/* older ones are forgotten */
	SEAM_LIVE_JIT_MAX_PIECE = 1 << 20,	/* bytes that are found */
	SEAM_LIVE_JIT_MAX_FORKS = 8,		/* from a process to its code */
	SEAM_LIVE_JIT_MAX_LIVES = 16,		/* older ones are forgotten */
	/*
	 * Links that records may add or pass, by their bytes: loads need one
	 * for 4 bytes at most, moves of code of 1 KiB 5 for each byte.
	 */
	SEAM_LIVE_JIT_STEPS_OF_BYTE = 16,
	SEAM_LIVE_JIT_MAX_STEPS = 1 << 20,	/* that a process has saved */
};

/* Of .eh_frame, of one process, and of all. */
#define SEAM_LIVE_JIT_MAX_FRAMES ((size_t)32 << 20)
#define SEAM_LIVE_JIT_MAX_ALL_FRAMES ((size_t)256 << 20)

struct seam_live_jit_piece {
	uint64_t begin, end;
	uint64_t from_ns, to_ns;	/* when it was in force */
	uint32_t rows;			/* of .rows; SEAM_NONE: none */
};

/* The code in a part of the address space. */
struct seam_live_jit_part {
	uint64_t number;	/* address >> SEAM_LIVE_JIT_PART_BITS */
	uint32_t newest;	/* of .links; SEAM_NONE: none */
};

struct seam_live_jit_link {
	uint32_t piece, older;	/* SEAM_NONE: the last */
};

/* From a fork or an exec on: older code of the process is gone. */
struct seam_live_jit_life {
	uint64_t from_ns;
	int32_t parent;			/* that it was forked from */
	uint64_t parent_serial;		/* 0: none */
};

struct seam_live_jit_process {
	struct seam_live_jit_process *next;	/* in .by_pid */
	int32_t pid;
	uint64_t serial;		/* of all that ever were */
	uint64_t used;			/* when: n_used */
	struct seam_live_jit_life lives[SEAM_LIVE_JIT_MAX_LIVES];
	uint32_t n_lives;		/* besides the one it began with */
	SEAM_ARRAY(struct seam_live_jit_piece) pieces;
	SEAM_ARRAY(struct seam_live_jit_part) parts;
	struct seam_index index;	/* of parts */
	SEAM_ARRAY(struct seam_live_jit_link) links;
	struct seam_unwind_code_rows rows;
	size_t frame_bytes;
	int64_t n_steps_left;
};

/* Zeroed is valid and empty. */
struct seam_live_jit {
	struct seam_live_jit_process *items[SEAM_LIVE_JIT_MAX_PROCESSES];
	size_t n;
	/* Lists of these, by the pid's rest. */
	struct seam_live_jit_process *by_pid[SEAM_LIVE_JIT_MAX_PROCESSES];
	size_t n_links, n_frame_bytes;	/* of all processes */
	uint64_t n_serials, n_used;
	uint64_t n_steps;		/* links that were added or passed */
	uint64_t n_forgotten;		/* processes that began anew */
};

/*
 * Process @pid announced @records, whole JITDUMP records of this machine's byte
 * order: code with what belongs to it, or a move.  Without memory nothing
 * changes.
 */
void seam_live_jit_add(struct seam_live_jit *jit, int32_t pid,
		       struct seam_bytes records);

/* @pid was forked from @parent; @pid runs another program. */
void seam_live_jit_fork(struct seam_live_jit *jit, int32_t pid, int32_t parent,
			uint64_t time_ns);
void seam_live_jit_exec(struct seam_live_jit *jit, int32_t pid,
			uint64_t time_ns);

/* What is known of @pid, valid until the next call of another function. */
struct seam_live_jit_process *seam_live_jit_process(struct seam_live_jit *jit,
						    int32_t pid);

/*
 * Whether a piece of code was at @addr at @time_ns.  Its rules go to @code,
 * which has none if it was announced without.
 */
bool seam_live_jit_find(const struct seam_live_jit *jit,
			const struct seam_live_jit_process *process,
			uint64_t addr, uint64_t time_ns,
			struct seam_unwind_code *code);

void seam_live_jit_fini(struct seam_live_jit *jit);
