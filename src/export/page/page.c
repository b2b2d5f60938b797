/* SPDX-License-Identifier: MIT */
/* page.c - the head and the columns of each recording; see page.h */
#include "export/page/page.h"

#include <errno.h>
#include <inttypes.h>

#include "base/pair_map.h"
#include "base/text.h"
#include "export/page/page_code.h"
#include "export/page/page_rows.h"
#include "export/page/payload.h"
#include "export/page_html.h"

/* Where the page has the recordings. */
static const char place[] = "<!--recordings-->";

struct page_frame {
	uint32_t function, file, line;
	int64_t addr;
	bool is_inlined;
};

struct page_writer {
	const struct seam_page_part *part;
	uint64_t max_rows;
	const struct seam_profile *profile;
	struct seam_parts parts;
	struct seam_page_rows rows;
	struct seam_annotation code;
	size_t n_sources;
	struct seam_strings files;
	SEAM_ARRAY(struct page_frame) frames;
	struct seam_payload payload;
	struct seam_json json;
};

/* -- the head ------------------------------------------------------------- */

static void put_decimal(struct page_writer *w, const char *key, int64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, v);
	seam_json_string(&w->json, key, text);
}

static void put_losses(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;

	seam_json_open(&w->json, "losses", '[');
	for (size_t i = 0; i < p->losses.n; i++) {
		char text[SEAM_LOSS_TEXT];

		seam_json_open(&w->json, NULL, '{');
		seam_json_string(&w->json, "text", seam_profile_loss_text(
				p, &p->losses.items[i], text));
		seam_json_u64(&w->json, "records", seam_page_number(
				p->losses.items[i].records));
		seam_json_close(&w->json);
	}
	seam_json_close(&w->json);
}

/* What is left out, and neither added up nor a loss of the recording. */
static void put_notes(struct page_writer *w)
{
	const struct seam_page_rows *rows = &w->rows;
	char text[200];

	if (rows->n_more_marks) {
		snprintf(text, sizeof(text), "%" PRIu64 " events of the "
			 "program are left out: a page has at most %d",
			 rows->n_more_marks, SEAM_PAGE_MARKS);
		seam_json_string(&w->json, NULL, text);
	}
	if (rows->n_more_intervals) {
		snprintf(text, sizeof(text), "%" PRIu64 " marked intervals "
			 "are left out: a page has at most %" PRIu64,
			 rows->n_more_intervals, rows->max_rows);
		seam_json_string(&w->json, NULL, text);
	}
	if (rows->n_more_words) {
		snprintf(text, sizeof(text), "%" PRIu64 " texts of events and "
			 "arguments are left out: a page has at most %d",
			 rows->n_more_words, SEAM_PAGE_WORDS);
		seam_json_string(&w->json, NULL, text);
	}
}

static void put_meta(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;
	const struct seam_manifest *m = w->part->manifest;
	const char *command = seam_profile_text(p, p->command);
	struct seam_json *j = &w->json;

	seam_json_open(j, "meta", '{');
	seam_json_u64(j, "version", SEAM_PAYLOAD_VERSION);
	seam_json_string(j, "title", *command ? command : w->part->file);
	seam_json_string(j, "file", w->part->file);
	put_decimal(w, "startNs", (int64_t)p->start_ns);
	seam_json_u64(j, "durationNs", seam_page_since(p, p->end_ns));
	if (p->utc_ns)
		put_decimal(w, "utcNs", (int64_t)p->start_ns + p->utc_ns);
	else
		seam_json_string(j, "utcNs", "");
	seam_json_i64(j, "openAtNs", m->n_triggers ? (int64_t)seam_page_since(
			p, m->triggers[0].time_ns) : -1);
	seam_json_u64(j, "openForNs", m->n_triggers ?
		      m->triggers[0].duration_ns : 0);
	seam_json_open(j, "notes", '[');
	for (size_t i = 0; i < p->notes.n; i++)
		seam_json_string(j, NULL, seam_profile_text(
				p, p->notes.items[i]));
	put_notes(w);
	seam_json_close(j);
	put_losses(w);
	seam_json_open(j, "coarse", '{');
	seam_json_u64(j, "samples", w->rows.n_merged);
	seam_json_u64(j, "calls", w->rows.n_short_calls);
	seam_json_u64(j, "shortestCallNs", w->rows.least_call_ns);
	seam_json_close(j);
	seam_json_i64(j, "clockSkewNs", p->clock_skew_ns ?
		      (int64_t)seam_page_number(p->clock_skew_ns) : -1);
	seam_json_string(j, "hostName", m->host ? m->host : "");
	seam_json_u64(j, "cpus", p->n_cpus);
	seam_json_bool(j, "callWaits", w->part->waits &&
		       w->part->waits->items.n);
	seam_json_close(j);
}

/* A start or an end: -1 before, null after the recording. */
static void put_life(struct page_writer *w, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns)
		seam_json_u64(&w->json, "start", seam_page_since(w->profile,
								 start_ns));
	else
		seam_json_i64(&w->json, "start", -1);
	if (end_ns == UINT64_MAX)
		seam_json_string(&w->json, "end", NULL);
	else
		seam_json_u64(&w->json, "end", seam_page_since(w->profile,
							       end_ns));
}

/*
 * The program of each process: the file of the first executable mapping of its
 * pid.  @programs: from pid to module.  False: no memory.
 */
static bool find_programs(const struct seam_profile *p,
			  struct seam_pair_map *programs)
{
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct seam_mapping *m = &p->mappings.items[i];
		uint64_t pid = (uint64_t)m->pid;

		if (m->is_executable &&
		    p->modules.items[m->module].kind == SEAM_MODULE_FILE &&
		    !seam_pair_map_find(programs, pid, 0) &&
		    seam_pair_map_put(programs, pid, 0, m->module))
			return false;
	}
	return true;
}

static void put_processes(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;
	struct seam_pair_map programs = { .slots.n = 0 };

	w->rows.is_failed |= !find_programs(p, &programs);

	seam_json_open(&w->json, "processes", '[');
	for (size_t i = 0; i < p->processes.n; i++) {
		const struct seam_process *process = &p->processes.items[i];
		const uint32_t *program;

		seam_json_open(&w->json, NULL, '{');
		seam_json_i64(&w->json, "pid", process->pid);
		seam_json_string(&w->json, "name", seam_profile_text(
				p, process->name));
		program = seam_pair_map_find(&programs,
					     (uint64_t)process->pid, 0);
		seam_json_string(&w->json, "program", program ?
				 seam_profile_path(p, *program) : "");
		put_life(w, process->start_ns, process->end_ns);
		seam_json_close(&w->json);
	}
	seam_json_close(&w->json);
	seam_pair_map_fini(&programs);
}

/* By its switches; without, null. */
static void put_thread_times(struct page_writer *w, size_t thread)
{
	const struct seam_profile *p = w->profile;
	const struct seam_thread_time *time = &p->thread_times.items[thread];

	if (thread >= p->thread_times.n)
		return;
	seam_json_u64(&w->json, "running", seam_page_number(time->running_ns));
	seam_json_u64(&w->json, "blocked", seam_page_number(time->blocked_ns));
	seam_json_u64(&w->json, "preempted", seam_page_number(
			time->preempted_ns));
	seam_json_u64(&w->json, "unknown", seam_page_number(time->unknown_ns));
}

static void put_threads(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;

	seam_json_open(&w->json, "threads", '[');
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct seam_thread *thread = &p->threads.items[i];

		seam_json_open(&w->json, NULL, '{');
		seam_json_u64(&w->json, "process", thread->process);
		seam_json_i64(&w->json, "tid", thread->tid);
		seam_json_string(&w->json, "name", seam_profile_text(
				p, thread->name));
		put_life(w, thread->start_ns, thread->end_ns);
		put_thread_times(w, i);
		seam_json_close(&w->json);
	}
	seam_json_close(&w->json);
}

static void put_events(struct page_writer *w)
{
	seam_json_open(&w->json, "events", '[');
	for (size_t i = 0; i < w->parts.n_events; i++) {
		const struct seam_profile_event *event =
			seam_parts_event(&w->parts, i);

		seam_json_open(&w->json, NULL, '{');
		seam_json_string(&w->json, "name", seam_profile_text(
				w->profile, event->name));
		seam_json_string(&w->json, "unit", event->unit ==
				 SEAM_UNIT_NS ? "ns" : "count");
		seam_json_string(&w->json, "kind", event->is_measured ?
				 "call" : event->is_wait ? "wait" : "sample");
		seam_json_bool(&w->json, "preempted", event->is_preempted);
		seam_json_u64(&w->json, "lost", seam_page_number(
				event->n_lost));
		seam_json_close(&w->json);
	}
	seam_json_close(&w->json);
}

static void put_modules(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;

	seam_json_open(&w->json, "modules", '[');
	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct seam_profile_module *m = &p->modules.items[i];
		char text[2 * sizeof(m->build_id) + 1];

		seam_json_string(&w->json, NULL, seam_profile_path(p, i));
		seam_json_string(&w->json, NULL, seam_text_hex(
				text, m->build_id, m->build_id_size));
	}
	seam_json_close(&w->json);
}

static void put_functions(struct page_writer *w)
{
	seam_json_open(&w->json, "functions", '[');
	for (size_t i = 0; i < w->profile->functions.n; i++)
		seam_json_string(&w->json, NULL, seam_profile_text(
				w->profile,
				w->profile->functions.items[i].name));
	seam_json_close(&w->json);
}

static void put_strings(struct page_writer *w, const char *key,
			const struct seam_strings *strings)
{
	seam_json_open(&w->json, key, '[');
	for (uint32_t i = 0; i < strings->texts.n; i++)
		seam_json_string(&w->json, NULL, seam_strings_get(strings, i));
	seam_json_close(&w->json);
}

/* JSON has no NUL, which ends it. */
static void put_head(struct page_writer *w)
{
	w->json = seam_json_make(w->payload.stream, false);
	seam_json_open(&w->json, NULL, '{');
	put_meta(w);
	put_strings(w, "words", &w->rows.words);
	put_strings(w, "files", &w->files);
	put_processes(w);
	put_threads(w);
	put_events(w);
	put_modules(w);
	put_functions(w);
	w->n_sources = seam_page_sources_put(w->part, &w->files, &w->json);
	seam_page_code_put(&w->code, &w->json);
	seam_json_close(&w->json);
	putc_unlocked(0, w->payload.stream);
}

/* -- columns -------------------------------------------------------------- */

/* The frames with numbers of files. */
static int make_frames(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;

	for (size_t i = 0; i < p->frames.n; i++) {
		const struct seam_frame *f = &p->frames.items[i];
		uint32_t file = !f->file ? SEAM_NONE : seam_strings_put(
				&w->files, seam_profile_text(p, f->file));

		if ((f->file && file == SEAM_NONE) ||
		    !SEAM_ARRAY_ADD(&w->frames, (struct page_frame) {
				f->function, file, f->line,
				seam_page_address(f->addr), f->is_inlined }))
			return -ENOMEM;
	}
	return 0;
}

static void put_columns(struct page_writer *w)
{
	const struct {
		const struct seam_stack *items;
		size_t n;
	} stacks = { w->parts.selected->stacks, w->parts.selected->n_stacks };
	const struct seam_page_rows *rows = &w->rows;
	const struct seam_column columns[] = {
		SEAM_COLUMN("functions.module", &w->profile->functions, module,
			    false),
		SEAM_COLUMN("functions.layer", &w->profile->functions, layer,
			    false),
		SEAM_COLUMN("functions.named", &w->profile->functions,
			    is_named, false),
		SEAM_COLUMN("frames.func", &w->frames, function, true),
		SEAM_COLUMN("frames.file", &w->frames, file, true),
		SEAM_COLUMN("frames.line", &w->frames, line, true),
		SEAM_COLUMN("frames.addr", &w->frames, addr, true),
		SEAM_COLUMN("frames.inlined", &w->frames, is_inlined, false),
		SEAM_COLUMN("stacks.parent", &stacks, parent, true),
		SEAM_COLUMN("stacks.frame", &stacks, frame, true),
		SEAM_COLUMN("samples.time", &rows->samples, time_ns, true),
		SEAM_COLUMN("samples.thread", &rows->samples, thread, false),
		SEAM_COLUMN("samples.stack", &rows->samples, stack, false),
		SEAM_COLUMN("samples.event", &rows->samples, event, false),
		SEAM_COLUMN("samples.cpu", &rows->samples, cpu, false),
		SEAM_COLUMN("samples.weight", &rows->samples, weight, false),
		SEAM_COLUMN("samples.count", &rows->samples, count, false),
		SEAM_COLUMN("samples.placed", &rows->samples, is_placed,
			    false),
		SEAM_COLUMN("samples.reason", &rows->samples, reason, false),
		SEAM_COLUMN("samples.waker", &rows->samples, waker, false),
		SEAM_COLUMN("calls.begin", &rows->calls, begin_ns, true),
		SEAM_COLUMN("calls.duration", &rows->calls, duration_ns,
			    false),
		SEAM_COLUMN("calls.hidden", &rows->calls, hidden_ns, false),
		SEAM_COLUMN("calls.blocked", &rows->calls, off.blocked_ns,
			    false),
		SEAM_COLUMN("calls.preempted", &rows->calls, off.preempted_ns,
			    false),
		SEAM_COLUMN("calls.thread", &rows->calls, thread, false),
		SEAM_COLUMN("calls.func", &rows->calls, function, false),
		SEAM_COLUMN("calls.depth", &rows->calls, depth, false),
		SEAM_COLUMN("calls.text", &rows->calls, text, false),
		SEAM_COLUMN("intervals.begin", &rows->intervals, begin_ns,
			    true),
		SEAM_COLUMN("intervals.duration", &rows->intervals,
			    duration_ns, false),
		SEAM_COLUMN("intervals.blocked", &rows->intervals,
			    off.blocked_ns, false),
		SEAM_COLUMN("intervals.preempted", &rows->intervals,
			    off.preempted_ns, false),
		SEAM_COLUMN("intervals.thread", &rows->intervals, thread,
			    false),
		SEAM_COLUMN("intervals.name", &rows->intervals, name, false),
		SEAM_COLUMN("intervals.text", &rows->intervals, text, false),
		SEAM_COLUMN("marks.time", &rows->marks, time_ns, true),
		SEAM_COLUMN("marks.duration", &rows->marks, duration_ns,
			    false),
		SEAM_COLUMN("marks.thread", &rows->marks, thread, false),
		SEAM_COLUMN("marks.kind", &rows->marks, kind, false),
		SEAM_COLUMN("marks.name", &rows->marks, name, false),
		SEAM_COLUMN("marks.text", &rows->marks, text, false),
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(columns); i++)
		seam_payload_column(&w->payload, &columns[i]);
}

/* -- marks ---------------------------------------------------------------- */

/* The thread with the number @tid; SEAM_NONE: none. */
static uint32_t thread_of(const struct seam_profile *p, uint64_t tid)
{
	for (uint32_t i = 0; i < p->threads.n; i++)
		if (p->threads.items[i].tid >= 0 &&
		    (uint64_t)p->threads.items[i].tid == tid)
			return i;
	return SEAM_NONE;
}

/* Why the recording, a snapshot, was made. */
static void add_triggers(struct page_writer *w)
{
	const struct seam_manifest *m = w->part->manifest;

	for (size_t i = 0; i < m->n_triggers; i++) {
		const struct seam_manifest_trigger *t = &m->triggers[i];
		char text[400];

		seam_manifest_trigger_describe(text, sizeof(text), t,
					       m->start_ns);
		seam_page_add_mark(&w->rows, (struct seam_page_mark) {
			.time_ns = seam_page_since(w->profile, t->time_ns),
			.thread = thread_of(w->profile, t->tid),
			.kind = SEAM_PAGE_TRIGGER,
			.name = seam_page_word(&w->rows, t->text),
			.text = seam_page_word(&w->rows, text),
		});
	}
}

/* When code was compiled; by which thread is not recorded. */
static void add_compilations(struct page_writer *w)
{
	const struct seam_profile *p = w->profile;
	const struct seam_selected *selected = w->parts.selected;

	for (size_t i = 0; i < p->code_objects.n; i++) {
		const struct seam_code_object *c = &p->code_objects.items[i];
		char text[80];

		if (!c->from_ns || c->from_ns < selected->from_ns ||
		    c->from_ns >= selected->to_ns)
			continue;
		snprintf(text, sizeof(text), "%" PRIu64 " bytes, process %"
			 PRId32, c->size, c->pid);
		seam_page_add_mark(&w->rows, (struct seam_page_mark) {
			.time_ns = seam_page_since(p, c->from_ns),
			.thread = SEAM_NONE, .kind = SEAM_PAGE_JIT,
			.name = seam_page_word(&w->rows, seam_profile_text(
					p, c->name)),
			.text = seam_page_word(&w->rows, text),
		});
	}
}

static int add_marks(struct page_writer *w)
{
	add_triggers(w);
	add_compilations(w);
	return w->rows.is_failed ? -ENOMEM :
	       seam_page_sort_marks(&w->rows);
}

/* -- the page ------------------------------------------------------------- */

/* What the page has not, in words. */
static void say_left_out(const struct page_writer *w,
			 void (*say)(const char *fmt, ...))
{
	const struct seam_page_rows *rows = &w->rows;

	if (rows->n_merged)
		say("%" PRIu64 " samples are added to others of their stack "
		    "near them: a page has at most %" PRIu64, rows->n_merged,
		    rows->max_rows);
	if (rows->n_short_calls)
		say("%" PRIu64 " calls of less than %" PRIu64 " ns are not on "
		    "the time line: a page has at most %" PRIu64 "; --time "
		    "selects a part with all of them", rows->n_short_calls,
		    rows->least_call_ns, rows->max_rows);
	if (rows->n_more_intervals)
		say("%" PRIu64 " marked intervals are left out",
		    rows->n_more_intervals);
	if (rows->n_more_marks || rows->n_more_words)
		say("%" PRIu64 " events of the program and %" PRIu64 " texts "
		    "are left out", rows->n_more_marks, rows->n_more_words);
	if (w->part->source)
		say("%zu source file%s in the page", w->n_sources,
		    w->n_sources == 1 ? " is" : "s are");
}

static int fill(struct page_writer *w, FILE *out, struct seam_err *err)
{
	int r = seam_parts_init(&w->parts, w->part->selected, err);

	if (r)
		return r;
	if (w->part->symbols)
		r = seam_page_code_read(&w->code, &w->parts, w->part->symbols,
					err);
	if (r)
		return r;
	r = seam_page_rows_init(&w->rows, w->part, &w->parts,
				w->max_rows);
	if (!r)
		r = add_marks(w);
	if (!r)
		r = make_frames(w);
	if (!r)
		r = seam_payload_open(&w->payload, out);
	if (r == -EFBIG)
		return seam_err_set(err, r, "cannot make a page: more than "
				    "%" PRIu64 " distinct stacks; choose a "
				    "part with --time, --thread or --event",
				    w->rows.max_rows);
	if (r)
		return r == -ENOMEM ? seam_err_no_memory(err) :
		       seam_err_set(err, r, "cannot make a page: %s",
				    strerror(-r));
	put_head(w);
	put_columns(w);
	r = seam_payload_close(&w->payload);
	return r || w->rows.is_failed ? seam_err_no_memory(err) : 0;
}

static int write_part(const struct seam_page *page, size_t i,
		      const struct seam_export *export, struct seam_err *err)
{
	const struct seam_page_part *part = &page->parts[i];
	FILE *out = export->out;
	struct page_writer w = {
		.part = part, .profile = part->selected->profile,
		.max_rows = page->max_rows,
	};
	int r;

	fputs("<script type=\"application/octet-stream\" "
	      "class=\"recording\">", out);
	r = fill(&w, out, err);
	fputs("</script>\n", out);
	if (!r && export->say)
		say_left_out(&w, export->say);
	seam_annotation_fini(&w.code);
	seam_parts_fini(&w.parts);
	seam_page_rows_fini(&w.rows);
	seam_strings_fini(&w.files);
	free(w.frames.items);
	return r;
}

int seam_write_page(const struct seam_export *export, struct seam_err *err)
{
	static const struct seam_manifest none;
	const struct seam_page alone = {
		.parts = { { .selected = export->selected, .file = "",
			     .manifest = &none } },
		.n_parts = 1, .max_rows = SEAM_PAGE_ROWS,
	};
	const struct seam_page *page = export->picture ? export->picture :
				       &alone;
	const char *at = strstr(page_html, place);
	int r = 0;

	fwrite(page_html, 1, (size_t)(at - page_html), export->out);
	for (size_t i = 0; i < page->n_parts && !r; i++)
		r = write_part(page, i, export, err);
	fputs(at + sizeof(place) - 1, export->out);
	return r;
}
