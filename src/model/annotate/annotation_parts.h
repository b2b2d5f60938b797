/* SPDX-License-Identifier: MIT */
/*
 * annotation_parts.h - an annotation while it is made
 *
 * annotation.c counts samples at places and finds the bodies they are in;
 * annotation_code.c brings the code of the bodies and puts the counts to its
 * instructions.  Nothing else includes this.
 */
#ifndef SEAM_ANNOTATION_PARTS_H
#define SEAM_ANNOTATION_PARTS_H

#include "base/index.h"
#include "model/annotate/annotation.h"
#include "model/jit/jit_recorded.h"
#include "symbol/jit/jit_placements.h"

/* Shown before and behind a lone address. */
enum { SEAM_WINDOW_BYTES = 64 };

/* A place in a body and its counts. */
struct seam_place_hit {
	uint32_t body;
	uint64_t offset;
	uint64_t samples, weight;
	size_t stamp;			/* last sample that counted here, + 1 */
};

/* What only this file knows of a body. */
struct seam_code_source {
	uint32_t module;		/* of symbols; SEAM_NONE */
	uint64_t offset;		/* in the file */
	uint32_t object;		/* of JIT code; SEAM_NONE */
	struct seam_machine machine;
};

/* A path of the profile, a string, as symbols know it. */
struct seam_known_module {
	uint32_t path, module;
};

struct seam_annotating {
	struct seam_annotation *to;
	const struct seam_selected *selected;
	const struct seam_profile *profile;
	const struct seam_input *recording;
	const struct seam_annotation_options *options;
	struct seam_perf_data data;
	struct seam_symbols *symbols;
	struct seam_jit_recorded jit;
	int32_t *object_pid;		/* of JIT code, by object */
	struct seam_jit_placements placements;
	const char *symbol;		/* that is asked for, as the profile has it */
	bool *wanted;			/* by function */
	uint32_t *hit_of;		/* by frame: its only hit, + 1 */
	SEAM_ARRAY(uint32_t) objects;	/* of JIT code, of the name */
	SEAM_ARRAY(struct seam_code_source) sources;	/* by body */
	SEAM_ARRAY(struct seam_place_hit) hits;
	struct seam_index hit_index;
	SEAM_ARRAY(struct seam_known_module) modules;
	uint32_t kernel;		/* module, + 1; 0: not asked for yet */
	struct {			/* of "[module+0x1234]" */
		char module[256];
		char function[300];	/* that it is in, by its bounds */
		uint64_t pos;
		bool is_asked;
	} window;
};

/* The recorded kernel as symbols know it; SEAM_NONE: no memory. */
uint32_t seam_annotating_kernel(struct seam_annotating *a);

/* A copy that lives as long as the annotation; NULL: no memory. */
const char *seam_annotating_text(struct seam_annotating *a, const char *text);

/* Bring, decode and count all bodies, and sort them.  0 or -ENOMEM. */
int seam_annotating_bodies(struct seam_annotating *a);

#endif /* SEAM_ANNOTATION_PARTS_H */
