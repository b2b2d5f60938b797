/* SPDX-License-Identifier: MIT */
/*
 * json_read.c - the grammar of JSON without recursion; see json_read.h
 *
 * Open objects and arrays are a stack of bits, 1 for an object.
 */
#include "base/json_read.h"

#include "base/text.h"

struct checker {
	const uint8_t *p, *end;
	uint64_t objects;		/* bit 0: the innermost */
	unsigned int depth;
};

static void skip_space(struct checker *c)
{
	while (c->p < c->end && *c->p && strchr(" \t\n\r", *c->p))
		c->p++;
}

static bool take(struct checker *c, char byte)
{
	bool is = c->p < c->end && *c->p == (uint8_t)byte;

	c->p += is;
	return is;
}

static bool take_word(struct checker *c, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n))
		return false;
	c->p += n;
	return true;
}

static bool take_digits(struct checker *c)
{
	const uint8_t *first = c->p;

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	return c->p > first;
}

static bool take_number(struct checker *c)
{
	take(c, '-');			/* perhaps */
	if (!take(c, '0') && !take_digits(c))
		return false;
	if (take(c, '.') && !take_digits(c))
		return false;
	if (!take(c, 'e') && !take(c, 'E'))
		return true;
	if (!take(c, '+'))
		take(c, '-');
	return take_digits(c);
}

static bool take_escape(struct checker *c)
{
	static const char letters[] = "\"\\/bfnrt";

	if (take(c, 'u')) {
		for (int i = 0; i < 4; i++, c->p++)
			if (c->p == c->end ||
			    seam_text_digit((char)*c->p) > 15)
				return false;
		return true;
	}
	return c->p < c->end && *c->p && strchr(letters, *c->p++);
}

/* A character of several bytes (RFC 3629, table 3-7 of Unicode). */
static bool take_utf8(struct checker *c)
{
	uint8_t first = *c->p, low = 0x80, high = 0xbf;
	unsigned int n = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;

	if (first < 0xc2 || first > 0xf4 || (size_t)(c->end - c->p) <= n)
		return false;
	if (first == 0xe0 || first == 0xf0)
		low = first == 0xe0 ? 0xa0 : 0x90;
	if (first == 0xed || first == 0xf4)
		high = first == 0xed ? 0x9f : 0x8f;
	for (c->p++; n > 0; n--, low = 0x80, high = 0xbf)
		if (*c->p < low || *c->p++ > high)
			return false;
	return true;
}

static bool take_string(struct checker *c)
{
	if (!take(c, '"'))
		return false;
	while (c->p < c->end && *c->p != '"') {
		bool good = take(c, '\\') ? take_escape(c) :
			    *c->p >= 0x80 ? take_utf8(c) : *c->p++ >= 0x20;

		if (!good)
			return false;
	}
	return take(c, '"');
}

static bool take_key(struct checker *c)
{
	bool good;

	skip_space(c);
	good = take_string(c);
	skip_space(c);
	return good && take(c, ':');
}

/* Whether a value comes next: not in an empty object or array. */
static bool is_next_value(struct checker *c, bool is_object)
{
	skip_space(c);
	return c->p == c->end || *c->p != (is_object ? '}' : ']');
}

enum next {
	BAD,
	VALUE,				/* a value has to follow */
	END,				/* the outermost value has ended */
};

/* After a value: what ends with it. */
static enum next take_ends(struct checker *c)
{
	while (c->depth > 0) {
		bool is_object = c->objects & 1;

		skip_space(c);
		if (take(c, ','))
			return !is_object || take_key(c) ? VALUE : BAD;
		if (!take(c, is_object ? '}' : ']'))
			return BAD;
		c->depth--;
		c->objects >>= 1;
	}
	return END;
}

/* After the bracket that opens an object or array. */
static enum next take_open(struct checker *c, bool is_object)
{
	if (c->depth == SEAM_JSON_READ_DEPTH)
		return BAD;
	c->depth++;
	c->objects = c->objects << 1 | is_object;
	if (!is_next_value(c, is_object))
		return take_ends(c);
	return !is_object || take_key(c) ? VALUE : BAD;
}

static bool take_scalar(struct checker *c)
{
	if (c->p == c->end || c->depth == 0)
		return false;
	return *c->p == '"' ? take_string(c) :
	       *c->p == '-' || (*c->p >= '0' && *c->p <= '9') ?
	       take_number(c) :
	       take_word(c, "true") || take_word(c, "false") ||
	       take_word(c, "null");
}

bool seam_json_check(struct seam_bytes text)
{
	struct checker c = { .p = text.data, .end = text.data + text.size };
	enum next next = VALUE;

	while (next == VALUE) {
		skip_space(&c);
		if (take(&c, '{'))
			next = take_open(&c, true);
		else if (take(&c, '['))
			next = take_open(&c, false);
		else
			next = take_scalar(&c) ? take_ends(&c) : BAD;
	}
	skip_space(&c);
	return next == END && c.p == c.end;
}

/* A character as UTF-8; a NUL would end the text.  Returns its bytes, or 0. */
static size_t put_utf8(char *p, size_t room, uint32_t code)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;

	if (code == 0 || (code >= 0xd800 && code < 0xe000) || room <= n)
		return 0;
	if (n == 1) {
		p[0] = (char)code;
		return n;
	}
	p[0] = (char)(n == 2 ? 0xc0 | code >> 6 : 0xe0 | code >> 12);
	p[n - 2] = n == 2 ? p[0] : (char)(0x80 | (code >> 6 & 0x3f));
	p[n - 1] = (char)(0x80 | (code & 0x3f));
	return n;
}

/* The character of the escape at @p, a valid one without its backslash. */
static uint32_t escaped(const char *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	uint32_t code = 0;

	if (*p != 'u')
		return (uint8_t)to[strchr(from, *p) - from];
	for (int i = 1; i < 5; i++)
		code = code << 4 | seam_text_digit(p[i]);
	return code;
}

bool seam_json_unquote(char *buf, size_t cap, struct seam_bytes text)
{
	struct checker c = { .p = text.data, .end = text.data + text.size };
	size_t n = 0, one;

	if (!take(&c, '"'))
		return false;
	while (c.p < c.end && *c.p != '"') {
		const char *p = (const char *)c.p;

		if (*c.p < 0x20 || cap - n < 2)
			return false;
		c.p++;
		if (*p != '\\') {
			buf[n++] = *p;
			continue;
		}
		one = take_escape(&c) ? put_utf8(buf + n, cap - n,
						 escaped(p + 1)) : 0;
		if (one == 0)
			return false;
		n += one;
	}
	buf[n] = '\0';
	return take(&c, '"') && c.p == c.end;
}
