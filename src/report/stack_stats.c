/* SPDX-License-Identifier: MIT */
/* stack_stats.c - how user stacks were unwound; the contract is in report.h */
#include <inttypes.h>

#include "base/text.h"
#include "model/profile/stack_ends.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/wait_stats.h"

enum { INDENT = 2 };		/* columns, of a part of the line above */

static void put_line(const struct seam_view *view, size_t depth, uint64_t n,
		     uint64_t whole, const char *text)
{
	char count[SEAM_NUMBER], share[SEAM_NUMBER];

	fprintf(view->out, "%*s%12s  %7s  %s", (int)(depth * INDENT), "",
		seam_format_count(count, n),
		seam_format_percent(share, n, whole), text);
}

/* The files in which stacks ended early for @end. */
static void put_files(const struct seam_view *view,
		      const struct seam_stack_counts *counts,
		      enum seam_stack_end end, uint64_t whole)
{
	for (size_t i = 0; i < counts->n_modules; i++) {
		const struct seam_stack_module *module = &counts->modules[i];

		if (module->end != end)
			continue;
		put_line(view, 1, module->n, whole, "in ");
		seam_text_put(view->out, module->path, SEAM_TEXT_TERMINAL);
		fputc('\n', view->out);
	}
}

/*
 * A line for each end that occurred, and for complete always; with the files of
 * @files, where the counts are of these.
 */
static void put_ends(const struct seam_view *view, const uint64_t *n,
		     bool is_guest, const struct seam_stack_counts *files)
{
	unsigned int n_ends = is_guest ? SEAM_GUEST_N_ENDS : SEAM_STACK_N_ENDS;
	uint64_t whole = 0;

	for (unsigned int i = 0; i < n_ends; i++)
		whole += n[i];
	for (unsigned int i = 0; i < n_ends; i++) {
		if (n[i] == 0 && i != 0)
			continue;
		put_line(view, 0, n[i], whole, is_guest ?
			 seam_guest_end_text(i) : seam_stack_ends[i].text);
		if (files && i == SEAM_STACK_TRUNCATED && files->dump_bytes)
			fprintf(view->out, " (%" PRIu64 " bytes)",
				files->dump_bytes);
		fputc('\n', view->out);
		if (files)
			put_files(view, files, i, whole);
	}
}

static void put_heading(const struct seam_view *view, const char *text,
			uint64_t n)
{
	char count[SEAM_NUMBER];

	fputc('\n', view->out);
	seam_view_print(view, SEAM_STYLE_BOLD, "%s", text);
	fprintf(view->out, ": %s\n", seam_format_count(count, n));
}

static void put_counts(const struct seam_view *view,
		       const struct seam_stack_counts *counts)
{
	char amount[SEAM_NUMBER];

	put_heading(view, "user stacks", seam_stack_counts_total(counts));
	put_ends(view, counts->n_ended, false, counts);
	if (counts->n_empty)
		fprintf(view->out, "\n%s had no user stack\n",
			seam_format_amount(amount, counts->n_empty, "sample"));
	if (counts->n_32_bit)
		fprintf(view->out, "\n%s of 32-bit tasks: by frame pointers\n",
			seam_format_amount(amount, counts->n_32_bit, "sample"));
	if (counts->n_kernel_cut)
		fprintf(view->out, "\nthe kernel's part of %s is truncated: "
			"deeper than kernel.perf_event_max_stack allows\n",
			seam_format_amount(amount, counts->n_kernel_cut,
					   "stack"));
}

static void put_guest(const struct seam_view *view,
		      const struct seam_guest_counts *counts)
{
	uint64_t n = seam_guest_counts_total(counts);
	char count[SEAM_NUMBER], share[SEAM_NUMBER], all[SEAM_NUMBER];

	put_heading(view, "VM stacks", n);
	put_ends(view, counts->n_guest, true, NULL);
	put_heading(view, "native stacks below them", n);
	put_ends(view, counts->n_host, false, NULL);
	fprintf(view->out, "\n%s complete in both (%s), of %s samples",
		seam_format_count(count, counts->n_complete),
		seam_format_percent(share, counts->n_complete, n),
		seam_format_count(all, n));
	if (counts->n_bad)
		fprintf(view->out, "; %s records damaged",
			seam_format_count(count, counts->n_bad));
	fputc('\n', view->out);
}

int seam_report_stats_text(const struct seam_report *report,
			   const struct seam_view *view)
{
	const struct seam_guest_counts *guest = &report->profile->guest_counts;
	struct seam_stack_counts counts;
	int r = seam_stack_ends_count(report->profile, report->selected,
				      &counts);

	if (r)
		return r;
	seam_summary_head(report, view);
	if (seam_guest_counts_total(guest))
		put_guest(view, guest);
	if (seam_stack_counts_exist(&counts))
		put_counts(view, &counts);
	else if (!seam_guest_counts_total(guest) &&
		 !report->profile->thread_times.n)
		fputs("\nNo counts: the recording has no user stacks, or has "
		      "them by frame pointers, where missing callers cannot "
		      "be seen.\n", view->out);
	seam_wait_stats_text(report->profile, view);
	seam_summary_tail(report, view);
	return 0;
}

static void put_ends_json(struct seam_json *j, const char *name,
			  const uint64_t *n, bool is_guest)
{
	seam_json_open(j, name, '{');
	for (unsigned int i = 0; i < (is_guest ? SEAM_GUEST_N_ENDS :
				      SEAM_STACK_N_ENDS); i++)
		seam_json_u64(j, is_guest ? seam_guest_end_key(i) :
			      seam_stack_ends[i].key, n[i]);
	seam_json_close(j);
}

static void put_counts_json(struct seam_json *j,
			    const struct seam_stack_counts *counts)
{
	seam_json_open(j, "user_stacks", '{');
	seam_json_u64(j, "stacks", seam_stack_counts_total(counts));
	seam_json_double(j, "percent", seam_stack_counts_percent(counts));
	put_ends_json(j, "ended", counts->n_ended, false);
	seam_json_u64(j, "empty", counts->n_empty);
	seam_json_u64(j, "of_32_bit", counts->n_32_bit);
	seam_json_u64(j, "kernel_cut", counts->n_kernel_cut);
	seam_json_u64(j, "dump_bytes", counts->dump_bytes);
	seam_json_open(j, "files", '[');
	for (size_t i = 0; i < counts->n_modules; i++) {
		const struct seam_stack_module *module = &counts->modules[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "path", module->path);
		seam_json_string(j, "end", seam_stack_ends[module->end].key);
		seam_json_u64(j, "stacks", module->n);
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_close(j);
}

int seam_report_stats_json(const struct seam_report *report, FILE *out)
{
	const struct seam_guest_counts *guest = &report->profile->guest_counts;
	struct seam_json j = seam_json_make(out, false);
	struct seam_stack_counts counts;
	int r = seam_stack_ends_count(report->profile, report->selected,
				      &counts);

	if (r)
		return r;
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.stats/2");
	seam_summary_json(report, &j, seam_profile_n_samples(report->profile));
	put_counts_json(&j, &counts);
	seam_json_open(&j, "guest_stacks", '{');
	seam_json_u64(&j, "stacks", seam_guest_counts_total(guest));
	seam_json_u64(&j, "complete", guest->n_complete);
	seam_json_u64(&j, "ticks", guest->n_ticks);
	seam_json_u64(&j, "damaged", guest->n_bad);
	put_ends_json(&j, "guest_ended", guest->n_guest, true);
	put_ends_json(&j, "host_ended", guest->n_host, false);
	seam_json_close(&j);
	seam_wait_stats_json(report->profile, &j);
	seam_json_close(&j);
	return 0;
}
