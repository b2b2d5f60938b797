/* SPDX-License-Identifier: MIT */
/*
 * xray_life.h - a thread's life, made at random, and what may befall its log
 *
 * The same seed gives the same bytes.
 */
#ifndef SEAM_TEST_XRAY_LIFE_H
#define SEAM_TEST_XRAY_LIFE_H

#include "../wire/xray_made.h"

enum { MAX_DEPTH = 40 };

/* How often, of 64, a life is not as it should be. */
struct troubles {
	unsigned int skipped;		/* exits left out: exceptions */
	unsigned int tails;
	unsigned int stray;		/* tail exits that were not taken */
	unsigned int unseen;		/* exits of what was never entered */
	unsigned int steps;		/* back in time, between blocks */
	unsigned int lost;		/* records, at blocks */
	unsigned int others;		/* arguments, events, CPUs, wraps */
};

/* What its log is like; the first is usual. */
struct life_log {
	uint16_t version;
	enum seam_endian endian;
	uint64_t hz;
	uint64_t tsc;			/* to begin with */
	uint32_t most_delta;
	uint32_t n_functions;
	uint32_t stride;		/* between their ids */
	unsigned int n_lives;		/* steps of life in a block, at most */
};

static const struct life_log usual_log = {
	5, SEAM_LITTLE, 1000000000, 100000, 50, 9, 1, 12,
};

struct life {
	struct made made;
	struct life_log log;
	uint64_t random;
	uint64_t tsc;
	uint32_t stack[MAX_DEPTH];
	unsigned int depth;
	unsigned int deepest;
};

static inline unsigned int pick(struct life *l, unsigned int n)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (unsigned int)(l->random >> 33) % n;
}

static inline void put(struct life *l, unsigned int action, uint32_t function)
{
	uint32_t delta = pick(l, l->log.most_delta);

	l->tsc += delta;
	made_call(&l->made, action, function * l->log.stride, delta);
}

/* A record that is no entry and no exit, where it may stand. */
static inline void put_other(struct life *l)
{
	struct seam_xray_record record = { .state = SEAM_XRAY_AT_CUSTOM };
	uint32_t delta = pick(l, l->log.most_delta);

	switch (pick(l, 4)) {
	case 0:
		if (l->depth == l->deepest)
			break;
		l->stack[l->depth] = 1 + pick(l, l->log.n_functions);
		put(l, pick(l, 2) ? SEAM_XRAY_ENTRY : SEAM_XRAY_ENTRY_ARGS,
		    l->stack[l->depth++]);
		record.state = SEAM_XRAY_AT_ARGUMENT;
		record.argument.argument = UINT64_MAX - delta;
		break;
	case 1:
		l->tsc += delta;
		record.state = SEAM_XRAY_AT_CPU;
		record.cpu.absolute_tsc = l->tsc;
		break;
	case 2:		/* as likely back as on */
		l->tsc += (uint64_t)delta - l->log.most_delta / 2;
		record.state = SEAM_XRAY_AT_WRAP;
		record.wrap.absolute_tsc = l->tsc;
		break;
	default:
		break;
	}
	if (record.state == SEAM_XRAY_AT_CUSTOM) {
		/* an odd number of bytes, so that all that follows is odd */
		record.data = (struct seam_bytes) { (const uint8_t *)"odd", 3 };
		record.marker.tsc_delta = (int32_t)(delta & 0xfffff);
		record.marker.absolute_tsc = l->tsc + delta;
		if (l->log.version == 5)
			l->tsc += delta & 0xfffff;
	}
	made_record(&l->made, &record);
}

static inline void live(struct life *l, const struct troubles *t)
{
	uint32_t top = l->depth ? l->stack[l->depth - 1] : 0;

	if (t->others && pick(l, 64) < t->others) {
		put_other(l);
	} else if (pick(l, 64) < t->unseen) {
		put(l, SEAM_XRAY_EXIT, l->log.n_functions + 1 + pick(l, 3));
	} else if (l->depth == 0 ||
		   (l->depth < l->deepest && pick(l, 2) == 0)) {
		l->stack[l->depth] = 1 + pick(l, l->log.n_functions);
		put(l, SEAM_XRAY_ENTRY, l->stack[l->depth++]);
	} else if (pick(l, 64) < t->skipped) {
		l->depth = pick(l, l->depth);
	} else if (pick(l, 64) < t->tails) {
		l->stack[l->depth - 1] = 1 + pick(l, l->log.n_functions);
		put(l, SEAM_XRAY_TAIL_EXIT, top);
		put(l, SEAM_XRAY_ENTRY, l->stack[l->depth - 1]);
	} else if (pick(l, 64) < t->stray) {
		put(l, SEAM_XRAY_TAIL_EXIT, top);
		l->stack[l->depth - 1] = top;
		put(l, SEAM_XRAY_ENTRY, 1 + pick(l, l->log.n_functions));
	} else {
		l->depth--;
		put(l, SEAM_XRAY_EXIT, top);
	}
}

/* Records, with entries and exits of some calls among them. */
static inline void lose(struct life *l)
{
	made_lost(&l->made, 1 + pick(l, 99), 500);
	l->tsc += 500;
	l->depth = pick(l, l->depth + 1);
	while (l->depth < l->deepest && pick(l, 3) == 0)
		l->stack[l->depth++] = 1 + pick(l, l->log.n_functions);
}

static inline void make_log(struct life *l, uint64_t seed,
			    unsigned int n_blocks, const struct troubles *t,
			    const struct life_log *log)
{
	size_t buffer_size = 16 * 1024;		/* of version 1 */

	*l = (struct life) {
		.random = 88172645463325252u + seed * 7919, .tsc = log->tsc,
		.log = *log,
	};
	l->deepest = 3 + pick(l, MAX_DEPTH - 3);
	made_header(&l->made, log->version, SEAM_XRAY_FDR, log->endian, log->hz,
		    log->version == 1 ? buffer_size : 0);
	for (uint32_t b = 1; b <= n_blocks; b++) {
		unsigned int n = pick(l, log->n_lives);
		size_t begin = l->made.size;

		if (pick(l, 64) < t->steps)
			l->tsc -= 1 + pick(l, 200);
		made_block(&l->made, 1, 2, b * 1000, 0, l->tsc);
		if (t->lost && pick(l, 64) < t->lost)
			lose(l);
		for (unsigned int i = 0; i <= n; i++)
			live(l, t);
		made_end(&l->made, buffer_size, begin);
	}
}

static inline void make(struct life *l, uint64_t seed, unsigned int n_blocks,
			const struct troubles *t)
{
	make_log(l, seed, n_blocks, t, &usual_log);
}

#endif /* SEAM_TEST_XRAY_LIFE_H */
