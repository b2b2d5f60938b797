/* SPDX-License-Identifier: MIT */
/* json.c - commas, indentation and escapes; the contract is in json.h */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"

struct seam_json seam_json_make(FILE *out, bool pretty)
{
	return (struct seam_json) { .out = out, .pretty = pretty };
}

static void begin(struct seam_json *j, const char *key)
{
	if (j->begun[j->depth] && j->depth > 0)
		putc_unlocked(',', j->out);
	j->begun[j->depth] = true;
	if (j->pretty && j->depth > 0)
		fprintf(j->out, "\n%*s", 2 * j->depth, "");
	if (!key)
		return;
	putc_unlocked('"', j->out);
	fputs_unlocked(key, j->out);
	fputs_unlocked(j->pretty ? "\": " : "\":", j->out);
}

void seam_json_open(struct seam_json *j, const char *key, char bracket)
{
	assert(j->depth < SEAM_JSON_DEPTH);

	begin(j, key);
	fputc(bracket, j->out);
	j->closer[j->depth++] = bracket == '{' ? '}' : ']';
	j->begun[j->depth] = false;
}

void seam_json_close(struct seam_json *j)
{
	bool empty = !j->begun[j->depth];

	assert(j->depth > 0);

	j->depth--;
	if (j->pretty && !empty)
		fprintf(j->out, "\n%*s", 2 * j->depth, "");
	fputc(j->closer[j->depth], j->out);
	if (j->depth == 0)
		fputc('\n', j->out);
}

/* Millions of numbers are written: printf() would take most of the time. */
static char *put_digits(char *end, uint64_t v, unsigned int least)
{
	for (; v || least; v /= 10, least -= least > 0)
		*--end = (char)('0' + v % 10);
	return end;
}

static void put(struct seam_json *j, const char *text, const char *end)
{
	fwrite_unlocked(text, 1, (size_t)(end - text), j->out);
}

void seam_json_u64(struct seam_json *j, const char *key, uint64_t v)
{
	char text[24], *end = text + sizeof(text);

	begin(j, key);
	put(j, put_digits(end, v, 1), end);
}

void seam_json_fixed(struct seam_json *j, const char *key, uint64_t v,
		     unsigned int decimals)
{
	char text[48], *end = text + sizeof(text), *begin_at;
	uint64_t unit = 1;

	assert(decimals <= 18);

	for (; decimals && v % 10 == 0; decimals--)
		v /= 10;
	for (unsigned int i = 0; i < decimals; i++)
		unit *= 10;
	begin_at = put_digits(end, v % unit, decimals);
	if (decimals)
		*--begin_at = '.';
	begin_at = put_digits(begin_at, v / unit, 1);
	begin(j, key);
	put(j, begin_at, end);
}

void seam_json_i64(struct seam_json *j, const char *key, int64_t v)
{
	begin(j, key);
	fprintf(j->out, "%" PRId64, v);
}

void seam_json_double(struct seam_json *j, const char *key, double v)
{
	char text[32];

	begin(j, key);
	if (!isfinite(v)) {
		fputs("null", j->out);
		return;
	}
	snprintf(text, sizeof(text), "%.15g", v);
	if (strtod(text, NULL) != v)
		snprintf(text, sizeof(text), "%.17g", v);
	fputs(text, j->out);
}

void seam_json_bool(struct seam_json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->out);
}

void seam_json_string(struct seam_json *j, const char *key, const char *v)
{
	begin(j, key);
	if (!v) {
		fputs("null", j->out);
		return;
	}
	fputc('"', j->out);
	seam_text_put(j->out, v, SEAM_TEXT_JSON);
	fputc('"', j->out);
}

void seam_json_hex(struct seam_json *j, const char *key, struct seam_bytes v)
{
	begin(j, key);
	fputc('"', j->out);
	for (size_t i = 0; i < v.size; i++)
		fprintf(j->out, "%02x", v.data[i]);
	fputc('"', j->out);
}

bool seam_json_check(struct seam_bytes text)
{
	json_t *value = json_loadb((const char *)text.data, text.size,
				   JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL,
				   NULL);
	bool is_json = value;

	json_decref(value);
	return is_json;
}

bool seam_json_unquote(char *buf, size_t cap, struct seam_bytes text)
{
	json_t *value = json_loadb((const char *)text.data, text.size,
				   JSON_DECODE_ANY, NULL);
	size_t n = json_string_length(value);
	bool fits = json_is_string(value) && n < cap &&
		    text.data[0] == '"' && text.data[text.size - 1] == '"';

	if (fits)
		memcpy(buf, json_string_value(value), n + 1);
	json_decref(value);
	return fits;
}
