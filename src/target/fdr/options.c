/* SPDX-License-Identifier: MIT */
/* options.c - SEAM_TRACE, parsed; see options.h */
#include "target/fdr/options.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/text.h"
#include "target/fdr/record/filter.h"
#include "wire/xray/xray_chunk.h"

struct options_text {
	struct seam_fdr_options *options;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3)))
static int fail(struct options_text *p, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(p->why, p->why_bytes, format, list);
	va_end(list);
	return -EINVAL;
}

/*
 * Cut the next part off *@at, up to @separator, and move past it.  NULL after
 * the last part.  Backslashes stay: fnmatch() removes them.
 */
static char *cut(char **at, char separator)
{
	char *start = *at, *p = start;

	if (!start)
		return NULL;
	while (*p && *p != separator)
		p += *p == '\\' && p[1] ? 2 : 1;
	*at = *p ? p + 1 : NULL;
	*p = 0;
	return start;
}

static bool parse_number(const char *text, const char **end, uint64_t *value)
{
	*end = seam_text_number(text, text + strlen(text), 10, value);
	return *end != NULL;
}

static int parse_count(struct options_text *p, const char *key,
		       const char *text, uint64_t max, uint32_t *value)
{
	const char *end;
	uint64_t n;

	if (!parse_number(text, &end, &n) || *end || n > max)
		return fail(p, "%s=%s: not a number up to %llu", key, text,
			    (unsigned long long)max);
	*value = (uint32_t)n;
	return 0;
}

static int parse_time(struct options_text *p, const char *key, const char *text,
		      uint64_t *ns)
{
	static const struct { const char *unit; uint64_t ns; } units[] = {
		{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
		{ "s", 1000000000 },
	};
	const char *end;

	if (parse_number(text, &end, ns))
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(units); i++)
			if (!strcmp(end, units[i].unit) &&
			    !__builtin_mul_overflow(*ns, units[i].ns, ns))
				return 0;
	return fail(p, "%s=%s: not a time, as 500ns, 5us, 10ms or 1s", key,
		    text);
}

static int parse_globs(char *text, struct seam_fdr_globs *globs)
{
	char *glob;

	while ((glob = cut(&text, ',')))
		if (glob[0] && !SEAM_ARRAY_ADD(&globs->list, glob))
			return -ENOMEM;
	return 0;
}

/* ---- triggers ---- */

static const char *skip_prefix(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) ? NULL : text + n;
}

/* SEGV, SIGSEGV or 11; 0: none. */
static int signal_of(const char *name)
{
	const char *end, *shorter = skip_prefix(name, "SIG");
	uint64_t n;

	if (parse_number(name, &end, &n))
		return *end || n >= NSIG ? 0 : (int)n;
	for (int i = 1; i < NSIG; i++) {
		const char *abbreviation = sigabbrev_np(i);

		if (abbreviation && !strcmp(abbreviation, shorter ?: name))
			return i;
	}
	return 0;
}

static int parse_slow(struct options_text *p, char *text,
		      struct seam_fdr_trigger *trigger)
{
	char *limit = strrchr(text, '>');	/* names may have others */

	if (!limit || limit == text)
		return fail(p, "trigger=%s: not FUNCTION>TIME, calls:FUNCTION "
			    "or signal:NAME", text);
	*limit = 0;
	trigger->kind = SEAM_FDR_TRIGGER_SLOW;
	trigger->function = text;
	return parse_time(p, "trigger", limit + 1, &trigger->limit_ns);
}

static int parse_trigger(struct options_text *p, char *text)
{
	struct seam_fdr_trigger trigger = { .kind = SEAM_FDR_TRIGGER_CALLS };
	struct seam_fdr_options *options = p->options;
	const char *rest;
	int r = 0;

	if (options->n_triggers == SEAM_FDR_MAX_TRIGGERS)
		return fail(p, "trigger=%s: more than %d", text,
			    SEAM_FDR_MAX_TRIGGERS);
	/* "calls::f>1ms" is a function of a namespace */
	if ((rest = skip_prefix(text, "calls:")) && *rest && *rest != ':') {
		trigger.function = rest;
	} else if ((rest = skip_prefix(text, "signal:")) && *rest != ':') {
		trigger.kind = SEAM_FDR_TRIGGER_SIGNAL;
		trigger.signal = signal_of(rest);
		if (!trigger.signal)
			return fail(p, "trigger=%s: no such signal", text);
	} else {
		r = parse_slow(p, text, &trigger);
	}
	if (r == 0)
		options->triggers[options->n_triggers++] = trigger;
	return r;
}

static int parse_triggers(struct options_text *p, char *text)
{
	char *one;
	int r = 0;

	while (r == 0 && (one = cut(&text, ',')))
		if (one[0])
			r = parse_trigger(p, one);
	return r;
}

/* ---- all of it ---- */

static int parse_flag(struct options_text *p, const char *key, const char *text,
		      bool *flag)
{
	uint32_t value;
	int r = parse_count(p, key, text, 1, &value);

	if (r == 0)
		*flag = value;
	return r;
}

static int parse_pair(struct options_text *p, const char *key, char *value)
{
	struct seam_fdr_options *o = p->options;

	if (!strcmp(key, "functions"))
		return parse_globs(value, &o->functions);
	if (!strcmp(key, "except"))
		return parse_globs(value, &o->except);
	if (!strcmp(key, "min"))
		return parse_time(p, key, value, &o->min_ns);
	if (!strcmp(key, "depth"))
		return parse_count(p, key, value, SEAM_FDR_MAX_DEPTH,
				   &o->depth);
	if (!strcmp(key, "args"))
		return parse_count(p, key, value, SEAM_XRAY_MAX_ARGUMENTS,
				   &o->n_arguments);
	if (!strcmp(key, "flight"))
		return parse_flag(p, key, value, &o->is_flight);
	if (!strcmp(key, "trigger"))
		return parse_triggers(p, value);
	if (!strcmp(key, "after"))
		return parse_time(p, key, value, &o->after_ns);
	if (!strcmp(key, "out"))
		o->out = value[0] ? value : NULL;
	else if (!strcmp(key, "start"))
		return parse_flag(p, key, value, &o->is_started);
	else
		return fail(p, "%s=: no such option", key);
	return 0;
}

static int parse_all(struct options_text *p, char *text)
{
	char *key, *value;
	int r = 0;

	while (r == 0 && (key = cut(&text, ';'))) {
		if (!key[0])
			continue;
		value = strchr(key, '=');
		if (!value)
			return fail(p, "%s: not KEY=VALUE", key);
		*value = 0;
		r = parse_pair(p, key, value + 1);
	}
	return r;
}

int seam_fdr_options_parse(struct seam_fdr_options *options, const char *text,
			   char *why, size_t why_bytes)
{
	struct options_text p = { options, why, why_bytes };
	int r;

	*options = (struct seam_fdr_options) { .is_started = true };
	if (strlen(text) >= SEAM_FDR_MAX_OPTIONS_BYTES)
		return fail(&p, "longer than %d bytes",
			    SEAM_FDR_MAX_OPTIONS_BYTES);
	options->text = strdup(text);
	r = options->text ? parse_all(&p, options->text) : -ENOMEM;
	if (r < 0)
		seam_fdr_options_fini(options);
	return r;
}

void seam_fdr_options_fini(struct seam_fdr_options *options)
{
	free(options->functions.list.items);
	free(options->except.list.items);
	free(options->text);
	*options = (struct seam_fdr_options) { .is_started = true };
}
