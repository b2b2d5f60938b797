/* SPDX-License-Identifier: MIT */
/* finish_bundle.c - keep symbols, dumps and maps; tell what was left out; finish_bundle.h */
#include "record/finish_bundle.h"

#include "record/session.h"

#include <errno.h>
#include <inttypes.h>

static void keep_kernel(struct seam_recording *recording, struct seam_session *s)
{
	struct seam_err err = { 0 };
	int r = seam_kept_kernel(&s->kept_kernel, recording->bundle.dir, &err);

	if (r == 0)
		return;
	seam_session_note(s, false, "the kernel's symbols were not kept: %s",
			    err.cause[0]);
	/* who may not see them has lost nothing that could be had */
	recording->skipped |= r != -EACCES && r != -EPERM;
}

static void tell(const struct seam_session *s, uint64_t n, const char *what)
{
	if (n)
		seam_session_note(s, false, "%" PRIu64 " %s", n, what);
}

static void tell_why(const struct seam_session *s,
		     const struct seam_err *why, uint64_t n, const char *what)
{
	if (n)
		seam_session_note(s, false, "%" PRIu64 " dumps or maps of "
			"JITs %s%s%s", n, what, why->n_causes ? ": " : "",
			why->n_causes ? why->cause[0] : "");
}

static void tell_of_files(const struct seam_session *s,
			  const struct seam_kept_files_counts *c)
{
	if (c->n_copied)
		seam_session_note(s, true, "%" PRIu64 " mapped files were "
				    "kept", c->n_copied);
	tell(s, c->n_missed, "mapped files were gone before they could be "
	     "kept: their symbols may be missing");
	if (c->n_failed)
		seam_session_note(s, false, "cannot write %" PRIu64
			" mapped files (the vdso may be one) into the "
			"recording: their symbols may be missing",
			c->n_failed);
	tell(s, c->n_too_large, "mapped files are too large to be kept");
	tell(s, c->n_refused, "mapped files were not kept: their program's "
	     "user may not read them");
	tell(s, c->n_leased, "mapped files were not kept: another process "
	     "had a lease on them");
	tell(s, c->n_stuck, "mapped files were not kept: they could not be "
	     "read in time");
	tell(s, c->n_interrupted, "mapped files were not looked at, because a "
	     "signal ended that: symbols may be missing");
	tell(s, s->kept_hits.n_without, "hit mappings were not kept: their files "
	     "have no build id");
	tell(s, s->kept_hits.n_left_out, "pages and mappings were not looked at "
	     "for --keep-files: there are too many");
	tell(s, c->n_too_many, "mappings of files were beyond those that a "
	     "recording remembers: symbols may be missing");
}

static void tell_of_jit(const struct seam_session *s,
			const struct seam_kept_jit_counts *c)
{
	tell_why(s, &c->why, c->n_refused, "were not believed, so not kept");
	tell_why(s, &c->why, c->n_leased, "were not kept");
	tell_why(s, &c->why, c->n_failed, "could not be kept");
	tell_why(s, &c->why, c->n_too_large, "are too large to be kept");
	tell(s, c->n_stuck, "processes with JIT code could not be read in "
	     "time: names may be missing");
	tell(s, c->n_interrupted, "processes with JIT code were not looked "
	     "at, because a signal ended that");
	if (c->n_too_many)
		seam_session_note(s, false, "there were more processes with "
			"JIT code than can be kept: of some, names may be "
			"missing");
}

/* What is left of --max-size for files beside the data. */
static uint64_t budget(const struct seam_recording *recording,
		       const struct seam_session *s)
{
	uint64_t most = s->options->max_bytes, taken;

	if (!most)
		return UINT64_MAX;
	taken = seam_session_bytes(s, &recording->data);
	return taken < most ? most - taken : 0;
}

void seam_recording_add_files(struct seam_recording *recording,
			      struct seam_session *s)
{
	const struct seam_kept_destination ending = {
		.bundle = &recording->bundle, .is_snapshot = recording->is_snapshot,
		.budget_bytes = budget(recording, s),
		.wait = seam_rounds_wait, .context = s,
	};
	const struct seam_kept_files_counts *c = &recording->kept;

	if (recording->data.counts.n_kernel_samples)
		keep_kernel(recording, s);
	if (s->options->keep_files)
		seam_kept_hits_mark(&s->kept_hits, &s->kept_files);
	seam_kept_files_copy(&s->kept_files, &ending, &recording->kept);
	tell_of_files(s, c);
	tell_of_jit(s, &c->jit);
	recording->skipped |= c->n_failed || c->jit.n_failed ||
			   c->n_interrupted || c->jit.n_interrupted;
}

struct seam_manifest_kept seam_kept_manifest(const struct seam_kept_files_counts *c)
{
	return (struct seam_manifest_kept) {
		.n_files = c->n_copied,
		.n_file_bytes = c->n_bytes,
		.n_dumps = c->jit.n_copied,
		.n_dump_bytes = c->jit.n_bytes,
		.n_missed = c->n_missed,
		.n_refused = c->n_refused + c->jit.n_refused,
		.n_leased = c->n_leased + c->jit.n_leased,
		.n_stuck = c->n_stuck + c->jit.n_stuck,
		.n_too_large = c->n_too_large + c->jit.n_too_large,
		.n_too_many = c->n_too_many + c->jit.n_too_many,
		.n_unwritten = c->n_failed + c->jit.n_failed,
		.n_interrupted = c->n_interrupted + c->jit.n_interrupted,
	};
}
