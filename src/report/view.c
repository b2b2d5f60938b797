/* SPDX-License-Identifier: MIT */
/* view.c - cells, bars and numbers; the contract is in view.h */
#include "report/view.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"

/* -- names that fit ----------------------------------------------------- */

/*
 * Names that fit their column, and stay distinct
 *
 * A name is cut in its middle, because names differ at both ends: a
 * namespace at the front, a method at the back.  Where two of a column would
 * look the same, the cut shows the place at which they differ; where no cut
 * keeps them distinct, they are not cut.
 *
 * Columns are those of a terminal: a wide character takes two, a combining
 * one none (wcwidth(3), by the locale).  Texts are escaped already.
 */

enum {
	MAX_ROUNDS = 10,
	FEWEST = 4,		/* columns of a cut text */
	CONTEXT = 2,		/* bytes shown before a difference */
};

/* One character of @text: its bytes, and its columns into @columns. */
static size_t step(const char *text, size_t *columns)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = s[0] < 0xc0 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
	int width;

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) {
			*columns = 1;
			return 1;
		}
		code = code << 6 | (s[i] & 0x3f);
	}
	width = code < 0x80 ? 1 : wcwidth((wchar_t)code);
	*columns = width < 0 ? 1 : (size_t)width;
	return n;
}

const char *seam_elide_escape(struct seam_arena *arena, const char *text)
{
	char few[512], *buf = few;
	size_t cap = 4 * strlen(text) + 1;	/* "\x1b" for one byte */
	const char *copy = NULL;

	if (cap > sizeof(few))
		buf = malloc(cap);
	if (buf) {
		seam_text_copy(buf, cap, text, SEAM_TEXT_TERMINAL);
		copy = seam_arena_text(arena, buf, strlen(buf));
	}
	if (buf != few)
		free(buf);
	return copy;
}

size_t seam_elide_columns(const char *text)
{
	size_t sum = 0, columns;

	while (*text) {
		text += step(text, &columns);
		sum += columns;
	}
	return sum;
}

/* Bytes of @text that take at most @columns. */
static size_t head_bytes(const char *text, size_t columns)
{
	size_t at = 0, taken;

	while (text[at]) {
		size_t n = step(text + at, &taken);

		if (taken > columns)
			break;
		columns -= taken;
		at += n;
	}
	return at;
}

/* Start of the longest end of @text that takes at most @columns. */
static size_t tail_start(const char *text, size_t columns)
{
	size_t all = seam_elide_columns(text), at = 0, taken;

	while (text[at] && all > columns) {
		at += step(text + at, &taken);
		all -= taken;
	}
	/* a combining character belongs to the character before it */
	while (text[at]) {
		size_t n = step(text + at, &taken);

		if (taken)
			break;
		at += n;
	}
	return at;
}

/* Start of the character that byte @at is in. */
static size_t character(const char *text, size_t at)
{
	while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

struct cutter {
	struct seam_arena *arena;
	size_t columns;
	bool unicode;
};

/* The first @head bytes, an ellipsis, [@from, @to), and one if text follows. */
static const char *join(const struct cutter *c, const char *text, size_t head,
			size_t from, size_t to)
{
	const char *mark = c->unicode ? "…" : "..";
	size_t m = strlen(mark), n = to - from;
	char *out = seam_arena_alloc(c->arena, head + n + 2 * m + 1);

	if (!out)
		return NULL;
	memcpy(out, text, head);
	memcpy(out + head, mark, m);
	memcpy(out + head + m, text + from, n);
	if (text[to])
		memcpy(out + head + m + n, mark, m);
	return out;
}

static const char *cut_middle(const struct cutter *c, const char *text)
{
	size_t room, tail;

	if (c->columns < FEWEST || seam_elide_columns(text) <= c->columns)
		return text;
	room = c->columns - (c->unicode ? 1 : 2);
	tail = room / 2;
	return join(c, text, head_bytes(text, room - tail),
		    tail_start(text, tail), strlen(text));
}

/* The front of @text, and the part around its byte @at. */
static const char *cut_around(const struct cutter *c, const char *text,
			      size_t at)
{
	size_t mark = c->unicode ? 1 : 2, head, from, to, room;

	if (c->columns < FEWEST + 2 * mark ||
	    seam_elide_columns(text) <= c->columns)
		return text;
	room = c->columns - 2 * mark;
	head = head_bytes(text, room / 4);
	from = character(text, at > CONTEXT ? at - CONTEXT : 0);
	if (from <= head)
		return join(c, text, head_bytes(text, c->columns - mark),
			    strlen(text), strlen(text));
	to = from + head_bytes(text + from, room - room / 4);
	if (!text[to])
		from = tail_start(text, room + mark - room / 4);
	return join(c, text, head, from > head ? from : head, to);
}

/* A distinct text and how it is shown. */
struct elided_name {
	const char *whole;
	const char *shown;
	bool is_alike;		/* shorten it again */
	unsigned int level;	/* rounds in which it was alike */
	size_t differs;		/* first byte not common to all alike, last */
};

typedef const char *shorten_fn(const struct cutter *c,
			       const struct elided_name *item);

static const char *shorten_name(const struct cutter *c,
				const struct elided_name *item)
{
	return item->level ? cut_around(c, item->whole, item->differs) :
	       cut_middle(c, item->whole);
}

/* The last level + 1 parts of a path. */
static const char *shorten_path(const struct cutter *c,
				const struct elided_name *item)
{
	const char *at = item->whole + strlen(item->whole);
	unsigned int slashes = 0;

	(void)c;
	while (at > item->whole && slashes <= item->level)
		slashes += *--at == '/' && at[1];
	return slashes > item->level ? at + 1 : item->whole;
}

static int by_whole(const void *a, const void *b)
{
	const struct elided_name *x = a, *y = b;

	return strcmp(x->whole, y->whole);
}

static int by_shown(const void *a, const void *b)
{
	const struct elided_name *x = a, *y = b;
	int rc = strcmp(x->shown, y->shown);

	return rc ? rc : strcmp(x->whole, y->whole);
}

static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/*
 * Mark items that are shown alike.  They are sorted by their shown text, then
 * by the whole one, so the first and the last of a run have the shortest
 * common prefix.  True when there were any.
 */
static bool mark_alike(struct elided_name *items, size_t n, bool give_up)
{
	bool any = false;

	for (size_t i = 0, end; i < n; i = end) {
		size_t same;

		for (end = i + 1; end < n; end++)
			if (strcmp(items[i].shown, items[end].shown) != 0)
				break;
		if (end == i + 1)
			continue;
		any = true;
		same = common(items[i].whole, items[end - 1].whole);
		for (size_t k = i; k < end; k++) {
			items[k].is_alike = true;
			items[k].level++;
			items[k].differs = same;
			if (give_up)
				items[k].shown = items[k].whole;
		}
	}
	return any;
}

static int shorten_all(const struct cutter *c, struct elided_name *items,
		       size_t n, shorten_fn *shorten)
{
	for (unsigned int round = 0; ; round++) {
		for (size_t i = 0; i < n; i++) {
			if (items[i].shown && !items[i].is_alike)
				continue;
			items[i].is_alike = false;
			items[i].shown = shorten(c, &items[i]);
			if (!items[i].shown)
				return -ENOMEM;
		}
		qsort(items, n, sizeof(*items), by_shown);
		if (!mark_alike(items, n, round == MAX_ROUNDS) ||
		    round == MAX_ROUNDS)
			return 0;
	}
}

static int make_distinct(const struct cutter *c, const char **texts, size_t n,
			 shorten_fn *shorten)
{
	struct elided_name *items = calloc(n + 1, sizeof(*items));
	size_t n_items = 0;
	int rc;

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		items[i].whole = texts[i];
	qsort(items, n, sizeof(*items), by_whole);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(items[i].whole,
				     items[n_items - 1].whole) != 0)
			items[n_items++] = items[i];
	rc = shorten_all(c, items, n_items, shorten);
	qsort(items, n_items, sizeof(*items), by_whole);
	for (size_t i = 0; i < n && !rc; i++) {
		struct elided_name key = { .whole = texts[i] }, *found;

		found = bsearch(&key, items, n_items, sizeof(key), by_whole);
		texts[i] = found->shown;
	}
	free(items);
	return rc;
}

int seam_elide_all(struct seam_arena *arena, const char **texts, size_t n,
		   size_t columns, bool unicode)
{
	const struct cutter c = { arena, columns, unicode };

	return make_distinct(&c, texts, n, shorten_name);
}

int seam_elide_paths(struct seam_arena *arena, const char **paths, size_t n)
{
	const struct cutter c = { .arena = arena };

	return make_distinct(&c, paths, n, shorten_path);
}

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

	if (shown && seam_elide_all(&arena, &shown, 1, columns,
				    view->unicode) == 0)
		fputs(shown, view->out);
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
