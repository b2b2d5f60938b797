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
	MAX_NOTES = 8,		/* of files that cannot be read */
};

struct program {
	struct seam_xray_map map;
	uint32_t first, n_ids;
};

struct programs {
	SEAM_ARRAY(struct program) items;
	SEAM_ARRAY(uint32_t) of_log;	/* SEAM_NONE: no map */
	size_t n_unmapped;		/* logs */
	const char *unmapped;		/* the first of them */
	const struct seam_log_notes *notes;
	size_t n_unread;		/* files */
	size_t bytes_left, event_bytes_left, steps_left;
	struct seam_xray_map_reader reader;
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

/* Whether @x and @y can be the same function; either may have no name. */
static bool agree(struct programs *programs, const struct seam_xray_map *a,
		  const struct seam_xray_mapped *x,
		  const struct seam_xray_map *b,
		  const struct seam_xray_mapped *y)
{
	return x->addr == y->addr && (!x->name || !y->name ||
	       is_same_text(programs, seam_strings_get(&a->strings, x->name),
			    seam_strings_get(&b->strings, y->name)));
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

	if (!is_same_text(programs, seam_xray_map_program(a),
			  seam_xray_map_program(b)))
		return false;
	while (x < x_end && y < y_end) {
		if (!take_steps(programs, 1) ||
		    (x->id == y->id && !agree(programs, a, x, b, y)))
			return false;
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
	const char *name = seam_strings_get(&from->strings, f.name);
	const char *image = seam_strings_get(&from->strings, f.image);

	f.name = f.name ? seam_strings_put(&to->strings, name) : 0;
	f.image = f.image ? seam_strings_put(&to->strings, image) : 0;
	f.id += first;
	return f.name != SEAM_NONE && f.image != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&to->functions, f) ? 0 : -ENOMEM;
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

/* The program of @map, which is taken over. */
static uint32_t find_program(struct programs *programs,
			     struct seam_xray_map *map)
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
	*program = (struct program) { .map = *map };
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
	int r = beside(path, log->path, ".yaml") ?
		seam_xray_map_open_beside(&map, &programs->reader, path,
					  &programs->bytes_left, &err) :
		seam_err_set(&err, -ENOENT, "no name");

	if (r == -ENOMEM)
		return r;
	/* one that has no block has no names to miss */
	if (r && (r != -ENOENT || log->index.blocks.n))
		note_map(programs, log->path, &err);
	if (!r) {
		program = find_program(programs, &map);
		if (program == SEAM_NONE)
			return -ENOMEM;
	}
	return SEAM_ARRAY_ADD(&programs->of_log, program) ? 0 : -ENOMEM;
}

static int read_maps(struct programs *programs, const struct seam_trace *trace)
{
	int r = 0;

	for (size_t i = 0; !r && i < trace->logs.n; i++)
		r = add_log(programs, &trace->logs.items[i]);
	seam_xray_map_reader_end(&programs->reader);
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

int seam_log_names_open(struct seam_xray_map *names, struct seam_trace *trace,
			const char *path, const struct seam_log_notes *notes,
			struct seam_err *err)
{
	struct programs programs = {
		.notes = notes, .bytes_left = MAX_MAP_BYTES,
		.event_bytes_left = MAX_EVENT_BYTES, .steps_left = MAX_STEPS,
	};
	int r;

	*names = (struct seam_xray_map) { 0 };
	for (size_t i = 0; i < trace->logs.n; i++)
		read_events(&programs, &trace->logs.items[i]);
	if (path)
		return seam_xray_map_open(names, path, err);
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
