/* SPDX-License-Identifier: MIT */
/* guest_names.c - chunks, and functions in them; see guest_names.h */
#include "model/guest/guest_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	MAX_SHOWN = 48,		/* bytes of a source text, as in Lua */
	MAX_NAME = 4096,	/* of a function, the chunk's included */
};

/*
 * A source text is shown by its first line, and "..." where there is more, with
 * a number from the second alike on.
 */
static uint32_t show_distinct(struct seam_guest_names *names,
			      const char *source)
{
	struct seam_strings *strings = &names->profile->strings;
	size_t kept = strcspn(source, "\r\n");
	char buf[4 * MAX_SHOWN];
	uint32_t shown, *n;

	if (kept > MAX_SHOWN) {
		kept = MAX_SHOWN;
		while (kept && ((unsigned char)source[kept] & 0xc0) == 0x80)
			kept--;
	}
	snprintf(buf, sizeof(buf), "[string \"%.*s%s\"]", (int)kept, source,
		 source[kept] ? "..." : "");
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

/* -- symbols ------------------------------------------------------------ */

static uint64_t table_key(int32_t pid, uint32_t table)
{
	return (uint64_t)(uint32_t)pid << 32 | table;
}

static struct seam_guest_known *find(struct seam_guest_symbols *symbols,
				     int32_t pid, uint32_t table, uint32_t id)
{
	const uint32_t *at = seam_pair_map_find(&symbols->by_id,
						table_key(pid, table), id);

	return at ? &symbols->known.items[*at] : NULL;
}

static int add(struct seam_guest_symbols *symbols,
	       const struct seam_guest_known *known)
{
	uint32_t at = (uint32_t)symbols->known.n;

	if (at == SEAM_NONE || !SEAM_ARRAY_ADD(&symbols->known, *known))
		return -ENOMEM;
	return seam_pair_map_put(&symbols->by_id,
				 table_key(known->pid, known->table),
				 known->id, at);
}

int seam_guest_symbols_add(struct seam_guest_symbols *symbols, int32_t pid,
			   struct seam_bytes raw, struct seam_err *err)
{
	struct seam_guest_symbol s;
	struct seam_guest_known known, *before;
	int r = seam_guest_read_symbol(raw, &s, err);

	if (r)
		return r;
	before = find(symbols, pid, s.table, s.id);
	if (before && (before->name || !s.n_name))
		return 0;
	known = (struct seam_guest_known) {
		.pid = pid, .table = s.table, .id = s.id, .start = s.start,
		.line = s.line, .address = s.address, .kind = s.kind,
		.chunk = SEAM_NONE, .function = SEAM_NONE,
		.is_announced = true,
		.name = seam_strings_add(&symbols->names.profile->strings,
					 s.name, s.n_name),
	};
	if (s.n_chunk) {
		known.chunk = seam_guest_chunk(&symbols->names,
			(struct seam_bytes) { (const uint8_t *)s.chunk,
					      s.n_chunk });
		if (known.chunk == SEAM_NONE)
			return -ENOMEM;
	}
	if (known.name == SEAM_NONE)
		return -ENOMEM;
	if (!before)
		return add(symbols, &known);
	*before = known;
	return 0;
}

/* -- functions ---------------------------------------------------------- */

/* A name from numbers alone. */
static uint32_t made_up(struct seam_guest_symbols *symbols,
			const struct seam_guest_known *known)
{
	static const char *const words[SEAM_GUEST_N_FRAME_KINDS] = {
		[SEAM_GUEST_FRAME_GUEST] = "function",
		[SEAM_GUEST_FRAME_C] = "C function",
		[SEAM_GUEST_FRAME_BUILTIN] = "builtin",
		[SEAM_GUEST_FRAME_TRACE] = "trace",
	};
	char name[64];

	/* a builtin has its number in every process of this VM */
	if (known->is_announced && known->kind == SEAM_GUEST_FRAME_BUILTIN)
		snprintf(name, sizeof(name), "builtin %" PRIu64,
			 known->address);
	else
		snprintf(name, sizeof(name), "%s %" PRIu32 " of pid %" PRId32,
			 words[known->kind], known->id, known->pid);
	return seam_guest_builtin(&symbols->names, name, false);
}

static uint32_t make_function(struct seam_guest_symbols *symbols,
			      const struct seam_guest_known *known)
{
	const char *name = seam_profile_text(symbols->names.profile,
					     known->name);
	const struct seam_guest_known *start;

	if (!known->is_announced)
		return made_up(symbols, known);
	if (known->kind == SEAM_GUEST_FRAME_TRACE) {
		/* its chunk is that of the function in which it starts */
		start = find(symbols, known->pid, known->table, known->start);
		return seam_guest_trace(&symbols->names, known->address,
					start ? start->chunk : known->chunk,
					known->line);
	}
	if (known->chunk != SEAM_NONE)
		return seam_guest_function(&symbols->names, known->chunk,
					   known->line, name);
	return *name ? seam_guest_builtin(&symbols->names, name, true) :
	       made_up(symbols, known);
}

/* -- frames ------------------------------------------------------------- */

/* What is known about @frame, which is no cut; NULL: no memory. */
static struct seam_guest_known *use(struct seam_guest_symbols *symbols,
				    int32_t pid, uint32_t table,
				    struct seam_guest_frame frame)
{
	struct seam_guest_known *known = find(symbols, pid, table, frame.id);

	if (known)
		return known;
	symbols->n_nameless++;
	if (add(symbols, &(struct seam_guest_known) {
			.pid = pid, .table = table, .id = frame.id,
			.chunk = SEAM_NONE, .function = SEAM_NONE,
			.kind = (uint8_t)seam_guest_frame_kind(frame),
		}))
		return NULL;
	return &symbols->known.items[symbols->known.n - 1];
}

static uint32_t frame_in(struct seam_guest_symbols *symbols, uint32_t function,
			 uint32_t chunk, uint32_t line)
{
	struct seam_profile *profile = symbols->names.profile;
	const struct seam_guest_chunk *c = chunk == SEAM_NONE ? NULL :
		&symbols->names.chunks.items[chunk];
	bool has_lines = c && c->is_file;

	if (function == SEAM_NONE)
		return SEAM_NONE;
	return seam_profile_frame(profile, &(struct seam_frame) {
		.function = function, .code = SEAM_NONE,
		.module = profile->functions.items[function].module,
		.file = has_lines ? c->shown : 0,
		.line = has_lines ? line : 0,
	});
}

uint32_t seam_guest_symbols_frame(struct seam_guest_symbols *symbols,
				  int32_t pid, uint32_t table,
				  struct seam_guest_frame frame)
{
	struct seam_guest_known *known;
	const uint32_t *made;
	uint32_t at, id;

	if (seam_guest_frame_kind(frame) >= SEAM_GUEST_FRAME_CUT)
		return frame_in(symbols, seam_guest_builtin(&symbols->names,
				"[frames left out]", false), SEAM_NONE, 0);
	known = use(symbols, pid, table, frame);
	if (!known)
		return SEAM_NONE;
	at = (uint32_t)(known - symbols->known.items);
	made = seam_pair_map_find(&symbols->frames, at, frame.place);
	if (made)
		return *made;
	if (known->function == SEAM_NONE)
		known->function = make_function(symbols, known);
	id = frame_in(symbols, known->function, known->chunk,
		      seam_guest_frame_line(frame));
	return id == SEAM_NONE ||
	       seam_pair_map_put(&symbols->frames, at, frame.place, id) ?
	       SEAM_NONE : id;
}

uint64_t seam_guest_symbols_code(struct seam_guest_symbols *symbols,
				 int32_t pid, uint32_t table,
				 struct seam_guest_frame frame)
{
	const struct seam_guest_known *known;

	if (seam_guest_frame_kind(frame) != SEAM_GUEST_FRAME_C)
		return 0;
	known = find(symbols, pid, table, frame.id);
	return known && known->kind == SEAM_GUEST_FRAME_C ? known->address : 0;
}

void seam_guest_symbols_fini(struct seam_guest_symbols *symbols)
{
	seam_guest_names_fini(&symbols->names);
	free(symbols->known.items);
	seam_pair_map_fini(&symbols->by_id);
	seam_pair_map_fini(&symbols->frames);
}
