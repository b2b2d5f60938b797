/* SPDX-License-Identifier: MIT */
/* guest_names.c - chunks, and functions in them; see guest_names.h */
#include "model/guest/guest_names.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	MAX_SHOWN = 48,		/* bytes of a source text, as in Lua */
	MAX_NAME = 4096,	/* of a function, the chunk's included */
};

/* The first line of @source, and "..." where there is more of it. */
static void show_text(char *buf, size_t cap, const char *source)
{
	size_t size = strcspn(source, "\r\n"), kept = size;

	if (kept > MAX_SHOWN) {
		kept = MAX_SHOWN;
		while (kept && ((unsigned char)source[kept] & 0xc0) == 0x80)
			kept--;
	}
	snprintf(buf, cap, "[string \"%.*s%s\"]", (int)kept, source,
		 source[kept] ? "..." : "");
}

/* How a source text is shown, with a number from the second alike on. */
static uint32_t show_distinct(struct seam_guest_names *names,
			      const char *source)
{
	struct seam_strings *strings = &names->profile->strings;
	char buf[4 * MAX_SHOWN];
	uint32_t shown, *n;

	show_text(buf, sizeof(buf), source);
	shown = seam_strings_put(strings, buf);
	if (shown == SEAM_NONE)
		return SEAM_NONE;
	n = seam_pair_map_find(&names->n_alike, shown, 0);
	if (!n)
		return seam_pair_map_put(&names->n_alike, shown, 0, 1) ?
		       SEAM_NONE : shown;
	snprintf(buf + strlen(buf), 16, "#%" PRIu32, ++*n);
	return seam_strings_put(strings, buf);
}

static uint32_t add_chunk(struct seam_guest_names *names, uint32_t source)
{
	const char *text = seam_strings_get(&names->sources, source);
	struct seam_guest_chunk chunk = {
		.source = source, .is_file = text[0] == '@',
		.shown = text[0] == '@' || text[0] == '=' ?
			 seam_strings_put(&names->profile->strings, text + 1) :
			 show_distinct(names, text),
	};
	uint32_t id = (uint32_t)names->chunks.n;

	if (chunk.shown == SEAM_NONE)
		return SEAM_NONE;
	chunk.module = seam_profile_module(names->profile,
		&(struct seam_profile_module) {
			.kind = SEAM_MODULE_GUEST, .pid = -1,
			.path = chunk.shown,
		});
	if (chunk.module == SEAM_NONE || !SEAM_ARRAY_ADD(&names->chunks, chunk))
		return SEAM_NONE;
	return seam_pair_map_put(&names->by_source, source, 0, id) ?
	       SEAM_NONE : id;
}

uint32_t seam_guest_chunk(struct seam_guest_names *names,
			  struct seam_bytes name)
{
	uint32_t source = seam_strings_add(&names->sources,
					   (const char *)name.data, name.size);
	const uint32_t *known;

	if (source == SEAM_NONE)
		return SEAM_NONE;
	known = seam_pair_map_find(&names->by_source, source, 0);
	return known ? *known : add_chunk(names, source);
}

uint32_t seam_guest_function(struct seam_guest_names *names, uint32_t chunk,
			     uint64_t line, const char *own)
{
	const struct seam_guest_chunk *c = &names->chunks.items[chunk];
	const char *shown = seam_profile_text(names->profile, c->shown);
	struct seam_function function = {
		.module = c->module, .layer = SEAM_LAYER_GUEST,
		.is_named = true,
	};
	char text[MAX_NAME];
	int own_size = own ? (int)strnlen(own, MAX_NAME / 4) : 0;

	snprintf(text, sizeof(text), "%.*s%s%.*s:%" PRIu64, own_size,
		 own ? own : "", own_size ? " " : "", MAX_NAME / 2, shown,
		 line);
	function.name = seam_strings_put(&names->profile->strings, text);
	return function.name == SEAM_NONE ? SEAM_NONE :
	       seam_profile_function(names->profile, &function);
}

static uint32_t add_named(struct seam_guest_names *names, const char *name,
			  const char *module, enum seam_module_kind kind,
			  struct seam_function function)
{
	struct seam_strings *strings = &names->profile->strings;
	struct seam_profile_module m = {
		.kind = (uint8_t)kind, .pid = -1,
		.path = seam_strings_put(strings, module),
	};

	function.name = seam_strings_put(strings, name);
	if (m.path == SEAM_NONE || function.name == SEAM_NONE)
		return SEAM_NONE;
	function.module = seam_profile_module(names->profile, &m);
	return function.module == SEAM_NONE ? SEAM_NONE :
	       seam_profile_function(names->profile, &function);
}

uint32_t seam_guest_builtin(struct seam_guest_names *names, const char *name,
			    bool is_named)
{
	return add_named(names, name, "[vm]", SEAM_MODULE_GUEST,
			 (struct seam_function) {
		.layer = SEAM_LAYER_GUEST, .is_named = is_named,
	});
}

uint32_t seam_guest_trace(struct seam_guest_names *names, uint64_t number,
			  uint32_t chunk, uint64_t line)
{
	char text[MAX_NAME];
	int used = snprintf(text, sizeof(text), "TRACE [%" PRIu64 "]", number);

	if (chunk != SEAM_NONE)
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " started at %.*s:%" PRIu64, MAX_NAME / 2,
			 seam_profile_text(names->profile,
					   names->chunks.items[chunk].shown),
			 line);
	return add_named(names, text, "[jit]", SEAM_MODULE_JIT,
			 (struct seam_function) {
		.layer = SEAM_LAYER_JIT, .is_named = true,
	});
}

void seam_guest_names_fini(struct seam_guest_names *names)
{
	seam_strings_fini(&names->sources);
	free(names->chunks.items);
	seam_pair_map_fini(&names->by_source);
	seam_pair_map_fini(&names->n_alike);
}
