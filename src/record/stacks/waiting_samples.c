/* SPDX-License-Identifier: MIT */
/* waiting_samples.c - a list of copies; see waiting_samples.h */
#include "record/stacks/waiting_samples.h"

#include "wire/perf/perf_record.h"

#include <stdlib.h>

/* What is copied: up to the dump's used part, and from its end on. */
struct cut {
	size_t dump_pos, dump_bytes;	/* of its size and bytes */
	size_t rest_pos, rest_bytes;
};

static struct cut cut_of(const struct seam_perf_sample *sample,
			 size_t record_bytes)
{
	return (struct cut) {
		.dump_pos = SEAM_PERF_HEADER_BYTES + sample->at.user_stack,
		.dump_bytes = (sample->user_stack.size + 7) & ~(size_t)7,
		.rest_pos = SEAM_PERF_HEADER_BYTES + sample->at.rest,
		.rest_bytes = record_bytes - SEAM_PERF_HEADER_BYTES -
			      sample->at.rest,
	};
}

/* Write the record with a dump of the size it has. */
static void copy(uint8_t *to, const uint8_t *from, const struct cut *cut,
		 size_t bytes, const struct seam_perf_sample *sample)
{
	uint64_t size = cut->dump_bytes, used = sample->user_stack.size;
	struct seam_perf_header header;

	memcpy(&header, from, sizeof(header));
	header.size = (uint16_t)bytes;
	memcpy(to, from, cut->dump_pos);
	memcpy(to, &header, sizeof(header));
	to += cut->dump_pos;
	memcpy(to, &size, sizeof(size));
	to += sizeof(size);
	if (size) {
		/* its last word may be beyond what is used: not the bytes */
		memcpy(to, sample->user_stack.data, size);
		to += size;
		memcpy(to, &used, sizeof(used));
		to += sizeof(used);
	}
	memcpy(to, from + cut->rest_pos, cut->rest_bytes);
}

/* Of a record with that part of its dump, in whole words. */
static size_t record_bytes(const struct cut *cut)
{
	return cut->dump_pos + sizeof(uint64_t) + cut->dump_bytes +
	       (cut->dump_bytes ? sizeof(uint64_t) : 0) + cut->rest_bytes;
}

bool seam_waiting_samples_add(struct seam_waiting_samples *waiting,
			      struct seam_process_map *map, uint32_t event,
			      const void *record,
			      const struct seam_perf_sample *sample,
			      size_t max_bytes)
{
	size_t bytes, words;
	struct seam_waiting_sample *one;
	struct seam_perf_header header;
	struct cut cut;

	memcpy(&header, record, sizeof(header));
	cut = cut_of(sample, header.size);
	bytes = record_bytes(&cut);
	words = (bytes + 7) / 8;
	if (waiting->n_bytes + 8 * words > max_bytes)
		return false;
	one = malloc(sizeof(*one) + 8 * words);
	if (!one)
		return false;
	*one = (struct seam_waiting_sample) {
		.map = map, .event = event, .time = sample->time,
		.bytes = 8 * words,
	};
	seam_process_map_get(map);
	copy((uint8_t *)one->record, record, &cut, bytes, sample);
	seam_waiting_samples_put(waiting, one);
	return true;
}

struct seam_waiting_sample *
seam_waiting_samples_take_first(struct seam_waiting_samples *waiting)
{
	struct seam_waiting_sample *first = waiting->first;

	if (!first)
		return NULL;
	waiting->first = first->next;
	waiting->n--;
	waiting->n_bytes -= first->bytes;
	return first;
}

void seam_waiting_samples_put(struct seam_waiting_samples *waiting,
			      struct seam_waiting_sample *one)
{
	one->next = NULL;
	if (waiting->first)
		*waiting->last = one;
	else
		waiting->first = one;
	waiting->last = &one->next;
	waiting->n++;
	waiting->n_bytes += one->bytes;
}

uint64_t
seam_waiting_samples_oldest(const struct seam_waiting_samples *waiting)
{
	const struct seam_waiting_sample *one = waiting->first;
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; i < waiting->n; i++, one = one->next)
		if (one->time < oldest)
			oldest = one->time;
	return oldest;
}
