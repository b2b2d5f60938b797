/* SPDX-License-Identifier: MIT */
/* duration.c - choose the unit, then the digits; see duration.h */
#include "report/duration.h"

#include <inttypes.h>

const char *seam_duration(char buf[SEAM_DURATION], uint64_t ns, bool in_ticks)
{
	static const char *const units[2][5] = {
		{ "ns", "us", "ms", "s", "ks" }, { "", "k", "M", "G", "T" },
	};
	double value = (double)ns;
	unsigned int unit = 0;

	if (ns < 1000) {
		snprintf(buf, SEAM_DURATION, "%" PRIu64 "%s%s", ns,
			 in_ticks ? "" : " ", units[in_ticks][0]);
		return buf;
	}
	/* 999.5 would round to four digits */
	while (value >= 999.5 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, SEAM_DURATION, "%.*f %s",
		 value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value,
		 units[in_ticks][unit]);
	return buf;
}
