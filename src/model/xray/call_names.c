/* SPDX-License-Identifier: MIT */
/* call_names.c - look up names, check a map against a log; see call_names.h */
#include "model/xray/call_names.h"

#include <inttypes.h>
#include <stdlib.h>

const char *seam_call_name(const struct seam_xray_map *names,
			   uint32_t function, char buf[SEAM_CALL_NAME])
{
	const struct seam_xray_mapped *f = seam_xray_map_find(names,
							      function);

	if (f && f->name)
		return seam_strings_get(&names->strings, f->name);
	if (f && f->addr)
		snprintf(buf, SEAM_CALL_NAME, "%#" PRIx64, f->addr);
	else
		snprintf(buf, SEAM_CALL_NAME, "#%" PRIu32,
			 seam_call_id(names, function));
	return buf;
}

uint32_t seam_call_id(const struct seam_xray_map *names, uint32_t function)
{
	const struct seam_xray_mapped *f = names->functions.items;
	size_t at = SEAM_ARRAY_SEARCH(i, names->functions.n,
				      f[i].id < function);

	/* it or the next one is of the same program: see log_names.h */
	return function - (at < names->functions.n ?
			   f[at].id - f[at].log_id : names->others);
}

/* The kinds of sleds that can write an event of @kind. */
static uint8_t sleds_of(uint8_t kind)
{
	switch (kind) {
	case SEAM_XRAY_ENTRY:
	case SEAM_XRAY_ENTRY_ARGS:
		return 1u << SEAM_XRAY_SLED_ENTER |
		       1u << SEAM_XRAY_SLED_ENTER_ARGS;
	case SEAM_XRAY_EXIT:
		return 1u << SEAM_XRAY_SLED_EXIT | 1u << SEAM_XRAY_SLED_TAIL;
	case SEAM_XRAY_TAIL_EXIT:
		return 1u << SEAM_XRAY_SLED_TAIL;
	}
	return 0;
}

static bool contradicts(const struct seam_xray_map *names,
			const struct seam_xray_event *event, char *buf,
			size_t cap)
{
	const struct seam_xray_mapped *f;
	char name[SEAM_CALL_NAME];

	if (event->kind > SEAM_XRAY_ENTRY_ARGS)
		return false;
	f = seam_xray_map_find(names, event->function);
	if (!f) {
		snprintf(buf, cap, "the log has function %" PRIu32
			 ", which the map of %zu functions has not",
			 event->function, names->functions.n);
		return true;
	}
	if (f->kinds & sleds_of(event->kind))
		return false;
	snprintf(buf, cap, "the log has %s of function %" PRIu32
		 "; the map's '%.80s' cannot do that",
		 seam_xray_action_name(event->kind), event->function,
		 seam_call_name(names, event->function, name));
	return true;
}

const char *seam_call_names_doubt(const struct seam_xray_map *names,
				  const struct seam_trace *trace, char *buf,
				  size_t cap)
{
	struct seam_xray_batch *batch = malloc(sizeof(*batch));
	bool found = false;

	if (!batch || names->functions.n == 0) {
		free(batch);
		return NULL;
	}
	for (size_t i = 0; !found && i < trace->blocks.n; i++) {
		const struct seam_trace_block *b = &trace->blocks.items[i];
		struct seam_xray_block_reader reader;

		seam_xray_block_open(&reader, &trace->logs.items[b->log].index,
				     b->block);
		seam_xray_block_next(&reader, batch);
		for (size_t e = 0; !found && e < batch->n; e++)
			found = contradicts(names, &batch->events[e], buf, cap);
	}
	free(batch);
	return found ? buf : NULL;
}
