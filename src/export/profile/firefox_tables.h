/* SPDX-License-Identifier: MIT */
/*
 * firefox_tables.h - the tables that all threads of a Firefox profile share
 *
 * Stacks that have samples get new numbers, parents first.  The leaf of a wait
 * is in the category Idle, in the subcategory of its event, which is how the
 * viewer tells it from running code; so it is a node of its own.
 */
#pragma once

#include "base/json.h"
#include "base/pair_map.h"
#include "export/profile/parts.h"

/* Indices of categories: 0 is the default, then the layers, then Idle. */
enum {
	SEAM_FIREFOX_OTHER,
	SEAM_FIREFOX_LAYER,		/* + enum seam_layer */
	SEAM_FIREFOX_IDLE = SEAM_FIREFOX_LAYER + SEAM_N_LAYERS,
};

struct seam_firefox_leaf {
	uint32_t stack;			/* of the selection; 0: none */
	uint32_t subcategory;		/* of Idle; 0: not of a wait */
};

struct seam_firefox_tables {
	const struct seam_parts *parts;
	struct seam_strings strings;	/* their ids are the file's */
	uint32_t *stacks;		/* by stack: its number, or none */
	uint32_t *frames;		/* by frame: likewise */
	uint32_t *inline_depths;	/* by frame */
	uint32_t n_stacks, n_frames;
	uint32_t *libs;			/* by module: its number, or none */
	uint32_t n_libs;
	/* leaves of waits, and of no stack; numbers follow the others' */
	SEAM_ARRAY(struct seam_firefox_leaf) leaves;
	struct seam_pair_map leaf_ids;
	/* functions with their files */
	SEAM_ARRAY(struct seam_firefox_func {
		uint32_t function;	/* SEAM_NONE: of no stack */
		uint32_t file;
	}) funcs;
	struct seam_pair_map func_ids;
	struct seam_pair_map sources;	/* by file: its number */
	bool is_failed;			/* out of memory */
};

/* 0 or -ENOMEM; seam_firefox_tables_fini() is due in any case. */
int seam_firefox_tables_init(struct seam_firefox_tables *tables,
			     const struct seam_parts *parts);
void seam_firefox_tables_fini(struct seam_firefox_tables *tables);

/* The index of @text among the strings. */
uint32_t seam_firefox_string(struct seam_firefox_tables *tables,
			     const char *text);

/* The number of @stack of the selection with samples of event @id. */
uint32_t seam_firefox_stack(struct seam_firefox_tables *tables, uint32_t stack,
			    uint32_t id);

/*
 * The members "libs" and "shared" of the profile, after all strings are known.
 * 0 or -ENOMEM.
 */
int seam_firefox_tables_put(struct seam_firefox_tables *tables,
			    struct seam_json *json);
