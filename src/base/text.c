/* SPDX-License-Identifier: MIT */
/* text.c - one pass over a string, a character at a time; see text.h */
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

/* Decode one UTF-8 character; 0 when the bytes are not one (RFC 3629). */
static size_t utf8_length(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n;

	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	*code = s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff ||
	    (*code >= 0xd800 && *code <= 0xdfff))
		return 0;
	return n;
}

static const char *replacement(unsigned char c, enum seam_text_form form)
{
	switch (form) {
	case SEAM_TEXT_JSON:
		return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
	case SEAM_TEXT_XML:
		return c == '&' ? "&amp;" : c == '<' ? "&lt;" :
		       c == '>' ? "&gt;" : c == '"' ? "&quot;" :
		       c == '\'' ? "&#39;" : NULL;
	case SEAM_TEXT_FOLDED:
		return c == ';' ? ":" : NULL;
	case SEAM_TEXT_DOT:
		return c == '"' ? "\\\"" : c == '\\' ? "\\\\" :
		       c == '{' ? "\\{" : c == '}' ? "\\}" :
		       c == '<' ? "\\<" : c == '>' ? "\\>" :
		       c == '|' ? "\\|" : NULL;
	case SEAM_TEXT_TERMINAL:
		break;
	}
	return NULL;
}

/*
 * The next character of *@s in @form: at most 11 bytes into @buf.  A byte
 * that is not UTF-8 becomes U+FFFD in JSON, which must be valid Unicode.
 */
static void next(const char **s, char buf[12], enum seam_text_form form)
{
	const unsigned char *p = (const unsigned char *)*s;
	const char *other = replacement(*p, form);
	uint32_t code = 0;
	size_t n = utf8_length(p, &code);
	bool is_unsafe = !n || code < 0x20 || (code >= 0x7f && code < 0xa0) ||
			 (code >= 0x202a && code <= 0x202e) ||
			 (code >= 0x2066 && code <= 0x2069) ||
			 code == 0x2028 || code == 0x2029 ||
			 code == 0xfffe || code == 0xffff;

	*s += n ? n : 1;
	if (other) {
		snprintf(buf, 12, "%s", other);
	} else if (!is_unsafe) {
		memcpy(buf, p, n);
		buf[n] = '\0';
	} else {
		code = n ? code : form == SEAM_TEXT_JSON ? 0xfffd : *p;
		/* in DOT, a visible backslash is written as two */
		snprintf(buf, 12, form == SEAM_TEXT_JSON || code > 0xff ?
			 "%su%04x" : "%sx%02x",
			 form == SEAM_TEXT_DOT ? "\\\\" : "\\", code);
	}
}

void seam_text_put(FILE *out, const char *text, enum seam_text_form form)
{
	char buf[12];

	while (*text) {
		next(&text, buf, form);
		fputs(buf, out);
	}
}

const char *seam_text_copy(char *buf, size_t cap, const char *text,
			   enum seam_text_form form)
{
	size_t pos = 0;
	char one[12];

	while (*text) {
		size_t n;

		next(&text, one, form);
		n = strlen(one);
		if (n >= cap - pos)
			break;
		memcpy(buf + pos, one, n);
		pos += n;
	}
	buf[pos] = '\0';
	return buf;
}

static void add(char *buf, size_t cap, size_t *n, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++, ++*n)
		if (*n + 1 < cap)
			buf[*n] = text[i];
}

size_t seam_text_quote(char *buf, size_t cap, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	bool quoted = !*word || word[strspn(word, plain)];
	size_t n = 0;

	add(buf, cap, &n, "'", quoted);
	for (; *word; word++)
		if (*word == '\'')
			add(buf, cap, &n, "'\\''", 4);
		else
			add(buf, cap, &n, word, 1);
	add(buf, cap, &n, "'", quoted);
	if (cap)
		buf[n < cap ? n : cap - 1] = '\0';
	return n;
}

bool seam_text_ns(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", SEAM_NS_PER_MS },
		{ "s", SEAM_NS_PER_S },
	};
	const char *unit = seam_text_number(text, text + strlen(text), 10, ns);

	for (size_t i = 0; unit && i < SEAM_ARRAY_SIZE(units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return !__builtin_mul_overflow(*ns, units[i].ns, ns);
	return false;
}

const char *seam_text_hex(char *text, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * n] = '\0';
	return text;
}

size_t seam_text_unhex(uint8_t *bytes, size_t cap, const char *text,
		       size_t size)
{
	if (size % 2 || size / 2 > cap)
		return 0;
	for (size_t i = 0; i < size; i++) {
		unsigned int digit = seam_text_digit(text[i]);

		if (digit > 15 || (text[i] >= 'A' && text[i] <= 'F'))
			return 0;
		bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] * 16u + digit :
					 digit);
	}
	return size / 2;
}

const char *seam_text_size(char buf[SEAM_TEXT_SIZE], uint64_t bytes)
{
	uint64_t mib = bytes >> 20;
	bool whole = mib && mib << 20 == bytes;

	snprintf(buf, SEAM_TEXT_SIZE, "%" PRIu64 " %s",
		 whole ? mib : bytes >> 10, whole ? "MiB" : "KiB");
	return buf;
}
