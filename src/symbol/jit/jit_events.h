/* SPDX-License-Identifier: MIT */
/*
 * jit_events.h - the members of struct seam_jit_code
 *
 * jit_add.c turns records into objects (what was compiled) and events (where
 * it was put, when) of each process.  jit_code.c sorts the events of a process
 * by time, replays them into its code map, one range an event, and looks
 * addresses up.  Moves are matched with their loads in the replay, because the
 * match depends on the order.  Maps are a layer of their own below the dumps;
 * without times, all their events are of time 0.
 *
 * Private to these two files.
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/index.h"
#include "symbol/jit/code_map.h"
#include "symbol/jit/jit_code.h"
#include "wire/jit/jitdump.h"

/* Corrected or skipped here; the reader has notes of its own. */
enum seam_jit_note {
	SEAM_JIT_OTHER_PID,
	SEAM_JIT_UNTIMED,
	SEAM_JIT_ARCH_GARBAGE,
	SEAM_JIT_TOO_NEW,
	SEAM_JIT_SHIFTED,
	SEAM_JIT_BAD_LINES,
	SEAM_JIT_BAD_TIMES,
	/* Of moves; counted again by each replay, in its layer. */
	SEAM_JIT_MOVE_UNKNOWN,
	SEAM_JIT_MOVE_SIZE,
	SEAM_JIT_MOVE_PLACE,
	SEAM_JIT_INDEX_TWICE,
	SEAM_JIT_N_NOTES,
};

/* A dump or a map. */
struct seam_jit_source {
	int32_t pid;
	int32_t inner_pid;	/* of the dump's header */
	uint64_t reader_notes[SEAM_JITDUMP_N_NOTES];
	uint64_t notes[SEAM_JIT_N_NOTES];
	uint32_t elf_machine;
	enum seam_endian endian;
	uint64_t shift;		/* bytes to take off addresses of lines */
	SEAM_ARRAY(struct seam_jitdump_debug_info) infos;
};

/* Rows, sorted. */
struct seam_jit_line_table {
	struct seam_jit_line *items;
	size_t n;
	bool has_lost_names;	/* overwritten, and not found nearby */
};

/* Something put at an address. */
struct seam_jit_event {
	uint64_t time_ns;
	uint32_t object;	/* SEAM_NONE: a move that has no load */
	uint32_t move;		/* SEAM_NONE for a load */
	uint64_t start_addr;
};

struct seam_jit_move {
	struct seam_jitdump_move record;
	uint32_t source;
};

/* A fork, whose child inherits code, or an exec, which drops it. */
struct seam_jit_fork_exec {
	uint64_t time_ns;
	int32_t parent;		/* -1: an exec, nothing is inherited */
	uint32_t order;		/* among all forks, as added */
};

enum { SEAM_JIT_DUMPS, SEAM_JIT_MAPS, SEAM_JIT_N_LAYERS };

struct seam_jit_layer {
	SEAM_ARRAY(struct seam_jit_event) events;	/* replayed: by time */
	struct seam_code_map map;			/* ranges are events */
	uint64_t notes[SEAM_JIT_N_NOTES];
};

struct seam_jit_process {
	int32_t pid;
	bool is_indexed;
	struct seam_jit_layer layers[SEAM_JIT_N_LAYERS];
	SEAM_ARRAY(struct seam_jit_fork_exec) forks;	/* by time and order */
};

struct seam_jit_code {
	struct seam_arena arena;	/* names of maps, line tables */
	SEAM_ARRAY(struct seam_jit_source) sources;
	SEAM_ARRAY(struct seam_jit_object) objects;
	SEAM_ARRAY(struct seam_jit_move) moves;
	SEAM_ARRAY(struct seam_jit_process) processes;
	SEAM_ARRAY(struct seam_jit_line_table) tables;
	struct seam_index pids;
	uint32_t n_forks;
	bool is_indexed;
};

/* The process, made if it is new, to be indexed again; NULL: no memory. */
struct seam_jit_process *seam_jit_process_make(struct seam_jit_code *jit,
					       int32_t pid);
