/* SPDX-License-Identifier: MIT */
/* view.c - cells, bars and numbers; the contract is in view.h */
#include "report/view.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "report/elide.h"

enum {
	NARROWEST = 60,		/* narrower terminals wrap */
};

static unsigned int terminal_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long n = 0;

	if (!isatty(fileno(out)))
		return 0;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
		n = size.ws_col;
	if (n == 0 && columns)
		n = strtoul(columns, NULL, 10);
	if (n == 0 || n > 1000)
		n = 80;
	return n < NARROWEST ? NARROWEST : (unsigned int)n;
}

struct seam_view seam_view_make(FILE *out, bool color)
{
	return (struct seam_view) {
		.out = out, .color = color, .width = terminal_width(out),
		.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
	};
}

void seam_view_style(const struct seam_view *view, unsigned int style)
{
	/* The 16 colours that users configure in their terminal. */
	static const char *const codes[] = {
		[SEAM_STYLE_PLAIN] = "0",
		[SEAM_STYLE_BOLD] = "1",
		[SEAM_STYLE_DIM] = "2",
		[SEAM_STYLE_WARN] = "1;31",
		[SEAM_STYLE_LAYER + SEAM_LAYER_KERNEL] = "33",
		[SEAM_STYLE_LAYER + SEAM_LAYER_NATIVE] = "34",
		[SEAM_STYLE_LAYER + SEAM_LAYER_JIT] = "32",
		[SEAM_STYLE_LAYER + SEAM_LAYER_GUEST] = "35",
	};

	if (view->color && style < SEAM_ARRAY_SIZE(codes))
		fprintf(view->out, "\x1b[%sm", codes[style]);
}

void seam_view_text(const struct seam_view *view, unsigned int style,
		    const char *text)
{
	if (style != SEAM_STYLE_PLAIN)
		seam_view_style(view, style);
	seam_text_put(view->out, text, SEAM_TEXT_TERMINAL);
	if (style != SEAM_STYLE_PLAIN)
		seam_view_style(view, SEAM_STYLE_PLAIN);
}

void seam_view_print(const struct seam_view *view, unsigned int style,
		     const char *fmt, ...)
{
	va_list args;

	seam_view_style(view, style);
	va_start(args, fmt);
	vfprintf(view->out, fmt, args);
	va_end(args);
	seam_view_style(view, SEAM_STYLE_PLAIN);
}

const char *seam_format_count(char buf[SEAM_NUMBER], uint64_t n)
{
	char digits[SEAM_NUMBER];
	size_t size = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			buf[used++] = ',';
		buf[used++] = digits[i];
	}
	buf[used] = '\0';
	return buf;
}

const char *seam_format_amount(char buf[SEAM_NUMBER], uint64_t n,
			       const char *noun)
{
	size_t used = strlen(seam_format_count(buf, n));

	snprintf(buf + used, SEAM_NUMBER - used, " %s%s", noun,
		 n == 1 ? "" : "s");
	return buf;
}

struct scale {
	double factor;
	const char *unit;
};

/* Three significant digits, in the largest of @scales not above @value. */
static const char *scaled(char buf[SEAM_NUMBER], double value,
			  const struct scale *scales, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && value < scales[i].factor)
		i++;
	value /= scales[i].factor;
	snprintf(buf, SEAM_NUMBER, "%.*f%s",
		 scales[i].factor <= 1 || value >= 100 ? 0 :
		 value >= 10 ? 1 : 2, value, scales[i].unit);
	return buf;
}

const char *seam_format_weight(char buf[SEAM_NUMBER], uint64_t weight,
			       enum seam_unit unit)
{
	static const struct scale times[] = {
		{ 1e9, " s" }, { 1e6, " ms" }, { 1e3, " us" }, { 1, " ns" },
	};
	static const struct scale counts[] = {
		{ 1e12, " T" }, { 1e9, " G" }, { 1e6, " M" }, { 1, "" },
	};

	if (unit == SEAM_UNIT_NS)
		return scaled(buf, (double)weight, times,
			      SEAM_ARRAY_SIZE(times));
	if (weight < 1000000)
		return seam_format_count(buf, weight);
	return scaled(buf, (double)weight, counts, SEAM_ARRAY_SIZE(counts));
}

const char *seam_format_percent(char buf[SEAM_NUMBER], uint64_t part,
				uint64_t whole)
{
	snprintf(buf, SEAM_NUMBER, "%.2f%%",
		 whole ? 100.0 * (double)part / (double)whole : 0.0);
	return buf;
}

void seam_view_cell(const struct seam_view *view, const char *text,
		    size_t columns)
{
	struct seam_arena arena = { 0 };
	const char *shown = view->width ? seam_elide_escape(&arena, text) :
			    NULL;
	const char *cut = shown ? seam_elide(&arena, shown, columns,
					     view->unicode) : NULL;

	if (cut)
		fputs(cut, view->out);
	else
		seam_text_put(view->out, text, SEAM_TEXT_TERMINAL);
	seam_arena_fini(&arena);
}

void seam_view_bar(const struct seam_view *view, uint64_t part, uint64_t whole,
		   size_t columns)
{
	static const char *const eighths[] = {
		"", "▏", "▎", "▍", "▌", "▋", "▊", "▉",
	};
	double share = whole ? (double)part / (double)whole : 0;
	size_t n = (size_t)(share * 8 * (double)columns + 0.5);
	size_t used = 0;

	if (!view->unicode)
		n -= n % 8;
	if (n > columns * 8)
		n = columns * 8;
	for (; n >= 8; n -= 8, used++)
		fputs(view->unicode ? "█" : "#", view->out);
	if (n) {
		fputs(eighths[n], view->out);
		used++;
	}
	fprintf(view->out, "%*s", (int)(columns - used), "");
}
