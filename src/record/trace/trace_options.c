/* SPDX-License-Identifier: MIT */
/* trace_options.c - "key=value;" again and again; see trace_options.h */
#include "record/trace/trace_options.h"

#include <inttypes.h>

/* A semicolon of a name is not the end of the value. */
static void put_list(FILE *out, const char *list)
{
	for (; *list; list++) {
		if (*list == ';')
			fputc('\\', out);
		fputc(*list, out);
		/* what the user has escaped stays so */
		if (*list == '\\' && list[1])
			fputc(*++list, out);
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
		put_list(out, lists[i]);
	}
	if (!is_first)
		fputc(';', out);
}

void seam_trace_options_number(FILE *out, const char *key, uint64_t value)
{
	if (value)
		fprintf(out, "%s=%" PRIu64 ";", key, value);
}
