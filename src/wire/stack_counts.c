/* SPDX-License-Identifier: MIT */
/* stack_counts.c - count, order, describe; see stack_counts.h */
#include "wire/stack_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this share of complete stacks a recording needs an explanation. */
#define ENOUGH_PERCENT 90.0

const struct seam_stack_end_words seam_stack_ends[SEAM_STACK_N_ENDS] = {
	[SEAM_STACK_COMPLETE] = { "complete", "complete", "" },
	[SEAM_STACK_TRUNCATED] = {
		"truncated", "deeper than the copy of the stack", "" },
	[SEAM_STACK_WITHOUT_CFI] = {
		"without_cfi",
		"code without call frame information and frame pointers",
		" (for C and C++: -fasynchronous-unwind-tables)" },
	[SEAM_STACK_BROKEN_CFI] = {
		"broken_cfi", "invalid call frame information", "" },
	[SEAM_STACK_NO_FILE] = {
		"no_file", "file not here, or of another build", "" },
	[SEAM_STACK_NOT_READY] = {
		"not_ready", "file not read in time", "" },
	[SEAM_STACK_NO_MAPPING] = {
		"no_mapping", "return address outside mapped code", "" },
	[SEAM_STACK_UNREADABLE] = {
		"unreadable", "address outside the stack", "" },
	[SEAM_STACK_LOST_REGISTER] = {
		"lost_register", "value of a register not known", "" },
	[SEAM_STACK_NO_PROGRESS] = {
		"no_progress", "frame not above the one it called", "" },
	[SEAM_STACK_TOO_DEEP] = { "too_deep", "too many frames", "" },
	[SEAM_STACK_OTHER_STACK] = {
		"other_stack", "signal handler on another stack", "" },
	[SEAM_STACK_BEYOND] = {
		"beyond", "a frame ends above the 64 KiB that the kernel "
		"copies", "" },
	[SEAM_STACK_JOINED] = {
		"joined", "with outer frames of other samples, after [joined]",
		"" },
};

enum seam_stack_end seam_stack_end_parse(const char *key)
{
	unsigned int end = 0;

	while (end < SEAM_STACK_N_ENDS &&
	       strcmp(seam_stack_ends[end].key, key) != 0)
		end++;
	return (enum seam_stack_end)end;
}

void seam_stack_counts_add_module(struct seam_stack_counts *counts,
				  enum seam_stack_end end, const char *path,
				  uint64_t n)
{
	struct seam_stack_module *module, *least = counts->modules;
	size_t size = strlen(path);

	/* the end of a path that is too long has the file's name */
	if (size >= SEAM_STACK_PATH)
		path += size - SEAM_STACK_PATH + 1;
	for (size_t i = 0; i < counts->n_modules; i++) {
		module = &counts->modules[i];
		if (module->end == end && strcmp(module->path, path) == 0) {
			module->n += n;
			return;
		}
		if (module->n < least->n)
			least = module;
	}
	if (counts->n_modules < SEAM_STACK_MAX_MODULES) {
		module = &counts->modules[counts->n_modules++];
	} else {
		module = least;
		if (module->n > n)
			return;
	}
	*module = (struct seam_stack_module) { .n = n, .end = (uint8_t)end };
	memcpy(module->path, path, strlen(path) + 1);
}

void seam_stack_counts_add(struct seam_stack_counts *counts,
			   enum seam_stack_end end, const char *path)
{
	if (end < SEAM_STACK_N_ENDS)
		counts->n_ended[end]++;
	counts->n_empty += end == SEAM_STACK_ABSENT;
	counts->n_32_bit += end == SEAM_STACK_OF_32_BIT;
	if (path && end != SEAM_STACK_COMPLETE && end < SEAM_STACK_JOINED &&
	    !seam_stack_end_is_cut(end))
		seam_stack_counts_add_module(counts, end, path, 1);
}

void seam_stack_counts_merge(struct seam_stack_counts *counts,
			     const struct seam_stack_counts *from)
{
	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		counts->n_ended[i] += from->n_ended[i];
	counts->n_empty += from->n_empty;
	counts->n_32_bit += from->n_32_bit;
	counts->n_kernel_cut += from->n_kernel_cut;
	counts->n_jvm += from->n_jvm;
	if (counts->dump_bytes < from->dump_bytes)
		counts->dump_bytes = from->dump_bytes;
	for (size_t i = 0; i < from->n_modules; i++)
		seam_stack_counts_add_module(counts, from->modules[i].end,
					     from->modules[i].path,
					     from->modules[i].n);
}

uint64_t seam_stack_counts_total(const struct seam_stack_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		n += counts->n_ended[i];
	return n;
}

bool seam_stack_counts_exist(const struct seam_stack_counts *counts)
{
	return seam_stack_counts_total(counts) || counts->n_empty ||
	       counts->n_32_bit;
}

static double share(uint64_t n, uint64_t whole)
{
	return whole ? 100.0 * (double)n / (double)whole : 0;
}

double seam_stack_counts_percent(const struct seam_stack_counts *counts)
{
	return share(counts->n_ended[SEAM_STACK_COMPLETE],
		     seam_stack_counts_total(counts));
}

/* Equal numbers in the order of their names, for a stable output. */
static int compare(const void *a, const void *b)
{
	const struct seam_stack_module *x = a, *y = b;
	int by_path = strcmp(x->path, y->path);

	return x->n != y->n ? (x->n < y->n) - (x->n > y->n) :
	       by_path ? by_path : x->end - y->end;
}

void seam_stack_counts_sort(struct seam_stack_counts *counts)
{
	qsort(counts->modules, counts->n_modules, sizeof(counts->modules[0]),
	      compare);
}

/* What to do about most stacks that end by @end, most of them in @path. */
static const char *advice_for(const struct seam_stack_counts *counts,
			      enum seam_stack_end end, const char *path)
{
	if (end == SEAM_STACK_WITHOUT_CFI && *path == '[')
		return " (some JITs have an option that keeps frame pointers)";
	if (end != SEAM_STACK_TRUNCATED)
		return seam_stack_ends[end].advice;
	return counts->dump_bytes && counts->dump_bytes < SEAM_STACK_MAX_COPY ?
	       " (a larger one: --call-graph auto,SIZE)" : "";
}

bool seam_stack_counts_advise(const struct seam_stack_counts *counts,
			      char *text, size_t cap)
{
	unsigned int worst = SEAM_STACK_COMPLETE + 1;
	uint64_t total = seam_stack_counts_total(counts);
	double percent = seam_stack_counts_percent(counts);
	double joined = share(counts->n_ended[SEAM_STACK_JOINED], total);
	double of_32_bit = share(counts->n_32_bit, total + counts->n_32_bit);
	const struct seam_stack_module *most = NULL;
	const char *path;
	char more[48] = "";

	if (of_32_bit > 100 - ENOUGH_PERCENT) {
		snprintf(text, cap, "%.1f %% of the user stacks are of 32-bit "
			 "tasks: by frame pointers (build them with "
			 "-fno-omit-frame-pointer)", of_32_bit);
		return true;
	}
	if (total == 0 || percent + joined >= ENOUGH_PERCENT)
		return false;
	if (counts->n_jvm >
	    (total - counts->n_ended[SEAM_STACK_COMPLETE]) / 2) {
		snprintf(text, cap, "%.1f %% of the user stacks are complete: "
			 "a JVM's code has no frame pointers "
			 "(java -XX:+PreserveFramePointer)", percent);
		return true;
	}
	/* of stacks that are not even joined: the end and file of most */
	for (unsigned int i = worst + 1; i < SEAM_STACK_JOINED; i++)
		if (counts->n_ended[i] > counts->n_ended[worst])
			worst = i;
	for (size_t i = 0; i < counts->n_modules; i++)
		if (counts->modules[i].end == worst &&
		    counts->modules[i].n > (most ? most->n : 0))
			most = &counts->modules[i];
	path = most ? most->path : "";
	if (joined > 0)
		snprintf(more, sizeof(more), ", %.1f %% more after [joined]",
			 joined);
	snprintf(text, cap, "%.1f %% of the user stacks are complete%s; "
		 "%.1f %% end early: %s%s%s%s", percent, more,
		 share(counts->n_ended[worst], total),
		 seam_stack_ends[worst].text,
		 *path ? ", most in " : "", path,
		 advice_for(counts, worst, path));
	return true;
}
