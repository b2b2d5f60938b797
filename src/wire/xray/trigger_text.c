/* SPDX-License-Identifier: MIT */
/* trigger_text.c - see trigger_text.h */
#include "wire/xray/trigger_text.h"

#include <signal.h>

#include "base/text.h"

/* 0: there is no such signal. */
static int signal_of(const char *name)
{
	uint64_t n;
	const char *end = seam_text_number(name, name + strlen(name), 10, &n);

	if (end)
		return *end || n >= NSIG ? 0 : (int)n;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

static const char *check_signal(int signal)
{
	if (signal == SIGKILL || signal == SIGSTOP)
		return "no program receives this signal; a killed program's "
		       "calls are kept anyway";
	return signal ? NULL : "there is no such signal";
}

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
		return "use FUNCTION>TIME, calls:FUNCTION or signal:NAME";
	if (limit == text)
		return "it has no function";
	*trigger = (struct seam_trigger) {
		SEAM_TRIGGER_SLOW, text, (size_t)(limit - text), 0, 0,
	};
	return seam_text_ns(limit + 1, &trigger->limit_ns) ? NULL :
	       "its time is not one such as 10ms, 500us or 2s";
}

const char *seam_trigger_parse(const char *text, struct seam_trigger *trigger)
{
	const char *name;

	if ((name = after(text, "signal:"))) {
		*trigger = (struct seam_trigger) {
			SEAM_TRIGGER_SIGNAL, .signal = signal_of(name),
		};
		return check_signal(trigger->signal);
	}
	if ((name = after(text, "calls:"))) {
		*trigger = (struct seam_trigger) {
			SEAM_TRIGGER_CALLS, name, strlen(name), 0, 0,
		};
		return *name ? NULL : "it has no function";
	}
	return parse_slow(text, trigger);
}
