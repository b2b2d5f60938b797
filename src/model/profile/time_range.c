/* SPDX-License-Identifier: MIT */
/* time_range.c - parse a time range; see time_range.h */
#include "model/profile/time_range.h"

#include <errno.h>

#include "base/text.h"

/* The length of one @unit; the empty one is a second. */
static bool unit_ns(const char *unit, size_t size, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
		{ "us", 1000 }, { "ns", 1 }, { "m", 60 * UINT64_C(1000000000) },
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

/* A decimal number: value / scale. */
struct decimal {
	uint64_t value;			/* UINT64_MAX: too large */
	uint64_t scale;
};

/* @size characters, digits and at most one point. */
static bool parse_decimal(const char *text, size_t size, struct decimal *d)
{
	size_t n_points = 0;

	*d = (struct decimal) { 0, 1 };
	for (size_t i = 0; i < size; i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (text[i] == '.') {
			n_points++;
			continue;
		}
		/* decimals after 18 digits, or after 16, change no nanosecond */
		if (n_points && (d->value >= UINT64_C(1000000000000000000) ||
				 d->scale >= UINT64_C(10000000000000000)))
			continue;
		if (__builtin_mul_overflow(d->value, 10, &d->value) ||
		    __builtin_add_overflow(d->value, digit, &d->value))
			d->value = UINT64_MAX;
		else if (n_points)
			d->scale *= 10;
	}
	return n_points <= 1 && size > n_points;
}

/* @size bytes at @text as nanoseconds; percent are of @length_ns. */
static bool parse_length(const char *text, size_t size, uint64_t length_ns,
			 uint64_t *ns)
{
	size_t digits = strspn(text, "0123456789.");
	const char *unit = text + digits;
	__extension__ unsigned __int128 wide;
	struct decimal d;
	uint64_t one;

	if (digits > size || !parse_decimal(text, digits, &d))
		return false;
	if (size - digits == 1 && *unit == '%') {
		one = length_ns;
		d.scale *= 100;
	} else if (!unit_ns(unit, size - digits, &one)) {
		return false;
	}
	wide = d.value;
	wide = (wide * one + d.scale / 2) / d.scale;
	*ns = d.value == UINT64_MAX || wide > UINT64_MAX ? UINT64_MAX :
	      (uint64_t)wide;
	return true;
}

/*
 * One end of a range: @size bytes at @text, as nanoseconds from the start of
 * a recording that begins at @start_ns and takes @length_ns.
 */
static bool parse_time(const char *text, size_t size, uint64_t start_ns,
		       uint64_t length_ns, uint64_t *from_start_ns)
{
	if (*text != '@')
		return parse_length(text, size, length_ns, from_start_ns);
	if (!parse_length(text + 1, size - 1, length_ns, from_start_ns))
		return false;
	*from_start_ns -= *from_start_ns < start_ns ? *from_start_ns :
						      start_ns;
	return text[size - 1] != '%';
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
	    (comma && !parse_time(text, comma, start_ns, length, &a)) ||
	    (*end && !parse_time(end, strlen(end), start_ns, length, &b)))
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': not of the form A,B in seconds (1.5,2), with "
			"units (300ms,1s), in percent (10%%,20%%) or on the "
			"clock (@57.2,@57.3)", shown);
	if (a > b)
		return seam_err_set(err, -EINVAL, "cannot select the time "
			"'%s': it ends before it begins", shown);
	range->from_ns = add_up(start_ns, a);
	range->to_ns = add_up(start_ns, b);
	return 0;
}
