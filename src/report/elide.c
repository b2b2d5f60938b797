/* SPDX-License-Identifier: MIT */
/*
 * elide.c - cut, compare, cut equal results elsewhere; see elide.h
 *
 * Both kinds of names are made distinct in the same way: each distinct text
 * is shortened, those with equal results are shortened less or elsewhere, and
 * so on.  Texts that are still equal after MAX_ROUNDS are not shortened.
 */
#include "report/elide.h"

#include <errno.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/text.h"

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

static const char *mark_of(const struct cutter *c)
{
	return c->unicode ? "…" : "..";
}

/* The first @head bytes, an ellipsis, [@from, @to), and one if text follows. */
static const char *join(const struct cutter *c, const char *text, size_t head,
			size_t from, size_t to)
{
	const char *mark = mark_of(c);
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

const char *seam_elide(struct seam_arena *arena, const char *text,
		       size_t columns, bool unicode)
{
	const struct cutter c = { arena, columns, unicode };

	return cut_middle(&c, text);
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
