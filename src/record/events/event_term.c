/* SPDX-License-Identifier: MIT */
/* event_term.c - a table with a row for each term; see event_term.h */
#include "record/events/event_term.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>

/* A decimal or 0x number from 1 to @max. */
static int number(const char *value, uint64_t max, uint64_t *n)
{
	char *end;

	if (!value || value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(value, &end, 0);
	return errno || *end || *n == 0 || *n > max ? -EINVAL : 0;
}

static int set_period(struct seam_event *event, const char *value)
{
	return number(value, INT64_MAX, &event->period);
}

static int set_frequency(struct seam_event *event, const char *value)
{
	return number(value, INT64_MAX, &event->frequency_hz);
}

static int set_name(struct seam_event *event, const char *value)
{
	if (!value || !*value || strlen(value) >= sizeof(event->name))
		return -EINVAL;
	snprintf(event->name, sizeof(event->name), "%s", value);
	return 0;
}

static int set_call_graph(struct seam_event *event, const char *value)
{
	static const struct {
		const char *name;
		enum seam_call_graph how;
	} ways[] = {
		{ "auto", SEAM_CALL_GRAPH_AUTO }, { "fp", SEAM_CALL_GRAPH_FP },
		{ "dwarf", SEAM_CALL_GRAPH_DWARF },
		{ "no", SEAM_CALL_GRAPH_NONE },
		{ "none", SEAM_CALL_GRAPH_NONE },
	};

	for (size_t i = 0; value && i < SEAM_ARRAY_SIZE(ways); i++)
		if (strcmp(value, ways[i].name) == 0) {
			event->call_graph = ways[i].how;
			return 0;
		}
	return -EINVAL;
}

static int set_max_stack(struct seam_event *event, const char *value)
{
	uint64_t n;
	int r = number(value, UINT16_MAX, &n);

	if (r == 0)
		event->attr.sample_max_stack = (uint16_t)n;
	return r;
}

static int set_no_inherit(struct seam_event *event, const char *value)
{
	event->no_inherit = true;
	return value ? -EINVAL : 0;
}

static const struct term {
	const char *name;
	int (*set)(struct seam_event *event, const char *value);
	const char *takes;
} terms_of_all[] = {
	{ "period", set_period, "a number of occurrences" },
	{ "freq", set_frequency, "a number of samples per second" },
	{ "name", set_name, "a name of up to 255 bytes" },
	{ "call-graph", set_call_graph, "auto, fp, dwarf or no" },
	{ "max-stack", set_max_stack, "a number of frames, up to 65535" },
	{ "no-inherit", set_no_inherit, "no value" },
};

static const struct term *find(const char *name)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(terms_of_all); i++)
		if (strcmp(terms_of_all[i].name, name) == 0)
			return &terms_of_all[i];
	return NULL;
}

bool seam_event_term_is(const char *term)
{
	return find(term) != NULL;
}

int seam_event_term_set(struct seam_event *event, const char *term,
			const char *value, struct seam_err *err)
{
	char shown[2 * SEAM_EVENT_NAME];
	const struct term *known = find(term);
	int r;

	seam_text_copy(shown, sizeof(shown), term, SEAM_TEXT_TERMINAL);
	if (!known)
		return seam_err_set(err, -EINVAL, "an event has no term '%s': "
			"they are period, freq, name, call-graph, max-stack "
			"and no-inherit", shown);
	r = known->set(event, value);
	if (r < 0)
		return seam_err_set(err, r, "the term '%s' of an event takes "
				    "%s", shown, known->takes);
	return 0;
}

int seam_event_terms_check(const struct seam_event *event,
			   struct seam_err *err)
{
	if (event->period && event->frequency_hz)
		return seam_err_set(err, -EINVAL, "the terms period and freq "
				    "cannot be combined");
	return 0;
}

int seam_event_terms_set(struct seam_event *events, size_t n, char *terms,
			 struct seam_err *err)
{
	char *rest, *term = strtok_r(terms, ",", &rest);
	int r = term ? 0 : seam_err_set(err, -EINVAL, "no terms between the "
					"slashes of an event");

	for (; r == 0 && term; term = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(term, '=');

		if (value)
			*value++ = '\0';
		for (size_t i = 0; r == 0 && i < n; i++)
			r = seam_event_term_set(&events[i], term, value, err);
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		r = seam_event_terms_check(&events[i], err);
	return r;
}
