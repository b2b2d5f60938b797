/* SPDX-License-Identifier: MIT */
/* event_list.c - commas, braces, and whose kind a name is of */
#include "record/event_list.h"

#include "base/text.h"
#include "record/breakpoint.h"
#include "record/pmu.h"
#include "record/tracepoint.h"
#include "record/uprobe.h"

#include <errno.h>
#include <stdlib.h>

struct seam_event *seam_event_list_push(struct seam_event_list *list)
{
	struct seam_event *event = SEAM_ARRAY_PUSH(list);

	if (event)
		*event = (struct seam_event) { .leader = SEAM_EVENT_ALONE };
	return event;
}

void seam_event_list_fini(struct seam_event_list *list)
{
	for (size_t i = 0; i < list->paths.n; i++)
		free(list->paths.items[i]);
	free(list->paths.items);
	free(list->items);
	*list = (struct seam_event_list) { 0 };
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int add_named(struct seam_event_list *list, const char *text,
		     struct seam_err *err)
{
	struct seam_event *event = seam_event_list_push(list);

	if (!event)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return seam_event_parse(event, text, strlen(text), err);
}

static int add_one(struct seam_event_list *list, const char *text,
		   struct seam_err *err)
{
	const char *colon = strchr(text, ':');

	if (begins_with(text, "uretprobe:"))
		return seam_err_set(err, -EINVAL, "the return of a function "
				    "is written 'uprobe:%s%%return'",
				    strchr(text, ':') + 1);
	if (begins_with(text, "kprobe:") || begins_with(text, "kretprobe:"))
		return seam_err_set(err, -ENOTSUP, "there are no probes of "
			"the kernel's functions, only of files: "
			"uprobe:/path:symbol");
	if (begins_with(text, "uprobe:"))
		return seam_uprobe_add(list, text, err);
	if (begins_with(text, "mem:"))
		return seam_breakpoint_add(list, text, err);
	if (strchr(text, '/'))
		return seam_pmu_event_add(list, text, err);
	if (colon && !seam_event_is_named(text, (size_t)(colon - text)))
		return seam_tracepoint_add(list, text, err);
	return add_named(list, text, err);
}

/* Bytes up to the comma that ends the first item, or to the end. */
static size_t item_length(const char *text)
{
	bool in_slashes = false;
	size_t n = 0;

	/* commas divide the terms of a PMU's event too */
	for (; text[n] && (text[n] != ',' || in_slashes); n++)
		if (text[n] == '/' && text[0] != '{' &&
		    !begins_with(text, "uprobe:") &&
		    !begins_with(text, "uretprobe:") &&
		    !begins_with(text, "mem:"))
			in_slashes = !in_slashes;
	return n;
}

static int add_items(struct seam_event_list *list, const char *text,
		     struct seam_err *err)
{
	int r;

	do {
		size_t n = item_length(text);
		char *item = strndup(text, n);

		if (!item)
			return seam_err_set(err, -ENOMEM, "out of memory");
		r = add_one(list, item, err);
		free(item);
		text += n;
	} while (r == 0 && *text++ == ',');
	return r;
}

/* The first samples, and a sample holds the counts of all. */
static void lead(struct seam_event_list *list, size_t first)
{
	struct seam_event *leader = &list->items[first];

	leader->attr.sample_type |= PERF_SAMPLE_READ;
	leader->attr.read_format |= PERF_FORMAT_GROUP;
	for (size_t i = first; i < list->n; i++) {
		list->items[i].leader = (int)first;
		list->items[i].read_by_leader = i > first;
	}
}

/* "{a,b}:S", of which @size bytes are text. */
static int add_group(struct seam_event_list *list, const char *text,
		     size_t size, struct seam_err *err)
{
	const char *end = memchr(text, '}', size);
	size_t first = list->n;
	char *inside;
	int r;

	if (!end || size - (size_t)(end - text) != 3 ||
	    memcmp(end, "}:S", 3) != 0)
		return seam_err_set(err, -EINVAL, "a group of events is "
				    "written {a,b}:S");
	inside = strndup(text + 1, (size_t)(end - text) - 1);
	if (!inside)
		return seam_err_set(err, -ENOMEM, "out of memory");
	r = add_items(list, inside, err);
	free(inside);
	if (r == 0)
		lead(list, first);
	return r;
}

/* Bytes of a group, or of the items before the next. */
static size_t part_length(const char *text)
{
	const char *brace = strchr(text, *text == '{' ? '}' : '{');

	if (!brace)
		return strlen(text);
	if (*text == '{')
		return (size_t)(brace - text) + strcspn(brace, ",");
	return (size_t)(brace - text) - (brace > text && brace[-1] == ',');
}

int seam_event_list_add(struct seam_event_list *list, const char *text,
			struct seam_err *err)
{
	int r;

	do {
		size_t n = part_length(text);
		char *part = strndup(text, n);

		if (!part)
			return seam_err_set(err, -ENOMEM, "out of memory");
		r = *text == '{' ? add_group(list, part, n, err) :
		    add_items(list, part, err);
		free(part);
		text += n;
	} while (r == 0 && *text++ == ',');
	return r;
}
