/* SPDX-License-Identifier: MIT */
/*
 * annotate.h - annotated machine code, for people or as JSON
 *
 * "seam.annotate/1" is versioned: members may be added under the same schema;
 * none is removed or changes its meaning.
 */
#pragma once

#include "model/annotate/annotation.h"
#include "report/report.h"

struct seam_annotate_view {
	const struct seam_report *report;	/* path, profile, selection */
	const struct seam_annotation *annotation;
	const char *symbol;		/* as given by the user */
	bool no_source;
	bool only_hot;			/* no instruction without samples */
	/*
	 * Line @line of source file @path, without its newline; NULL when
	 * there is none.  Valid until the next call.
	 */
	const char *(*source)(void *context, const char *path, uint32_t line);
	void *context;
};

/* Functions one after another, hottest first, like a disassembler. */
void seam_annotate_text(const struct seam_annotate_view *annotate,
			const struct seam_view *view);

/*
 *	{"schema":"seam.annotate/1", ..., "functions":[{"symbol":"f",
 *	"layer":"jit","module":"[jit]","addr":N,"size":N,"samples":N,...,
 *	"instructions":[{"offset":0,"addr":N,"bytes":"c3","text":"ret",
 *	"samples":N,"weight":N,"file":"f.js","line":3}]}]}
 *
 * A function without available code has "problem" and no instructions.
 */
void seam_annotate_json(const struct seam_annotate_view *annotate, FILE *out);
