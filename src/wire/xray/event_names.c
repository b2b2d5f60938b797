/* SPDX-License-Identifier: MIT */
/* event_names.c - lines of a number and a JSON string; see event_names.h */
#include "wire/xray/event_names.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"

static int take_line(struct seam_event_names *names, const char *p,
		     const char *end, size_t line)
{
	struct seam_event_name item = { .line = line };
	char name[SEAM_EVENT_NAME_MAX];
	uint64_t type;

	p = seam_text_number(p, end, 10, &type);
	if (!p || p == end || *p != ' ' || type > UINT16_MAX ||
	    !seam_json_unquote(name, sizeof(name), (struct seam_bytes) {
			(const uint8_t *)p + 1, (size_t)(end - p) - 1 }))
		return -EBADMSG;
	item.type = (uint16_t)type;
	item.name = seam_strings_put(&names->strings, name);
	return item.name != SEAM_NONE && SEAM_ARRAY_ADD(&names->items, item) ?
	       0 : -ENOMEM;
}

static int by_type(const void *a, const void *b)
{
	const struct seam_event_name *x = a, *y = b;

	return SEAM_COMPARE(x->type, y->type) ?:
	       SEAM_COMPARE(x->line, y->line);
}

int seam_event_names_read(struct seam_event_names *names,
			  struct seam_bytes text, struct seam_err *err)
{
	const char *p = (const char *)text.data, *end = p + text.size;
	size_t line = 0;
	int r = 0;

	*names = (struct seam_event_names) { 0 };
	while (!r && p < end) {
		const char *next = memchr(p, '\n', (size_t)(end - p));

		line++;
		r = take_line(names, p, next ? next : end, line);
		p = next ? next + 1 : end;
	}
	SEAM_ARRAY_SORT(&names->items, by_type);
	if (r == -EBADMSG)
		return seam_err_set(err, r, "line %zu is no number and name",
				    line);
	return r ? seam_err_no_memory(err) : 0;
}

void seam_event_name_write(FILE *out, uint16_t type, const char *name)
{
	fprintf(out, "%u \"", type);
	seam_text_put(out, name, SEAM_TEXT_JSON);
	fputs("\"\n", out);
}

const char *seam_event_name_find(const struct seam_event_names *names,
				 uint16_t type)
{
	const struct seam_event_name *items = names->items.items;
	size_t after = SEAM_ARRAY_SEARCH(i, names->items.n,
					 items[i].type <= type);

	return after && items[after - 1].type == type ?
	       seam_strings_get(&names->strings, items[after - 1].name) : NULL;
}

void seam_event_names_fini(struct seam_event_names *names)
{
	free(names->items.items);
	seam_strings_fini(&names->strings);
	*names = (struct seam_event_names) { 0 };
}
