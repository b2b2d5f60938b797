/* SPDX-License-Identifier: MIT */
/* sample_chain.c - copy, but for the chain; see sample_chain.h */
#include "record/stacks/sample_chain.h"

#include "wire/perf/perf_record.h"

#include <linux/perf_event.h>

/* The parts of the new record. */
struct parts {
	size_t before;		/* bytes before the chain, with the header */
	uint64_t n;		/* words of the chain */
	size_t after;		/* place of what follows the old chain */
	size_t between, rest;	/* bytes from there on, without the dump */
	size_t raw;
};

static size_t size_of(const struct parts *p)
{
	return p->before + sizeof(p->n) + 8 * p->n + p->raw + p->between +
	       p->rest;
}

static struct parts parts_of(const struct seam_sample_chain *chain)
{
	const struct seam_perf_sample *sample = chain->sample;
	struct seam_perf_header header;
	struct parts p = {
		.before = sizeof(header) + sample->at.callchain,
		.n = chain->stack ? chain->n_before + 1 + chain->stack->n :
		     sample->callchain.n,
		.after = sample->at.callchain + 8 + 8 * sample->callchain.n,
		.raw = chain->raw.size,
	};

	memcpy(&header, chain->record, sizeof(header));
	p.between = sample->at.user_regs - p.after;
	p.rest = header.size - sizeof(header) - sample->at.rest;
	if (size_of(&p) > UINT16_MAX)
		p.n -= (size_of(&p) - UINT16_MAX + 7) / 8;
	return p;
}

size_t seam_sample_chain_bytes(const struct seam_sample_chain *chain)
{
	struct parts p = parts_of(chain);

	return size_of(&p);
}

static uint8_t *put(uint8_t *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return to + bytes;
}

static uint8_t *put_frames(uint8_t *to, const struct seam_sample_chain *chain,
			   size_t n)
{
	const uint64_t mark = (uint64_t)PERF_CONTEXT_USER;

	to = put(to, chain->sample->callchain.data, 8 * chain->n_before);
	to = put(to, &mark, sizeof(mark));
	for (size_t i = 0; i < n - chain->n_before - 1; i++)
		to = put(to, &chain->stack->frames[i].pc, 8);
	return to;
}

void seam_sample_chain_write(const struct seam_sample_chain *chain,
			     uint8_t *to)
{
	struct parts p = parts_of(chain);
	const uint8_t *payload =
		(const uint8_t *)chain->record + SEAM_PERF_HEADER_BYTES;
	struct seam_perf_header header;

	memcpy(&header, chain->record, sizeof(header));
	header.size = (uint16_t)size_of(&p);
	to = put(to, &header, sizeof(header));
	to = put(to, payload, chain->sample->at.callchain);
	to = put(to, &p.n, sizeof(p.n));
	if (chain->stack)
		to = put_frames(to, chain, p.n);
	else
		to = put(to, chain->sample->callchain.data, 8 * p.n);
	if (p.raw)
		to = put(to, chain->raw.data, p.raw);
	to = put(to, payload + p.after, p.between);
	put(to, payload + chain->sample->at.rest, p.rest);
}
