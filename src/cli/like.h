/* SPDX-License-Identifier: MIT */
/* like.h - which function somebody meant who named none of the recording */
#ifndef SEAM_LIKE_H
#define SEAM_LIKE_H

#include "model/profile/profile.h"

/*
 * The function whose name is most like @word; of equals the one with the
 * most samples.  NULL: none is like it.
 */
const char *seam_like_function(const struct seam_profile *profile,
			       const char *word);

#endif /* SEAM_LIKE_H */
