/* SPDX-License-Identifier: MIT */
/*
 * load.c - each input to its reader, and all times to one clock; see load.h
 *
 * Samples come first, because the calls of XRay logs are aligned with them.
 */
#include "model/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "model/fleet/load_batch.h"
#include "model/input.h"
#include "model/perf/load_perf.h"
#include "model/profile/stack_ends.h"
#include "model/sysprof/load_sysprof.h"
#include "model/xray/load_xray.h"
#include "wire/fleet/batch_file.h"
#include "wire/perf/perf_data.h"
#include "wire/sysprof/sysprof.h"

/*
 * Losses that the manifest has, and the data file has not.  How many samples
 * they cost is not known, but where what was lost are records or bytes.
 */
static void add_losses(struct seam_profile *profile,
		       const struct seam_counts *counts, uint32_t name)
{
	char line[SEAM_COUNT_LINE];

	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];
		uint64_t n = counts->n[i];

		if (!n || row->is_in_data)
			continue;
		if (row->cause)
			seam_profile_lost(profile, row->cause, name,
				row->amount == SEAM_COUNT_IS_RECORDS ? n : 0,
				row->amount == SEAM_COUNT_IS_BYTES ? n : 0);
		if (!row->amount && seam_counts_describe(counts, i, line))
			seam_profile_note(profile, "%s", line);
	}
}

/* What a feature that the recorder did without means to a reader. */
static const char *without(const char *feature)
{
	static const char *const texts[][2] = {
		{ "kernel", "samples of user code only: the user who recorded "
		  "has no right to samples of the kernel" },
		{ "build-ids", "no build ids of mapped files: the kernel is "
		  "older than Linux 5.12" },
		{ "lost-counts", "no exact count of lost records: the kernel "
		  "is older than Linux 6.0" },
		{ "ksymbols", "no names of BPF programs: the kernel is older "
		  "than Linux 5.1" },
		{ "ring-space", "rings were smaller than requested: the user "
		  "who recorded may not lock as much memory" },
		{ "stack-copies", "stacks by frame pointers only: the recorder "
		  "had no copies of stacks" },
		{ "wakers", "no wakers: the user who recorded has no right to "
		  "wakings of all threads" },
		{ "switch-stacks", "no stacks at the begin of waits: the user "
		  "who recorded has no right to samples of the kernel" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(texts); i++)
		if (strcmp(feature, texts[i][0]) == 0)
			return texts[i][1];
	return feature;
}

/* Losses and notes that the manifest has, and the data file has not. */
static void note_manifest(struct seam_profile *profile,
			  const struct seam_input *recording)
{
	const struct seam_manifest *m = &recording->manifest;
	const struct seam_stack_counts beside = {
		.n_kernel_cut = m->stacks.n_kernel_cut,
		.dump_bytes = m->stacks.dump_bytes,
	};
	uint32_t name = seam_strings_put(&profile->strings, "recording");

	if (recording->bad_manifest.code)
		seam_profile_note(profile, "meta.json is not used: %s",
				  recording->bad_manifest.cause[0]);
	for (size_t i = 0; i < m->n_left_out; i++)
		seam_profile_note(profile, "%s", without(m->left_out[i]));
	if (seam_manifest_unended(m)) {
		seam_profile_note(profile, "%s", seam_manifest_unended(m));
		seam_profile_lost(profile, "what the rings held at the end",
				  name, 0, 0);
	}
	add_losses(profile, &m->counts, name);
	/* samples with ends are counted when selected: see stack_ends.h */
	seam_stack_counts_merge(&profile->stack_counts, profile->samples.end ?
				&beside : &m->stacks);
	seam_stack_counts_sort(&profile->stack_counts);
}

/* Why many stacks are incomplete. */
static void note_stacks(struct seam_profile *profile)
{
	struct seam_stack_counts all;
	char text[600];

	if (seam_stack_ends_count(profile, NULL, &all))
		return;
	/* those of a sampler are of this recording too */
	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		all.n_ended[i] += profile->guest_counts.n_host[i];
	if (seam_stack_counts_advise(&all, text, sizeof(text)))
		seam_profile_note(profile, "%s", text);
}

/* A note for each file on which the process that read it ended. */
static void note_readers(struct seam_profile *profile,
			 const struct seam_symbols *symbols)
{
	const char *without = seam_symbols_unprotected(symbols);
	struct seam_module_state state;
	char shown[256];

	for (uint32_t i = 0; seam_symbols_state(symbols, i, &state); i++)
		if (state.is_lost)
			seam_profile_note(profile, "no names of '%s': %s",
				seam_text_copy(shown, sizeof(shown),
					       state.path, SEAM_TEXT_TERMINAL),
				state.problem);
	if (without)
		seam_profile_detail(profile, "the process that reads binaries "
				    "could not be limited in: %s", without);
}

/* All that is read of a perf.data; it borrows from both. */
static struct seam_perf_input
perf_input(const struct seam_input *recording,
	   const struct seam_load_options *options)
{
	const struct seam_manifest *m = &recording->manifest;

	return (struct seam_perf_input) {
		.data = &recording->data, .parts = recording->parts.items,
		.n_parts = recording->parts.n,
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
		.n_paused = m->counts.n[SEAM_COUNT_PAUSED],
		.manifest = m, .written_ns = recording->written_ns,
		.by_record = options->by_record,
		.no_joins = options->no_joins,
		.vdso_build_id = { m->vdso_build_id, m->vdso_build_id_size },
	};
}

static int load_perf(struct seam_profile *profile,
		     const struct seam_input *recording,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	struct seam_perf_input input = perf_input(recording, options);
	struct seam_symbols_options how = options->symbols;
	struct seam_symbols *symbols;
	int r;

	how.bundle = recording->folder;
	symbols = seam_symbols_new(&how);
	if (!symbols)
		return seam_err_no_memory(err);
	r = seam_load_perf(profile, &input, symbols, err);
	note_readers(profile, symbols);
	seam_symbols_free(symbols);
	return r;
}

/* -- XRay logs ---------------------------------------------------------- */

static void free_trace(void *object)
{
	seam_trace_close(object);
	free(object);
}

/* An empty trace that lives as long as @profile; NULL: no memory. */
static struct seam_trace *add_trace(struct seam_profile *profile)
{
	struct seam_trace *trace = malloc(sizeof(*trace));

	if (!trace)
		return NULL;
	seam_trace_init(trace);
	return seam_profile_own(profile, trace, free_trace) ? NULL : trace;
}

/* Bring the logs to the clock of the samples, if there are any. */
static void align(struct seam_profile *profile, struct seam_trace *trace)
{
	bool is_tied = seam_trace_is_tied(trace);

	if (!profile->has_other_clock)
		profile->clock_skew_ns = seam_trace_skew_ns(trace);
	if (profile->samples.n == 0) {
		profile->has_other_clock |= !is_tied;
		return;
	}
	if (profile->has_other_clock)
		seam_profile_note(profile, "the clock of the samples is not "
			"CLOCK_MONOTONIC: the calls of the XRay logs could "
			"not be aligned with them, and begin where the "
			"recording does");
	else if (!is_tied)
		seam_profile_note(profile, "XRay logs without wall time "
			"records, or without a frequency, could not be "
			"aligned with the samples: their calls begin where "
			"the recording does");
	if (profile->has_other_clock || !is_tied)
		seam_trace_move(trace, !profile->has_other_clock,
				profile->start_ns);
}

/* Add the calls of @trace, which is arranged. */
static int load_trace(struct seam_profile *profile, struct seam_trace *trace,
		      const struct seam_load_options *options,
		      struct seam_err *err)
{
	struct seam_symbols_options how = options->symbols;
	struct seam_symbols *symbols;
	uint64_t start, end, gap;
	int r;

	align(profile, trace);
	if (seam_trace_span(trace, &start, &end))
		return seam_err_no_memory(err);
	if (profile->samples.n) {
		/* samples may be few: not those of one short run */
		gap = start > profile->end_ns ? start - profile->end_ns :
		      end < profile->start_ns ? profile->start_ns - end : 0;
		if (gap >= SEAM_NS_PER_S)
			seam_profile_note(profile, "the XRay logs and the "
				"samples have no time in common: %.3f s lie "
				"between them", (double)gap / 1e9);
		start = start < profile->start_ns ? start : profile->start_ns;
		end = end > profile->end_ns ? end : profile->end_ns;
	}
	if (options->time)
		seam_time_range_parse(&trace->range, options->time, start, end,
				      NULL);
	how.no_inline = true;
	/* of maps beside logs only names are read */
	how.no_lines |= !options->map;
	symbols = seam_symbols_new(&how);
	if (!symbols)
		return seam_err_no_memory(err);
	r = seam_load_xray(profile, trace, options->map, symbols, err);
	note_readers(profile, symbols);
	seam_symbols_free(symbols);
	return r;
}

static int load_xray(struct seam_profile *profile,
		     struct seam_input *recording,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	struct seam_trace *trace = add_trace(profile);
	int r = trace ? seam_trace_add_file(trace, recording->path,
					    &recording->data, err) :
		seam_err_no_memory(err);

	if (!r)
		r = seam_trace_arrange(trace, err);
	return r ? r : load_trace(profile, trace, options, err);
}

/* An unreadable log is noted and skipped; the other inputs are used. */
static void note_unread(void *context, const char *name,
			const struct seam_err *err)
{
	struct seam_profile *profile = context;
	char shown[256];

	seam_text_copy(shown, sizeof(shown), name, SEAM_TEXT_TERMINAL);
	seam_profile_note(profile, "xray/%s is not read: %s", shown,
			  err->cause[0]);
	seam_profile_lost(profile, "XRay log not read",
			  seam_strings_put(&profile->strings, shown), 0, 0);
}

/* The logs of a bundle: xray/PID.xray. */
static int load_logs(struct seam_profile *profile, const char *bundle,
		     const struct seam_load_options *options,
		     struct seam_err *err)
{
	struct seam_trace *trace = add_trace(profile);
	struct seam_err why = { 0 };
	int r = trace ? seam_trace_add_bundle(trace, bundle, note_unread,
					      profile, &why) : -ENOMEM;

	if (!r && trace->logs.n)
		r = seam_trace_arrange(trace, &why);
	if (r == -ENOMEM)
		return seam_err_no_memory(err);
	if (r) {
		note_unread(profile, "*.xray", &why);
		seam_trace_close(trace);
	}
	return trace->logs.n ? load_trace(profile, trace, options, err) : 0;
}

/* -- all inputs --------------------------------------------------------- */

static int load(struct seam_profile *profile, struct seam_input *recording,
		const struct seam_load_options *options, struct seam_err *err)
{
	struct seam_bytes bytes = recording->data.bytes;
	char hex[2 * 8 + 1];
	int r;

	if (recording->is_batches)
		return seam_load_batch_folder(profile, recording->folder, err);
	if (seam_batch_file_is(bytes))
		return seam_load_batch(profile, bytes, err);
	if (recording->is_logs)
		return options->no_logs ? 0 :
		       load_logs(profile, recording->folder, options, err);
	if (seam_load_xray_is(bytes))
		return load_xray(profile, recording, options, err);
	if (seam_sysprof_is(bytes))
		return seam_load_sysprof(profile, &recording->data,
					 options->like_parser, err);
	if (!seam_perf_data_is(bytes) && seam_load_xray_refuses(bytes, err))
		return -ENOTSUP;
	if (!bytes.size)
		return seam_err_set(err, -EBADMSG, "the file is empty");
	if (!seam_perf_data_is(bytes))
		return seam_err_set(err, -EBADMSG, "not a recording that Seam "
			"knows: it begins, at byte 0, with %s",
			seam_text_hex(hex, bytes.data,
				      bytes.size < 8 ? bytes.size : 8));
	r = load_perf(profile, recording, options, err);
	if (!r && recording->folder && !options->no_logs)
		r = load_logs(profile, recording->folder, options, err);
	return r;
}

int seam_load(struct seam_profile *profile, const char *path,
	      const struct seam_load_options *options, struct seam_err *err)
{
	char trigger[SEAM_INPUT_TRIGGER];
	struct seam_input recording;
	int r = seam_input_open(&recording, path, err);

	if (r == 0) {
		r = load(profile, &recording, options, err);
		note_manifest(profile, &recording);
		note_stacks(profile);
		/* why a snapshot was made */
		for (size_t i = 0; seam_input_trigger(&recording, i, trigger);
		     i++)
			seam_profile_note(profile, "%s", trigger);
	}
	seam_input_close(&recording);
	return r;
}

int seam_load_logs(struct seam_profile *profile, const char *const *paths,
		   size_t n_paths, const struct seam_load_options *options,
		   struct seam_err *err)
{
	struct seam_trace *trace = add_trace(profile);
	int r = 0;

	if (!trace)
		return seam_err_no_memory(err);
	for (size_t i = 0; !r && i < n_paths; i++)
		r = seam_trace_add(trace, paths[i], err);
	if (r)
		return seam_err_add(err, r, "several files at once can only "
				    "be XRay logs of one program");
	r = seam_trace_arrange(trace, err);
	return r ? r : load_trace(profile, trace, options, err);
}

int seam_load_waits(struct seam_profile *profile, const char *path,
		    struct seam_waits *waits, struct seam_err *err)
{
	const struct seam_load_options options = { .no_logs = true };
	struct seam_input recording;
	struct seam_perf_input input;
	int r = seam_input_open(&recording, path, err);

	if (r == 0 && recording.folder && !recording.is_logs &&
	    seam_perf_data_is(recording.data.bytes)) {
		input = perf_input(&recording, &options);
		input.waits = waits;
		r = seam_load_perf(profile, &input, NULL, err);
	}
	seam_input_close(&recording);
	return r;
}
