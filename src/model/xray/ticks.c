/* SPDX-License-Identifier: MIT */
/* ticks.c - reciprocals; see ticks.h */
#include "model/xray/ticks.h"

__extension__ typedef unsigned __int128 u128;

#define GIGA		UINT32_C(1000000000)
#define MAX_SHIFT	64	/* the upper half of a product */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint64_t smaller(u128 a, u128 b)
{
	u128 least = a < b ? a : b;

	return least > UINT64_MAX ? UINT64_MAX : (uint64_t)least;
}

/*
 * With M = ceil(2^k * a / b) and e = M * b - 2^k * a, the product x * M / 2^k
 * is x * a / b + x * e / (b * 2^k).  The fraction of x * a / b is at most
 * (b - 1) / b, so the floor is right as long as x * e < 2^k.
 */
void seam_ticks_init(struct seam_ticks *ticks, uint64_t frequency_hz)
{
	uint64_t hz = frequency_hz ? frequency_hz : GIGA;
	uint64_t divisor = gcd(GIGA, hz);
	u128 a = GIGA / divisor, b = hz / divisor, m, e;
	unsigned int k = MAX_SHIFT;

	while (((a << k) + b - 1) / b > UINT64_MAX)
		k--;
	m = ((a << k) + b - 1) / b;
	e = m * b - (a << k);
	*ticks = (struct seam_ticks) {
		.frequency_hz = frequency_hz,
		.multiplier = (uint64_t)m,
		.numerator = (uint32_t)a,
		.denominator = (uint64_t)b,
		.shift = k,
		.exact_below = smaller(e ? (((u128)1 << k) - 1) / e :
				       UINT64_MAX,
				       (u128)SEAM_TICKS_MAX_NS * b / a),
	};
}

uint64_t seam_ticks_divide(const struct seam_ticks *ticks, uint64_t n_ticks)
{
	u128 ns = (u128)n_ticks * ticks->numerator / ticks->denominator;

	return smaller(ns, SEAM_TICKS_MAX_NS);
}
