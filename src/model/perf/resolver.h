/* SPDX-License-Identifier: MIT */
/*
 * resolver.h - from the addresses of a callchain to frames of a profile
 *
 * Joins what was mapped (spaces.h) with the symbols of the mapped files
 * (symbol/symbols.h).  Each distinct place in a file is looked up once; each
 * result carries the time span in which it holds.
 *
 * JIT code (symbol/jit/jit_code.h) has precedence, because a runtime may place
 * it over a file; a perf map is used only where no file is mapped.  Code that a
 * JIT has not named is one function of its process, "[jit]".
 *
 * A return address follows its call, and may follow the function: all entries
 * of a chain but the first of each context are looked up one byte earlier,
 * unlike in perf; a signal's trampoline, and the address after it in the chain,
 * are no return addresses.
 */
#pragma once

#include "base/arena.h"
#include "base/strings.h"
#include "model/guest/guest_names.h"
#include "model/jit/jit_sources.h"
#include "model/perf/callchains.h"
#include "model/perf/spaces.h"
#include "model/profile/profile.h"
#include "symbol/elf/symtab.h"
#include "symbol/symbols.h"
#include "wire/perf/perf_data.h"

/* Zeroed is valid and empty. */
struct seam_embedded {
	SEAM_ARRAY(struct seam_embedded_file) files;	/* by path */
	struct seam_arena arena;			/* names */
};

/*
 * Read the tables of @data; paths become ids of @strings.  Damaged ones are
 * skipped.  0 or -ENOMEM.  Cost: a sort of all symbols.
 */
int seam_embedded_read(struct seam_embedded *embedded,
		       const struct seam_perf_data *data,
		       struct seam_strings *strings);
void seam_embedded_fini(struct seam_embedded *embedded);

struct seam_resolver {
	struct seam_profile *profile;
	struct seam_symbols *symbols;
	struct seam_jit_sources *jit;	/* NULL: no JIT code is known */
	struct seam_embedded *embedded;	/* NULL: the recording has no tables */
	struct seam_guest_symbols *guest;	/* may be empty */
	const struct seam_spaces *spaces;	/* of processes */
	const struct seam_spaces *kernel;	/* one space: number 0 */
	/*
	 * In place of both: the vma of @addr in @space now; NULL: none.  For
	 * recordings that are read while they are made.
	 */
	const struct seam_vma *(*find)(void *context, bool is_kernel,
				       uint32_t space, uint64_t addr);
	void *context;			/* of find */
	uint32_t jit_module;		/* of code with names */
	SEAM_ARRAY(uint32_t) nameless;	/* by process: of code without, + 1 */
	bool all_unknown;		/* keep runs of unknown callers */
	SEAM_ARRAY(uint64_t) expected;	/* user addresses, sorted, each once */
	SEAM_ARRAY(uint32_t) files;	/* by module: of symbols, + 1; or 0 */
	SEAM_ARRAY(uint32_t) code_objects;	/* by JIT object, + 1; or 0 */

	/* places already resolved */
	SEAM_ARRAY(struct seam_place) places;
	struct seam_index place_index;
	SEAM_ARRAY(uint32_t) frames;	/* of places, innermost first */
	SEAM_ARRAY(uint32_t) chain;	/* scratch: frames of one callchain */
};

/*
 * @resolver has profile, symbols, spaces and kernel set, which must outlive it,
 * guest, and jit and embedded where there are any.  Mappings of the spaces are
 * those of the profile; mapping 0 is for kernel addresses without one.  0 or
 * -ENOMEM.
 */
int seam_resolver_init(struct seam_resolver *resolver);
void seam_resolver_fini(struct seam_resolver *resolver);

/*
 * Before the first look-up: the user addresses of @chains will be looked up.
 * Nothing is done for more than 4 million, or without memory, which costs time
 * only.
 */
void seam_resolver_expect(struct seam_resolver *resolver,
			  const struct seam_callchains *chains);

/* Where an address is: in a mapping, or in none (SEAM_NONE). */
struct seam_located {
	uint32_t mapping;
	uint64_t pos;			/* in the file; else the address */
};

/* The process and the time of a chain. */
struct seam_resolver_where {
	int32_t pid;
	uint32_t process;		/* of the profile */
	uint32_t space;
	uint64_t time_ns;
	/* By seam_resolver_locate(), in place of what is mapped now; or NULL. */
	const struct seam_located *located;
	uint64_t from_ns, to_ns;	/* out: the stack holds in [from, to) */
};

/*
 * Where each word of @chain is that is an address, into @out, which has @n.
 * For a stack that is made later, when something else may be mapped there: all
 * names of one file that many chains need are requested at once.
 */
void seam_resolver_locate(struct seam_resolver *resolver,
			  const uint64_t *chain, size_t n,
			  struct seam_resolver_where *where,
			  struct seam_located *out);

/* The stack of @chain there; SEAM_NONE when memory ran out. */
uint32_t seam_resolver_stack(struct seam_resolver *resolver,
			     const uint64_t *chain, size_t n,
			     struct seam_resolver_where *where);
