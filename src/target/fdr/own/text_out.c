/* SPDX-License-Identifier: MIT */
/* text_out.c - see text_out.h */
#include "target/fdr/own/text_out.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls, as libc's functions are cancellation points. */

void seam_fdr_text_begin(struct seam_fdr_text *t, const char *path)
{
	t->n = 0;
	t->fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT |
			     O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	t->error = t->fd < 0 ? -errno : 0;
}

static void flush(struct seam_fdr_text *t)
{
	size_t done = 0;

	while (!t->error && done < t->n) {
		ssize_t n = syscall(SYS_write, t->fd, t->buffer + done,
				    t->n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			t->error = n < 0 ? -errno : -EIO;
		else
			done += (size_t)n;
	}
	t->n = 0;
}

static void put_char(struct seam_fdr_text *t, char c)
{
	if (t->n == sizeof(t->buffer))
		flush(t);
	t->buffer[t->n++] = c;
}

void seam_fdr_text_put(struct seam_fdr_text *t, const char *text)
{
	while (*text)
		put_char(t, *text++);
}

static void put_digits(struct seam_fdr_text *t, uint64_t number, uint64_t base)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = "0123456789abcdef"[number % base];
	while ((number /= base) > 0);
	while (n > 0)
		put_char(t, digits[--n]);
}

void seam_fdr_text_number(struct seam_fdr_text *t, uint64_t number)
{
	put_digits(t, number, 10);
}

void seam_fdr_text_hex(struct seam_fdr_text *t, uint64_t number)
{
	seam_fdr_text_put(t, "0x");
	put_digits(t, number, 16);
}

/*
 * Bytes of the UTF-8 sequence at @s, of @n bytes at most; 0: none that is
 * valid.  Source: RFC 3629, section 4.
 */
static size_t sequence(const unsigned char *s, size_t n)
{
	size_t bytes = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 :
		       s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (bytes > n)
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return bytes;
}

static void put_json_char(struct seam_fdr_text *t, unsigned char c)
{
	if (c == '"' || c == '\\')
		put_char(t, '\\');
	if (c >= 0x20 && c != 0x7f) {
		put_char(t, (char)c);
		return;
	}
	seam_fdr_text_put(t, "\\u00");
	put_char(t, "0123456789abcdef"[c >> 4]);
	put_char(t, "0123456789abcdef"[c & 15]);
}

void seam_fdr_text_json(struct seam_fdr_text *t, const char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;

	put_char(t, '"');
	for (size_t i = 0; i < size && s[i];) {
		size_t n = sequence(s + i, strnlen(text + i, size - i));

		if (!n)
			seam_fdr_text_put(t, "\xef\xbf\xbd");
		else if (n == 1)
			put_json_char(t, s[i]);
		else
			for (size_t k = 0; k < n; k++)
				put_char(t, (char)s[i + k]);
		i += n ? n : 1;
	}
	put_char(t, '"');
}

void seam_fdr_text_yaml(struct seam_fdr_text *t, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put_char(t, '\'');
	while (*s) {
		size_t n = sequence(s, strnlen((const char *)s, 4));

		if (*s == '\'')
			put_char(t, '\'');
		/* control characters are none of YAML's */
		if (!n || *s < 0x20 || *s == 0x7f)
			seam_fdr_text_put(t, "\xef\xbf\xbd");
		else
			for (size_t k = 0; k < n; k++)
				put_char(t, (char)s[k]);
		s += n ? n : 1;
	}
	put_char(t, '\'');
}

int seam_fdr_text_end(struct seam_fdr_text *t)
{
	flush(t);
	if (t->fd >= 0 && syscall(SYS_close, t->fd) && !t->error)
		t->error = -errno;
	return t->error;
}
