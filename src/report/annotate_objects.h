/* SPDX-License-Identifier: MIT */
/*
 * annotate_objects.h - which code objects a name stands for, and where they
 * were
 *
 * A function that was compiled again, moved, or loaded by several processes,
 * and functions of one name in several files: each is code of its own, with
 * samples of its own.
 */
#ifndef SEAM_ANNOTATE_OBJECTS_H
#define SEAM_ANNOTATE_OBJECTS_H

#include "base/json.h"
#include "report/annotate.h"

/* A line for each object and each place it was at; none if that is one line. */
void seam_annotate_objects(const struct seam_annotate_view *annotate,
			   const struct seam_view *view);

/* "places":[{"addr","pid","since_ns","samples","weight"}] of JIT code. */
void seam_annotate_places_json(struct seam_json *j,
			       const struct seam_annotated *body);

#endif /* SEAM_ANNOTATE_OBJECTS_H */
