/* SPDX-License-Identifier: MIT */
/* trace_options.c - "key=value;" again and again; see trace_options.h */
#include "record/trace/trace_options.h"

#include <inttypes.h>

/* Separators in it, and a backslash at its end, are part of the text. */
static void put_escaped(FILE *out, const char *text, const char *separators)
{
	for (; *text; text++) {
		if (strchr(separators, *text) || (*text == '\\' && !text[1]))
			fputc('\\', out);
		fputc(*text, out);
		/* what the user has escaped stays so */
		if (*text == '\\' && text[1])
			fputc(*++text, out);
	}
}

void seam_trace_options_list(FILE *out, const char *key,
			     const char *const *lists, size_t n)
{
	bool is_first = true;

	for (size_t i = 0; i < n; i++) {
		if (!lists[i][0])
			continue;
		if (is_first)
			fprintf(out, "%s=", key);
		else
			fputc(',', out);
		is_first = false;
		put_escaped(out, lists[i], ";");
	}
	if (!is_first)
		fputc(';', out);
}

void seam_trace_options_triggers(FILE *out, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? "," : "trigger=", out);
		put_escaped(out, texts[i], ",;");
	}
	if (n)
		fputc(';', out);
}

void seam_trace_options_number(FILE *out, const char *key, uint64_t value,
			       const char *unit)
{
	if (value)
		fprintf(out, "%s=%" PRIu64 "%s;", key, value, unit);
}
