/* SPDX-License-Identifier: MIT */
/*
 * annotate_objects.h - the code objects of one name, and their places
 *
 * A name has several objects when its function was compiled again, or loaded
 * by several processes, or when several files have such a function.  An object
 * of a JIT has several places when it was moved.
 */
#ifndef SEAM_ANNOTATE_OBJECTS_H
#define SEAM_ANNOTATE_OBJECTS_H

#include "base/json.h"
#include "report/annotate.h"

/* A line for each object and place; nothing if that is only one line. */
void seam_annotate_objects(const struct seam_annotate_view *annotate,
			   const struct seam_view *view);

/* "places":[{"addr","pid","since_ns","samples","weight"}] of JIT code. */
void seam_annotate_places_json(struct seam_json *j,
			       const struct seam_annotated *body);

#endif /* SEAM_ANNOTATE_OBJECTS_H */
