/* SPDX-License-Identifier: MIT */
/* finish_bundle.c - copy files into the bundle, and report; recording.h */
#include "record/session.h"

#include "symbol/kernel/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define KERNEL_SYMBOLS "kernel.sym.zst"

/* Link the last copy.  False: no copy, other modules, another file system. */
static bool link_kernel(const struct seam_session *s, int dir)
{
	char path[32];

	if (s->kernel_fd <= 0 || !s->kernel_modules ||
	    s->kernel_modules != seam_kernel_modules())
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->kernel_fd);
	return linkat(AT_FDCWD, path, dir, KERNEL_SYMBOLS,
		      AT_SYMLINK_FOLLOW) == 0;
}

/*
 * Each snapshot has the symbols of the kernel: all but the first are links to
 * one file, as long as no module is loaded or unloaded.
 */
static void copy_kernel(struct seam_recording *recording,
			struct seam_session *s)
{
	int dir = recording->bundle.dir, r;
	struct seam_err err = { 0 };
	uint64_t modules;

	if (link_kernel(s, dir))
		return;
	modules = seam_kernel_modules();
	r = seam_kernel_capture(dir, KERNEL_SYMBOLS, &err);
	if (r == 0) {
		if (s->kernel_fd > 0)
			close(s->kernel_fd);
		s->kernel_fd = openat(dir, KERNEL_SYMBOLS, O_RDONLY |
				      O_NOFOLLOW | O_CLOEXEC);
		s->kernel_modules = modules;
		return;
	}
	seam_session_note(s, false, "the kernel's symbols were not copied: %s",
			  err.cause[0]);
	/* what this user may not read is not counted as skipped */
	recording->skipped |= r != -EACCES && r != -EPERM;
}

/* One line for each cause; the first error is in the line of its cause. */
static void report(const struct seam_session *s, const char *kind,
		   const struct seam_kept_counts *counts)
{
	for (size_t i = 0; i < SEAM_KEPT_N_CAUSES; i++) {
		bool has_why = counts->why.n_causes && i == counts->why_cause;

		if (counts->n_left_out[i])
			seam_session_note(s, false, "%" PRIu64 " %s %s%s%s",
					  counts->n_left_out[i], kind,
					  seam_count_rows[SEAM_COUNT_KEPT_GONE +
							  i].many,
					  has_why ? ": " : "",
					  has_why ? counts->why.cause[0] : "");
	}
}

static void report_hits(const struct seam_session *s)
{
	if (s->kept_hits.n_left_out + s->kept_hits.n_unjoined)
		seam_session_note(s, false, "%" PRIu64 " pages and mappings "
			"ignored by --keep-files: too many",
			s->kept_hits.n_left_out + s->kept_hits.n_unjoined);
}

/* The bytes of --max-size that are left for files beside "data". */
static uint64_t budget(const struct seam_recording *recording,
		       const struct seam_session *s)
{
	uint64_t max = s->options->max_bytes, used;

	if (!max)
		return UINT64_MAX;
	used = seam_session_bytes(s, &recording->data);
	return used < max ? max - used : 0;
}

static bool is_incomplete(const struct seam_kept_counts *counts)
{
	return counts->n_left_out[SEAM_KEPT_NOT_WRITTEN] ||
	       counts->n_left_out[SEAM_KEPT_INTERRUPTED];
}

void seam_recording_add_files(struct seam_recording *recording,
			      struct seam_session *s)
{
	const struct seam_kept_destination to = {
		.bundle = &recording->bundle,
		.is_snapshot = recording->is_snapshot,
		.budget_bytes = budget(recording, s),
		.wait = seam_session_wait, .context = s,
	};
	const struct seam_kept_files_counts *kept = &recording->kept;

	if (recording->data.counts.n_kernel_samples)
		copy_kernel(recording, s);
	if (s->options->keep_files)
		seam_kept_hits_mark(&s->kept_hits, &s->kept_files);
	seam_kept_files_copy(&s->kept_files, &to, &recording->kept);
	if (kept->files.n_copied)
		seam_session_note(s, true, "%" PRIu64 " mapped files copied",
				  kept->files.n_copied);
	report(s, "mapped files", &kept->files);
	report_hits(s);
	report(s, "jitdumps or perf maps", &kept->jit);
	recording->skipped |= is_incomplete(&kept->files) ||
			      is_incomplete(&kept->jit);
}
