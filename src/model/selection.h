/* SPDX-License-Identifier: MIT */
/*
 * selection.h - which part of a profile is meant
 *
 * One object that every report and export takes, so that a time range or a
 * layer means the same everywhere.  A zeroed selection with
 * seam_selection_init() is "all of it".
 */
#ifndef SEAM_SELECTION_H
#define SEAM_SELECTION_H

#include "model/profile.h"

struct seam_selection {
	uint64_t from_ns;	/* first time that counts */
	uint64_t to_ns;		/* first time that no longer counts */
	const char *thread;	/* tid in digits, or a name; NULL: all */
	const char *event;	/* event name; NULL: all */
	unsigned int layers;	/* bit 1 << layer; others' frames are left out */
	bool no_inline;		/* leave inlined frames out */
};

void seam_selection_init(struct seam_selection *selection);

/*
 * "A,B" as times from the start of the recording: seconds ("1.5,2"),
 * with a unit ("300ms,1s"), or percent ("10%,20%"); either may be empty.
 * -EINVAL with the reason when it is not.
 */
int seam_selection_time(struct seam_selection *selection,
			const struct seam_profile *profile, const char *text,
			struct seam_err *err);

/* "kernel,jit": one or more layer names.  -EINVAL as above. */
int seam_selection_layers(struct seam_selection *selection, const char *text,
			  struct seam_err *err);

/*
 * A selection made ready for one profile: names looked up once, and for each
 * stack the stack that is left of it.
 */
struct seam_selected {
	const struct seam_profile *profile;
	uint64_t from_ns, to_ns;
	uint32_t *stack;	/* by stack: itself without the frames left out */
	bool *thread;		/* by thread: it counts */
	bool *event;		/* by event: it counts */
	const uint32_t *comms;	/* strings that match --thread by name */
};

#endif /* SEAM_SELECTION_H */
