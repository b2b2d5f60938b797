/* SPDX-License-Identifier: MIT */
/* stack_counts.c - count, order, describe; see stack_counts.h */
#include "wire/stack_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this share of complete stacks a recording needs an explanation. */
#define ENOUGH_PERCENT 90.0

/* Each end, and what a user can do about most stacks ending so. */
static const struct end {
	const char *key, *text, *advice;
} ends[SEAM_STACK_N_ENDS] = {
	[SEAM_STACK_COMPLETE] = { "complete", "complete", "" },
	[SEAM_STACK_TRUNCATED] = {
		"truncated", "deeper than the copy of the stack",
		" (a larger one: --call-graph auto,SIZE)" },
	[SEAM_STACK_WITHOUT_CFI] = {
		"without_cfi", "code without call frame information",
		" (build it with -fno-omit-frame-pointer or "
		"-fasynchronous-unwind-tables)" },
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
};

static const char *const qualities[SEAM_STACK_N_QUALITIES][2] = {
	[SEAM_STACK_BY_REGISTERS] = { "by_registers", "innermost" },
	[SEAM_STACK_BY_CFI] = { "by_cfi", "by call frame information" },
	[SEAM_STACK_BY_FRAME_POINTER] = {
		"by_frame_pointer", "by frame pointer" },
	[SEAM_STACK_BY_JOIN] = { "by_join", "of other samples" },
	[SEAM_STACK_BY_KERNEL] = { "by_kernel", "of the kernel's chain" },
};

const char *seam_stack_end_key(enum seam_stack_end end)
{
	return ends[end].key;
}

const char *seam_stack_end_text(enum seam_stack_end end)
{
	return ends[end].text;
}

enum seam_stack_end seam_stack_end_parse(const char *key)
{
	unsigned int end = 0;

	while (end < SEAM_STACK_N_ENDS && strcmp(ends[end].key, key) != 0)
		end++;
	return (enum seam_stack_end)end;
}

const char *seam_stack_quality_key(enum seam_stack_quality quality)
{
	return qualities[quality][0];
}

const char *seam_stack_quality_text(enum seam_stack_quality quality)
{
	return qualities[quality][1];
}

/* The end of a path that is too long: it has the file's name. */
static const char *shortened(const char *path)
{
	size_t n = strlen(path);

	return n < SEAM_STACK_PATH ? path : path + n - SEAM_STACK_PATH + 1;
}

static struct seam_stack_module *smallest(struct seam_stack_counts *counts)
{
	struct seam_stack_module *least = &counts->modules[0];

	for (size_t i = 1; i < counts->n_modules; i++)
		if (counts->modules[i].n < least->n)
			least = &counts->modules[i];
	return least;
}

void seam_stack_counts_add_module(struct seam_stack_counts *counts,
				  enum seam_stack_end end, const char *path,
				  uint64_t n)
{
	struct seam_stack_module *module;

	path = shortened(path);
	for (size_t i = 0; i < counts->n_modules; i++) {
		module = &counts->modules[i];
		if (module->end == end && strcmp(module->path, path) == 0) {
			module->n += n;
			return;
		}
	}
	if (counts->n_modules < SEAM_STACK_MAX_MODULES) {
		module = &counts->modules[counts->n_modules++];
	} else {
		module = smallest(counts);
		if (module->n > n)
			return;
	}
	*module = (struct seam_stack_module) { .n = n, .end = (uint8_t)end };
	memcpy(module->path, path, strlen(path) + 1);
}

void seam_stack_counts_add(struct seam_stack_counts *counts,
			   enum seam_stack_end end, const char *path)
{
	counts->n_ended[end]++;
	if (path && end != SEAM_STACK_COMPLETE && end != SEAM_STACK_TRUNCATED)
		seam_stack_counts_add_module(counts, end, path, 1);
}

void seam_stack_counts_merge(struct seam_stack_counts *counts,
			     const struct seam_stack_counts *from)
{
	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		counts->n_ended[i] += from->n_ended[i];
	for (size_t i = 0; i < SEAM_STACK_N_QUALITIES; i++)
		counts->n_frames[i] += from->n_frames[i];
	counts->n_joined += from->n_joined;
	counts->n_joined_later += from->n_joined_later;
	counts->n_continued += from->n_continued;
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

double seam_stack_counts_percent(const struct seam_stack_counts *counts)
{
	uint64_t n = seam_stack_counts_total(counts);

	return n ? 100.0 * (double)counts->n_ended[SEAM_STACK_COMPLETE] /
		   (double)n : 0;
}

uint64_t seam_stack_counts_frames(const struct seam_stack_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SEAM_STACK_N_QUALITIES; i++)
		n += counts->n_frames[i];
	return n;
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

/* The end of most incomplete stacks. */
static enum seam_stack_end worst_end(const struct seam_stack_counts *counts)
{
	unsigned int worst = SEAM_STACK_COMPLETE + 1;

	for (unsigned int i = worst + 1; i < SEAM_STACK_N_ENDS; i++)
		if (counts->n_ended[i] > counts->n_ended[worst])
			worst = i;
	return (enum seam_stack_end)worst;
}

/* The file in which most stacks ended for @end; "": none. */
static const char *worst_path(const struct seam_stack_counts *counts,
			      enum seam_stack_end end)
{
	const char *path = "";
	uint64_t most = 0;

	for (size_t i = 0; i < counts->n_modules; i++)
		if (counts->modules[i].end == end &&
		    counts->modules[i].n > most) {
			most = counts->modules[i].n;
			path = counts->modules[i].path;
		}
	return path;
}

bool seam_stack_counts_advise(const struct seam_stack_counts *counts,
			      char *text, size_t cap)
{
	enum seam_stack_end worst = worst_end(counts);
	uint64_t total = seam_stack_counts_total(counts);
	double percent = seam_stack_counts_percent(counts);
	const char *path = worst_path(counts, worst);
	double of_32_bit = counts->n_32_bit ? 100.0 *
		(double)counts->n_32_bit / (double)(total + counts->n_32_bit) :
		0;

	if (of_32_bit > 100 - ENOUGH_PERCENT) {
		snprintf(text, cap, "%.1f %% of the user stacks are of 32-bit "
			 "tasks: by frame pointers (build them with "
			 "-fno-omit-frame-pointer)", of_32_bit);
		return true;
	}
	if (total == 0 || percent >= ENOUGH_PERCENT)
		return false;
	if (counts->n_jvm >
	    (total - counts->n_ended[SEAM_STACK_COMPLETE]) / 2) {
		snprintf(text, cap, "%.1f %% of the user stacks are complete: "
			 "a JVM's code has no frame pointers "
			 "(java -XX:+PreserveFramePointer)", percent);
		return true;
	}
	snprintf(text, cap, "%.1f %% of the user stacks are complete; %.1f %% "
		 "end early: %s%s%s%s", percent,
		 100.0 * (double)counts->n_ended[worst] / (double)total,
		 ends[worst].text, *path ? ", most in " : "", path,
		 ends[worst].advice);
	return true;
}
