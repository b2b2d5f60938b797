/* SPDX-License-Identifier: MIT */
/* closest_function.h - suggest a function for a name that no function has */
#ifndef SEAM_CLOSEST_FUNCTION_H
#define SEAM_CLOSEST_FUNCTION_H

#include "model/profile/profile.h"

/*
 * The function with the name most similar to @word; among equals the one with
 * the most samples.  NULL: none is similar.
 */
const char *seam_closest_function(const struct seam_profile *profile,
				  const char *word);

#endif /* SEAM_CLOSEST_FUNCTION_H */
