/* SPDX-License-Identifier: MIT */
/* browser.c - views, keys, drawing with ncurses; see browser.h */
#include "screen/browser.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"
#include "model/profile/tree.h"
#include "report/rows.h"
#include "report/view.h"

/* after ours: it defines bool and macros with short names */
#include <ncurses.h>

enum {
	HEAD_LINES = 4,		/* title, header, what is shown, columns */
	FOOT_LINES = 1,
	MAX_CALLERS = 10,	/* lines of callers below a row */
	MAX_TREE = 5000,	/* lines of a tree */
	MAX_TEXT = 128,		/* bytes that are typed */
	MIN_SAMPLES = 30,	/* of fewer, a share means nothing */
	PAIR_WARN = SEAM_N_LAYERS + 1,
};

/* Of an event, a tree leaves smaller parts out. */
#define MIN_PART 0.005

enum view {
	VIEW_TABLE,
	VIEW_CALLERS,
	VIEW_CALLEES,
	VIEW_CODE,
	VIEW_HELP,
};

enum prompt {
	PROMPT_NONE,
	PROMPT_SEARCH,		/* rows with a text */
	PROMPT_TIME,
};

/* Lines of text, which are owned. */
struct text_lines {
	SEAM_ARRAY(char *) lines;
};

struct seam_browser {
	char title[256], header[256], problem[SEAM_ERR_TEXT];
	const struct seam_profile *profile;
	struct seam_browser_source source;
	bool is_live, warns, is_paused, all, is_changed;

	enum view view;
	enum seam_by by;
	enum seam_sort sort;
	uint32_t event;
	struct seam_selection selection;	/* borrows from the next */
	char thread[32], search[MAX_TEXT];
	char time[MAX_TEXT];
	char filter[MAX_TEXT];			/* of rows */
	enum prompt prompt;
	char typed[MAX_TEXT];

	struct seam_selected selected;
	bool has_selected;
	struct seam_rows rows;
	struct seam_rows off;		/* blocked time; see has_off */
	bool has_off;
	struct text_lines callers;	/* below the row that is expanded */
	uint32_t expanded;		/* function; SEAM_NONE: none */
	char *focus;			/* function of a tree or of code */
	struct text_lines text;		/* of all views but the table */
	size_t at, top;			/* lines: the cursor, the first shown */
};

/* ---- the terminal ---- */

static bool is_open;

static void restore(void)
{
	if (is_open)
		endwin();
	is_open = false;
}

static void set_colors(void)
{
	static const short layers[SEAM_N_LAYERS] = {
		[SEAM_LAYER_KERNEL] = COLOR_YELLOW,
		[SEAM_LAYER_NATIVE] = COLOR_CYAN,
		[SEAM_LAYER_JIT] = COLOR_GREEN,
		[SEAM_LAYER_GUEST] = COLOR_MAGENTA,
	};

	if (!has_colors() || getenv("NO_COLOR"))
		return;
	start_color();
	use_default_colors();
	for (short i = 0; i < SEAM_N_LAYERS; i++)
		init_pair((short)(i + 1), layers[i], -1);
	init_pair(PAIR_WARN, COLOR_RED, -1);
}

struct seam_browser *seam_browser_open(const char *title, bool is_live,
				       struct seam_err *err)
{
	struct seam_browser *b = calloc(1, sizeof(*b));
	const char *term = getenv("TERM");

	if (!b) {
		seam_err_no_memory(err);
		return NULL;
	}
	/* initscr() would end the process */
	if (!newterm(NULL, stdout, stdin)) {
		seam_err_set(err, -ENOTTY, "cannot draw on this terminal "
			     "(TERM=%.40s): set TERM, or use the output for "
			     "scripts", term ? term : "");
		free(b);
		return NULL;
	}
	is_open = true;
	atexit(restore);
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	set_colors();
	b->is_live = is_live;
	b->by = SEAM_BY_SYMBOL;
	b->expanded = SEAM_NONE;
	seam_text_copy(b->title, sizeof(b->title), title, SEAM_TEXT_TERMINAL);
	seam_selection_init(&b->selection);
	return b;
}

static void clear_lines(struct text_lines *text)
{
	for (size_t i = 0; i < text->lines.n; i++)
		free(text->lines.items[i]);
	text->lines.n = 0;
}

static void forget_rows(struct seam_browser *b)
{
	seam_rows_fini(&b->rows);
	b->rows = (struct seam_rows) { 0 };
	seam_rows_fini(&b->off);
	b->off = (struct seam_rows) { 0 };
	b->has_off = false;
	if (b->has_selected)
		seam_selected_fini(&b->selected);
	b->has_selected = false;
}

void seam_browser_close(struct seam_browser *b)
{
	restore();
	forget_rows(b);
	clear_lines(&b->callers);
	clear_lines(&b->text);
	free(b->callers.lines.items);
	free(b->text.lines.items);
	free(b->focus);
	free(b);
}

void seam_browser_set_source(struct seam_browser *b,
			     const struct seam_browser_source *source)
{
	b->source = *source;
}

/* ---- lines of text ---- */

/* Escaped already.  Without memory the line is missing. */
__attribute__((format(printf, 2, 3)))
static void add_line(struct text_lines *text, const char *fmt, ...)
{
	char *line;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&line, fmt, args);
	va_end(args);
	if (n >= 0 && !SEAM_ARRAY_ADD(&text->lines, line))
		free(line);
}

/* "12.34%", or of few samples their number. */
static const char *share(const struct seam_browser *b, char buf[SEAM_NUMBER],
			 uint64_t weight, uint64_t samples)
{
	if (b->rows.samples < MIN_SAMPLES)
		snprintf(buf, SEAM_NUMBER, "%" PRIu64, samples);
	else
		seam_format_percent(buf, weight, b->rows.weight);
	return buf;
}

/* ---- trees ---- */

static int heaviest_first(const struct seam_node *a, const struct seam_node *b,
			  void *context)
{
	(void)context;
	return SEAM_COMPARE(b->weight, a->weight) ?:
	       SEAM_COMPARE(b->samples, a->samples) ?:
	       SEAM_COMPARE(a->key, b->key);
}

/* The lines of the tree that begins at function @symbol. */
static void add_tree(struct seam_browser *b, struct text_lines *text,
		     const char *symbol, bool callers, size_t max)
{
	/* below the row of the function, the function is there already */
	uint32_t first = text == &b->callers ? 2 : 1;
	struct seam_selection selection = b->selection;
	struct seam_selected selected;
	struct seam_tallies tallies = { 0 };
	struct seam_tree tree = { 0 };
	char number[SEAM_NUMBER], name[512];

	selection.callers_of = callers ? symbol : NULL;
	selection.callees_of = callers ? NULL : symbol;
	if (seam_selected_init(&selected, b->profile, &selection, NULL))
		return;
	if (seam_tallies_make(&tallies, &selected, b->event,
			      SEAM_GROUP_NONE) == 0 &&
	    seam_tree_make(&tree, &selected, &tallies, NULL, false) == 0)
		seam_tree_sort(&tree, heaviest_first, NULL);
	for (uint32_t i = tree.n ? seam_tree_next(&tree, 0, true) : SEAM_NONE;
	     i != SEAM_NONE && text->lines.n < max;) {
		const struct seam_node *node = &tree.items[i];
		bool is_small = (double)node->weight <
				MIN_PART * (double)b->rows.weight;
		uint32_t function = node->key >> 1;

		if (!is_small && node->depth >= first)
			add_line(text, "%8s  %*s%s",
				 share(b, number, node->weight, node->samples),
				 (int)(2 * (node->depth < 60 ? node->depth -
					    first : 60)), "",
				 seam_text_copy(name, sizeof(name),
					seam_profile_text(b->profile,
					b->profile->functions.items[function]
					.name), SEAM_TEXT_TERMINAL));
		i = seam_tree_next(&tree, i, !is_small);
	}
	free(tree.items);
	free(tallies.items);
	seam_selected_fini(&selected);
}

/* ---- what is shown ---- */

/* The name of the function of row @i; "" if it has none. */
static const char *function_of(const struct seam_browser *b, size_t i)
{
	const struct seam_row *row = &b->rows.items[i];
	uint32_t f = row->code == SEAM_NONE ? SEAM_NONE :
		     b->rows.codes.items[row->code].function;

	return f == SEAM_NONE ? "" : seam_profile_text(b->profile,
				b->profile->functions.items[f].name);
}

static uint32_t function_id(const struct seam_browser *b, size_t i)
{
	const struct seam_row *row = &b->rows.items[i];

	return row->code == SEAM_NONE ? SEAM_NONE :
	       b->rows.codes.items[row->code].function;
}

/* How long threads were blocked in what row @row is of. */
static uint64_t off_ns(const struct seam_browser *b, const struct seam_row *row)
{
	const struct seam_row *off = !b->has_off ? NULL :
				     seam_rows_same(&b->off, &b->rows, row);

	return off ? off->weight : 0;
}

/* Which row is line @line of the table, and whether it is one of callers. */
static size_t row_of_line(const struct seam_browser *b, size_t line,
			  size_t *caller)
{
	size_t expanded = SIZE_MAX, n = b->callers.lines.n;

	*caller = SIZE_MAX;
	for (size_t i = 0; b->expanded != SEAM_NONE && i < b->rows.n; i++)
		if (function_id(b, i) == b->expanded) {
			expanded = i;
			break;
		}
	if (expanded == SIZE_MAX || line <= expanded)
		return line;
	if (line <= expanded + n) {
		*caller = line - expanded - 1;
		return expanded;
	}
	return line - n;
}

static size_t n_lines(const struct seam_browser *b)
{
	return b->view == VIEW_TABLE ? b->rows.n + b->callers.lines.n :
	       b->text.lines.n;
}

static void expand(struct seam_browser *b)
{
	clear_lines(&b->callers);
	for (size_t i = 0; b->expanded != SEAM_NONE && i < b->rows.n; i++)
		if (function_id(b, i) == b->expanded) {
			add_tree(b, &b->callers, function_of(b, i), true,
				 MAX_CALLERS);
			return;
		}
}

/* The text is of the caller's @symbol; it may hold several lines. */
static void add_code(struct seam_browser *b)
{
	char *code = b->source.annotate ?
		b->source.annotate(b->source.context, &b->selected, b->focus) :
		NULL, *save, *line;

	for (line = code ? strtok_r(code, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		add_line(&b->text, "%s", line);
	if (!code)
		add_line(&b->text, "machine code is shown of recordings only");
	free(code);
}

static void add_help(struct seam_browser *b)
{
	static const char *const keys[] = {
		"up, down, PgUp, PgDn, Home, End   move",
		"Enter      callers of a function below its row;",
		"           zoom into a thread or module",
		"c          callers of the function, as a tree",
		"d          what it calls (down), as a tree",
		"a          its machine code",
		"f m t p    rows by function, module, thread, process",
		"s          sort by self or total",
		"e          the next event",
		"/          only rows with a text",
		"z          only a part of the time, such as 10%,20%",
		"Backspace  back, and out of a zoom",
		"h          this help",
		"q          end",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(keys); i++)
		if (!b->is_live || !strchr("az", keys[i][0]))
			add_line(&b->text, "  %s", keys[i]);
	if (!b->is_live)
		return;
	add_line(&b->text, "  w          the last interval, or all so far");
	add_line(&b->text, "  Space      pause; sampling goes on");
}

static void make_text(struct seam_browser *b)
{
	clear_lines(&b->text);
	if (b->view == VIEW_CALLERS || b->view == VIEW_CALLEES)
		add_tree(b, &b->text, b->focus, b->view == VIEW_CALLERS,
			 MAX_TREE);
	else if (b->view == VIEW_CODE)
		add_code(b);
	else if (b->view == VIEW_HELP)
		add_help(b);
	if (b->view != VIEW_TABLE && !b->text.lines.n)
		add_line(&b->text, "no samples");
}

/* Keep the cursor on the function that it was on, if it was moved. */
static void keep_cursor(struct seam_browser *b, uint32_t function)
{
	size_t n = n_lines(b);

	for (size_t i = 0; b->at && function != SEAM_NONE &&
	     b->view == VIEW_TABLE && i < b->rows.n; i++)
		if (function_id(b, i) == function) {
			b->at = i;
			if (b->expanded != SEAM_NONE &&
			    function != b->expanded)
				for (size_t k = 0; k < i; k++)
					if (function_id(b, k) == b->expanded)
						b->at = i + b->callers.lines.n;
			break;
		}
	if (b->at >= n)
		b->at = n ? n - 1 : 0;
}

/* The rows of the selection as it is now, and the text of the view. */
static void remake(struct seam_browser *b)
{
	uint32_t function = SEAM_NONE;
	size_t caller, row = row_of_line(b, b->at, &caller);
	struct seam_err err = { 0 };

	if (b->view == VIEW_TABLE && row < b->rows.n)
		function = function_id(b, row);
	forget_rows(b);
	b->problem[0] = '\0';
	b->selection.search = b->search[0] ? b->search : NULL;
	b->selection.thread = b->thread[0] ? b->thread : NULL;
	if (!b->profile)
		return;
	if (seam_selected_init(&b->selected, b->profile, &b->selection,
			       &err)) {
		snprintf(b->problem, sizeof(b->problem), "%s",
			 err.n_causes ? err.cause[0] : "out of memory");
		clear_lines(&b->callers);
		return;
	}
	b->has_selected = true;
	if (b->event >= b->profile->events.n)
		b->event = 0;
	if (seam_rows_make(&b->rows, &b->selected, b->event, b->by))
		return;
	b->has_off = seam_rows_make_off(&b->off, &b->selected, b->event, b->by);
	if (b->filter[0])
		seam_rows_filter(&b->rows, b->filter);
	seam_rows_sort(&b->rows, b->sort, true);
	while (b->rows.n && !b->rows.items[b->rows.n - 1].samples &&
	       !off_ns(b, &b->rows.items[b->rows.n - 1]))
		b->rows.n--;
	expand(b);
	make_text(b);
	keep_cursor(b, function);
}

/* ---- drawing ---- */

/* @text in at most @width columns of line @y, from column @x on. */
static void put_text(int y, int x, int width, const char *text)
{
	wchar_t wide[512];
	size_t n = mbstowcs(wide, text, SEAM_ARRAY_SIZE(wide) - 1), end = 0;

	if (width <= 0)
		return;
	if (n == (size_t)-1) {	/* not of the locale's encoding */
		mvaddnstr(y, x, text, width);
		return;
	}
	for (int used = 0; end < n; end++) {
		int one = wcwidth(wide[end]);

		used += one > 0 ? one : 0;
		if (used > width)
			break;
	}
	wide[end] = L'\0';
	mvaddwstr(y, x, wide);
}

/* Where names begin, after the numbers. */
static int name_column(const struct seam_browser *b)
{
	return b->has_off ? 42 : 31;
}

static void draw_row(struct seam_browser *b, int y, size_t i)
{
	const struct seam_row *row = &b->rows.items[i];
	enum seam_layer layer = seam_row_layer(&b->rows, row);
	char self[SEAM_NUMBER], total[SEAM_NUMBER], n[SEAM_NUMBER];
	char text[SEAM_ROW_TEXT], safe[1024];
	const char *path = seam_row_module(&b->rows, row);
	int module = COLS > 90 ? COLS - 26 : COLS, x = name_column(b);
	size_t size = 0;
	int id = -1;

	if (b->by == SEAM_BY_THREAD || b->by == SEAM_BY_PROCESS)
		id = seam_group_number(b->profile, seam_by_group(b->by),
				       seam_row_id(&b->rows, row, b->by));
	snprintf(text, sizeof(text), "%8s  %8s  %9s  ",
		 share(b, self, row->self_weight, row->self_samples),
		 share(b, total, row->weight, row->samples),
		 seam_format_count(n, row->samples));
	put_text(y, 0, COLS, text);
	if (b->has_off) {
		snprintf(text, sizeof(text), "%9.1f",
			 (double)off_ns(b, row) / 1e6);
		put_text(y, x - 11, COLS - x + 11, text);
	}
	if (id >= 0) {
		snprintf(text, sizeof(text), "%6d  ", id);
		put_text(y, x, COLS - x, text);
		x += 8;
	}
	seam_text_copy(safe, sizeof(safe),
		       seam_row_text(&b->rows, row, b->by, text),
		       SEAM_TEXT_TERMINAL);
	if (layer < SEAM_N_LAYERS)
		attron(COLOR_PAIR((short)layer + 1));
	put_text(y, x, module - x - 1, safe);
	if (layer < SEAM_N_LAYERS)
		attroff(COLOR_PAIR((short)layer + 1));
	if (b->by != SEAM_BY_SYMBOL || !*path)
		return;
	path = seam_module_name(path, &size);
	snprintf(text, sizeof(text), "%.*s", (int)size, path);
	put_text(y, module, COLS - module,
		 seam_text_copy(safe, sizeof(safe), text, SEAM_TEXT_TERMINAL));
}

static void draw_line(struct seam_browser *b, int y, size_t line)
{
	size_t caller, row;

	if (line == b->at)
		attron(A_REVERSE);
	if (b->view != VIEW_TABLE) {
		put_text(y, 0, COLS, b->text.lines.items[line]);
	} else {
		row = row_of_line(b, line, &caller);
		if (caller == SIZE_MAX)
			draw_row(b, y, row);
		else
			put_text(y, name_column(b), COLS - name_column(b),
				 b->callers.lines.items[caller]);
	}
	if (line == b->at) {
		/* to the right end of the line */
		mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
		attroff(A_REVERSE);
	}
}

/* How many events there are to choose from. */
static size_t n_sampled(const struct seam_browser *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->profile->events.n; i++)
		n += b->is_live || b->profile->events.items[i].n_samples;
	return n;
}

/* What the rows are of: "by symbol, sorted by self; thread 12; /malloc". */
static void draw_status(const struct seam_browser *b)
{
	static const char *const views[] = {
		"", "callers of", "callees of", "code of", "keys",
	};
	char text[1024], safe[1024], by[SEAM_BY_NAMES];

	if (b->view == VIEW_TABLE)
		snprintf(text, sizeof(text), "by %s, sorted by %s",
			 seam_by_names(b->by, by),
			 b->sort == SEAM_SORT_SELF ? "self" : "total");
	else if (b->view == VIEW_HELP)
		snprintf(text, sizeof(text), "%s", views[b->view]);
	else
		snprintf(text, sizeof(text), "%s %.256s", views[b->view],
			 b->focus ? b->focus : "");
	if (b->profile && n_sampled(b) > 1)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; event %s", seam_profile_text(b->profile,
			 b->profile->events.items[b->event].name));
	if (b->thread[0] || b->search[0] || b->time[0] || b->filter[0])
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s%s%s%s%s%s%s", b->thread[0] ? "; thread " : "",
			 b->thread, b->search[0] ? "; with " : "", b->search,
			 b->time[0] ? "; time " : "", b->time,
			 b->filter[0] ? "; /" : "", b->filter);
	if (b->is_live)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; %s%s", b->all ? "all so far" : "last interval",
			 b->is_paused ? "; PAUSED" : "");
	put_text(2, 0, COLS, seam_text_copy(safe, sizeof(safe), text,
					    SEAM_TEXT_TERMINAL));
}

static void draw_foot(const struct seam_browser *b)
{
	char text[2 * MAX_TEXT];

	snprintf(text, sizeof(text), "%s%s",
		 b->prompt == PROMPT_SEARCH ? "rows with: " :
		 b->prompt == PROMPT_TIME ? "time (A,B): " :
		 b->is_live ? "Enter callers  c d trees  s sort  t threads  "
			      "/ find  Space pause  h help  q end" :
			      "Enter callers  c d trees  a code  s sort  "
			      "t threads  / search  z time  h help  q end",
		 b->prompt ? b->typed : "");
	attron(A_DIM);
	put_text(LINES - 1, 0, COLS, text);
	attroff(A_DIM);
}

static void draw(struct seam_browser *b)
{
	size_t n = n_lines(b), room;
	char text[128];

	erase();
	room = LINES > HEAD_LINES + FOOT_LINES ?
	       (size_t)(LINES - HEAD_LINES - FOOT_LINES) : 0;
	if (b->at < b->top)
		b->top = b->at;
	if (room && b->at >= b->top + room)
		b->top = b->at - room + 1;
	attron(A_BOLD);
	put_text(0, 0, COLS, b->title);
	attroff(A_BOLD);
	if (b->warns)
		attron(COLOR_PAIR(PAIR_WARN) | A_BOLD);
	put_text(1, 0, COLS, b->header);
	attroff(COLOR_PAIR(PAIR_WARN) | A_BOLD);
	draw_status(b);
	if (b->view == VIEW_TABLE) {
		attron(A_UNDERLINE);
		snprintf(text, sizeof(text), "%8s  %8s  %9s  %s%sNAME", "SELF",
			 "TOTAL", "SAMPLES", b->has_off ? "  OFF, ms  " : "",
			 b->by == SEAM_BY_THREAD || b->by == SEAM_BY_PROCESS ?
			 "    ID  " : "");
		put_text(3, 0, COLS, text);
		attroff(A_UNDERLINE);
	}
	if (b->problem[0])
		put_text(HEAD_LINES, 2, COLS - 2, b->problem);
	else if (b->view == VIEW_TABLE && !b->rows.n)
		put_text(HEAD_LINES, 2, COLS - 2, "no samples");
	for (size_t i = 0; i < room && b->top + i < n; i++)
		draw_line(b, HEAD_LINES + (int)i, b->top + i);
	draw_foot(b);
	refresh();
}

void seam_browser_show(struct seam_browser *b,
		       const struct seam_profile *profile, const char *header,
		       bool warns)
{
	b->profile = profile;
	b->warns = warns;
	b->is_changed = false;
	snprintf(b->header, sizeof(b->header), "%s", header);
	remake(b);
	draw(b);
}

/* ---- keys ---- */

static void set_view(struct seam_browser *b, enum view view)
{
	b->view = view;
	b->at = b->top = 0;
	remake(b);
}

static void set_by(struct seam_browser *b, enum seam_by by)
{
	b->by = by;
	b->expanded = SEAM_NONE;
	set_view(b, VIEW_TABLE);
}

/* A tree, or the code, of the function under the cursor. */
static void focus_on(struct seam_browser *b, enum view view)
{
	size_t caller, row = row_of_line(b, b->at, &caller);
	const char *name = b->view == VIEW_TABLE && row < b->rows.n ?
			   function_of(b, row) : "";
	char *focus;

	if (b->view == VIEW_TABLE && !*name)
		return;
	if (b->view == VIEW_TABLE) {
		focus = strdup(name);
		if (!focus)
			return;
		free(b->focus);
		b->focus = focus;
	}
	if (b->focus)
		set_view(b, view);
}

/* Zoom into the row, or show callers of the function in it. */
static void enter(struct seam_browser *b)
{
	size_t caller, row = row_of_line(b, b->at, &caller);
	char text[SEAM_ROW_TEXT];
	uint32_t function;

	if (b->view != VIEW_TABLE || row >= b->rows.n)
		return;
	if (b->by == SEAM_BY_THREAD) {
		snprintf(b->thread, sizeof(b->thread), "%d",
			 seam_group_number(b->profile, SEAM_GROUP_THREAD,
				seam_row_id(&b->rows, &b->rows.items[row],
					    SEAM_BY_THREAD)));
		set_by(b, SEAM_BY_SYMBOL);
	} else if (b->by == SEAM_BY_MODULE) {
		snprintf(b->search, sizeof(b->search), "%s",
			 seam_row_text(&b->rows, &b->rows.items[row],
				       SEAM_BY_MODULE, text));
		set_by(b, SEAM_BY_SYMBOL);
	} else if (b->by == SEAM_BY_SYMBOL) {
		function = function_id(b, row);
		b->expanded = b->expanded == function ? SEAM_NONE : function;
		expand(b);
	}
}

/* Back from a view, then out of the zooms. */
static void go_back(struct seam_browser *b)
{
	if (b->view != VIEW_TABLE) {
		set_view(b, VIEW_TABLE);
		return;
	}
	b->thread[0] = b->search[0] = b->time[0] = b->filter[0] = '\0';
	seam_selection_init(&b->selection);
	set_view(b, VIEW_TABLE);
}

static void take_typed(struct seam_browser *b)
{
	struct seam_err err = { 0 };
	enum prompt prompt = b->prompt;

	b->prompt = PROMPT_NONE;
	if (prompt == PROMPT_SEARCH)
		snprintf(b->filter, sizeof(b->filter), "%s", b->typed);
	if (prompt == PROMPT_TIME) {
		seam_selection_init(&b->selection);
		b->time[0] = '\0';
		if (*b->typed && b->profile &&
		    seam_selection_time(&b->selection, b->profile, b->typed,
					&err) == 0)
			snprintf(b->time, sizeof(b->time), "%s", b->typed);
	}
	set_view(b, VIEW_TABLE);
	if (err.n_causes)
		snprintf(b->problem, sizeof(b->problem), "%s", err.cause[0]);
}

static void type(struct seam_browser *b, int key)
{
	size_t n = strlen(b->typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		take_typed(b);
	} else if (key == 27) {
		b->prompt = PROMPT_NONE;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (n)
			b->typed[n - 1] = '\0';
	} else if (key >= ' ' && key < 256 && n + 1 < sizeof(b->typed)) {
		b->typed[n] = (char)key;
		b->typed[n + 1] = '\0';
	}
}

static void ask(struct seam_browser *b, enum prompt prompt)
{
	b->prompt = prompt;
	b->typed[0] = '\0';
}

static void move_by(struct seam_browser *b, ptrdiff_t by)
{
	size_t n = n_lines(b);

	if (by < 0)
		b->at = (size_t)-by > b->at ? 0 : b->at - (size_t)-by;
	else
		b->at = b->at + (size_t)by < n ? b->at + (size_t)by :
			n ? n - 1 : 0;
}

/* Move the cursor; false: it is another key. */
static bool move_cursor(struct seam_browser *b, int key)
{
	int page = LINES - HEAD_LINES - FOOT_LINES;

	switch (key) {
	case KEY_UP: case 'k':
		move_by(b, -1);
		return true;
	case KEY_DOWN: case 'j':
		move_by(b, 1);
		return true;
	case KEY_PPAGE:
		move_by(b, -page);
		return true;
	case KEY_NPAGE:
		move_by(b, page);
		return true;
	case KEY_HOME: case 'g':
		b->at = 0;
		return true;
	case KEY_END: case 'G':
		move_by(b, PTRDIFF_MAX / 2);
		return true;
	}
	return false;
}

/* Keys that only recordings that are made have; false: it is another key. */
static bool take_live_key(struct seam_browser *b, int key)
{
	if (!b->is_live || (key != ' ' && key != 'w'))
		return false;
	b->all ^= key == 'w';
	b->is_paused ^= key == ' ';
	b->is_changed = key == 'w' || !b->is_paused;
	return true;
}

/* False: end. */
static bool take_key(struct seam_browser *b, int key)
{
	if (move_cursor(b, key) || take_live_key(b, key))
		return true;
	switch (key) {
	case 'q':
		return false;
	case 'f':
		set_by(b, SEAM_BY_SYMBOL);
		break;
	case 'm':
		set_by(b, SEAM_BY_MODULE);
		break;
	case 't':
		set_by(b, SEAM_BY_THREAD);
		break;
	case 'p':
		set_by(b, SEAM_BY_PROCESS);
		break;
	case 's':
		b->sort = b->sort == SEAM_SORT_SELF ? SEAM_SORT_TOTAL :
						      SEAM_SORT_SELF;
		set_view(b, VIEW_TABLE);
		break;
	case 'e':
		b->event++;
		set_view(b, VIEW_TABLE);
		break;
	case 'c':
		focus_on(b, VIEW_CALLERS);
		break;
	case 'd':
		focus_on(b, VIEW_CALLEES);
		break;
	case 'a':
		focus_on(b, VIEW_CODE);
		break;
	case 'h': case '?':
		set_view(b, VIEW_HELP);
		break;
	case '/':
		ask(b, PROMPT_SEARCH);
		break;
	case 'z':
		if (!b->is_live)
			ask(b, PROMPT_TIME);
		break;
	case '\n': case '\r': case KEY_ENTER:
		enter(b);
		break;
	case KEY_BACKSPACE: case 127: case '\b': case 27:
		go_back(b);
		break;
	}
	return true;
}

bool seam_browser_keys(struct seam_browser *b)
{
	bool any = false;
	int key;

	while ((key = getch()) != ERR) {
		any = true;
		/* of a size that has changed, drawing is enough */
		if (key == KEY_RESIZE)
			continue;
		if (b->prompt)
			type(b, key);
		else if (!take_key(b, key))
			return false;
	}
	if (any)
		draw(b);
	return true;
}

bool seam_browser_wants(struct seam_browser *b)
{
	bool wants = b->is_changed;

	b->is_changed = false;
	return wants;
}

bool seam_browser_shows_all(const struct seam_browser *b)
{
	return b->all;
}

bool seam_browser_is_paused(const struct seam_browser *b)
{
	return b->is_paused;
}
