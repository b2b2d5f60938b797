/* SPDX-License-Identifier: MIT */
/* trace_image.h - open the file of an announced image, in a helper */
#ifndef SEAM_TRACE_IMAGE_H
#define SEAM_TRACE_IMAGE_H

#include "record/trace/trace_functions.h"

/*
 * Have @helper open the file that the process of @p has mapped at @address;
 * later seam_helper_collect() sets fd or code of the image.  0; or -ENOMEM or
 * -EBUSY.  @p stays where it is.
 */
int seam_trace_image_open(struct seam_helper *helper,
			  struct seam_trace_announced *p,
			  const struct seam_trace_image *image,
			  uint64_t address);

#endif /* SEAM_TRACE_IMAGE_H */
