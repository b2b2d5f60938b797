/* SPDX-License-Identifier: MIT */
/*
 * annotation.h - the code of a function with the samples on it
 *
 * The code of a native function is from the file with the recorded build id, of
 * JIT code from the dump, as it was at the time of its samples.  Pieces of code
 * with one name (static functions, a method compiled again) are a body each.
 *
 * A sample counts at the instruction that was interrupted; with_callers also at
 * each return address in the function, once a sample.
 *
 * The code of a VM's guest is its source: each line that ran, as if it were an
 * instruction of one byte at an offset that is its number.
 *
 * Threads: one at a time.
 */
#pragma once

#include "base/arena.h"
#include "model/profile/selection.h"
#include "symbol/symbols.h"

struct seam_annotated_instruction {
	uint64_t offset;	/* bytes from the start of the code */
	uint32_t size;
	uint32_t line;		/* 0: not known */
	const char *file;	/* NULL: not known */
	const char *text;	/* "mov rax, rbx" */
	uint64_t samples, weight;
};

/* JIT code is at a place from a time on, until it is moved. */
struct seam_annotated_place {
	int32_t pid;
	uint64_t addr;
	uint64_t since_ns;	/* 0: not known */
	uint64_t samples, weight;	/* there, and since then */
};

/* A code object: one piece of code, wherever it was. */
struct seam_annotated {
	const char *symbol;
	uint32_t function;	/* of the profile */
	const char *module;	/* path of its file; "[jit]" */
	uint8_t layer;
	bool is_source;		/* of a guest: instructions are lines */
	uint64_t addr;		/* as in symbols; JIT: where it was loaded */
	uint64_t frame_addr;	/* the same in frames' addresses (profile.h) */
	uint64_t size;		/* bytes; 0 where there is no code */
	const uint8_t *code;
	uint64_t loaded_ns;	/* of JIT code; 0 when not known */
	uint64_t samples, weight;
	/* Samples outside of the code, which may be cut. */
	uint64_t n_outside;
	const char *problem;	/* why there is no code; NULL */
	SEAM_ARRAY(struct seam_annotated_instruction) instructions;
	/* Of JIT code, each process's by time; of other code none. */
	SEAM_ARRAY(struct seam_annotated_place) places;
};

/* Zeroed is valid and empty. */
struct seam_annotation {
	SEAM_ARRAY(struct seam_annotated) bodies;	/* hottest first */
	uint32_t event;		/* the one whose samples are counted */
	uint64_t samples, weight;	/* selected ones of the event */
	struct seam_arena arena;	/* texts and code */
};

struct seam_annotation_options {
	/* A function's name, or "[module+0x1234]": a window around that. */
	const char *symbol;
	const bool *functions;	/* instead: by function of the profile */
	bool with_callers;	/* callers on the stack count too (total) */
	struct seam_symbols_options symbols;
};

/*
 * Annotate a function of the profile that @selected is of, which must outlive
 * the annotation.
 *
 * Returns 0, also when no sample is in such a function (no bodies then), or
 * code was not found (problem); -ENOMEM, or -EBADMSG where the profile is not
 * of a perf.data file: only that has addresses of samples.
 */
int seam_annotate(struct seam_annotation *annotation,
		  const struct seam_selected *selected,
		  const struct seam_annotation_options *options,
		  struct seam_err *err);

void seam_annotation_fini(struct seam_annotation *annotation);
