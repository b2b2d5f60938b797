/* SPDX-License-Identifier: MIT */
/* trace_clock.c - reciprocals, pieces of lines through ties; trace_clock.h */
#include "model/xray/trace_clock.h"

#include <errno.h>

/* More is no correction of a clock, but another machine's ticks. */
#define MAX_OFF_PPM 1000

__extension__ typedef __int128 i128;

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

/* The line through @a and @b at @tsc; from 0 to SEAM_TICKS_MAX_NS. */
static int64_t line_at(const struct seam_tsc_tie *a,
		       const struct seam_tsc_tie *b, uint64_t tsc)
{
	i128 ns = (i128)a->ns + ((i128)tsc - a->tsc) *
		  (i128)(b->ns - a->ns) / (i128)(b->tsc - a->tsc);

	return ns < 0 ? 0 : ns > (i128)SEAM_TICKS_MAX_NS ?
	       (int64_t)SEAM_TICKS_MAX_NS : (int64_t)ns;
}

static bool is_straight(const struct seam_tsc_tie *ties, size_t from, size_t to)
{
	for (size_t i = from + 1; i < to; i++) {
		int64_t off = (int64_t)ties[i].ns -
			      line_at(&ties[from], &ties[to], ties[i].tsc);

		if (off > SEAM_TRACE_CLOCK_NS || off < -SEAM_TRACE_CLOCK_NS)
			return false;
	}
	return true;
}

static bool is_frequency(const struct seam_trace_clock *clock,
			 const struct seam_tsc_tie *ties, size_t n)
{
	uint64_t hz = clock->ticks.frequency_hz;
	uint64_t measured = n < 2 ? 0 : seam_tsc_hz(&ties[0], &ties[n - 1]);
	uint64_t off = measured > hz ? measured - hz : hz - measured;

	return measured && off <= hz / 1000000 * MAX_OFF_PPM;
}

/*
 * From where the last piece ends, so that times never step back, to the tie
 * @to; the frequency is a whole number.
 */
static bool add_piece(struct seam_trace_clock *clock, uint64_t tsc,
		      const struct seam_tsc_tie *a,
		      const struct seam_tsc_tie *b)
{
	struct seam_tsc_tie from = {
		tsc, clock->pieces.n ? seam_trace_clock_time(clock, tsc) :
		     (uint64_t)line_at(a, b, tsc) };
	struct seam_ticks piece;

	if (b->ns <= from.ns)
		return true;
	seam_ticks_init(&piece, seam_tsc_hz(&from, b));
	piece.origin_tsc = from.tsc;
	piece.origin_ns = from.ns;
	return SEAM_ARRAY_ADD(&clock->pieces, piece);
}

int seam_trace_clock_tie(struct seam_trace_clock *clock,
			 const struct seam_tsc_tie *ties, size_t n,
			 uint64_t first_tsc)
{
	if (!is_frequency(clock, ties, n))
		return 0;
	for (size_t i = 0, to; i + 1 < n; i = to) {
		uint64_t tsc = i || ties[0].tsc < first_tsc ? ties[i].tsc :
			       first_tsc;

		for (to = i + 1; to + 1 < n && is_straight(ties, i, to + 1);
		     to++)
			;
		if (!add_piece(clock, tsc, &ties[i], &ties[to]))
			return -ENOMEM;
	}
	clock->is_tied = true;
	return 0;
}

const struct seam_ticks *
seam_trace_clock_at(const struct seam_trace_clock *clock, uint64_t tsc,
		    uint64_t *n_ticks)
{
	const struct seam_ticks *pieces = clock->pieces.items;
	size_t n = clock->pieces.n;
	size_t i = SEAM_ARRAY_SEARCH(k, n, pieces[k].origin_tsc <= tsc);

	i -= i > 0;
	*n_ticks = i + 1 < n ? pieces[i + 1].origin_tsc -
			       pieces[i].origin_tsc : INT64_MAX;
	return n ? &pieces[i] : &clock->ticks;
}

void seam_trace_clock_move(struct seam_trace_clock *clock, uint64_t ns)
{
	clock->ticks.origin_ns += ns;
	for (size_t i = 0; i < clock->pieces.n; i++)
		clock->pieces.items[i].origin_ns += ns;
}
