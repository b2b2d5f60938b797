/* SPDX-License-Identifier: MIT */
/* options.c - SEAM_TRACE, parsed; see options.h */
#include "traced/fdr/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "traced/fdr/record/filter.h"
#include "wire/xray/xray_chunk.h"

enum { ROOM_FOR_FILES = 64 };	/* in a path, after the bundle's */

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

static int parse_count(struct options_text *p, const char *key,
		       const char *text, uint64_t max, uint32_t *value)
{
	uint64_t n;
	const char *end = seam_text_number(text, text + strlen(text), 10, &n);

	if (!end || *end || n > max)
		return fail(p, "%s=%s: not a number up to %llu", key, text,
			    (unsigned long long)max);
	*value = (uint32_t)n;
	return 0;
}

static int parse_time(struct options_text *p, const char *key, const char *text,
		      uint64_t *ns)
{
	return seam_text_ns(text, ns) ? 0 :
	       fail(p, "%s=%s: not a time, as 500ns, 5us, 10ms or 1s", key,
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

static int parse_trigger(struct options_text *p, char *text)
{
	struct seam_fdr_options *options = p->options;
	struct seam_trigger trigger;
	const char *cause = seam_trigger_parse(text, &trigger);

	if (cause)
		return fail(p, "trigger=%s: %s", text, cause);
	if (options->n_triggers == SEAM_TRIGGER_MAX)
		return fail(p, "trigger=%s: more than %d", text,
			    SEAM_TRIGGER_MAX);
	if (trigger.kind == SEAM_TRIGGER_SLOW)
		text[trigger.function_bytes] = 0;
	options->triggers[options->n_triggers++] = trigger;
	return 0;
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
	/* what led up to a trigger is kept by nothing else */
	if (options->n_triggers)
		options->is_flight = true;
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

int seam_fdr_bundle_path(const char *out, char path[PATH_MAX])
{
	char folder[PATH_MAX] = "", name[NAME_MAX + 1];
	size_t n;

	if (!out) {
		snprintf(name, sizeof(name), "%.200s-%d.seam",
			 program_invocation_short_name, getpid());
		out = name;
	}
	if (out[0] != '/' && !getcwd(folder, sizeof(folder)))
		return -errno;
	n = strlen(out);
	if (n == 0)
		return -EINVAL;
	while (n > 1 && out[n - 1] == '/')
		n--;
	if (strlen(folder) + n + ROOM_FOR_FILES >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(path, PATH_MAX, "%s%s%.*s", folder, folder[0] ? "/" : "",
		 (int)n, out);
	return 0;
}
