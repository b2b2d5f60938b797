/* SPDX-License-Identifier: MIT */
/*
 * sysprof_stacks.h - a sample of a sysprof stream as one stack of a profile
 *
 * Symbols are applied in the order of the stream: a prototype whose address was
 * used again, after it was collected, has the name of its own time.
 *
 * A C address belongs to the function that begins last at or before it.
 * Sizes are unknown, so an address far beyond is "[name+0x12345]", unnamed.
 */
#pragma once

#include "base/array.h"
#include "model/guest/guest_names.h"
#include "wire/sysprof/sysprof.h"

enum { SEAM_FAST_FUNCTIONS_MAX = 320 };

/* Zeroed is valid: no symbol was seen. */
struct seam_fast_functions {
	bool has[SEAM_FAST_FUNCTIONS_MAX];	/* by place in the order */
	bool is_c[SEAM_FAST_FUNCTIONS_MAX];	/* it is a C function */
	uint16_t by_id[SEAM_FAST_FUNCTIONS_MAX];
	size_t n_ids;
	bool has_unknown;	/* a function of no known build */
	bool is_made;		/* by_id is */
};

struct seam_c_function {
	uint64_t addr;
	uint32_t name;		/* string */
};

/* Zeroed is valid and empty. */
struct seam_c_functions {
	SEAM_ARRAY(struct seam_c_function) items;	/* the runs */
	SEAM_ARRAY(size_t) runs;			/* where each begins */
	SEAM_ARRAY(struct seam_c_function) merged;
};

/* The role of a C function where host and Lua frames are joined. */
enum seam_sysprof_role {
	SEAM_SYSPROF_ROLE_OTHER,
	SEAM_SYSPROF_ROLE_VM,		/* the interpreter's assembly code */
	SEAM_SYSPROF_ROLE_SWITCH,	/* of it: to another coroutine */
	SEAM_SYSPROF_ROLE_INNER,	/* other code of the VM */
	SEAM_SYSPROF_ROLE_CALL,		/* lua_call, lua_pcall */
	SEAM_SYSPROF_ROLE_CPCALL,	/* lua_cpcall: calls a C function */
};

/* A frame of the profile, and the function that the frame was made from. */
struct seam_sysprof_place {
	uint32_t frame;
	enum seam_sysprof_role role;
	uint64_t function;	/* C: its first address; 0: not known */
	uint32_t symbol;	/* of a C function, fast ones included; or 0 */
};

struct seam_sysprof_proto {
	uint32_t chunk;
	uint64_t line;
};

/* The frame for a number of the stream, until symbols change it. */
struct seam_sysprof_meaning {
	uint64_t value, more;
	uint32_t kind, epoch;
	struct seam_sysprof_place place;
};

/* Zeroed but for the profile and @as_parser is valid and empty. */
struct seam_sysprof_names {
	struct seam_profile *profile;
	bool as_parser;		/* names as LuaJIT's own parser has them */
	struct seam_guest_names guest;
	struct seam_c_functions c_functions;
	struct seam_fast_functions fast;
	SEAM_ARRAY(struct seam_sysprof_proto) protos;
	struct seam_pair_map by_addr;		/* prototype to protos */
	struct seam_pair_map traces;		/* (traceno, proto) to line */
	/* by a hash; an entry is valid in its epoch; NULL: not made */
	struct seam_sysprof_meaning *meanings;
	uint32_t epoch;
	bool is_used;		/* in this epoch */
	uint64_t n_far;				/* addresses without a name */
};

void seam_sysprof_names_fini(struct seam_sysprof_names *names);

/* Apply a symbol of the stream.  0 or -ENOMEM. */
int seam_sysprof_names_add(struct seam_sysprof_names *names,
			   const struct seam_sysprof_item *item);

/*
 * The frame of @addr in the host's stack; @is_leaf: it is the sample's own
 * instruction.  The frame is SEAM_NONE when memory ran out.
 */
struct seam_sysprof_place
seam_sysprof_names_host(struct seam_sysprof_names *names, uint64_t addr,
			bool is_leaf);

/* Zeroed is valid and empty. */
struct seam_joined_stack {
	SEAM_ARRAY(uint32_t) frames;	/* of the profile, leaf first */
	SEAM_ARRAY(struct seam_sysprof_place) host, lua;
	uint64_t n_left_out;		/* Lua frames that as_parser lost */
};

/*
 * Join the stacks of @sample into frames.  @version: of the profile.  0 or
 * -ENOMEM.
 */
int seam_joined_stack_make(struct seam_joined_stack *stack,
			   struct seam_sysprof_names *names,
			   const struct seam_sysprof_item *sample,
			   unsigned int version);

void seam_joined_stack_fini(struct seam_joined_stack *stack);
