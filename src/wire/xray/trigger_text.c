/* SPDX-License-Identifier: MIT */
/* trigger_text.c - see trigger_text.h */
#include "wire/xray/trigger_text.h"

#include "base/text.h"

/* The rest of @text after @prefix and a name; NULL: it is a name by itself. */
static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 && text[n] != ':' ? text + n :
	       NULL;
}

static const char *parse_slow(const char *text, struct seam_trigger *trigger)
{
	const char *limit = strrchr(text, '>');

	if (!limit)
		return "use FUNCTION>TIME or calls:FUNCTION";
	if (limit == text)
		return "it has no function";
	*trigger = (struct seam_trigger) {
		SEAM_TRIGGER_SLOW, text, (size_t)(limit - text), 0,
	};
	return seam_text_ns(limit + 1, &trigger->limit_ns) ? NULL :
	       "its time is not one such as 10ms, 500us or 2s";
}

const char *seam_trigger_parse(const char *text, struct seam_trigger *trigger)
{
	const char *name;

	if (after(text, "signal:"))
		return "use 'kill -USR2 RECORDER' for a snapshot, and a crash "
		       "of the program writes its calls anyway";
	if ((name = after(text, "calls:"))) {
		*trigger = (struct seam_trigger) {
			SEAM_TRIGGER_CALLS, name, strlen(name), 0,
		};
		return *name ? NULL : "it has no function";
	}
	return parse_slow(text, trigger);
}
