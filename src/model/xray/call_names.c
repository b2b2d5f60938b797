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
	struct seam_xray_map map;	/* strings are those of all programs */
	uint32_t image;			/* the binary with the lowest ids */
	uint32_t first, n_ids;
	const char *log;		/* its first one */
};

struct log_naming {
	struct seam_xray_map *names;	/* the result */
	struct seam_trace *trace;
	struct seam_symbols *symbols;
	const struct seam_log_notes *notes;
	SEAM_ARRAY(struct program) programs;
	SEAM_ARRAY(uint32_t) of_log;	/* SEAM_NONE: no map */
	size_t n_unmapped;		/* logs */
	const char *unmapped;		/* the first of them */
	size_t n_unread;		/* files */
	uint64_t map_bytes_left;
	size_t event_bytes_left, steps_left;
	char bundle[PATH_MAX];		/* whose manifest was read last */
	struct seam_manifest manifest;	/* "": none */
};

static void note(const struct log_naming *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note(const struct log_naming *n, const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n->notes)
		n->notes->note(n->notes->context, text);
}

/* Whether one more file that cannot be read is noted: the first few are. */
static bool may_note(struct log_naming *n)
{
	return n->n_unread++ < MAX_NOTES;
}

/* Count @steps.  False: they are too many. */
static bool take_steps(struct log_naming *n, size_t steps)
{
	if (n->steps_left < steps)
		return false;
	n->steps_left -= steps;
	return true;
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

static void read_events(struct log_naming *n, struct seam_trace_log *log)
{
	size_t max = n->event_bytes_left < SEAM_EVENT_NAMES_MAX_BYTES ?
		     n->event_bytes_left : SEAM_EVENT_NAMES_MAX_BYTES;
	char path[PATH_MAX], shown[256];
	struct seam_file file = { 0 };
	struct seam_err err = { 0 };
	int r;

	if (!beside(path, log->path, ".events"))
		return;
	r = seam_file_read(&file, AT_FDCWD, path, max, &err);
	n->event_bytes_left -= file.bytes.size;
	if (!r)
		r = seam_event_names_read(&log->event_names, file.bytes, &err);
	seam_file_close(&file);
	if (r && r != -ENOENT && may_note(n))
		note(n, "cannot read all event names of '%s': %s",
		     seam_text_copy(shown, sizeof(shown), path,
				    SEAM_TEXT_TERMINAL), err.cause[0]);
}

/* -- programs ----------------------------------------------------------- */

/* Have the strings of @map be in those of all programs. */
static int take_strings(struct log_naming *n, struct seam_xray_map *map)
{
	struct seam_strings *strings = &n->names->strings;

	if (strings->texts.n == 0) {
		*strings = map->strings;
		map->strings = (struct seam_strings) { 0 };
		return 0;
	}
	for (size_t i = 0; i < map->functions.n; i++) {
		struct seam_xray_mapped *f = &map->functions.items[i];
		uint32_t *const of[] = { &f->name, &f->image, &f->build_id };

		for (size_t k = 0; k < SEAM_ARRAY_SIZE(of); k++) {
			*of[k] = seam_strings_put(strings, seam_strings_get(
						  &map->strings, *of[k]));
			if (*of[k] == SEAM_NONE)
				return -ENOMEM;
		}
	}
	seam_strings_fini(&map->strings);
	return 0;
}

/* One that the program has registered is of no image. */
static uint32_t first_image(const struct seam_xray_map *map)
{
	for (size_t i = 0; i < map->functions.n; i++)
		if (map->functions.items[i].image)
			return map->functions.items[i].image;
	return 0;
}

/* Whether no function of @map contradicts the program's. */
static bool is_same_program(struct log_naming *n, const struct program *program,
			    const struct program *other)
{
	const struct seam_xray_mapped *x = program->map.functions.items;
	const struct seam_xray_mapped *y = other->map.functions.items;
	const struct seam_xray_mapped *x_end = x + program->map.functions.n;
	const struct seam_xray_mapped *y_end = y + other->map.functions.n;

	/* steps: to compare them, and to join them in the worst case */
	if (program->image != other->image)
		return false;
	while (x < x_end && y < y_end) {
		if (!take_steps(n, 1))
			return false;
		if (x->id < y->id)
			x++;
		else if (x->id > y->id)
			y++;
		else if (x->addr != y->addr || x->name != y->name ||
			 x->image != y->image || x->build_id != y->build_id)
			return false;
		else
			x++, y++;
	}
	return take_steps(n, program->map.functions.n +
			     other->map.functions.n);
}

/* Add to @to what @from has more; both are of one program. */
static int join(struct seam_xray_map *to, const struct seam_xray_map *from)
{
	size_t n = to->functions.n;

	for (size_t i = 0; i < from->functions.n; i++) {
		const struct seam_xray_mapped *f = &from->functions.items[i];
		size_t at = SEAM_ARRAY_SEARCH(k, n,
				to->functions.items[k].id < f->id);

		if (at < n && to->functions.items[at].id == f->id)
			to->functions.items[at].kinds |= f->kinds;
		else if (!SEAM_ARRAY_ADD(&to->functions, *f))
			return -ENOMEM;
	}
	if (to->functions.n > n)
		seam_xray_map_sort(to);
	return 0;
}

/* The program of @added, whose map is taken over; SEAM_NONE: no memory. */
static uint32_t find_program(struct log_naming *n, struct program *added)
{
	for (uint32_t i = 0; i < n->programs.n; i++) {
		struct program *program = &n->programs.items[i];
		int r;

		if (!is_same_program(n, program, added))
			continue;
		r = join(&program->map, &added->map);
		seam_xray_map_fini(&added->map);
		return r ? SEAM_NONE : i;
	}
	if (SEAM_ARRAY_ADD(&n->programs, *added))
		return (uint32_t)n->programs.n - 1;
	seam_xray_map_fini(&added->map);
	return SEAM_NONE;
}

/* The map beside one log: 0, also where there is none, or -ENOMEM. */
static int add_log(struct log_naming *n, const struct seam_trace_log *log)
{
	struct program program = { .log = log->path };
	char path[PATH_MAX], text[SEAM_ERR_TEXT];
	struct seam_err err = { 0 };
	uint32_t id = SEAM_NONE;
	int r = n->symbols && beside(path, log->path, ".yaml") ?
		seam_symbols_read_map(n->symbols, &program.map, path,
				      &n->map_bytes_left, &err) : -ENOENT;

	if (!r && !take_strings(n, &program.map)) {
		program.image = first_image(&program.map);
		id = find_program(n, &program);
	} else {
		seam_xray_map_fini(&program.map);
	}
	if (r == -ENOMEM || (!r && id == SEAM_NONE))
		return -ENOMEM;
	if (r && r != -ENOENT && may_note(n)) {
		seam_err_text(&err, text);
		note(n, "%s", text);
	}
	/* one that has no block has no names to miss */
	if (r && (r != -ENOENT || log->index.blocks.n) &&
	    n->n_unmapped++ == 0)
		n->unmapped = log->path;
	return SEAM_ARRAY_ADD(&n->of_log, id) ? 0 : -ENOMEM;
}

/* -- names of functions -------------------------------------------------- */

/* Functions of one binary, one after another. */
struct binary {
	struct seam_xray_mapped *functions;
	size_t n, n_unnamed;
	uint64_t *addresses;		/* of the unnamed ones ... */
	struct seam_xray_mapped **of;	/* ... and the functions */
	struct seam_strings *strings;
	uint8_t build_id[SEAM_BUILD_ID_MAX];
};

static int take_name(void *context, size_t i, const char *name)
{
	struct binary *binary = context;
	uint32_t id = seam_strings_put(binary->strings, name);

	if (id == SEAM_NONE)
		return -ENOMEM;
	binary->of[i]->name = id;
	binary->n_unnamed--;
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

/*
 * The contents of the file at @path that has no build id, as the recorder of
 * @bundle has read them; 0: not known, or of several files.
 */
static uint64_t content_id_of(struct log_naming *n, const char *bundle,
			      const char *path)
{
	const struct seam_manifest *manifest = &n->manifest;
	uint64_t id = 0;

	if (strcmp(n->bundle, bundle) != 0) {
		seam_manifest_fini(&n->manifest);
		snprintf(n->bundle, sizeof(n->bundle), "%s", bundle);
		seam_input_manifest(&n->manifest, bundle, NULL);
	}
	if (!take_steps(n, manifest->n_files))
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
static struct seam_module module_of(struct log_naming *n, struct binary *binary,
				    const char *bundle)
{
	const struct seam_xray_mapped *f = binary->functions;
	const char *id = seam_strings_get(binary->strings, f->build_id);
	struct seam_module module = {
		.path = seam_strings_get(binary->strings, f->image),
		.bundle = bundle, .build_id = binary->build_id,
	};

	module.build_id_size = seam_text_unhex(binary->build_id,
				sizeof(binary->build_id), id, strlen(id));
	if (!module.build_id_size && bundle)
		module.content_id = content_id_of(n, bundle, module.path);
	module.evidence = module.content_id ? SEAM_EVIDENCE_CONTENTS :
			  SEAM_EVIDENCE_NONE;
	return module;
}

/* Why most functions of @binary have no name. */
static void note_unnamed(struct log_naming *n, const struct binary *binary,
			 const char *path, const char *problem)
{
	char shown[256], why[256];

	if (binary->n_unnamed <= binary->n / 2 || !may_note(n))
		return;
	seam_text_copy(shown, sizeof(shown), path, SEAM_TEXT_TERMINAL);
	/* the process that reads files may send anything */
	seam_text_copy(why, sizeof(why), problem ? problem :
		       "its symbol table has none; --map COPY, if a copy has "
		       "symbols", SEAM_TEXT_TERMINAL);
	note(n, "%zu function%s of '%s' without a name: %s", binary->n_unnamed,
	     binary->n_unnamed == 1 ? "" : "s", shown, why);
}

static int name_binary(struct log_naming *n, struct binary *binary,
		       const char *bundle)
{
	struct seam_named_addresses names = {
		.addresses = binary->addresses, .take = take_name,
		.context = binary,
	};
	struct seam_module_state state = {
		.problem = "neither its build id nor its contents are known",
	};
	struct seam_module module;
	uint32_t id;
	int r = 0;

	for (size_t i = 0; i < binary->n; i++) {
		struct seam_xray_mapped *f = &binary->functions[i];

		if (f->name)
			continue;
		binary->addresses[names.n] = f->addr;
		binary->of[names.n++] = f;
	}
	binary->n_unnamed = names.n;
	if (!names.n || !take_steps(n, BINARY_STEPS))
		return 0;
	module = module_of(n, binary, bundle);
	if (module.build_id_size || module.content_id) {
		id = seam_symbols_module(n->symbols, &module);
		r = id == SEAM_NONE ? -ENOMEM :
		    seam_symbols_names(n->symbols, id, &names);
		if (r)
			return r;
		seam_symbols_state(n->symbols, id, &state);
	}
	note_unnamed(n, binary, module.path, state.problem);
	return 0;
}

/* Name the functions of @map, which is beside log @path, or is @path. */
static int name_functions(struct log_naming *n, struct seam_xray_map *map,
			  const char *path)
{
	struct seam_xray_mapped *f = map->functions.items;
	size_t all = map->functions.n;
	struct binary binary = {
		.addresses = calloc(all + 1, sizeof(*binary.addresses)),
		.of = calloc(all + 1, sizeof(struct seam_xray_mapped *)),
		.strings = &n->names->strings,
	};
	int r = binary.addresses && binary.of ? 0 : -ENOMEM;
	char bundle[PATH_MAX];
	bool is_in = bundle_of(bundle, path);

	for (size_t at = 0; !r && at < all; at += binary.n) {
		binary.functions = f + at;
		for (binary.n = 1; at + binary.n < all; binary.n++)
			if (f[at + binary.n].image != f[at].image ||
			    f[at + binary.n].build_id != f[at].build_id)
				break;
		if (f[at].image)
			r = name_binary(n, &binary, is_in ? bundle : NULL);
	}
	free(binary.addresses);
	free(binary.of);
	return r;
}

/* -- the numbering ------------------------------------------------------ */

/* Give each program its range of numbers. */
static int number(struct log_naming *n)
{
	bool is_one = n->programs.n == 1 && n->n_unmapped == 0;
	uint32_t first = 0;

	for (size_t i = 0; i < n->programs.n; i++) {
		struct program *program = &n->programs.items[i];
		struct seam_xray_mapped *f = program->map.functions.items;
		size_t n_functions = program->map.functions.n;
		uint32_t n_ids = f[n_functions - 1].id + 1;

		if (n_ids > MAX_NUMBERS - first)	/* it has no names */
			continue;
		for (size_t k = 0; k < n_functions; k++)
			f[k].id += first;
		if (!SEAM_ARRAY_EXTEND(&n->names->functions, f, n_functions))
			return -ENOMEM;
		program->first = first;
		program->n_ids = n_ids;
		first += n_ids;
	}
	if (is_one)
		return 0;
	n->names->others = first;
	for (size_t i = 0; i < n->trace->logs.n; i++) {
		uint32_t id = n->of_log.items[i];
		const struct program *program = id == SEAM_NONE ? NULL :
						&n->programs.items[id];

		n->trace->logs.items[i].ids = (struct seam_trace_ids) {
			.others = first, .n = program ? program->n_ids : 0,
			.first = program ? program->first : 0,
		};
	}
	return 0;
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

/* How to get the names that are not there. */
static void note_unmapped(const struct log_naming *n)
{
	char shown[256], path[PATH_MAX];

	if (n->n_unread > MAX_NOTES)
		note(n, "%zu more files of names cannot be read",
		     n->n_unread - MAX_NOTES);
	if (n->n_unmapped == 0)
		return;
	seam_text_copy(shown, sizeof(shown), n->unmapped, SEAM_TEXT_TERMINAL);
	if (n->n_unmapped > 1)
		note(n, "functions of %zu logs are numbers, as in '%s': they "
		     "have no map (PID.yaml) beside them; --map PROGRAM names "
		     "the functions", n->n_unmapped, shown);
	else if (beside(path, n->unmapped, ".yaml"))
		note(n, "functions of '%s' are numbers: it has no map beside "
		     "it; --map PROGRAM names them", shown);
	else
		note(n, "functions are numbers: --map PROGRAM names them");
}

/* Names from the maps beside the logs.  0 or -ENOMEM. */
static int open_beside(struct log_naming *n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n->trace->logs.n; i++)
		r = add_log(n, &n->trace->logs.items[i]);
	for (size_t i = 0; !r && i < n->programs.n; i++)
		r = name_functions(n, &n->programs.items[i].map,
				   n->programs.items[i].log);
	r = r ?: number(n) ?: set_entries_only(n->trace, n->names);
	if (!r)
		note_unmapped(n);
	return r;
}

int seam_log_names_open(struct seam_xray_map *names, struct seam_trace *trace,
			const char *path, struct seam_symbols *symbols,
			const struct seam_log_notes *notes,
			struct seam_err *err)
{
	struct log_naming n = {
		.names = names, .trace = trace, .symbols = symbols,
		.notes = notes, .map_bytes_left = MAX_MAP_BYTES,
		.event_bytes_left = MAX_EVENT_BYTES, .steps_left = MAX_STEPS,
	};
	bool is_read = true;
	int r;

	*names = (struct seam_xray_map) { 0 };
	for (size_t i = 0; i < trace->logs.n; i++)
		read_events(&n, &trace->logs.items[i]);
	if (path) {
		r = seam_symbols_read_map(symbols, names, path, NULL, err);
		is_read = !r;
		r = r ?: name_functions(&n, names, path);
	} else {
		r = open_beside(&n);
	}
	for (size_t i = 0; i < n.programs.n; i++)
		seam_xray_map_fini(&n.programs.items[i].map);
	free(n.programs.items);
	free(n.of_log.items);
	seam_manifest_fini(&n.manifest);
	if (r && is_read)
		seam_err_no_memory(err);
	if (r)
		seam_xray_map_fini(names);
	return r;
}
