/* SPDX-License-Identifier: MIT */
/*
 * resolver.h - from the addresses of a callchain to frames of a profile
 *
 * Joins what was mapped (spaces.h) with what the mapped files say
 * (symbol/symbols.h).  Each distinct place in a file is looked up once; each
 * answer carries the time span in which it holds.
 *
 * The code of JITs (symbol/jit/jit_code.h) comes first, because a runtime may
 * place it over a file; a perf map counts where no file is mapped.
 *
 * Return addresses stand behind their call, maybe behind the function: all
 * entries of a chain but the first of each context are looked up one byte
 * earlier.  perf looks them up as they are, and so names the next function
 * where a call is the last instruction.  A signal's trampoline, and what comes
 * after it, was not called and is looked up as it is.
 */
#ifndef SEAM_RESOLVER_H
#define SEAM_RESOLVER_H

#include "model/perf/callchains.h"
#include "model/perf/embedded.h"
#include "model/perf/expected.h"
#include "model/perf/spaces.h"
#include "model/profile/profile.h"
#include "symbol/jit/jit_code.h"
#include "symbol/symbols.h"

enum seam_mapping_kind {
	SEAM_MAPPING_FILE,	/* a file: ELF, or data */
	SEAM_MAPPING_VDSO,
	SEAM_MAPPING_ANON,	/* memory without a file: what a JIT fills */
	SEAM_MAPPING_KERNEL,	/* the kernel's text, or a module's */
	SEAM_MAPPING_KSYMBOL,	/* one kernel function that came and went */
};

/* What is at an area of a space. */
struct seam_mapping {
	enum seam_mapping_kind kind;
	uint32_t path;		/* string: as shown in reports */
	uint32_t function;	/* string: the name of a KSYMBOL */
	uint64_t pgoff;		/* bytes of the file before the mapping */
	uint64_t start_addr;	/* of the mapping */
	int32_t pid;
	uint8_t build_id[20];
	uint8_t build_id_size;	/* 0: not recorded */
	struct seam_module demand;	/* what tells it where it has none */
	uint32_t module;	/* of symbols; SEAM_NONE until asked for */
	bool is_told;		/* what will be asked of it: expected.h */
};

struct seam_resolver {
	struct seam_profile *profile;
	struct seam_symbols *symbols;
	struct seam_jit_code *jit;	/* NULL: no JIT's code is known */
	struct seam_embedded *embedded;	/* NULL: the recording has no tables */
	struct seam_spaces *spaces;	/* of processes */
	struct seam_spaces kernel;	/* one space: number 0 */
	uint32_t kernel_module;		/* of symbols */
	uint32_t kernel_path;		/* string: [kernel.kallsyms] */
	uint32_t jit_path;		/* string: [jit] */
	bool all_unknown;		/* a run of unknown callers is not one */
	struct seam_expected expected;	/* may be empty */
	SEAM_ARRAY(struct seam_mapping) mappings;

	/* places already resolved */
	SEAM_ARRAY(struct seam_place) places;
	struct seam_index place_index;
	SEAM_ARRAY(uint32_t) frames;	/* of places, innermost first */
	SEAM_ARRAY(uint32_t) chain;	/* scratch: frames of one callchain */
};

/* @profile, @symbols and @spaces must outlive it.  0 or -ENOMEM. */
int seam_resolver_init(struct seam_resolver *resolver,
		       struct seam_profile *profile,
		       struct seam_symbols *symbols,
		       struct seam_spaces *spaces);
void seam_resolver_fini(struct seam_resolver *resolver);

/* What the kernel was, before the first address of it is resolved. */
int seam_resolver_kernel(struct seam_resolver *resolver,
			 const struct seam_kernel *kernel);

/* A new mapping, copied; its number, or SEAM_NONE when memory ran out. */
uint32_t seam_resolver_mapping(struct seam_resolver *resolver,
			       const struct seam_mapping *mapping);

/* How a mapping of this name is to be understood. */
enum seam_mapping_kind seam_resolver_kind(const char *filename);

/* Whose chain it is, and when it was seen. */
struct seam_resolver_where {
	int32_t pid;
	uint32_t space;
	uint64_t time_ns;
	uint64_t from_ns, to_ns;	/* out: the answer holds in [from, to) */
};

/* The stack of @chain there; SEAM_NONE when memory ran out. */
uint32_t seam_resolver_stack(struct seam_resolver *resolver,
			     const uint64_t *chain, size_t n,
			     struct seam_resolver_where *where);

#endif /* SEAM_RESOLVER_H */
