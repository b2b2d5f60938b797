/* SPDX-License-Identifier: MIT */
/* event_list.c - commas, braces, slashes, the kind of each event */
#include "record/events/event_kinds.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>

#include "base/text.h"

/* ---- mem:ADDR[/LEN][:rwx[:u]] ---- */

static int malformed(const char *text, struct seam_err *err)
{
	char shown[2 * SEAM_EVENT_NAME];

	seam_text_copy(shown, sizeof(shown), text, SEAM_TEXT_TERMINAL);
	return seam_err_set(err, -EINVAL, "a breakpoint is written "
			    "mem:ADDR[/LEN][:rwx[:u]], and not '%s'", shown);
}

/* The type of "rw", which ends at a colon.  0: an unknown letter, or none. */
static uint32_t access_of(const char *letters)
{
	uint32_t type = 0;

	for (; *letters && *letters != ':'; letters++)
		switch (*letters) {
		case 'r': type |= HW_BREAKPOINT_R; break;
		case 'w': type |= HW_BREAKPOINT_W; break;
		case 'x': type |= HW_BREAKPOINT_X; break;
		default: return 0;
		}
	return type;
}

/*
 * A hardware breakpoint; without letters both reads and writes, of 4 bytes
 * unless LEN is 1, 2 or 8.
 */
static int parse_breakpoint(struct seam_event *event, const char *text,
			    struct seam_err *err)
{
	char *end;

	snprintf(event->name, sizeof(event->name), "%s", text);
	event->each_time = true;
	event->attr.type = PERF_TYPE_BREAKPOINT;
	event->attr.sample_type = PERF_SAMPLE_ADDR;
	event->attr.bp_type = HW_BREAKPOINT_RW;
	event->attr.bp_len = HW_BREAKPOINT_LEN_4;
	errno = 0;
	event->attr.bp_addr = strtoull(text + strlen("mem:"), &end, 0);
	if (errno || end == text + strlen("mem:"))
		return malformed(text, err);
	if (*end == '/')
		event->attr.bp_len = strtoull(end + 1, &end, 10);
	if (*end == ':') {
		event->attr.bp_type = access_of(end + 1);
		end += 1 + strcspn(end + 1, ":");
	}
	if (*end == ':' && end[1]) {
		if (seam_event_modify(event, end + 1, err) < 0)
			return -EINVAL;
		end += strlen(end);
	}
	/* Source: perf_event_open(2): the length of a breakpoint on code */
	if (event->attr.bp_type == HW_BREAKPOINT_X)
		event->attr.bp_len = sizeof(long);
	if (*end || !event->attr.bp_type || !event->attr.bp_len ||
	    event->attr.bp_len > 8 ||
	    event->attr.bp_len & (event->attr.bp_len - 1))
		return malformed(text, err);
	return 0;
}

/* ---- kinds ---- */

/*
 * Events that a prefix tells from others; commas and slashes after it have no
 * other meaning.  A new kind is a row here.
 */
static const struct event_kind {
	const char *prefix;
	int (*parse)(struct seam_event *event, const char *text,
		     struct seam_err *err);
} kinds[] = {
	{ "uprobe:", seam_uprobe_parse },
	{ "uretprobe:", seam_uprobe_parse },
	{ "kprobe:", seam_kprobe_parse },
	{ "kretprobe:", seam_kprobe_parse },
	{ "mem:", parse_breakpoint },
};

/* NULL: an event of a PMU, a tracepoint or a name. */
static const struct event_kind *kind_of(const char *text)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++)
		if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) ==
		    0)
			return &kinds[i];
	return NULL;
}

/* Append an event, which @parse fills in from @text. */
static int add_event(struct seam_event_list *list, const char *text,
		     int (*parse)(struct seam_event *event, const char *text,
				  struct seam_err *err), struct seam_err *err)
{
	struct seam_event *event = seam_event_list_push(list);

	return event ? parse(event, text, err) :
	       seam_err_no_memory(err);
}

/* Whether the @size bytes at @text are an event that has no slashes. */
static bool is_plain(const char *text, size_t size)
{
	const char *colon = memchr(text, ':', size);

	return seam_event_is_named(text, size) ||
	       (colon && !seam_event_is_named(text, (size_t)(colon - text)));
}

static int add_one(struct seam_event_list *list, const char *text,
		   struct seam_err *err);

/* "event/terms/modifiers": parse "event:modifiers", then the terms. */
static int add_with_terms(struct seam_event_list *list, const char *text,
			  struct seam_err *err)
{
	char base[2 * SEAM_EVENT_NAME], *terms, *modifiers;
	size_t first = list->n, n = strcspn(text, "/");
	int r;

	modifiers = strrchr(text + n, '/');
	if (modifiers == text + n || strlen(text) >= SEAM_EVENT_NAME)
		return seam_err_set(err, -EINVAL, "terms of an event are "
				    "written event/terms/");
	snprintf(base, sizeof(base), "%.*s%s%s", (int)n, text, modifiers[1] &&
		 modifiers[1] != ':' ? ":" : "", modifiers + 1);
	r = add_one(list, base, err);
	if (r == 0 && list->n == first + 1)
		snprintf(list->items[first].name, SEAM_EVENT_NAME, "%s", text);
	terms = r == 0 ? strndup(text + n + 1,
				 (size_t)(modifiers - text) - n - 1) : NULL;
	if (r == 0 && !terms)
		r = seam_err_no_memory(err);
	if (r == 0)
		r = seam_event_terms_set(&list->items[first], list->n - first,
					 terms, err);
	free(terms);
	return r;
}

static int add_one(struct seam_event_list *list, const char *text,
		   struct seam_err *err)
{
	const struct event_kind *kind = kind_of(text);
	const char *colon = strchr(text, ':');
	size_t n = strcspn(text, "/");

	if (kind)
		return add_event(list, text, kind->parse, err);
	if (text[n] && is_plain(text, n))
		return add_with_terms(list, text, err);
	if (text[n])
		return add_event(list, text, seam_pmu_event_parse, err);
	if (colon && !seam_event_is_named(text, (size_t)(colon - text)))
		return seam_tracepoint_add(list, text, err);
	return add_event(list, text, seam_event_parse, err);
}

/* Bytes of the first item: up to its comma, or to the end. */
static size_t item_length(const char *text)
{
	bool in_slashes = false, has_terms = text[0] != '{' && !kind_of(text);
	size_t n = 0;

	/* commas between slashes divide the terms of one event */
	for (; text[n] && (text[n] != ',' || in_slashes); n++)
		if (text[n] == '/' && has_terms)
			in_slashes = !in_slashes;
	return n;
}

/* End the first @n bytes of *@text, and go on after their comma, or to NULL. */
static char *cut_off(char **text, size_t n)
{
	char *part = *text;

	*text = part[n] == ',' ? part + n + 1 : NULL;
	part[n] = '\0';
	return part;
}

/* @text is changed. */
static int add_items(struct seam_event_list *list, char *text,
		     struct seam_err *err)
{
	int r = 0;

	while (r == 0 && text)
		r = add_one(list, cut_off(&text, item_length(text)), err);
	return r;
}

/*
 * Events from @first on are scheduled together.  With S only the first one
 * samples, and events with a period or a frequency of their own; a sample has
 * the counts of all.
 */
static void make_group(struct seam_event_list *list, size_t first, bool reads)
{
	for (size_t i = first; i < list->n; i++) {
		struct seam_event *event = &list->items[i];
		bool samples = i == first || event->period ||
			       event->frequency_hz;

		event->leader = (int)first;
		event->read_by_leader = reads && !samples;
		if (reads && samples) {
			event->attr.sample_type |= PERF_SAMPLE_READ;
			event->attr.read_format |= PERF_FORMAT_GROUP;
		}
	}
}

/* Apply @suffix, the text after the brace ("" or ":uS"), from @first on. */
static int finish_group(struct seam_event_list *list, size_t first,
			const char *suffix, struct seam_err *err)
{
	char modifiers[32];
	size_t n = 0;
	bool reads = false;
	int r = 0;

	for (const char *c = suffix + (*suffix == ':'); *c; c++) {
		reads |= *c == 'S';
		if (*c != 'S' && n + 1 < sizeof(modifiers))
			modifiers[n++] = *c;
	}
	modifiers[n] = '\0';
	for (size_t i = first; r == 0 && i < list->n; i++) {
		struct seam_event *event = &list->items[i];
		unsigned int no_guest = event->attr.exclude_guest;

		r = seam_event_modify(event, modifiers, err);
		if (!event->has_kvm_modifier)
			event->attr.exclude_guest = no_guest & 1;
	}
	if (r == 0)
		make_group(list, first, reads);
	return r;
}

/* "{a,b}" or "{a,b}:uS", which is changed. */
static int add_group(struct seam_event_list *list, char *text,
		     struct seam_err *err)
{
	char *end = strchr(text, '}');
	size_t first = list->n;
	int r;

	if (!end || (end[1] && (end[1] != ':' || !end[2])) || strlen(end) > 32)
		return seam_err_set(err, -EINVAL, "a group of events is "
				    "written {a,b}, {a,b}:u or {a,b}:S");
	*end = '\0';
	r = add_items(list, text + 1, err);
	return r == 0 ? finish_group(list, first, end + 1, err) : r;
}

/* Bytes of the group at @text, or of the items before the next group. */
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
	char *copy = strdup(text), *rest = copy;
	int r = copy ? 0 : seam_err_no_memory(err);

	while (r == 0 && rest) {
		char *part = cut_off(&rest, part_length(rest));

		r = *part == '{' ? add_group(list, part, err) :
		    add_items(list, part, err);
	}
	free(copy);
	return r;
}
