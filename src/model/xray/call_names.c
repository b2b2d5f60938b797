/* SPDX-License-Identifier: MIT */
/* call_names.c - look up names, check a map against a log; see call_names.h */
#include "model/xray/call_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/input.h"

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

	/* it or the next one is of the same program: see call_names.h */
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

/* -- maps and event names beside logs ----------------------------------- */

/*
 * The maps and event names beside the logs of a trace
 *
 * Beside PID.xray a recording has PID.yaml, the instrumentation map of that
 * process, and PID.events, the names of its typed events.  Logs alone can have
 * them too.
 *
 * Processes of several programs may be in one trace.  Maps that agree are those
 * of one program: a process and its forks, which saw different functions.  The
 * programs get ranges of numbers, one after another, and all of them one map;
 * struct seam_trace_ids converts the numbers of a log.  Logs without a map come
 * last, as one program without names.
 */

/* Of all programs together; with those of a log they fit in 31 bits. */
#define MAX_NUMBERS (UINT32_C(1) << 30)

enum {
	/* of all maps beside logs together: a bundle may have any number */
	MAX_MAP_BYTES = 1 << 30,
	MAX_EVENT_BYTES = 256 << 20,	/* likewise */
	/* steps to find logs of one program; others have numbers of their own */
	MAX_STEPS = 1 << 27,
	BINARY_STEPS = 1 << 12,	/* of these for a binary that is searched */
	MAX_NOTES = 8,		/* of files that cannot be read */
};

struct program {
	struct seam_xray_map map;
	uint32_t first, n_ids;
	const char *log;		/* its first one */
};

struct programs {
	SEAM_ARRAY(struct program) items;
	SEAM_ARRAY(uint32_t) of_log;	/* SEAM_NONE: no map */
	size_t n_unmapped;		/* logs */
	const char *unmapped;		/* the first of them */
	const struct seam_log_notes *notes;
	size_t n_unread;		/* files */
	uint64_t bytes_left;
	size_t event_bytes_left, steps_left;
	struct seam_symbols *symbols;
	char bundle[PATH_MAX];		/* whose manifest was read last */
	struct seam_manifest manifest;	/* "": none */
};

static void note(const struct seam_log_notes *notes, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note(const struct seam_log_notes *notes, const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (notes)
		notes->note(notes->context, text);
}

/* Why the names of one log are not there, for the first few logs. */
static void note_unread(struct programs *programs, const char *text)
{
	if (programs->n_unread++ < MAX_NOTES)
		note(programs->notes, "%s", text);
}

/* "DIR/77.xray" as "DIR/77" and @suffix.  False: it has another name. */
static bool beside(char path[PATH_MAX], const char *log, const char *suffix)
{
	size_t n = strlen(log), end = strlen(".xray");

	if (n <= end || strcmp(log + n - end, ".xray") != 0)
		return false;
	n = (size_t)snprintf(path, PATH_MAX, "%.*s%s", (int)(n - end), log,
			     suffix);
	return n < PATH_MAX;
}

/* -- event names -------------------------------------------------------- */

static void read_events(struct programs *programs, struct seam_trace_log *log)
{
	char path[PATH_MAX], shown[256], text[600];
	struct seam_file file = { 0 };
	struct seam_err err = { 0 };
	int r;

	if (!beside(path, log->path, ".events"))
		return;
	r = seam_file_read(&file, AT_FDCWD, path,
			   programs->event_bytes_left <
			   SEAM_EVENT_NAMES_MAX_BYTES ?
			   programs->event_bytes_left :
			   SEAM_EVENT_NAMES_MAX_BYTES, &err);
	programs->event_bytes_left -= file.bytes.size;
	if (!r)
		r = seam_event_names_read(&log->event_names, file.bytes, &err);
	seam_file_close(&file);
	if (!r || r == -ENOENT)
		return;
	snprintf(text, sizeof(text), "cannot read all event names of '%s': %s",
		 seam_text_copy(shown, sizeof(shown), path,
				SEAM_TEXT_TERMINAL), err.cause[0]);
	note_unread(programs, text);
}

/* -- maps --------------------------------------------------------------- */

/* Count @n steps.  False: they were too many. */
static bool take_steps(struct programs *programs, size_t n)
{
	if (programs->steps_left < n)
		return false;
	programs->steps_left -= n;
	return true;
}

/* Whether both strings are the same, known so in a limited time. */
static bool is_same_text(struct programs *programs, const char *x,
			 const char *y)
{
	size_t n = strlen(x);

	return take_steps(programs, 1 + n / 32) && strcmp(x, y) == 0;
}

/* String @x of one map and @y of the other, of which 0 may stand for any. */
static bool are_same(struct programs *programs, const struct seam_xray_map *a,
		     uint32_t x, const struct seam_xray_map *b, uint32_t y)
{
	return !x || !y || is_same_text(programs,
					seam_strings_get(&a->strings, x),
					seam_strings_get(&b->strings, y));
}

/* Whether @x and @y can be the same function; either may have no name. */
static bool agree(struct programs *programs, const struct seam_xray_map *a,
		  const struct seam_xray_mapped *x,
		  const struct seam_xray_map *b,
		  const struct seam_xray_mapped *y)
{
	return x->addr == y->addr && are_same(programs, a, x->name, b, y->name);
}

/* Whether no function of one map contradicts the other: both are by id. */
static bool is_same_program(struct programs *programs,
			    const struct seam_xray_map *a,
			    const struct seam_xray_map *b)
{
	const struct seam_xray_mapped *x = a->functions.items;
	const struct seam_xray_mapped *y = b->functions.items;
	const struct seam_xray_mapped *x_end = x + a->functions.n;
	const struct seam_xray_mapped *y_end = y + b->functions.n;
	uint32_t image_x = SEAM_NONE, image_y = SEAM_NONE;

	if (!is_same_text(programs, seam_xray_map_program(a),
			  seam_xray_map_program(b)))
		return false;
	while (x < x_end && y < y_end) {
		if (!take_steps(programs, 1) ||
		    (x->id == y->id && !agree(programs, a, x, b, y)))
			return false;
		/* those of a binary come one after another */
		if (x->id == y->id &&
		    (x->image != image_x || y->image != image_y) &&
		    !(are_same(programs, a, x->image, b, y->image) &&
		      are_same(programs, a, x->build_id, b, y->build_id)))
			return false;
		if (x->id == y->id) {
			image_x = x->image;
			image_y = y->image;
		}
		if (x->id <= y->id)
			x++;
		else
			y++;
	}
	/* to join them, in the worst case */
	return take_steps(programs, a->functions.n + b->functions.n);
}

static int copy_function(struct seam_xray_map *to,
			 const struct seam_xray_map *from,
			 struct seam_xray_mapped f, uint32_t first)
{
	uint32_t *const strings[] = { &f.name, &f.image, &f.build_id };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(strings); i++) {
		const char *text = seam_strings_get(&from->strings,
						    *strings[i]);

		*strings[i] = *strings[i] ?
			      seam_strings_put(&to->strings, text) : 0;
		if (*strings[i] == SEAM_NONE)
			return -ENOMEM;
	}
	f.id += first;
	return SEAM_ARRAY_ADD(&to->functions, f) ? 0 : -ENOMEM;
}

/* Add to @to what @from has more; both are of one program. */
static int join(struct seam_xray_map *to, const struct seam_xray_map *from)
{
	size_t n = to->functions.n;
	int r = 0;

	for (size_t i = 0; !r && i < from->functions.n; i++) {
		const struct seam_xray_mapped *f = &from->functions.items[i];
		size_t at = SEAM_ARRAY_SEARCH(k, n,
				to->functions.items[k].id < f->id);

		if (at == n || to->functions.items[at].id != f->id)
			r = copy_function(to, from, *f, 0);
		else
			to->functions.items[at].kinds |= f->kinds;
	}
	if (to->functions.n > n)
		seam_xray_map_sort(to);
	return r;
}

/* The program of @map beside @log; the map is taken over. */
static uint32_t find_program(struct programs *programs,
			     struct seam_xray_map *map, const char *log)
{
	struct program *program;
	int r;

	for (uint32_t i = 0; i < programs->items.n; i++) {
		program = &programs->items.items[i];
		if (!is_same_program(programs, &program->map, map))
			continue;
		r = join(&program->map, map);
		seam_xray_map_fini(map);
		return r ? SEAM_NONE : i;
	}
	program = SEAM_ARRAY_PUSH(&programs->items);
	if (!program) {
		seam_xray_map_fini(map);
		return SEAM_NONE;
	}
	*program = (struct program) { .map = *map, .log = log };
	return (uint32_t)programs->items.n - 1;
}

/* "77.yaml cannot be read", or which log has none. */
static void note_map(struct programs *programs, const char *log,
		     const struct seam_err *err)
{
	char text[SEAM_ERR_TEXT];

	if (err->code != -ENOENT) {
		seam_err_text(err, text);
		note_unread(programs, text);
	}
	if (programs->n_unmapped++ == 0)
		programs->unmapped = log;
}

/* The map beside one log: 0, also where there is none, or -ENOMEM. */
static int add_log(struct programs *programs, const struct seam_trace_log *log)
{
	struct seam_xray_map map = { 0 };
	struct seam_err err = { 0 };
	uint32_t program = SEAM_NONE;
	char path[PATH_MAX];
	int r = programs->symbols && beside(path, log->path, ".yaml") ?
		seam_symbols_read_map(programs->symbols, &map, path,
				      &programs->bytes_left, &err) :
		seam_err_set(&err, -ENOENT, "no name");

	if (r == -ENOMEM)
		return r;
	/* one that has no block has no names to miss */
	if (r && (r != -ENOENT || log->index.blocks.n))
		note_map(programs, log->path, &err);
	if (!r) {
		program = find_program(programs, &map, log->path);
		if (program == SEAM_NONE)
			return -ENOMEM;
	}
	return SEAM_ARRAY_ADD(&programs->of_log, program) ? 0 : -ENOMEM;
}

/* -- names of functions -------------------------------------------------- */

/* Functions of one binary, one after another. */
struct binary {
	struct seam_xray_map *map;
	struct seam_xray_mapped *functions;
	size_t n, n_unnamed;
	uint64_t *addresses;		/* of the unnamed ones ... */
	struct seam_xray_mapped **of;	/* ... and the functions */
	uint8_t build_id[SEAM_BUILD_ID_MAX];
};

static int take_name(void *context, size_t i, const char *name)
{
	struct binary *binary = context;
	uint32_t id = seam_strings_put(&binary->map->strings, name);

	if (id == SEAM_NONE)
		return -ENOMEM;
	binary->of[i]->name = id;
	binary->n_unnamed--;
	return 0;
}

/* Those of @binary without a name.  0 or -ENOMEM. */
static int list_unnamed(struct binary *binary)
{
	binary->addresses = calloc(binary->n, sizeof(*binary->addresses));
	binary->of = calloc(binary->n, sizeof(struct seam_xray_mapped *));
	if (!binary->addresses || !binary->of)
		return -ENOMEM;
	for (size_t i = 0; i < binary->n; i++) {
		struct seam_xray_mapped *f = &binary->functions[i];

		if (f->name)
			continue;
		binary->addresses[binary->n_unnamed] = f->addr;
		binary->of[binary->n_unnamed++] = f;
	}
	return 0;
}

/* "DIR/NAME.seam" of "DIR/NAME.seam/xray/77.xray"; false: it is in none. */
static bool bundle_of(char bundle[PATH_MAX], const char *log)
{
	const char *name = seam_file_name(log);
	size_t n = (size_t)(name - log), in = strlen("/xray/");

	if (n <= in || n >= PATH_MAX || memcmp(name - in, "/xray/", in) != 0)
		return false;
	snprintf(bundle, PATH_MAX, "%.*s", (int)(n - in), log);
	return true;
}

static void read_manifest(struct programs *programs, const char *bundle)
{
	struct seam_file file = { 0 };
	char path[PATH_MAX + 16];

	if (strcmp(programs->bundle, bundle) == 0)
		return;
	seam_manifest_fini(&programs->manifest);
	snprintf(programs->bundle, sizeof(programs->bundle), "%s", bundle);
	snprintf(path, sizeof(path), "%s/meta.json", bundle);
	if (seam_file_read(&file, AT_FDCWD, path, SEAM_INPUT_MAX_MANIFEST,
			   NULL) == 0)
		seam_manifest_read(&programs->manifest, file.bytes, NULL);
	seam_file_close(&file);
}

/*
 * The contents of the file at @path that has no build id, as the recorder of
 * @bundle has read them; 0: not known, or of several files.
 */
static uint64_t content_id_of(struct programs *programs, const char *bundle,
			      const char *path)
{
	const struct seam_manifest *manifest = &programs->manifest;
	uint64_t id = 0;

	read_manifest(programs, bundle);
	if (!take_steps(programs, manifest->n_files))
		return 0;
	for (size_t i = 0; i < manifest->n_files; i++) {
		uint64_t is = manifest->files[i].content_id;

		if (strcmp(manifest->files[i].path, path) != 0)
			continue;
		if (id && id != is)
			return 0;
		id = is;
	}
	return id;
}

/* What identifies the file of @binary. */
static struct seam_module module_of(struct programs *programs,
				    struct binary *binary, const char *bundle)
{
	const struct seam_strings *strings = &binary->map->strings;
	const struct seam_xray_mapped *f = binary->functions;
	const char *id = f->build_id ? seam_strings_get(strings, f->build_id) :
			 "";
	struct seam_module module = {
		.path = seam_strings_get(strings, f->image), .bundle = bundle,
		.build_id = binary->build_id,
	};

	module.build_id_size = seam_text_unhex(binary->build_id,
				sizeof(binary->build_id), id, strlen(id));
	if (!module.build_id_size && bundle)
		module.content_id = content_id_of(programs, bundle,
						  module.path);
	module.evidence = module.content_id ? SEAM_EVIDENCE_CONTENTS :
			  SEAM_EVIDENCE_NONE;
	return module;
}

/* Why most functions of @binary have no name. */
static void note_unnamed(struct programs *programs, const struct binary *binary,
			 const char *path, const char *problem)
{
	char shown[256], why[256], text[600];

	if (binary->n_unnamed <= binary->n / 2)
		return;
	seam_text_copy(shown, sizeof(shown), path, SEAM_TEXT_TERMINAL);
	/* the process that reads files may send anything */
	seam_text_copy(why, sizeof(why), problem ? problem :
		       "its symbol table has none; --map COPY, if a copy has "
		       "symbols", SEAM_TEXT_TERMINAL);
	snprintf(text, sizeof(text), "%zu function%s of '%s' without a name: "
		 "%s", binary->n_unnamed, binary->n_unnamed == 1 ? "" : "s",
		 shown, why);
	note_unread(programs, text);
}

static int name_binary(struct programs *programs, struct binary *binary,
		       const char *bundle)
{
	struct seam_named_addresses names = {
		.take = take_name, .context = binary,
	};
	const char *problem = "neither its build id nor its contents are known";
	struct seam_module module;
	uint32_t id;
	int r = list_unnamed(binary);

	if (r || !binary->n_unnamed || !take_steps(programs, BINARY_STEPS))
		return r;
	module = module_of(programs, binary, bundle);
	names.addresses = binary->addresses;
	names.n = binary->n_unnamed;
	if (module.build_id_size || module.content_id) {
		id = seam_symbols_module(programs->symbols, &module);
		if (id == SEAM_NONE)
			return -ENOMEM;
		r = seam_symbols_names(programs->symbols, id, &names);
		problem = seam_symbols_problem(programs->symbols, id);
	}
	if (!r)
		note_unnamed(programs, binary, module.path, problem);
	return r;
}

/* Name the functions of @map, which is beside log @path, or is @path. */
static int name_functions(struct programs *programs, struct seam_xray_map *map,
			  const char *path)
{
	struct seam_xray_mapped *f = map->functions.items;
	char bundle[PATH_MAX];
	const char *in = bundle_of(bundle, path) ? bundle : NULL;
	int r = 0;

	for (size_t at = 0, n; !r && at < map->functions.n; at += n) {
		struct binary binary = { .map = map, .functions = f + at };

		for (n = 1; at + n < map->functions.n; n++)
			if (f[at + n].image != f[at].image ||
			    f[at + n].build_id != f[at].build_id)
				break;
		binary.n = n;
		if (f[at].image)
			r = name_binary(programs, &binary, in);
		free(binary.addresses);
		free(binary.of);
	}
	return r;
}

static int read_maps(struct programs *programs, const struct seam_trace *trace)
{
	int r = 0;

	for (size_t i = 0; !r && i < trace->logs.n; i++)
		r = add_log(programs, &trace->logs.items[i]);
	for (size_t i = 0; !r && i < programs->items.n; i++)
		r = name_functions(programs, &programs->items.items[i].map,
				   programs->items.items[i].log);
	return r;
}

/* -- the numbering ------------------------------------------------------ */

/* Give @program its range of numbers, from @first on. */
static int add_program(struct seam_xray_map *names, struct program *program,
		       uint32_t first)
{
	const struct seam_xray_map *map = &program->map;
	uint32_t n = map->functions.items[map->functions.n - 1].id + 1;
	int r = 0;

	if (n > MAX_NUMBERS - first)	/* it stays without names */
		return 0;
	program->first = first;
	program->n_ids = n;
	for (size_t i = 0; !r && i < map->functions.n; i++)
		r = copy_function(names, map, map->functions.items[i], first);
	return r;
}

static void set_ids(struct seam_trace *trace, const struct programs *programs,
		    uint32_t others)
{
	for (size_t i = 0; i < trace->logs.n; i++) {
		struct seam_trace_ids *ids = &trace->logs.items[i].ids;
		uint32_t id = programs->of_log.items[i];

		*ids = (struct seam_trace_ids) { .others = others };
		if (id == SEAM_NONE)
			continue;
		ids->first = programs->items.items[id].first;
		ids->n = programs->items.items[id].n_ids;
	}
}

static int number(struct seam_xray_map *names, struct seam_trace *trace,
		  struct programs *programs)
{
	uint32_t first = 0;
	int r = 0;

	if (programs->items.n == 1 && programs->n_unmapped == 0) {
		*names = programs->items.items[0].map;
		programs->items.items[0].map = (struct seam_xray_map) { 0 };
		return 0;
	}
	for (size_t i = 0; !r && i < programs->items.n; i++) {
		struct program *program = &programs->items.items[i];

		r = add_program(names, program, first);
		first += program->n_ids;
	}
	names->others = first;
	set_ids(trace, programs, first);
	return r;
}

static void fini_programs(struct programs *programs)
{
	for (size_t i = 0; i < programs->items.n; i++)
		seam_xray_map_fini(&programs->items.items[i].map);
	free(programs->items.items);
	free(programs->of_log.items);
	seam_manifest_fini(&programs->manifest);
}

/* How to get the names that are not there. */
static void note_unmapped(const struct programs *programs)
{
	char shown[256], path[PATH_MAX];

	if (programs->n_unread > MAX_NOTES)
		note(programs->notes, "%zu more files of names cannot be read",
		     programs->n_unread - MAX_NOTES);
	if (programs->n_unmapped == 0)
		return;
	seam_text_copy(shown, sizeof(shown), programs->unmapped,
		       SEAM_TEXT_TERMINAL);
	if (programs->n_unmapped > 1)
		note(programs->notes, "functions of %zu logs are numbers, as "
		     "in '%s': they have no map (PID.yaml) beside them; "
		     "--map PROGRAM names the functions",
		     programs->n_unmapped, shown);
	else if (beside(path, programs->unmapped, ".yaml"))
		note(programs->notes, "functions of '%s' are numbers: it has "
		     "no map beside it; --map PROGRAM names them", shown);
	else
		note(programs->notes, "functions are numbers: --map PROGRAM "
		     "names them");
}

/* Remember which functions have no exits in the logs.  0 or -ENOMEM. */
static int set_entries_only(struct seam_trace *trace,
			    const struct seam_xray_map *names)
{
	const struct seam_xray_mapped *f = names->functions.items;
	size_t n = names->functions.n;

	while (n && !seam_xray_has_entries_only(&f[n - 1]))
		n--;
	if (n == 0)
		return 0;
	trace->n_entries_only = f[n - 1].id + 1;
	trace->entries_only = calloc(trace->n_entries_only / 64 + 1,
				     sizeof(*trace->entries_only));
	if (!trace->entries_only)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (seam_xray_has_entries_only(&f[i]))
			trace->entries_only[f[i].id / 64] |=
				UINT64_C(1) << f[i].id % 64;
	return 0;
}

/* The map that a user has named. */
static int open_named(struct programs *programs, struct seam_xray_map *names,
		      const char *path, struct seam_err *err)
{
	int r = seam_symbols_read_map(programs->symbols, names, path, NULL,
				      err);

	if (!r && name_functions(programs, names, path)) {
		seam_xray_map_fini(names);
		r = seam_err_no_memory(err);
	}
	fini_programs(programs);
	return r;
}

int seam_log_names_open(struct seam_xray_map *names, struct seam_trace *trace,
			const char *path, struct seam_symbols *symbols,
			const struct seam_log_notes *notes,
			struct seam_err *err)
{
	struct programs programs = {
		.notes = notes, .bytes_left = MAX_MAP_BYTES,
		.event_bytes_left = MAX_EVENT_BYTES, .steps_left = MAX_STEPS,
		.symbols = symbols,
	};
	int r;

	*names = (struct seam_xray_map) { 0 };
	for (size_t i = 0; i < trace->logs.n; i++)
		read_events(&programs, &trace->logs.items[i]);
	if (path)
		return open_named(&programs, names, path, err);
	r = read_maps(&programs, trace);
	if (!r)
		r = number(names, trace, &programs);
	if (!r)
		r = set_entries_only(trace, names);
	if (!r)
		note_unmapped(&programs);
	fini_programs(&programs);
	if (r)
		seam_xray_map_fini(names);
	return r ? seam_err_no_memory(err) : 0;
}
