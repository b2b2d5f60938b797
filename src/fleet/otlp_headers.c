/* SPDX-License-Identifier: MIT */
/* otlp_headers.c - headers of the environment; see otlp.h */
#include "fleet/otlp.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* "%20" and the like in @text become bytes.  False: a control character. */
static bool decode(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		unsigned int high = *text == '%' ? seam_text_digit(text[1]) :
				    16;
		unsigned int low = high < 16 ? seam_text_digit(text[2]) : 16;

		*to = *text;
		if (low < 16) {
			*to = (char)(high << 4 | low);
			text += 2;
		}
		if ((unsigned char)*to < 0x20 || *to == 0x7f)
			return false;
	}
	*to = '\0';
	return true;
}

/* @item, "key=value", as a line "key: value"; NULL: it is not one. */
static char *make_line(char *item)
{
	char *value, *line;

	item += strspn(item, " ");
	value = strchr(item, '=');
	if (!value)
		return NULL;
	*value++ = '\0';
	value += strspn(value, " ");
	if (!*item || strcspn(item, " :") != strlen(item) || !decode(item) ||
	    !decode(value) || asprintf(&line, "%s: %s", item, value) < 0)
		return NULL;
	return line;
}

int seam_otlp_headers_read(struct seam_otlp_headers *headers,
			   struct seam_err *err)
{
	const char *text = getenv(SEAM_OTLP_HEADERS);
	char *copy, *item, *rest;
	int r = 0;

	*headers = (struct seam_otlp_headers) { 0 };
	if (!text || !*text)
		return 0;
	copy = rest = strdup(text);
	while (copy && r == 0 && (item = strsep(&rest, ","))) {
		char *line = headers->n < SEAM_OTLP_MAX_HEADERS ?
			     make_line(item) : NULL;

		if (line)
			headers->lines[headers->n++] = line;
		else
			r = seam_err_set(err, -EINVAL, SEAM_OTLP_HEADERS
					 " is not KEY=VALUE,... of at most %d "
					 "headers", SEAM_OTLP_MAX_HEADERS);
	}
	if (!copy)
		return seam_err_no_memory(err);
	explicit_bzero(copy, strlen(text));
	free(copy);
	return r;
}

void seam_otlp_headers_fini(struct seam_otlp_headers *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		explicit_bzero(headers->lines[i], strlen(headers->lines[i]));
		free(headers->lines[i]);
	}
	*headers = (struct seam_otlp_headers) { 0 };
}
