/* SPDX-License-Identifier: MIT */
/* tracepoint.c - names and formats in tracefs; see event_kinds.h */
#include "record/events/event_kinds.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_FORMAT_BYTES = 1 << 20 };

/* ---- events ---- */

/* What to look for in tracefs: "system:name", both perhaps patterns. */
struct tracepoint_search {
	struct seam_event_list *list;
	int tracefs;
	const char *name, *modifiers;
	struct seam_err *err;
};

typedef int found(const struct tracepoint_search *s, const char *parent,
		  const char *name);

static int add_tracepoint(const struct tracepoint_search *s, const char *system,
			  const char *name)
{
	struct seam_event *event = seam_event_list_push(s->list);
	int id;

	if (!event)
		return seam_err_no_memory(s->err);
	if ((size_t)snprintf(event->name, sizeof(event->name), "%s:%s", system,
			     name) >= sizeof(event->name))
		return seam_err_set(s->err, -ENAMETOOLONG, "the name of "
				    "tracepoint '%s:%s' is too long", system,
				    name);
	memcpy(event->kernel_name, event->name, sizeof(event->name));
	id = seam_tracefs_id(s->tracefs, system, name, s->err);
	if (id < 0)
		return id;
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->attr.config = (__u64)id;
	event->each_time = true;
	return seam_event_modify(event, s->modifiers, s->err);
}

/*
 * Call @add for each folder of tracefs in @path whose name matches @pattern, in
 * the order of names.  A missing @path has none.
 */
static int each_match(const struct tracepoint_search *s, const char *path,
		      const char *pattern, const char *parent, found *add)
{
	struct dirent **names;
	int n = scandirat(s->tracefs, path, &names, NULL, alphasort), r = 0;

	if (n < 0)
		return errno == ENOENT ? 0 :
		       seam_err_errno(s->err, "cannot list '%s' of tracefs",
				      path);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (r == 0 && name[0] != '.' && names[i]->d_type == DT_DIR &&
		    fnmatch(pattern, name, 0) == 0)
			r = add(s, parent, name);
		free(names[i]);
	}
	free(names);
	return r;
}

static int add_system(const struct tracepoint_search *s, const char *parent,
		      const char *system)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", parent, system);
	return each_match(s, path, s->name, system, add_tracepoint);
}

int seam_tracepoint_add(struct seam_event_list *list, const char *text,
			struct seam_err *err)
{
	char system[SEAM_EVENT_NAME], name[SEAM_EVENT_NAME];
	char modifiers[16] = "";
	struct tracepoint_search search = {
		.list = list, .name = name, .modifiers = modifiers, .err = err,
	};
	size_t before = list->n;
	int r;

	if (strlen(text) >= SEAM_EVENT_NAME || strstr(text, "..") ||
	    sscanf(text, "%255[^:]:%255[^:]:%15s", system, name,
		   modifiers) < 2)
		return seam_err_set(err, -EINVAL, "no event is named '%s'; "
				    "'seam doctor' lists the events", text);
	search.tracefs = seam_tracefs_open(err);
	if (search.tracefs < 0)
		return search.tracefs;
	r = each_match(&search, "events", system, "events", add_system);
	close(search.tracefs);
	if (r == 0 && list->n == before)
		return seam_err_set(err, -ENOENT, "there is no tracepoint "
				    "'%s'", text);
	return r;
}

/* ---- TRACING_DATA ---- */

struct tracing_data {
	SEAM_ARRAY(uint8_t) bytes;
	int tracefs;
	int code;		/* 0, or the first -errno */
	struct seam_err *err;
};

static void put(struct tracing_data *out, const void *data, size_t size)
{
	if (!out->code && !SEAM_ARRAY_EXTEND(&out->bytes, data, size))
		out->code = seam_err_no_memory(out->err);
}

static void put_u32(struct tracing_data *out, uint32_t v)
{
	put(out, &v, sizeof(v));
}

/* A file of tracefs after its size, a u64. */
static void put_file(struct tracing_data *out, const char *name)
{
	struct seam_file file = { 0 };
	struct seam_err why = { 0 };
	char path[PATH_MAX];
	uint64_t size;
	int r;

	if (out->code)
		return;
	snprintf(path, sizeof(path), "events/%s", name);
	r = seam_file_read(&file, out->tracefs, path, MAX_FORMAT_BYTES, &why);
	if (r < 0) {
		/* without it no reader can decode the samples */
		out->code = seam_err_set(out->err, r, "cannot read '%s' of "
					 "tracefs: %s", path, why.cause[0]);
		return;
	}
	size = file.bytes.size;
	put(out, &size, sizeof(size));
	put(out, file.bytes.data, file.bytes.size);
	seam_file_close(&file);
}

static bool is_tracepoint(const struct seam_event *event)
{
	return event->attr.type == PERF_TYPE_TRACEPOINT;
}

static size_t system_length(const struct seam_event *event)
{
	return strcspn(event->kernel_name, ":");
}

static bool same_system(const struct seam_event *a, const struct seam_event *b)
{
	size_t n = system_length(a);

	return is_tracepoint(a) && is_tracepoint(b) &&
	       n == system_length(b) &&
	       strncmp(a->kernel_name, b->kernel_name, n) == 0;
}

/* Whether event @i is the first of its system. */
static bool begins_system(const struct seam_event *events, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_system(&events[k], &events[i]))
			return false;
	return is_tracepoint(&events[i]);
}

/* Whether an event before @i is the same tracepoint. */
static bool is_known(const struct seam_event *events, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_tracepoint(&events[k]) &&
		    events[k].attr.config == events[i].attr.config)
			return true;
	return false;
}

static void put_system(struct tracing_data *out,
		       const struct seam_event *events, size_t n, size_t first)
{
	size_t length = system_length(&events[first]);
	uint32_t n_formats = 0;

	put(out, events[first].kernel_name, length);
	put(out, "", 1);
	for (size_t i = first; i < n; i++)
		n_formats += same_system(&events[first], &events[i]) &&
			     !is_known(events, i);
	put_u32(out, n_formats);
	for (size_t i = first; i < n; i++) {
		char path[2 * SEAM_EVENT_NAME];

		snprintf(path, sizeof(path), "%.*s/%s/format", (int)length,
			 events[first].kernel_name,
			 events[i].kernel_name + length + 1);
		if (same_system(&events[first], &events[i]) &&
		    !is_known(events, i))
			put_file(out, path);
	}
}

static void put_head(struct tracing_data *out)
{
	static const char magic[] = "\027\010\104tracing0.6";
	uint16_t one = 1;
	uint8_t words[2] = { *(const uint8_t *)&one == 0, sizeof(long) };

	put(out, magic, sizeof(magic));
	put(out, words, sizeof(words));
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	put(out, "header_page", sizeof("header_page"));
	put_file(out, "header_page");
	put(out, "header_event", sizeof("header_event"));
	put_file(out, "header_event");
	put_u32(out, 0);	/* formats of ftrace's events */
}

int seam_tracepoint_data(const struct seam_event *events, size_t n,
			 uint8_t **data, size_t *size, struct seam_err *err)
{
	struct tracing_data out = { .err = err };
	uint32_t n_systems = 0;

	for (size_t i = 0; i < n; i++)
		n_systems += begins_system(events, i);
	*data = NULL;
	*size = 0;
	if (n_systems == 0)
		return 0;
	out.tracefs = seam_tracefs_open(err);
	if (out.tracefs < 0)
		return out.tracefs;
	put_head(&out);
	put_u32(&out, n_systems);
	for (size_t i = 0; i < n; i++)
		if (begins_system(events, i))
			put_system(&out, events, n, i);
	put_u32(&out, 0);	/* kallsyms: in kernel.sym.zst */
	put_u32(&out, 0);	/* formats of trace_printk() */
	put_u32(&out, 0);	/* names of threads, a u64: in COMM records */
	put_u32(&out, 0);
	close(out.tracefs);
	*data = out.bytes.items;
	*size = out.bytes.n;
	return out.code;
}
