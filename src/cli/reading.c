/* SPDX-License-Identifier: MIT */
/* reading.c - from a command line to a selected profile; see reading.h */
#include "cli/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/hints.h"
#include "cli/output_file.h"
#include "model/input.h"
#include "model/xray/call_names.h"
#include "report/rows.h"

enum { MAX_SOURCE_BYTES = 16 << 20 };

struct seam_load_options
seam_reading_load_options(const struct seam_reading *reading)
{
	return (struct seam_load_options) {
		.symbols = {
			.symfs = reading->symfs.items,
			.n_symfs = reading->symfs.n,
			.no_inline = reading->no_inline,
			/* Inlined functions come from DWARF as lines do. */
			.no_lines = reading->no_inline && !reading->lines,
			.debuginfod = reading->debuginfod,
		},
		.jit = reading->jit.items,
		.n_jit = reading->jit.n,
		.map = reading->map,
		.time = reading->time,
		.no_joins = reading->no_joins,
		.like_parser = reading->like_parser,
	};
}

int seam_reading_source(const struct seam_option_list *symfs, const char *path,
			struct seam_file *file)
{
	char below[PATH_MAX];
	int r = -ENOENT;

	for (size_t i = 0; i < symfs->n && r < 0; i++) {
		snprintf(below, sizeof(below), "%s/%s", symfs->items[i], path);
		r = seam_file_read(file, AT_FDCWD, below, MAX_SOURCE_BYTES,
				   NULL);
	}
	if (r < 0)
		r = seam_file_read(file, AT_FDCWD, path, MAX_SOURCE_BYTES,
				   NULL);
	if (r < 0)
		*file = (struct seam_file) { 0 };
	return r;
}

static int check_paths(const struct seam_option_list *list, const char *option,
		       bool folders, struct seam_err *err)
{
	struct stat st;

	for (size_t i = 0; i < list->n; i++) {
		int code = stat(list->items[i], &st) ? errno :
			   folders && !S_ISDIR(st.st_mode) ? ENOTDIR : 0;

		if (!code)
			continue;
		seam_err_set(err, -code, "%s", strerror(code));
		return seam_err_add(err, -code, "cannot use %s '%s'", option,
				    list->items[i]);
	}
	return 0;
}

/* Whether the paths of --symfs and --jit exist: the exit status. */
static int check(const struct seam_reading *reading)
{
	struct seam_err err = { 0 };

	return check_paths(&reading->symfs, "--symfs", true, &err) ||
	       check_paths(&reading->jit, "--jit", false, &err) ?
	       seam_command_failed(&err) : SEAM_EXIT_DONE;
}

static int load(struct seam_opened *opened, const struct seam_reading *reading,
		const char *const *paths, size_t n_paths)
{
	struct seam_load_options options = seam_reading_load_options(reading);
	struct seam_err err = { 0 };
	int rc = seam_profile_init(&opened->profile);

	if (rc)
		seam_err_no_memory(&err);
	else if (n_paths > 1)
		rc = seam_load_logs(&opened->profile, paths, n_paths, &options,
				    &err);
	else
		rc = seam_load(&opened->profile, n_paths ? paths[0] : NULL,
			       &options, &err);
	if (!rc)
		return SEAM_EXIT_DONE;
	if (n_paths <= 1)
		seam_err_add(&err, rc, "cannot read '%s'",
			     seam_command_named(opened->path));
	return seam_command_failed(&err);
}

static void say_length(const char *time, uint64_t start_ns, uint64_t end_ns)
{
	double ms = (double)(end_ns - start_ns) / 1e6;

	if (end_ns >= start_ns)
		seam_command_say("--time %s begins after the end: the "
				 "recording is %.*f %s long", time,
				 ms < 1000 ? 1 : 2, ms < 1000 ? ms : ms / 1000,
				 ms < 1000 ? "ms" : "s");
}

/* A malformed --time or --layer is wrong usage; an absent thread a failure. */
static int select_part(struct seam_opened *opened,
		       const struct seam_reading *reading)
{
	struct seam_selection *selection = &opened->selection;
	struct seam_err err = { 0 };
	const char *like = NULL;
	size_t used;
	int rc = 0;

	seam_selection_init(selection);
	selection->thread = reading->thread;
	selection->event = reading->event;
	selection->by_latency = reading->latency;
	selection->callers_of = reading->callers_of;
	selection->callees_of = reading->callees_of;
	selection->no_inline = reading->no_inline;
	if (reading->layers)
		rc = seam_selection_layers(selection, reading->layers, &err);
	if (!rc && reading->time)
		rc = seam_selection_time(selection, &opened->profile,
					 reading->time, &err);
	if (rc) {
		seam_command_failed(&err);
		return SEAM_EXIT_USAGE;
	}
	if (selection->from_ns > opened->profile.end_ns)
		say_length(reading->time, opened->profile.start_ns,
			   opened->profile.end_ns);
	rc = seam_selected_init(&opened->selected, &opened->profile, selection,
				&err);
	if (rc == -ENOENT)
		like = seam_closest_function(&opened->profile,
					     reading->callers_of ?
					     reading->callers_of :
					     reading->callees_of);
	used = strlen(err.cause[0]);
	if (like)
		snprintf(err.cause[0] + used, SEAM_ERR_TEXT - used,
			 "; did you mean '%.200s'?", like);
	return rc ? seam_command_failed(&err) : SEAM_EXIT_DONE;
}

int seam_reading_open(struct seam_opened *opened,
		      const struct seam_command *command,
		      const struct seam_reading *reading, int argc,
		      char **argv, int first)
{
	const char *const *paths = (const char *const *)argv + first;
	size_t n = (size_t)(argc - first);
	int status;

	if (reading->input) {
		if (n) {
			*opened = (struct seam_opened) { 0 };
			return seam_command_misused(command, "-i and FILE "
						    "cannot be combined");
		}
		paths = &reading->input;
		n = 1;
	}
	*opened = (struct seam_opened) {
		.path = n ? paths[0] : SEAM_LOAD_DEFAULT,
		.more = paths + 1, .n_more = n > 1 ? n - 1 : 0,
	};
	for (size_t i = 0; n > 1 && i < n; i++)
		if (strcmp(paths[i], "-") == 0)
			return seam_command_misused(command, "- cannot be "
				"combined with other files");
	status = check(reading);
	if (status == SEAM_EXIT_DONE)
		status = load(opened, reading, paths, n);
	return status ? status : select_part(opened, reading);
}

static void say_note(void *context, const char *text)
{
	(void)context;
	seam_command_say("%s", text);
}

int seam_reading_open_logs(struct seam_trace *trace,
			   struct seam_xray_map *names,
			   const struct seam_reading *reading,
			   const char *const *paths, size_t n_paths)
{
	const struct seam_log_notes notes = { say_note, NULL };
	struct seam_symbols_options how =
		seam_reading_load_options(reading).symbols;
	struct seam_err err = { 0 };
	struct seam_symbols *symbols;
	uint64_t start_ns, end_ns;
	int r;

	if (check(reading))
		return SEAM_EXIT_FAILED;
	how.no_lines = true;
	symbols = seam_symbols_new(&how);
	r = symbols ? seam_trace_open(trace, paths, n_paths, &err) :
	    seam_err_no_memory(&err);
	if (!r)
		r = seam_log_names_open(names, trace, reading->map, symbols,
					&notes, &err);
	seam_symbols_free(symbols);
	if (r)
		return seam_command_failed(&err);
	r = reading->time ? seam_trace_select(trace, reading->time, &err) : 0;
	if (r) {
		seam_command_failed(&err);
		return r == -EINVAL ? SEAM_EXIT_USAGE : SEAM_EXIT_FAILED;
	}
	if (reading->time && !seam_trace_span(trace, &start_ns, &end_ns) &&
	    trace->range.from_ns > end_ns)
		say_length(reading->time, start_ns, end_ns);
	return SEAM_EXIT_DONE;
}

int seam_reading_operand(const struct seam_command *command,
			 const struct seam_reading *reading, int argc,
			 char **argv, int first, const char **path)
{
	*path = first < argc ? argv[first] : reading->input;
	if (argc - first > 1)
		return seam_command_misused(command, "one FILE at a time, "
					    "not also '%s'", argv[first + 1]);
	return reading->input && first < argc ?
	       seam_command_misused(command, "-i and FILE cannot be "
				    "combined") : check(reading);
}

static bool has_samples(const struct seam_profile_event *event)
{
	return event->n_samples || event->is_measured;
}

/* "'a', 'b'", or with ", ..." at the end where @cap bytes are too few. */
static void name_others(const struct seam_profile *profile, uint32_t taken,
			char *out, size_t cap)
{
	size_t used = 0;

	for (uint32_t i = 0; i < profile->events.n; i++) {
		const char *name = seam_profile_text(profile,
					profile->events.items[i].name);

		if (i == taken || !has_samples(&profile->events.items[i]))
			continue;
		if (used + strlen(name) + 12 > cap) {
			snprintf(out + used, cap - used, ", ...");
			return;
		}
		used += (size_t)snprintf(out + used, cap - used, "%s'%s'",
					 used ? ", " : "", name);
	}
}

void seam_reading_take_one_event(struct seam_opened *opened)
{
	const struct seam_profile *profile = &opened->profile;
	char others[300] = "";
	uint32_t first = 0;

	if (seam_selected_unit(&opened->selected) != SEAM_NONE)
		return;
	while (first < profile->events.n &&
	       (!has_samples(&profile->events.items[first]) ||
		!seam_selected_has_event(&opened->selected, first)))
		first++;
	if (first == profile->events.n)
		return;
	free(opened->selected.events);
	opened->selected.events = NULL;
	opened->selected.event = first;
	name_others(profile, first, others, sizeof(others));
	seam_command_say("several events: '%.100s' is shown; --event selects "
			 "another: %s", seam_profile_text(profile,
				profile->events.items[first].name), others);
}

void seam_reading_close(struct seam_opened *opened)
{
	seam_selected_fini(&opened->selected);
	seam_profile_fini(&opened->profile);
}

int seam_reading_status(const struct seam_opened *opened)
{
	return opened->profile.losses.n ? SEAM_EXIT_LOSSY : SEAM_EXIT_DONE;
}

void seam_reading_say_notes(const struct seam_profile *profile)
{
	for (size_t i = 0; i < profile->notes.n; i++)
		seam_command_say("%s", seam_profile_text(profile,
						 profile->notes.items[i]));
	for (size_t i = 0; seam_command_verbose() && i < profile->details.n;
	     i++)
		seam_command_say("%s", seam_profile_text(profile,
						 profile->details.items[i]));
}

void seam_reading_say_lost(const struct seam_profile *profile)
{
	for (size_t i = 0; i < profile->losses.n; i++) {
		char text[SEAM_LOSS_TEXT];

		seam_command_say("lost: %s", seam_profile_loss_text(
				 profile, &profile->losses.items[i], text));
	}
	seam_reading_say_notes(profile);
}

void seam_reading_say_losses(const struct seam_opened *opened)
{
	seam_reading_say_lost(&opened->profile);
}

int seam_reading_export(const struct seam_opened *opened, const char *path,
			const struct seam_exporter *exporter,
			struct seam_export *export)
{
	struct seam_err err = { 0 };
	uint64_t n_skipped = 0;

	export->selected = &opened->selected;
	export->n_skipped = &n_skipped;
	if (seam_export_file(path, exporter, export, &err))
		return seam_command_failed(&err);
	seam_reading_say_losses(opened);
	return n_skipped ? SEAM_EXIT_LOSSY : seam_reading_status(opened);
}

/*
 * Losses of calls, and what is missing at the end.  The end of a program that
 * has written its own log is no loss of a recorder.
 */
static bool say_lost_calls(const struct seam_input *input)
{
	const char *unended = input->is_logs ? NULL :
			      seam_manifest_unended(&input->manifest);
	const struct seam_counts *counts = &input->manifest.counts;
	char line[SEAM_COUNT_LINE];
	bool is_lossy = unended;

	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];

		if (!seam_count_is_of(row, "calls") ||
		    !seam_counts_describe(counts, i, line))
			continue;
		seam_command_say("%s", line);
		is_lossy |= row->cause != NULL;
	}
	if (unended)
		seam_command_say("%s", unended);
	return is_lossy;
}

bool seam_reading_say_lost_calls(const char *const *paths, size_t n_paths)
{
	bool has_lost = false;

	for (size_t i = 0; i < n_paths; i++) {
		struct seam_err unused = { 0 };
		struct seam_input input;

		if (seam_input_open(&input, paths[i], &unused) == 0)
			has_lost |= say_lost_calls(&input);
		seam_input_close(&input);
	}
	return has_lost;
}

int seam_reading_say_problems(const struct seam_trace *trace,
			      const struct seam_xray_problems *problems)
{
	if (trace->blocks.n == 0 && problems->n == 0)
		seam_command_say("the log is empty: nothing was recorded");
	if (trace->in_ticks)
		seam_command_say("times are ticks: the log has no clock "
				 "frequency");
	if (problems->n)
		seam_command_say("%" PRIu64 " part%s of the log could not be "
				 "read, %" PRIu64 " byte%s", problems->n,
				 problems->n == 1 ? "" : "s",
				 problems->lost_bytes,
				 problems->lost_bytes == 1 ? "" : "s");
	return problems->n || trace->in_ticks ? SEAM_EXIT_LOSSY :
	       SEAM_EXIT_DONE;
}

enum seam_group seam_reading_group(const char *by)
{
	uint32_t key;

	return seam_by_parse(by, &key) ? SEAM_GROUP_NONE :
	       seam_by_group((enum seam_by)key);
}
