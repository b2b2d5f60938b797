/* SPDX-License-Identifier: MIT */
/* load.c - what a path holds, and who reads it; see load.h */
#include "model/load.h"

#include <errno.h>
#include <inttypes.h>

#include "base/text.h"
#include "model/input.h"
#include "model/perf/load_perf.h"
#include "model/xray/load_xray.h"
#include "wire/perf/perf_data.h"

/*
 * What ran and should have been recorded.  How many samples it would have had
 * nobody knows, so none are counted.
 */
static void tell_not_recorded(struct seam_profile *profile,
			      const struct seam_manifest *m, uint32_t name)
{
	if (m->n_refused) {
		seam_profile_lost(profile, "threads not sampled", name, 0, 0);
		seam_profile_note(profile, "%" PRIu64 " threads were not "
			"sampled: their events could not be opened",
			m->n_refused);
	}
	if (m->n_stopped) {
		seam_profile_lost(profile, "programs with another user's "
				  "rights", name, 0, 0);
		seam_profile_note(profile, "%" PRIu64 " programs run with "
			"another user's rights (setuid): the kernel stopped "
			"their events", m->n_stopped);
	}
	if (m->n_cpus_back) {
		seam_profile_lost(profile, "CPUs that went offline", name, 0,
				  0);
		seam_profile_note(profile, "%" PRIu64 " CPUs went offline "
			"and came back: not recorded from then on, for up to "
			"%.2f s", m->n_cpus_back, (double)m->cpu_ns / 1e9);
	}
	if (m->n_cpus_new) {
		seam_profile_lost(profile, "CPUs that came online", name, 0,
				  0);
		seam_profile_note(profile, "%" PRIu64 " CPUs came online "
			"after the start: not recorded", m->n_cpus_new);
	}
	if (m->n_unseen)
		seam_profile_note(profile, "%" PRIu64 " threads ended before "
			"they could be opened: not sampled", m->n_unseen);
}

/* What the bundle says beyond its data file. */
static void tell_manifest(struct seam_profile *profile,
			  const struct seam_input *recording)
{
	const struct seam_manifest *m = &recording->manifest;
	uint32_t name = seam_strings_put(&profile->strings, "recording");

	if (recording->bad_manifest.code)
		seam_profile_note(profile, "meta.json is not used: %s",
				  recording->bad_manifest.cause[0]);
	for (size_t i = 0; i < m->n_left_out; i++)
		seam_profile_note(profile, "left out: %s", m->left_out[i]);
	if (m->owner && !m->complete) {
		seam_profile_note(profile, "the recording was not ended: its "
			"recorder was killed, or still runs");
		seam_profile_lost(profile, "what the rings held at the end",
				  name, 0, 0);
	}
	if (m->n_unwritten)
		seam_profile_lost(profile, "not written", name,
				  m->n_unwritten, 0);
	/* Names and no samples: not to be counted among those. */
	if (m->n_jit_lost) {
		seam_profile_lost(profile, "JIT code not received", name, 0,
				  0);
		seam_profile_note(profile, "%" PRIu64 " of %" PRIu64
				  " pieces of code, as the JITs count them, "
				  "did not reach the recording; a larger "
				  "--jit-ring may help", m->n_jit_lost,
				  m->n_jit_lost + m->n_jit);
	}
	if (m->n_jit_bad || m->n_jit_unproven)
		seam_profile_note(profile, "JIT code that was not believed: %"
				  PRIu64 " records, %" PRIu64 " streams",
				  m->n_jit_bad, m->n_jit_unproven);
	tell_not_recorded(profile, m, name);
	if (m->n_bad_bytes)
		seam_profile_lost(profile, "damaged in the ring", name, 0,
				  m->n_bad_bytes);
}

/* Files that cost the process which read them its life, one line each. */
static void tell_readers(struct seam_profile *profile,
			 const struct seam_symbols *symbols)
{
	const char *without = seam_symbols_unprotected(symbols);
	char shown[256];

	for (uint32_t i = 0; i < seam_symbols_n_modules(symbols); i++)
		if (seam_symbols_lost(symbols, i))
			seam_profile_note(profile, "no names of '%s': %s",
				seam_text_copy(shown, sizeof(shown),
					       seam_symbols_path(symbols, i),
					       SEAM_TEXT_TERMINAL),
				seam_symbols_lost(symbols, i));
	if (without)
		seam_profile_detail(profile, "the process that reads binaries "
				    "could not be limited in: %s", without);
}

static int load_perf(struct seam_profile *profile,
		     const struct seam_input *recording,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	const struct seam_manifest *m = &recording->manifest;
	struct seam_symbols *symbols;
	struct seam_perf_input input = {
		.data = &recording->data, .parts = recording->parts,
		.n_parts = recording->n_parts,
		.kernel = {
			.boot_id = m->boot_id,
			.build_id = m->kernel_build_id_size ?
				    m->kernel_build_id : NULL,
			.build_id_size = m->kernel_build_id_size,
			.text_addr = m->kernel_text_addr,
		},
		.jit = {
			.paths = options->jit, .n_paths = options->n_jit,
			.bundle = recording->folder,
			.recording = recording->folder ? NULL :
				     recording->path,
		},
		.n_paused = m->n_paused,
		.manifest = m, .written_ns = recording->written_ns,
		.by_record = options->by_record,
		.vdso_build_id = { m->vdso_build_id, m->vdso_build_id_size },
	};
	int r;

	symbols = seam_symbols_new(&(struct seam_symbols_options) {
		.bundle = recording->folder, .symfs = options->symfs,
		.n_symfs = options->n_symfs, .no_inline = options->no_inline,
		.no_lines = options->no_lines,
		.debuginfod = options->debuginfod,
		.isolated = options->isolated,
	});
	if (!symbols)
		return seam_err_set(err, -ENOMEM, "out of memory");
	r = seam_load_perf(profile, &input, symbols, err);
	tell_readers(profile, symbols);
	seam_symbols_free(symbols);
	return r;
}

static int load_trace(struct seam_profile *profile, struct seam_trace *trace,
		      const struct seam_load_options *options,
		      struct seam_err *err)
{
	struct seam_symbols *symbols;
	int r;

	if (options->time &&
	    seam_trace_select(trace, options->time, NULL) == -ENOMEM)
		return seam_err_set(err, -ENOMEM, "out of memory");

	symbols = seam_symbols_new(&(struct seam_symbols_options) {
		.symfs = options->symfs, .n_symfs = options->n_symfs,
		.no_inline = true, .no_lines = options->no_lines,
		.debuginfod = options->debuginfod,
		.isolated = options->isolated,
	});
	if (!symbols)
		return seam_err_set(err, -ENOMEM, "out of memory");
	r = seam_load_xray(profile, trace, options->map, symbols, err);
	tell_readers(profile, symbols);
	seam_symbols_free(symbols);
	return r;
}

static int load_xray(struct seam_profile *profile, struct seam_bytes bytes,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	struct seam_trace trace;
	int r = seam_trace_from_bytes(&trace, bytes, err);

	if (!r) {
		r = load_trace(profile, &trace, options, err);
		seam_trace_close(&trace);
	}
	return r;
}

static int load(struct seam_profile *profile,
		const struct seam_input *recording,
		const struct seam_load_options *options, struct seam_err *err)
{
	struct seam_bytes bytes = recording->data.bytes;

	if (seam_perf_data_is(bytes))
		return load_perf(profile, recording, options, err);
	if (seam_load_xray_is(bytes))
		return load_xray(profile, bytes, options, err);
	if (seam_load_xray_refuses(bytes, err))
		return -ENOTSUP;
	return seam_err_set(err, -EBADMSG, bytes.size ?
			    "not a recording that Seam knows" :
			    "the file is empty");
}

int seam_load(struct seam_profile *profile, const char *path,
	      const struct seam_load_options *options, struct seam_err *err)
{
	struct seam_input recording;
	int r = seam_input_open(&recording, path, err);

	if (r == 0) {
		r = load(profile, &recording, options, err);
		tell_manifest(profile, &recording);
	}
	seam_input_close(&recording);
	return r;
}

int seam_load_logs(struct seam_profile *profile, const char *const *paths,
		   size_t n_paths, const struct seam_load_options *options,
		   struct seam_err *err)
{
	struct seam_trace trace;
	int r = seam_trace_open(&trace, paths, n_paths, err);

	if (r)
		return seam_err_add(err, r, "several files at once can only "
				    "be XRay logs of one program");
	r = load_trace(profile, &trace, options, err);
	seam_trace_close(&trace);
	return r;
}
