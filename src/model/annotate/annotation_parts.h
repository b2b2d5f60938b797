/* SPDX-License-Identifier: MIT */
/*
 * annotation_parts.h - an annotation while it is made
 *
 * annotation.c counts samples at places and finds the bodies they are in;
 * annotation_code.c reads and decodes their code and adds the counts to its
 * instructions.  Nothing else includes this.
 */
#ifndef SEAM_ANNOTATION_PARTS_H
#define SEAM_ANNOTATION_PARTS_H

#include "base/index.h"
#include "model/annotate/annotation.h"
#include "model/jit/jit_sources.h"
#include "symbol/jit/jit_placements.h"

/* Shown before and after a lone address. */
enum { SEAM_WINDOW_BYTES = 64 };

/* A place in a body and its counts. */
struct seam_place_hit {
	uint32_t body;
	uint64_t offset;
	uint64_t samples, weight;
	size_t last;			/* the last sample counted here, + 1 */
};

/* Where the code of a body comes from. */
struct seam_code_source {
	uint32_t file;			/* module of symbols; SEAM_NONE */
	uint64_t offset;		/* in the file */
	uint32_t object;		/* JIT: code object; SEAM_NONE */
	uint32_t chunk;			/* guest: string, its path; 0 */
	struct seam_machine machine;
};

struct seam_annotating {
	struct seam_annotation *to;
	const struct seam_selected *selected;
	const struct seam_profile *profile;
	const struct seam_annotation_options *options;
	struct seam_symbols *symbols;
	struct seam_jit_placements placements;	/* read when first needed */
	const char *symbol;		/* a function's name in the profile */
	bool *wanted;			/* by function */
	uint32_t *hit_of;		/* by frame: its hit, + 1 */
	uint32_t *files;		/* by module: of symbols, + 1; or 0 */
	SEAM_ARRAY(struct seam_code_source) sources;	/* by body */
	SEAM_ARRAY(struct seam_place_hit) hits;
	struct seam_index hit_index;
	struct {			/* of "[module+0x1234]" */
		char module[256];
		char function[300];	/* around it: a name made of bounds */
		uint64_t pos;
		bool is_requested;
	} window;
};

/* A copy that lives as long as the annotation; NULL: no memory. */
const char *seam_annotating_text(struct seam_annotating *a, const char *text);

/* Read, decode and count all bodies, and sort them.  0 or -ENOMEM. */
int seam_annotating_bodies(struct seam_annotating *a);

#endif /* SEAM_ANNOTATION_PARTS_H */
