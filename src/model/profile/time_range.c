/* SPDX-License-Identifier: MIT */
/* time_range.c - parse a time range; see time_range.h */
#include "model/profile/time_range.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* The length of one @unit; the empty one is a second. */
static bool unit_ns(const char *unit, size_t size, double *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 },
		{ "ns", 1 }, { "m", 60e9 },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == size &&
		    memcmp(units[i].name, unit, size) == 0) {
			*ns = units[i].ns;
			return true;
		}
	}
	return false;
}

/*
 * One end of a range: @size bytes at @text, as nanoseconds from the start of
 * a recording that takes @length_ns.
 */
static bool parse_time(const char *text, size_t size, uint64_t length_ns,
		       uint64_t *from_start_ns)
{
	size_t digits = strspn(text, "0123456789.");
	const char *unit = text + digits;
	double value, one;
	char *end;

	if (digits == 0 || digits > size)
		return false;
	value = strtod(text, &end);
	if (end != unit)
		return false;
	if (size - digits == 1 && *unit == '%')
		one = (double)length_ns / 100;
	else if (!unit_ns(unit, size - digits, &one))
		return false;
	value = value * one + 0.5;
	*from_start_ns = value < 9e18 ? (uint64_t)value : UINT64_MAX;
	return true;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

int seam_time_range_parse(struct seam_time_range *range, const char *text,
			  uint64_t start_ns, uint64_t end_ns,
			  struct seam_err *err)
{
	size_t comma = strcspn(text, ",");
	const char *end = text + comma + (text[comma] == ',');
	/* One more, so that 100% is after the last sample. */
	uint64_t length = end_ns - start_ns + 1;
	uint64_t a = 0, b = UINT64_MAX;
	char shown[64];

	seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
	if (text[comma] != ',' ||
	    (comma && !parse_time(text, comma, length, &a)) ||
	    (*end && !parse_time(end, strlen(end), length, &b)))
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': not of the form A,B in seconds (1.5,2), with "
			"units (300ms,1s) or in percent (10%%,20%%)", shown);
	if (a > b)
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': it ends before it begins", shown);
	range->from_ns = add_up(start_ns, a);
	range->to_ns = add_up(start_ns, b);
	return 0;
}
