/* SPDX-License-Identifier: MIT */
/* guest_symbols.c - ids, functions, frames; see guest_symbols.h */
#include "model/guest/guest_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* A trace's chunk is that of the function in which it starts. */
static uint32_t trace(struct seam_guest_symbols *symbols,
		      const struct seam_guest_known *known)
{
	const struct seam_guest_known *start =
		find(symbols, known->pid, known->table, known->start);

	return seam_guest_trace(&symbols->names, known->address,
				start ? start->chunk : known->chunk,
				known->line);
}

static uint32_t make_function(struct seam_guest_symbols *symbols,
			      const struct seam_guest_known *known)
{
	const char *name = seam_profile_text(symbols->names.profile,
					     known->name);

	if (!known->is_announced)
		return made_up(symbols, known);
	if (known->kind == SEAM_GUEST_FRAME_TRACE)
		return trace(symbols, known);
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

static uint32_t cut(struct seam_guest_symbols *symbols)
{
	return frame_in(symbols, seam_guest_builtin(&symbols->names,
				"[frames left out]", false), SEAM_NONE, 0);
}

uint32_t seam_guest_symbols_frame(struct seam_guest_symbols *symbols,
				  int32_t pid, uint32_t table,
				  struct seam_guest_frame frame)
{
	struct seam_guest_known *known;
	const uint32_t *made;
	uint32_t at, id;

	if (seam_guest_frame_kind(frame) >= SEAM_GUEST_FRAME_CUT)
		return cut(symbols);
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
