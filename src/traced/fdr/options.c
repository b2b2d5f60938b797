/* SPDX-License-Identifier: MIT */
/* options.c - SEAM_TRACE, parsed; see options.h */
#include "traced/fdr/options.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "traced/fdr/record/fdr_thread.h"
#include "wire/xray/xray_chunk.h"

enum { ROOM_FOR_FILES = 64 };	/* in a path, after the bundle's */

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

static int parse_count(const char *key, const char *text, uint64_t max,
		       uint32_t *value, struct seam_err *err)
{
	uint64_t n;
	const char *end = seam_text_number(text, text + strlen(text), 10, &n);

	if (!end || *end || n > max)
		return seam_err_set(err, -EINVAL,
				    "%s=%s: not a number up to %llu", key,
				    text, (unsigned long long)max);
	*value = (uint32_t)n;
	return 0;
}

static int parse_flag(const char *key, const char *text, bool *flag,
		      struct seam_err *err)
{
	uint32_t value = *flag;
	int r = parse_count(key, text, 1, &value, err);

	*flag = value;
	return r;
}

static int parse_time(const char *key, const char *text, uint64_t *ns,
		      struct seam_err *err)
{
	return seam_text_ns(text, ns) ? 0 :
	       seam_err_set(err, -EINVAL, "%s=%s: not a time, as 500ns, 5us, "
			    "10ms or 1s", key, text);
}

static int parse_globs(char *text, struct seam_fdr_globs *globs,
		       struct seam_err *err)
{
	char *glob;

	while ((glob = cut(&text, ',')))
		if (glob[0] && !SEAM_ARRAY_ADD(
				&globs->list,
				(struct seam_fdr_glob) { .text = glob }))
			return seam_err_no_memory(err);
	return 0;
}

static int parse_triggers(char *text, struct seam_fdr_options *options,
			  struct seam_err *err)
{
	char *one;

	while ((one = cut(&text, ','))) {
		struct seam_trigger trigger;
		const char *cause;

		if (!one[0])
			continue;
		cause = seam_trigger_parse(one, &trigger);
		if (cause)
			return seam_err_set(err, -EINVAL, "trigger=%s: %s", one,
					    cause);
		if (options->n_triggers == SEAM_TRIGGER_MAX)
			return seam_err_set(err, -EINVAL,
					    "trigger=%s: more than %d", one,
					    SEAM_TRIGGER_MAX);
		if (trigger.kind == SEAM_TRIGGER_SLOW)
			one[trigger.function_bytes] = 0;
		options->triggers[options->n_triggers++] = trigger;
	}
	return 0;
}

static int parse_pair(struct seam_fdr_options *o, const char *key, char *value,
		      struct seam_err *err)
{
	if (!strcmp(key, "functions"))
		return parse_globs(value, &o->functions, err);
	if (!strcmp(key, "except"))
		return parse_globs(value, &o->except, err);
	if (!strcmp(key, "min"))
		return parse_time(key, value, &o->min_ns, err);
	if (!strcmp(key, "depth"))
		return parse_count(key, value, SEAM_FDR_MAX_DEPTH, &o->depth,
				   err);
	if (!strcmp(key, "args"))
		return parse_count(key, value, SEAM_XRAY_MAX_ARGUMENTS,
				   &o->n_arguments, err);
	if (!strcmp(key, "flight"))
		return parse_flag(key, value, &o->is_flight, err);
	if (!strcmp(key, "trigger"))
		return parse_triggers(value, o, err);
	if (!strcmp(key, "after"))
		return parse_time(key, value, &(uint64_t) { 0 }, err);
	if (!strcmp(key, "start"))
		return parse_flag(key, value, &o->is_started, err);
	if (strcmp(key, "out"))
		return seam_err_set(err, -EINVAL, "%s=: no such option", key);
	o->out = value[0] ? value : NULL;
	return 0;
}

static int parse_all(struct seam_fdr_options *options, char *text,
		     struct seam_err *err)
{
	char *key, *value;
	int r = 0;

	while (r == 0 && (key = cut(&text, ';'))) {
		if (!key[0])
			continue;
		value = strchr(key, '=');
		if (!value)
			return seam_err_set(err, -EINVAL, "%s: not KEY=VALUE",
					    key);
		*value = 0;
		r = parse_pair(options, key, value + 1, err);
	}
	return r;
}

int seam_fdr_options_parse(struct seam_fdr_options *options, const char *text,
			   struct seam_err *err)
{
	int r;

	*options = (struct seam_fdr_options) { .is_started = true };
	if (strlen(text) >= SEAM_FDR_MAX_OPTIONS_BYTES)
		return seam_err_set(err, -EINVAL, "longer than %d bytes",
				    SEAM_FDR_MAX_OPTIONS_BYTES);
	options->text = strdup(text);
	r = options->text ? parse_all(options, options->text, err) :
			    seam_err_no_memory(err);
	/* only a flight recorder keeps what led up to a trigger */
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
