/* SPDX-License-Identifier: MIT */
/* remote_serve.c - the child's side: read files, answer; see remote.h */
#include "symbol/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/broker.h"
#include "symbol/channel.h"
#include "symbol/dwarf.h"
#include "symbol/symbols_inside.h"

/* More than the largest function has. */
#define MAX_CODE ((size_t)64 << 20)

enum { MAX_MISSING = 16 };

/* The process has one; the broker's functions have no context. */
static struct seam_channel *parent;

/* -- files, from the parent --------------------------------------------- */

/* Folders that are not there, of the last few. */
static struct {
	char *paths[MAX_MISSING];
	unsigned int n;
} missing;

static void note_missing(const char *folder)
{
	char **slot = &missing.paths[missing.n % MAX_MISSING];

	if (!*folder)
		return;
	free(*slot);
	*slot = strdup(folder);
	missing.n++;
}

static bool is_below_missing(const char *path)
{
	for (unsigned int i = 0; i < MAX_MISSING; i++) {
		const char *folder = missing.paths[i];
		size_t n = folder ? strlen(folder) : 0;

		if (folder && strncmp(path, folder, n) == 0 && path[n] == '/')
			return true;
	}
	return false;
}

static int receive_file(struct seam_err *err)
{
	struct seam_message answer;
	int r = seam_channel_receive(parent, &answer);

	/* without its parent it has nothing to do */
	if (r == -EPIPE)
		_exit(0);
	if (!r)
		r = seam_channel_take_err(&answer.body, err);
	else
		seam_err_set(err, r, "%s", strerror(-r));
	if (r == -ENOENT)
		note_missing(seam_cursor_cstr(&answer.body));
	if (r == 0 && answer.fd < 0)
		r = seam_err_set(err, -EIO, "no file came");
	if (r && answer.fd >= 0)
		close(answer.fd);
	return r ? r : answer.fd;
}

static int open_file(const char *path, struct seam_err *err)
{
	if (is_below_missing(path))
		return seam_err_set(err, -ENOENT, "%s", strerror(ENOENT));
	seam_channel_put_text(parent, path);
	if (seam_channel_send(parent, SEAM_REMOTE_FILE, -1))
		_exit(0);
	return receive_file(err);
}

static int download(bool debug, const uint8_t *id, size_t id_size,
		    struct seam_err *err)
{
	seam_channel_put_u32(parent, debug);
	seam_channel_put(parent, id, id_size);
	if (seam_channel_send(parent, SEAM_REMOTE_DOWNLOAD, -1))
		_exit(0);
	return receive_file(err);
}

static const struct seam_broker broker = {
	.open = open_file, .download = download,
};

/* -- answers ------------------------------------------------------------ */

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 1;
}

static void put_segments(const struct seam_segments *segments)
{
	seam_channel_put_u64(parent, segments->n);
	seam_channel_put(parent, segments->items,
			 segments->n * sizeof(*segments->items));
}

/*
 * Where the name of each symbol ends, when all stand one after the other: a
 * pass over a hundred thousand names costs more than keeping that.  NULL
 * when memory ran out.
 */
static uint32_t *name_ends(const struct seam_symtab *table)
{
	size_t n = table->symbols.n;
	uint32_t *ends = malloc((n + 1) * sizeof(*ends));
	uint32_t end = 0;

	for (size_t i = 0; ends && i < n; i++)
		ends[i] = end += (uint32_t)size_of(table->symbols.items[i]
						   .name);
	return ends;
}

/* All symbols, then all names. */
static void put_table(const struct seam_symtab *table, const uint32_t *ends)
{
	size_t n = table->symbols.n;

	seam_channel_put_u64(parent, n);
	for (size_t i = 0; i < n; i++) {
		const struct seam_symbol *s = &table->symbols.items[i];
		struct seam_remote_symbol symbol = {
			.start = s->start, .end = s->end, .limit = s->limit,
			.flags = s->flags, .name = i ? ends[i - 1] : 0,
		};

		seam_channel_put(parent, &symbol, sizeof(symbol));
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = table->symbols.items[i].name;

		seam_channel_put(parent, name ? name : "",
				 ends[i] - (i ? ends[i - 1] : 0));
	}
}

/* Of the whole answer, as put by answer_module(). */
static size_t module_bytes(const struct seam_symbols_inside *inside,
			   const uint32_t *ends)
{
	size_t n = inside->table->symbols.n;

	return 4 + 4 + 4 + size_of(inside->problem) + 8 +
	       inside->segments->n * sizeof(*inside->segments->items) + 8 +
	       n * sizeof(struct seam_remote_symbol) + (n ? ends[n - 1] : 0);
}

static void answer_module(struct seam_symbols *symbols,
			  struct seam_cursor *body)
{
	struct seam_module file = { 0 };
	struct seam_symbols_inside inside = { .problem = "out of memory" };
	uint32_t *ends = NULL;
	uint32_t id;

	file.pid = (int32_t)seam_cursor_u32(body);
	file.evidence = (enum seam_evidence)seam_cursor_u32(body);
	file.ino = seam_cursor_u64(body);
	file.ino_generation = seam_cursor_u64(body);
	file.mapped_ns = seam_cursor_u64(body);
	file.build_id_size = seam_cursor_u32(body);
	file.build_id = file.build_id_size ?
			seam_cursor_bytes(body, file.build_id_size) : NULL;
	file.path = seam_cursor_cstr(body);
	id = body->error ? SEAM_NONE : seam_symbols_module(symbols, &file);
	if (id != SEAM_NONE) {
		seam_symbols_look_inside(symbols, id, &inside);
		ends = name_ends(inside.table);
	}
	if (ends)
		seam_channel_stream(parent, SEAM_REMOTE_DONE,
				    module_bytes(&inside, ends));
	else
		id = SEAM_NONE;
	seam_channel_put_u32(parent, id);
	seam_channel_put_u32(parent, inside.dwarf != NULL);
	seam_channel_put_u32(parent, (uint32_t)-seam_symbols_missing(symbols,
								     id));
	seam_channel_put_text(parent, inside.problem);
	if (id == SEAM_NONE)
		return;
	put_segments(inside.segments);
	put_table(inside.table, ends);
	free(ends);
}

static void put_locations(struct seam_dwarf *dwarf, uint64_t addr, size_t cap)
{
	struct seam_location at[SEAM_REMOTE_LOCATIONS];
	size_t n = dwarf ? seam_dwarf_resolve(dwarf, addr, at, cap) : 0;

	seam_channel_put_u64(parent, n);
	for (size_t i = 0; i < n; i++) {
		seam_channel_put_u32(parent, at[i].line);
		seam_channel_put_u32(parent, at[i].is_inlined |
				     (at[i].function ? 2u : 0) |
				     (at[i].file ? 4u : 0));
		seam_channel_put_text(parent, at[i].function);
		seam_channel_put_text(parent, at[i].file);
	}
}

static void answer_resolve(struct seam_symbols *symbols,
			   struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	size_t cap = seam_cursor_u32(body);
	struct seam_symbols_inside inside = { 0 };

	if (cap > SEAM_REMOTE_LOCATIONS)
		cap = SEAM_REMOTE_LOCATIONS;
	seam_symbols_look_inside(symbols, id, &inside);
	while (!body->error && seam_cursor_left(body) >= 8)
		put_locations(inside.dwarf, seam_cursor_u64(body), cap);
	/* reading a unit may find what is missing */
	seam_channel_put_text(parent, seam_symbols_problem(symbols, id));
}

static void put_bounds(const struct seam_bounds *bounds)
{
	seam_channel_put_u64(parent, bounds->items.n);
	for (size_t i = 0; i < bounds->items.n; i++) {
		const struct seam_bound *bound = &bounds->items.items[i];

		seam_channel_put_u64(parent, bound->start);
		seam_channel_put_u64(parent, bound->end);
		seam_channel_put_u32(parent, bound->go);
		seam_channel_put_u32(parent, bound->is_signal_frame);
	}
	seam_channel_put_u32(parent, bounds->go.endian);
	seam_channel_put_u64(parent, bounds->go.text_addr);
	if (bounds->go_bytes)
		seam_channel_put(parent, bounds->go_bytes,
				 bounds->go.bytes.size);
}

static void answer_bounds(struct seam_symbols *symbols,
			  struct seam_cursor *body)
{
	struct seam_symbols_inside inside = { 0 };
	static const struct seam_bounds none;

	seam_symbols_look_inside(symbols, seam_cursor_u32(body), &inside);
	put_bounds(inside.table ? seam_symbols_bounds(symbols, inside.id) :
		   &none);
}

static void answer_code(struct seam_symbols *symbols, struct seam_cursor *body)
{
	uint32_t id = seam_cursor_u32(body);
	uint64_t offset = seam_cursor_u64(body);
	uint64_t size = seam_cursor_u64(body);
	struct seam_machine machine = { 0 };
	struct seam_err err = { 0 };
	uint8_t *code = size <= MAX_CODE ? malloc(size + 1) : NULL;

	if (!code)
		seam_err_set(&err, -ENOMEM, "out of memory");
	else if (!seam_symbols_code(symbols, id, offset, code, size, &machine,
				    &err))
		err.code = 0;	/* what was tried before is in it */
	seam_channel_put_err(parent, &err);
	seam_channel_put_u32(parent, machine.elf_machine);
	seam_channel_put_u32(parent, machine.is_64 |
			     (machine.is_big_endian ? 2u : 0));
	if (!err.code)
		seam_channel_put(parent, code, size);
	free(code);
}

static void answer(struct seam_symbols *symbols, struct seam_message *question)
{
	switch (question->kind) {
	case SEAM_REMOTE_MODULE:
		answer_module(symbols, &question->body);
		break;
	case SEAM_REMOTE_RESOLVE:
		answer_resolve(symbols, &question->body);
		break;
	case SEAM_REMOTE_BOUNDS:
		answer_bounds(symbols, &question->body);
		break;
	case SEAM_REMOTE_CODE:
		answer_code(symbols, &question->body);
		break;
	}
}

void seam_remote_serve(struct seam_channel *channel, void *context)
{
	struct seam_symbols_options options =
		*(const struct seam_symbols_options *)context;
	struct seam_symbols *symbols;
	struct seam_message question;

	options.isolated = false;
	symbols = seam_symbols_new(&options);
	if (!symbols)
		return;
	parent = channel;
	seam_broker = &broker;
	while (seam_channel_receive(channel, &question) == 0) {
		if (question.fd >= 0)
			close(question.fd);
		answer(symbols, &question);
		if (seam_channel_send(channel, SEAM_REMOTE_DONE, -1))
			break;
	}
}
