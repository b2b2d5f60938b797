/* SPDX-License-Identifier: MIT */
/* trace_functions.c - keep announcements, write maps; see trace_functions.h */
#include "record/trace/trace_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "wire/xray/event_names.h"

enum {
	MAX_ANCESTORS = 16,
	MAX_EVENT_TYPES = 4096,		/* of a program */
	MAX_FUNCTIONS = 4 << 20,	/* in a map */
	/* for the longest line of a map: a path of 4 KiB, escaped */
	MAP_LINE_BYTES = 32 << 10,
};

/* An image; code in no image has image number 0. */
struct announced_image {
	uint32_t image;
	char *path;		/* owned; not trusted */
	uint64_t bias;		/* load address - link address; not trusted */
	bool entries_only;	/* exits are not recorded */
	char build_id[2 * SEAM_XRAY_BUILD_ID_BYTES + 1];
};

/* Addresses of functions with ids in a row. */
struct announced_range {
	uint32_t image;
	uint32_t first_id, n;
	uint64_t *addresses;	/* owned */
};

struct announced_name {
	uint32_t number;	/* of a type; the id of a function */
	char *name;		/* owned; not trusted */
};

struct announced_names {
	SEAM_ARRAY(struct announced_name) list;
};

/* All that one program has announced. */
struct seam_trace_announced {
	struct seam_trace_program program;
	SEAM_ARRAY(struct announced_image) images;
	struct seam_index by_image;	/* of images */
	SEAM_ARRAY(struct announced_range) ranges;
	struct announced_names event_types;	/* the last of a type counts */
	struct announced_names names;		/* of functions in no image */
};

/* ---- programs ---- */

static struct seam_trace_announced *
find(const struct seam_trace_functions *f,
     const struct seam_trace_program *program)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_pid, seam_hash_u64(program->pid),
		k, f->programs.items[k]->program.since_ns ==
		   program->since_ns &&
		   f->programs.items[k]->program.pid == program->pid);

	return i == SEAM_NONE ? NULL : f->programs.items[i];
}

/* The first process of a connection that announced: the others are forks. */
static struct seam_trace_announced *
find_first(const struct seam_trace_functions *f, uint64_t since_ns)
{
	for (size_t i = 0; i < f->programs.n; i++)
		if (f->programs.items[i]->program.since_ns == since_ns)
			return f->programs.items[i];
	return NULL;
}

static bool has_announced(const struct seam_trace_functions *f, uint32_t pid)
{
	return SEAM_INDEX_FIND(&f->by_pid, seam_hash_u64(pid), k,
			f->programs.items[k]->program.pid == pid) != SEAM_NONE;
}

/* The last fork that made process @pid; NULL: not known. */
static struct seam_trace_fork *find_fork(const struct seam_trace_functions *f,
					 uint32_t pid)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_child, seam_hash_u64(pid), k,
				     f->forks.items[k].pid == pid);

	return i == SEAM_NONE ? NULL : &f->forks.items[i];
}

void seam_trace_functions_fork(struct seam_trace_functions *f, uint32_t pid,
			       uint32_t parent)
{
	struct seam_trace_fork *fork = find_fork(f, pid);

	if (fork)
		fork->parent = parent;
	/* no record: use what the first process of the connection announced */
	else if (f->forks.n < SEAM_TRACE_MAX_FORKS &&
		 (has_announced(f, parent) || find_fork(f, parent)))
		(void)SEAM_INDEX_APPEND(&f->by_child, seam_hash_u64(pid),
					&f->forks,
					(struct seam_trace_fork) { pid,
								   parent });
}

/* The announcements of @program, or of its nearest ancestor with some. */
static const struct seam_trace_announced *
find_any(const struct seam_trace_functions *f,
	 const struct seam_trace_program *program)
{
	struct seam_trace_program p = *program;
	const struct seam_trace_announced *found = find(f, &p);
	const struct seam_trace_fork *fork = find_fork(f, p.pid);

	for (int n = 0; !found && fork && n < MAX_ANCESTORS; n++) {
		p.pid = fork->parent;
		found = find(f, &p);
		fork = find_fork(f, p.pid);
	}
	return found ? found : find_first(f, p.since_ns);
}

static struct seam_trace_announced *
find_or_make(struct seam_trace_functions *f,
	     const struct seam_trace_program *program)
{
	struct seam_trace_announced *p = find(f, program);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->program = *program;
	if (SEAM_INDEX_APPEND(&f->by_pid, seam_hash_u64(program->pid),
			      &f->programs, p) != SEAM_NONE)
		return p;
	free(p);
	return NULL;
}

/* ---- announcements ---- */

/* Reserve @bytes of the limit of all announcements; false: no room. */
static bool has_room(struct seam_trace_functions *f, size_t bytes)
{
	if (bytes > SEAM_TRACE_MAX_ANNOUNCED_BYTES - f->n_bytes)
		return false;
	f->n_bytes += bytes;
	return true;
}

static struct announced_image *find_image(const struct seam_trace_announced *p,
					  uint32_t image)
{
	uint32_t i = SEAM_INDEX_FIND(&p->by_image, seam_hash_u64(image), k,
				     p->images.items[k].image == image);

	return i == SEAM_NONE ? NULL : &p->images.items[i];
}

static bool add_image(struct seam_trace_functions *f,
		      struct seam_trace_announced *p,
		      const struct seam_xray_image *image)
{
	struct announced_image kept = {
		.image = image->image, .bias = image->bias,
		.entries_only = image->entries_only,
	};

	if (find_image(p, image->image) ||
	    p->images.n >= SEAM_TRACE_MAX_IMAGES ||
	    !has_room(f, sizeof(kept) + strlen(image->path) + 1))
		return false;
	seam_text_hex(kept.build_id, image->build_id, image->build_id_bytes);
	kept.path = strdup(image->path);
	if (kept.path &&
	    SEAM_INDEX_APPEND(&p->by_image, seam_hash_u64(kept.image),
			      &p->images, kept) != SEAM_NONE)
		return true;
	free(kept.path);
	return false;
}

static bool add_range(struct seam_trace_functions *f,
		      struct seam_trace_announced *p,
		      const struct seam_xray_addresses *a)
{
	size_t bytes = a->n * sizeof(*a->link_addresses);
	const struct announced_image *image = find_image(p, a->image);
	struct announced_range range = {
		.image = a->image, .first_id = a->first_id, .n = a->n,
	};

	if (!has_room(f, sizeof(range) + bytes))
		return false;
	range.addresses = malloc(bytes);
	if (!range.addresses || !SEAM_ARRAY_ADD(&p->ranges, range)) {
		free(range.addresses);
		return false;
	}
	memcpy(range.addresses, a->link_addresses, bytes);
	if (image && f->found)
		f->found(f->context, image->bias + range.addresses[0]);
	return true;
}

static bool add_name(struct seam_trace_functions *f,
		     struct announced_names *names, size_t max,
		     const struct seam_xray_named *named)
{
	struct announced_name kept = { .number = named->number };

	if (names->list.n >= max ||
	    !has_room(f, sizeof(kept) + strlen(named->name) + 1))
		return false;
	kept.name = strdup(named->name);
	if (kept.name && SEAM_ARRAY_ADD(&names->list, kept))
		return true;
	free(kept.name);
	return false;
}

static void free_names(struct announced_names *names)
{
	for (size_t i = 0; i < names->list.n; i++)
		free(names->list.items[i].name);
	free(names->list.items);
}

static bool add_to(struct seam_trace_functions *f,
		   struct seam_trace_announced *p,
		   const struct seam_xray_announcement *a)
{
	switch (a->kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		return add_image(f, p, &a->image);
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		return add_range(f, p, &a->addresses);
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
		return add_name(f, &p->event_types, MAX_EVENT_TYPES, &a->named);
	case SEAM_XRAY_ANNOUNCED_NAME:
		/* their number is limited by their bytes alone */
		return add_name(f, &p->names, SIZE_MAX, &a->named);
	default:
		return true;
	}
}

void seam_trace_functions_add(struct seam_trace_functions *f,
			      const struct seam_trace_program *program,
			      const struct seam_xray_announcement *a)
{
	struct seam_trace_announced *p = find_or_make(f, program);

	f->n_left_out += !p || !add_to(f, p, a);
}

/* ---- maps ---- */

struct map_function {
	uint32_t id;
	bool entries_only;	/* its exits are not recorded */
	uint64_t address;	/* as linked */
	const char *name;	/* "": to be read from its image */
	const char *path;	/* of its image; "": it is in none */
	const char *build_id;	/* of its image, in hexadecimal; "": none */
};

/* The map of one log. */
struct log_map {
	const struct seam_program_log *log;
	const struct seam_trace_announced *program;
	SEAM_ARRAY(struct map_function) functions;	/* by id */
};

/* Out of memory, the map has fewer functions. */
static void take_function(struct log_map *m, const struct map_function *f)
{
	if (seam_xray_has_seen(&m->log->seen, f->id) &&
	    m->functions.n < MAX_FUNCTIONS)
		(void)SEAM_ARRAY_ADD(&m->functions, *f);
}

static void take_range(struct log_map *m, const struct announced_range *range)
{
	const struct announced_image *image = find_image(m->program,
							 range->image);
	struct map_function f = {
		.name = "", .path = image ? image->path : "",
		.build_id = image ? image->build_id : "",
		.entries_only = image && image->entries_only,
	};

	for (uint32_t i = 0; i < range->n; i++) {
		f.id = range->first_id + i;
		f.address = range->addresses[i];
		take_function(m, &f);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct map_function *x = a, *y = b;

	return SEAM_COMPARE(x->id, y->id);
}

static void list_functions(struct log_map *m)
{
	const struct seam_trace_announced *p = m->program;
	struct map_function *f;
	size_t n = 0;

	for (size_t i = 0; i < p->ranges.n; i++)
		take_range(m, &p->ranges.items[i]);
	for (size_t i = 0; i < p->names.list.n; i++)
		take_function(m, &(struct map_function) {
			.id = p->names.list.items[i].number, .path = "",
			.build_id = "", .name = p->names.list.items[i].name });
	SEAM_ARRAY_SORT(&m->functions, by_id);
	/* of an id that was announced twice keep one row */
	f = m->functions.items;
	for (size_t i = 0; i < m->functions.n; i++)
		if (n == 0 || f[n - 1].id != f[i].id)
			f[n++] = f[i];
	m->functions.n = n;
}

/* ---- files ---- */

/* A JSON string is a valid YAML string. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	seam_text_put(out, text, SEAM_TEXT_JSON);
	fputc('"', out);
}

static void put_sled(FILE *out, const struct map_function *f, const char *kind)
{
	fprintf(out, "- { id: %" PRIu32 ", address: 0x%" PRIx64 ", function: "
		"0x%" PRIx64 ", kind: %s, always-instrument: true, ", f->id,
		f->address, f->address, kind);
	if (f->name[0]) {
		fputs("function-name: ", out);
		put_quoted(out, f->name);
		fputs(", ", out);
	}
	fputs("version: 2 }\n", out);
}

static bool is_map_full(FILE *out, uint64_t max_bytes)
{
	return max_bytes < MAP_LINE_BYTES ||
	       (uint64_t)ftello(out) > max_bytes - MAP_LINE_BYTES;
}

/*
 * An instrumentation map as 'llvm-xray extract' prints it, which
 * 'llvm-xray -instr_map=' and symbol/xray/xray_map.h read: an entry for the
 * start of each function and one for its end.  Comments before it name the
 * files that the functions are in, by the first id of each, with build ids:
 *
 *	# image 1 "/usr/bin/app" 98fe0c11
 */
static void put_map(FILE *out, const struct log_map *m, uint64_t max_bytes)
{
	const struct map_function *functions = m->functions.items;
	const char *path = "", *build_id = "";
	size_t n = m->functions.n;

	/* images may have ids that are not in a row */
	for (size_t i = 0; i < n; i++) {
		const struct map_function *f = &functions[i];

		if (strcmp(f->path, path) == 0 &&
		    strcmp(f->build_id, build_id) == 0)
			continue;
		/* without its image a function would seem to be in another */
		if (is_map_full(out, max_bytes)) {
			n = 0;
			break;
		}
		fprintf(out, "# image %" PRIu32 " ", f->id);
		put_quoted(out, f->path);
		fprintf(out, f->build_id[0] ? " %s\n" : "%s\n", f->build_id);
		path = f->path;
		build_id = f->build_id;
	}
	fputs("---\n", out);
	for (size_t i = 0; i < n && !is_map_full(out, max_bytes); i++) {
		put_sled(out, &functions[i], "function-enter");
		if (!functions[i].entries_only)
			put_sled(out, &functions[i], "function-exit");
	}
	fputs("...\n", out);
}

static void put_events(FILE *out, const struct log_map *m, uint64_t max_bytes)
{
	const struct announced_name *types = m->program->event_types.list.items;
	size_t n = m->program->event_types.list.n;

	for (size_t i = 0; i < n && (uint64_t)ftello(out) < max_bytes; i++)
		seam_event_name_write(out, (uint16_t)types[i].number,
				      types[i].name);
}

/* Write a file by @put, and subtract its size from @left; remove a part. */
static int write_file(const struct log_map *m, const char *suffix,
		      void (*put)(FILE *out, const struct log_map *m,
				  uint64_t max_bytes),
		      uint64_t *left, struct seam_err *err)
{
	char name[2 * SEAM_TRACE_NAME_BYTES];
	int folder = m->log->logs->folder, fd, code;
	uint64_t size = 0;
	FILE *out;
	bool is_bad;

	snprintf(name, sizeof(name), "%s%s", m->log->name, suffix);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out) {
		put(out, m, *left);
		size = (uint64_t)ftello(out);
	}
	is_bad = !out || ferror(out);
	code = errno;
	if (out && fclose(out)) {
		is_bad = true;
		code = errno;
	}
	*left -= size < *left ? size : *left;
	if (!is_bad)
		return 0;
	if (fd >= 0)
		unlinkat(folder, name, 0);
	if (!out)
		seam_file_close_fd(fd);
	return seam_err_set(err, code ? -code : -EIO, "cannot write xray/%s: "
			    "%s", name, strerror(code ? code : EIO));
}

/* ---- counts ---- */

struct function_keys {
	SEAM_ARRAY(uint64_t) list;	/* equal keys: one function */
};

/* Out of memory, functions are not counted. */
static void add_keys(struct function_keys *keys, const struct log_map *m)
{
	for (size_t i = 0; i < m->functions.n; i++) {
		const struct map_function *f = &m->functions.items[i];
		/* a function in no image has a name, or an address */
		const char *text = f->path[0] ? f->path : f->name;

		(void)SEAM_ARRAY_ADD(&keys->list, seam_hash_bytes(text,
						strlen(text), f->address));
	}
}

static int by_key(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static uint64_t count_distinct(struct function_keys *keys)
{
	uint64_t n = 0;

	SEAM_ARRAY_SORT(&keys->list, by_key);
	for (size_t i = 0; i < keys->list.n; i++)
		n += i == 0 || keys->list.items[i - 1] != keys->list.items[i];
	free(keys->list.items);
	return n;
}

/* Functions in @log that are in no map: their announcements were lost. */
static uint64_t count_unknown(const struct seam_program_log *log,
			      size_t n_known)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < log->seen.n / 64; i++)
		n += (uint64_t)__builtin_popcountll(log->seen.bits[i]);
	return n > n_known ? n - n_known : 0;
}

int seam_trace_functions_write(const struct seam_trace_functions *f,
			       const struct seam_trace_logs *logs,
			       uint64_t max_bytes, uint64_t *n_functions,
			       struct seam_err *err)
{
	uint64_t left = max_bytes ? max_bytes : UINT64_MAX;
	struct function_keys keys = { 0 };
	int first = 0;

	*n_functions = 0;
	for (size_t i = 0; i < logs->items.n; i++) {
		struct log_map m = { .log = logs->items.items[i] };
		int r = 0;

		m.program = find_any(f, &m.log->program);
		if (m.program) {
			list_functions(&m);
			add_keys(&keys, &m);
			if (m.functions.n)
				r = write_file(&m, ".yaml", put_map, &left,
					       first ? NULL : err);
			first = first ? first : r;
			if (m.program->event_types.list.n)
				r = write_file(&m, ".events", put_events, &left,
					       first ? NULL : err);
			first = first ? first : r;
		}
		*n_functions += count_unknown(m.log, m.functions.n);
		free(m.functions.items);
	}
	*n_functions += count_distinct(&keys);
	return first;
}

/* ---- the end ---- */

static void free_program(struct seam_trace_announced *p)
{
	for (size_t i = 0; i < p->images.n; i++)
		free(p->images.items[i].path);
	for (size_t i = 0; i < p->ranges.n; i++)
		free(p->ranges.items[i].addresses);
	free_names(&p->event_types);
	free_names(&p->names);
	free(p->images.items);
	seam_index_fini(&p->by_image);
	free(p->ranges.items);
	free(p);
}

void seam_trace_functions_fini(struct seam_trace_functions *f)
{
	for (size_t i = 0; i < f->programs.n; i++)
		free_program(f->programs.items[i]);
	free(f->programs.items);
	free(f->forks.items);
	seam_index_fini(&f->by_pid);
	seam_index_fini(&f->by_child);
	*f = (struct seam_trace_functions) { 0 };
}
