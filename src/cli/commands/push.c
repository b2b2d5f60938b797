/* SPDX-License-Identifier: MIT */
/* push.c - 'seam push': a recording into a store of a fleet's profiles */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/fleet_query.h"
#include "cli/reading.h"
#include "fleet/batch_build.h"
#include "fleet/store.h"
#include "model/input.h"
#include "wire/fleet/batch_file.h"

struct push_options {
	struct seam_reading reading;
	const char *to, *otlp;
	const char *service;
	const char *host;
	struct seam_option_list labels;
	struct seam_fleet_login login;
};

#define OPTION(...) SEAM_OPTION(struct push_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(to, STRING, 0, "to", "WHERE", "the store: a folder, or a URL",
	       .detail = "A folder is made if there is none."),
	SEAM_OTLP_OPTION(struct push_options, otlp),
	OPTION(service, STRING, 0, "service", "NAME",
	       "the service that was recorded"),
	OPTION(host, STRING, 0, "host", "NAME",
	       "the host that was recorded (the recording's)"),
	OPTION(labels, STRINGS, 0, "label", "K=V",
	       "a label of these profiles; may be given several times",
	       .detail = "Such as version=1.2 or region=eu; 16 at most."),
	SEAM_FLEET_LOGIN_OPTIONS(struct push_options, login),
	SEAM_INPUT_OPTION(struct push_options, reading),
	SEAM_SYMBOL_OPTIONS(struct push_options, reading),
};

/* A recording, and where its batches go. */
struct push {
	const struct push_options *options;
	struct seam_opened *opened;
	struct seam_input input;	/* its manifest */
	uint64_t recording;		/* its id */
	struct seam_fleet_store *store;
	uint64_t n_rows, n_bytes;
};

static const char *host_of(const struct push *p, char name[256])
{
	const char *host = p->options->host ? p->options->host :
			   p->input.manifest.host;

	if (host && *host)
		return host;
	return gethostname(name, 256) ? "unknown" : (name[255] = 0, name);
}

/* -- identity ----------------------------------------------------------- */

static uint64_t hash_text(const char *text, uint64_t seed)
{
	return text ? seam_hash_stable(text, strlen(text), seed) : seed;
}

/*
 * Of a bundle by its manifest, which names machine, boot and time; of another
 * file by its bytes.
 */
static uint64_t identify(const struct seam_input *input)
{
	const struct seam_manifest *m = &input->manifest;
	const uint64_t numbers[] = {
		m->start_ns, m->start_wall_ns, m->duration_ns, m->n_samples,
	};
	uint64_t id = hash_text(m->boot_id, hash_text(m->host, 0));

	if (!m->start_ns)
		return seam_hash_stable(input->data.bytes.data,
					input->data.bytes.size, 0);
	for (size_t i = 0; i < m->n_words; i++)
		id = hash_text(m->words[i], id);
	return seam_hash_stable(numbers, sizeof(numbers), id);
}

/* The same push has the same id, so it is stored once. */
static uint64_t agent_of(const struct push *p,
			 const struct seam_fleet_source *source)
{
	uint64_t id = hash_text(source->host, hash_text(source->service,
							p->recording));

	for (size_t i = 0; i < source->n_labels; i++)
		id ^= hash_text(source->labels[i], p->recording);
	return id;
}

/* UTC minus a time of the recording. */
static int64_t utc_of(const struct push *p)
{
	const struct seam_profile *profile = &p->opened->profile;
	const struct seam_manifest *m = &p->input.manifest;

	if (profile->utc_ns)
		return profile->utc_ns;
	if (m->start_wall_ns && !profile->has_other_clock)
		return (int64_t)(m->start_wall_ns - m->start_ns);
	seam_command_say("the recording has no time of day: its end is taken "
			 "to be when its file was written");
	return (int64_t)(p->input.written_ns - profile->end_ns);
}

/* -- batches ------------------------------------------------------------ */

static int send_batch(void *context, const struct seam_batch *batch,
		      struct seam_err *err)
{
	struct seam_native_buffer file = { 0 };
	struct push *p = context;
	int r = seam_batch_file_write(batch, &file, err);

	if (!r)
		r = seam_fleet_put(p->store, (struct seam_bytes) {
				   file.bytes.items, file.bytes.n }, err);
	p->n_rows += batch->samples.n + batch->calls.n + batch->losses.n;
	p->n_bytes += file.bytes.n;
	free(file.bytes.items);
	return r;
}

static int add_calls(struct push *p, struct seam_fleet_build *build,
		     int64_t utc_ns, struct seam_err *err)
{
	const struct seam_profile *profile = &p->opened->profile;
	struct seam_xray_map names = { 0 };
	struct seam_trace trace = { 0 };
	bool is_tied;
	int r;

	if (!profile->tracks.n)
		return 0;
	/* reading.c has printed why, where this fails */
	r = seam_reading_open_logs(&trace, &names, &p->options->reading,
				   &p->opened->path, 1) ?
	    seam_err_set(err, -EIO, "its calls cannot be read") : 0;
	is_tied = !r && seam_trace_is_tied(&trace);
	/* where load.c put them, beside the samples */
	if (!r && (!is_tied || profile->has_other_clock))
		seam_trace_move(&trace, !profile->has_other_clock,
				profile->start_ns);
	if (!r)
		r = seam_fleet_build_calls(build, &trace, &names, profile,
					   utc_ns, err);
	seam_xray_map_fini(&names);
	seam_trace_close(&trace);
	return r;
}

static int add_losses(struct push *p, struct seam_fleet_build *build,
		      int64_t utc_ns, struct seam_err *err)
{
	const struct seam_profile *profile = &p->opened->profile;
	uint64_t ns = profile->start_ns + (uint64_t)utc_ns;
	int r = 0;

	for (size_t i = 0; !r && i < profile->losses.n; i++) {
		const struct seam_loss *loss = &profile->losses.items[i];

		r = seam_fleet_build_lost(build, ns, loss->cause,
			seam_profile_text(profile, loss->source),
			loss->records, loss->bytes, err);
	}
	return r;
}

static int push_batches(struct push *p, struct seam_err *err)
{
	const struct push_options *o = p->options;
	char name[256], recording[300];
	const struct seam_fleet_source source = {
		.service = o->service, .host = host_of(p, name),
		.recording = recording,
		.labels = o->labels.items, .n_labels = o->labels.n,
	};
	struct seam_fleet_build *build;
	int64_t utc_ns = utc_of(p);
	uint64_t n = 0;
	int r;

	p->recording = identify(&p->input);
	snprintf(recording, sizeof(recording), "%.200s#%016" PRIx64,
		 seam_file_name(seam_command_named(p->opened->path)),
		 p->recording);
	r = seam_fleet_build_begin(&build, &source, (struct seam_batch_id) {
				   agent_of(p, &source), 0 }, send_batch, p,
				   err);
	if (r)
		return r;
	r = seam_fleet_build_add(build, &p->opened->profile, utc_ns, err);
	if (!r)
		r = add_calls(p, build, utc_ns, err);
	if (!r)
		r = add_losses(p, build, utc_ns, err);
	if (!r)
		r = seam_fleet_build_flush(build, err);
	n = seam_fleet_build_n_batches(build);
	seam_fleet_build_free(build);
	if (!r)
		seam_command_say("%ju row%s in %ju batch%s of %ju bytes: "
				 "recording %s", (uintmax_t)p->n_rows,
				 p->n_rows == 1 ? "" : "s", (uintmax_t)n,
				 n == 1 ? "" : "es", (uintmax_t)p->n_bytes,
				 recording);
	return r;
}

/* What the second output has not. */
static int say_missed(const struct seam_fleet_store *store)
{
	const struct seam_fleet_missed *missed = seam_fleet_missed(store);
	char why[SEAM_ERR_TEXT];

	if (!missed)
		return SEAM_EXIT_DONE;
	seam_err_text(&missed->why, why);
	seam_command_say("%ju batch%s not sent by OTLP: %s",
			 (uintmax_t)missed->n_batches,
			 missed->n_batches == 1 ? " was" : "es were", why);
	return SEAM_EXIT_LOSSY;
}

static int push(struct seam_opened *opened, const struct push_options *o)
{
	struct push p = { .options = o, .opened = opened };
	struct seam_err err = { 0 };
	int r = seam_input_open(&p.input, opened->path, &err);
	int status;

	if (!r)
		r = seam_fleet_open(&p.store, &(struct seam_fleet_place) {
			o->to, o->login.credentials, o->login.ca_file,
			o->otlp }, &err);
	if (!r)
		r = push_batches(&p, &err);
	status = r ? SEAM_EXIT_FAILED : say_missed(p.store);
	seam_fleet_close(p.store);
	seam_input_close(&p.input);
	if (r) {
		seam_err_add(&err, r, "cannot push '%s'",
			     seam_command_named(opened->path));
		return seam_command_failed(&err);
	}
	/* losses of the recording are in the store */
	seam_reading_say_losses(opened);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct push_options o = { 0 };
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if ((!o.to && !o.otlp) || !o.service)
		return seam_command_misused(self, "--to WHERE or --otlp URL, "
					    "and --service NAME are needed");
	if (argc - first > 1)
		return seam_command_misused(self, "one recording at a time");
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = push(&opened, &o);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_push_command = {
	.name = "push",
	.summary = "put a recording into a store of many",
	.synopsis = "--to WHERE|--otlp URL --service NAME [options] [FILE]",
	.description =
		"Adds the recording's samples up, in windows of 10 s, and puts "
		"them with the names of their functions, the histograms of "
		"calls and all losses into a store, where 'seam fleet' finds "
		"them beside those of other hosts and times. Binaries are read "
		"here: the store needs none.\n\n"
		"The same push again changes nothing. The recording's name and "
		"id stay with the profiles, so that the recording itself, "
		"which has more, can be found again.",
	.examples =
		"seam push --to /srv/profiles --service web\t"
		"recording.seam, into a folder\n"
		"seam push --to /srv/profiles --service web --label "
		"version=1.2 app.seam\twith a label\n"
		"seam push --otlp http://127.0.0.1:4318 --service web\t"
		"to a collector of OpenTelemetry\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
