/* SPDX-License-Identifier: MIT */
/* announcement_again.h - an announcement that was read, written again */
#ifndef SEAM_TEST_ANNOUNCEMENT_AGAIN_H
#define SEAM_TEST_ANNOUNCEMENT_AGAIN_H

#include "wire/xray/xray_functions.h"

/* Whether that gives the bytes from which it was read. */
static inline bool announcement_again(const struct seam_xray_announcement *a,
				      const uint8_t *bytes, size_t size)
{
	static uint8_t buf[SEAM_XRAY_MAX_ANNOUNCEMENT];
	size_t n = 0;

	switch (a->kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		n = seam_xray_write_image(buf, sizeof(buf), &a->image);
		break;
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		n = seam_xray_write_addresses(buf, sizeof(buf), &a->addresses);
		break;
	case SEAM_XRAY_ANNOUNCED_TRIGGER:
		n = seam_xray_write_trigger(buf, sizeof(buf), &a->trigger);
		break;
	case SEAM_XRAY_ANNOUNCED_MATCH:
		n = seam_xray_write_match(buf, sizeof(buf), &a->match);
		break;
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
	case SEAM_XRAY_ANNOUNCED_NAME:
		n = seam_xray_write_named(buf, sizeof(buf), a->kind, &a->named);
		break;
	}
	return n == size && memcmp(buf, bytes, n) == 0;
}

#endif /* SEAM_TEST_ANNOUNCEMENT_AGAIN_H */
