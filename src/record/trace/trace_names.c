/* SPDX-License-Identifier: MIT */
/* trace_names.c - seen functions to names to YAML; see trace_names.h */
#include "record/trace/trace_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "wire/xray/event_names.h"
#include "wire/xray/xray_map_write.h"

/* Of a log; what is beyond them has no name, and is counted as unnamed. */
enum {
	MAX_FUNCTIONS = 4 << 20,
	MAX_NAME_BYTES = 64 << 20,
	STEP = 4096,		/* functions written between two looks */
	FUNCTION_BYTES = 2 * 160,	/* in PID.yaml, without the name */
	EVENT_BYTES = 9,		/* in PID.events, likewise */
};

/* A function that was seen. */
struct seen_function {
	uint32_t id;
	uint32_t image;
	uint64_t address;
	char *name;		/* owned; NULL: none */
};

/* Functions of an image, one after another in map.by_image. */
struct function_order {
	uint32_t image;
	uint32_t i;		/* of functions */
};

/* Of the functions of all logs: equal keys are one function. */
struct function_keys {
	SEAM_ARRAY(struct function_key {
		uint64_t key;
		bool has_name;
	}) list;
};

/* Reads names of files, until the caller stops it. */
struct name_source {
	struct seam_address_names *names;
	const struct seam_trace_logs_caller *caller;
	bool is_over;
	uint64_t bytes_left;	/* that may be written */
};

struct map {
	const struct seam_program_log *log;
	const struct seam_trace_announced *program;
	SEAM_ARRAY(struct seen_function) functions;	/* by id */
	SEAM_ARRAY(struct function_order) by_image;
	size_t n_name_bytes;
	struct name_source *source;
	struct seam_trace_name_counts *counts;
};

/* ---- time ---- */

/* @fd: to wait for, or -1. */
static bool goes_on(struct name_source *source, int fd)
{
	const struct seam_trace_logs_caller *caller = source->caller;

	if (!source->is_over && caller && caller->goes_on)
		source->is_over = !caller->goes_on(caller->context, fd);
	return !source->is_over;
}

/* ---- room ---- */

/* False: so many @bytes are more than may be written. */
static bool reserve(struct name_source *source, uint64_t bytes)
{
	if (bytes > source->bytes_left)
		return false;
	source->bytes_left -= bytes;
	return true;
}

/* As what @text is written at most. */
static uint64_t written_bytes(const char *text)
{
	uint64_t n = 0;

	for (; *text; text++)
		n += *text < ' ' || *text > '~' || *text == '"' ||
		     *text == '\\' ? 6 : 1;
	return n;
}

/* ---- the functions ---- */

static bool add_range(struct map *m, struct seam_trace_range range)
{
	for (uint32_t i = 0; i < range.n; i++) {
		const struct seen_function f = {
			.id = range.first_id + i, .image = range.image,
			.address = range.addresses[i],
		};

		if (!seam_xray_has_seen(&m->log->seen, f.id))
			continue;
		if (m->functions.n == MAX_FUNCTIONS ||
		    !reserve(m->source, FUNCTION_BYTES))
			break;
		if (!SEAM_ARRAY_ADD(&m->functions, f))
			return false;
	}
	return true;
}

/* Room for the comments where the functions of @range begin and end. */
static bool add_image_line(struct map *m, const struct seam_trace_range *range)
{
	const struct seam_trace_image *image =
		seam_trace_find_image(m->program, range->image);

	return !image || reserve(m->source, 2 * written_bytes(image->path));
}

/* A copy to keep; NULL: there is no room for it, or no memory. */
static char *keep_name(struct map *m, const char *name)
{
	size_t bytes = strlen(name) + 1;

	if (bytes > MAX_NAME_BYTES - m->n_name_bytes ||
	    !reserve(m->source, 2 * written_bytes(name))) {
		m->n_name_bytes = MAX_NAME_BYTES;
		return NULL;
	}
	m->n_name_bytes += bytes;
	return strdup(name);
}

/* Functions in no image, which have a name alone. */
static bool add_names(struct map *m)
{
	for (size_t i = 0; i < m->program->names.list.n &&
	     m->functions.n < MAX_FUNCTIONS; i++) {
		const struct seam_trace_name *n =
			&m->program->names.list.items[i];
		struct seen_function f = { .id = n->number };

		if (!seam_xray_has_seen(&m->log->seen, f.id) ||
		    !reserve(m->source, FUNCTION_BYTES))
			continue;
		f.name = keep_name(m, n->name);
		if (!SEAM_ARRAY_ADD(&m->functions, f)) {
			free(f.name);
			return false;
		}
	}
	return true;
}

static int by_id(const void *a, const void *b)
{
	const struct seen_function *x = a, *y = b;

	return SEAM_COMPARE(x->id, y->id);
}

/* An id that was announced twice means what was announced first. */
static void drop_repeated(struct map *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->functions.n; i++)
		if (n == 0 || m->functions.items[n - 1].id !=
			      m->functions.items[i].id)
			m->functions.items[n++] = m->functions.items[i];
		else
			free(m->functions.items[i].name);
	m->functions.n = n;
}

static int by_image(const void *a, const void *b)
{
	const struct function_order *x = a, *y = b;

	return SEAM_COMPARE(x->image, y->image) ?: SEAM_COMPARE(x->i, y->i);
}

static int order_by_image(struct map *m)
{
	for (size_t i = 0; i < m->functions.n; i++)
		if (!SEAM_ARRAY_ADD(&m->by_image, (struct function_order) {
				m->functions.items[i].image, (uint32_t)i }))
			return -ENOMEM;
	SEAM_ARRAY_SORT(&m->by_image, by_image);
	return 0;
}

static int list_functions(struct map *m)
{
	const size_t n = m->program->ranges.n;

	/* copies, and so many: the program may announce more meanwhile */
	for (size_t i = 0; i < n; i++) {
		goes_on(m->source, -1);
		if (!add_image_line(m, &m->program->ranges.items[i]))
			break;
		if (!add_range(m, m->program->ranges.items[i]))
			return -ENOMEM;
	}
	if (!add_names(m))
		return -ENOMEM;
	SEAM_ARRAY_SORT(&m->functions, by_id);
	drop_repeated(m);
	return order_by_image(m);
}

/* ---- their names ---- */

struct request {
	struct map *map;
	const size_t *of;	/* index of each address' function */
};

static bool take_name(void *context, size_t i, const char *name)
{
	const struct request *request = context;
	struct seen_function *f = &request->map->functions.items[
		request->of[i]];

	if (*name && !f->name)
		f->name = keep_name(request->map, name);
	return request->map->n_name_bytes < MAX_NAME_BYTES;
}

static bool wait_for_names(void *context, int fd)
{
	const struct request *request = context;

	return goes_on(request->map->source, fd);
}

static void keep_why(struct seam_trace_name_counts *counts,
		     const struct seam_trace_image *image,
		     const struct seam_err *why)
{
	if (counts->why.n_causes)
		return;
	counts->why = *why;
	snprintf(counts->path, sizeof(counts->path), "%s", image->path);
}

/* The functions of @image that have no name so far.  Returns how many. */
static size_t list_unnamed(struct map *m, const struct function_order *order,
			   size_t n_functions, uint64_t *addresses, size_t *of)
{
	size_t n = 0;

	for (size_t i = 0; i < n_functions; i++) {
		const struct seen_function *f =
			&m->functions.items[order[i].i];

		if (f->name)
			continue;
		addresses[n] = f->address;
		of[n++] = order[i].i;
	}
	return n;
}

/* The names in file @fd of @n functions, those of @m whose index is in @of. */
static void read_names(struct map *m, int fd, const uint64_t *addresses,
		       const size_t *of, size_t n, struct seam_err *why)
{
	struct request context = { .map = m, .of = of };
	const struct seam_address_request request = {
		.fd = fd, .addresses = addresses, .n = n, .take = take_name,
		.goes_on = wait_for_names, .context = &context,
	};

	seam_address_names_of(m->source->names, &request, why);
}

/*
 * By the file itself, and what is left by its debug file.  @image is a copy:
 * the program may announce more while files are read.
 */
static void name_image(struct map *m, struct seam_trace_image image,
		       const struct function_order *order, size_t n_functions)
{
	uint64_t *addresses = calloc(n_functions, sizeof(*addresses));
	size_t *of = calloc(n_functions, sizeof(*of));
	struct seam_err why = { 0 };
	size_t n = addresses && of ? n_functions : 0;

	n = n ? list_unnamed(m, order, n, addresses, of) : 0;
	if (n && !goes_on(m->source, -1))
		seam_err_set(&why, -ETIMEDOUT, "it was left out, as there was "
			     "no more time");
	else if (n && image.fd < 0)
		seam_err_set(&why, image.code, "%s", strerror(-image.code));
	else if (n)
		read_names(m, image.fd, addresses, of, n, &why);
	if (why.n_causes)
		keep_why(m->counts, &image, &why);
	n = n && !m->source->is_over ?
	    list_unnamed(m, order, n_functions, addresses, of) : 0;
	if (n && image.debug_fd >= 0)
		read_names(m, image.debug_fd, addresses, of, n, NULL);
	free(addresses);
	free(of);
}

static void name_images(struct map *m)
{
	const struct function_order *order = m->by_image.items;
	size_t n;

	for (size_t at = 0; at < m->by_image.n; at += n) {
		const struct seam_trace_image *image =
			seam_trace_find_image(m->program, order[at].image);

		for (n = 1; at + n < m->by_image.n; n++)
			if (order[at + n].image != order[at].image)
				break;
		if (image)
			name_image(m, *image, order + at, n);
	}
}

/* ---- files ---- */

static FILE *create(const struct seam_program_log *log, const char *suffix)
{
	char name[2 * SEAM_TRACE_NAME_BYTES];
	FILE *out;
	int fd;

	snprintf(name, sizeof(name), "%s%s", log->name, suffix);
	fd = openat(log->logs->folder, name, O_WRONLY | O_CREAT | O_EXCL |
		    O_NOFOLLOW | O_CLOEXEC, 0600);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !out)
		close(fd);
	return out;
}

/* Close @out, NULL if it could not be created.  A part of a file goes. */
static int finish(const struct seam_program_log *log, FILE *out,
		  const char *suffix, struct seam_err *err)
{
	char name[2 * SEAM_TRACE_NAME_BYTES];
	bool is_bad = !out || ferror(out);
	int code = errno;

	if (out && fclose(out)) {
		is_bad = true;
		code = errno;
	}
	if (!is_bad)
		return 0;
	snprintf(name, sizeof(name), "%s%s", log->name, suffix);
	if (out)
		unlinkat(log->logs->folder, name, 0);
	return seam_err_set(err, code ? -code : -EIO, "cannot write xray/%s: "
			    "%s", name, strerror(code ? code : EIO));
}

static struct seam_xray_map_function function_at(const void *context, size_t i)
{
	const struct map *m = context;
	const struct seen_function *f = &m->functions.items[i];
	const struct seam_trace_image *image =
		seam_trace_find_image(m->program, f->image);

	return (struct seam_xray_map_function) {
		.id = f->id, .address = f->address,
		.entries_only = image && image->entries_only,
		.name = f->name ? f->name : "",
		.path = image ? image->path : "",
	};
}

/* Writing millions of them takes seconds. */
static struct seam_xray_map_function next_function(const void *context,
						   size_t i)
{
	const struct map *m = context;

	if (i % STEP == 0)
		goes_on(m->source, -1);
	return function_at(m, i);
}

static int write_map(const struct map *m, struct seam_err *err)
{
	FILE *out = create(m->log, ".yaml");

	if (out)
		seam_xray_map_write(out, m->functions.n, next_function, m);
	return finish(m->log, out, ".yaml", err);
}

static int write_event_types(const struct map *m, struct seam_err *err)
{
	const struct seam_program_log *log = m->log;
	const struct seam_trace_name *types = m->program->event_types.list.items;
	size_t n = m->program->event_types.list.n;
	FILE *out;

	if (!n)
		return 0;
	out = create(log, ".events");
	for (size_t i = 0; out && i < n &&
	     reserve(m->source, EVENT_BYTES + written_bytes(types[i].name));
	     i++)
		seam_event_name_write(out, (uint16_t)types[i].number,
				      types[i].name);
	return finish(log, out, ".events", err);
}

/* ---- counts ---- */

static uint64_t key_of(const struct seam_xray_map_function *f)
{
	/* those that are in no image have a name, or an address */
	const char *text = f->path[0] ? f->path : f->name;

	return seam_hash_bytes(text, strlen(text), f->address);
}

/* Without memory it is not counted. */
static void note_functions(const struct map *m, struct function_keys *keys)
{
	for (size_t i = 0; i < m->functions.n; i++) {
		const struct seam_xray_map_function f = function_at(m, i);

		(void)SEAM_ARRAY_ADD(&keys->list, (struct function_key) {
			key_of(&f), m->functions.items[i].name != NULL });
	}
}

static int by_key(const void *a, const void *b)
{
	const struct function_key *x = a, *y = b;

	return SEAM_COMPARE(x->key, y->key) ?:
	       SEAM_COMPARE(y->has_name, x->has_name);
}

/* A function of many processes is one: its image's path, and its address. */
static void count_distinct(struct function_keys *keys,
			   struct seam_trace_name_counts *counts)
{
	SEAM_ARRAY_SORT(&keys->list, by_key);
	for (size_t i = 0; i < keys->list.n; i++) {
		const struct function_key *k = &keys->list.items[i];

		if (i > 0 && k[-1].key == k->key)
			continue;
		counts->n_functions++;
		counts->n_unnamed += !k->has_name;
	}
	free(keys->list.items);
}

/* Those that no process has announced: its announcements were lost. */
static void count_unknown(const struct seam_program_log *log, size_t n_known,
			  struct seam_trace_name_counts *counts)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < log->seen.n / 64; i++)
		n += (uint64_t)__builtin_popcountll(log->seen.bits[i]);
	n = n > n_known ? n - n_known : 0;
	counts->n_functions += n;
	counts->n_unnamed += n;
}

/* ---- all of a log ---- */

static int write_names(struct map *m, struct function_keys *keys,
		       struct seam_err *err)
{
	int r = list_functions(m);

	if (r < 0)
		return seam_err_no_memory(err);
	name_images(m);
	note_functions(m, keys);
	count_unknown(m->log, m->functions.n, m->counts);
	if (m->functions.n)
		r = write_map(m, err);
	return r < 0 ? r : write_event_types(m, err);
}

int seam_trace_names_write(const struct seam_trace_logs *logs,
			   const struct seam_trace_functions *functions,
			   struct seam_address_names *names,
			   const struct seam_trace_logs_caller *caller,
			   struct seam_trace_name_counts *counts,
			   struct seam_err *err)
{
	struct name_source source = {
		.names = names, .caller = caller,
		.bytes_left = caller && caller->max_name_bytes ?
			      caller->max_name_bytes : UINT64_MAX,
	};
	struct function_keys keys = { 0 };
	int first = 0;

	*counts = (struct seam_trace_name_counts) { 0 };
	for (size_t i = 0; i < logs->items.n; i++) {
		struct map m = {
			.log = logs->items.items[i], .source = &source,
			.counts = counts,
		};
		int r;

		m.program = seam_trace_functions_of(functions,
						    &m.log->program);
		if (!m.program) {
			count_unknown(m.log, 0, counts);
			continue;
		}
		r = write_names(&m, &keys, first ? NULL : err);
		first = first ? first : r;
		for (size_t k = 0; k < m.functions.n; k++)
			free(m.functions.items[k].name);
		free(m.functions.items);
		free(m.by_image.items);
	}
	count_distinct(&keys, counts);
	return first;
}
