/* SPDX-License-Identifier: MIT */
/* existing.c - a helper's job for each process; see existing.h */
#include "record/existing.h"

#include "record/perf/auxtrace.h"
#include "record/perf/synth.h"
#include "record/plan.h"
#include "record/proc/targets.h"
#include "record/rounds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	MAX_WAITING = 64,	/* jobs, whose results are in memory */
	WAIT_MS = 20,
};

/* Only the recorder's thread uses it. */
struct existing {
	struct seam_session *s;
	uint64_t n_bytes;
	size_t n_waiting;
	uint64_t n_stuck;	/* processes */
	uint64_t n_too_large;	/* processes, beyond SEAM_EXISTING_MAX_BYTES */
	uint64_t n_left_out;	/* mappings of the others */
	int r;			/* -errno of the first write that failed */
	struct seam_err *err;
};

struct read_job {
	struct seam_helper_job job;
	int pid;
	bool namespaces;
	struct seam_synth synth;	/* the result */
};

static void read_run(struct seam_helper_job *job)
{
	struct read_job *r = (struct read_job *)job;

	seam_synth_process(&r->synth, r->pid, r->namespaces);
}

static void track_files(struct seam_session *s, const struct seam_synth *synth)
{
	for (size_t pos = 0; pos < synth->bytes.n;) {
		const uint8_t *at = synth->bytes.items + pos;
		struct seam_perf_sideband record;

		if (seam_sources_read_sideband(at, &record))
			seam_session_track_files(s, &record, false);
		pos += SEAM_PERF_HEADER_BYTES +
		       seam_perf_record_at(at).payload.size;
	}
}

static void read_done(struct seam_helper_job *job, void *context)
{
	struct read_job *r = (struct read_job *)job;
	struct existing *e = context;

	e->n_waiting--;
	if (e->n_bytes + r->synth.bytes.n > SEAM_EXISTING_MAX_BYTES) {
		e->n_too_large++;
		return;
	}
	e->n_left_out += r->synth.n_left_out;
	e->n_bytes += r->synth.bytes.n;
	track_files(e->s, &r->synth);
	if (e->r == 0)
		e->r = seam_data_file_append(&e->s->recording.data, &r->synth,
					     e->err);
}

static void read_given_up(void *context, uint64_t tag)
{
	struct existing *e = context;

	(void)tag;
	e->n_waiting--;
	e->n_stuck++;
}

static void read_free(struct seam_helper_job *job)
{
	struct read_job *r = (struct read_job *)job;

	seam_synth_fini(&r->synth);
	free(r);
}

static int submit(struct existing *e, int pid)
{
	struct read_job *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->job = (struct seam_helper_job) {
		.run = read_run, .done = read_done,
		.given_up = read_given_up, .free = read_free, .context = e,
		.user = seam_helper_user_of(pid),
	};
	r->pid = pid;
	r->namespaces = e->s->options->namespaces;
	r->synth.data_mappings = e->s->sources.events[
		e->s->sources.sideband].attr.mmap_data;
	r->synth.id = seam_sources_sideband_id(&e->s->sources);
	if (seam_helper_submit(e->s->kept_files.helper, &r->job) < 0)
		e->n_stuck++;
	else
		e->n_waiting++;
	return 0;
}

/* Wait until at most @max jobs are left.  False: a signal, or an error. */
static bool wait_for_jobs(struct existing *e, size_t max)
{
	struct seam_helper *helper = e->s->kept_files.helper;
	int fd = seam_helper_fd(helper);
	bool goes_on = true;

	while (goes_on && seam_helper_collect(helper) && e->n_waiting > max) {
		goes_on = seam_session_wait(e->s, fd, WAIT_MS) &&
			  seam_rounds_drain(e->s) == 0;
	}
	return goes_on && e->r == 0;
}

static void report(const struct existing *e)
{
	if (e->n_stuck)
		seam_session_note(e->s, false, "%" PRIu64 " processes that "
			"ran before were not recorded: reading /proc took too "
			"long; symbols may be missing", e->n_stuck);
	if (e->n_too_large)
		seam_session_note(e->s, false, "%" PRIu64 " processes that "
			"ran before were not recorded: all have too many "
			"mappings; symbols may be missing", e->n_too_large);
	if (e->n_left_out)
		seam_session_note(e->s, false, "%" PRIu64 " mappings of "
			"processes that ran before were left out: too many",
			e->n_left_out);
}

static int read_all(struct seam_session *s,
		    const struct seam_number_list *pids, struct seam_err *err)
{
	struct existing e = { .s = s, .err = err };
	bool goes_on = true;

	if (!pids->n)
		return 0;
	if (!s->kept_files.helper)
		s->kept_files.helper = seam_helper_new(err);
	if (!s->kept_files.helper)
		return err ? err->code : -ENOMEM;
	s->drain.unordered = true;
	s->stacks.is_starting = true;
	for (size_t i = 0; goes_on && e.r == 0 && i < pids->n; i++) {
		e.r = submit(&e, pids->items[i]);
		goes_on = wait_for_jobs(&e, MAX_WAITING);
	}
	if (goes_on && e.r == 0)
		wait_for_jobs(&e, 0);
	if (e.n_waiting)
		seam_helper_abandon(s->kept_files.helper);
	s->drain.unordered = false;
	s->stacks.is_starting = false;
	report(&e);
	return e.r;
}

/* The processes that ran before and may be sampled. */
static int list_processes(const struct seam_session *s,
			  struct seam_number_list *pids)
{
	const struct seam_number_list *tids = &s->sources.tids;

	if (seam_plan_is_system_wide(s->options))
		return seam_procfs_processes(pids);
	if (seam_plan_records_command(s->options))
		return 0;
	for (size_t i = 0; i < tids->n; i++) {
		int pid = seam_targets_process(tids->items[i]);

		if (pid && !seam_number_list_has(pids, pid) &&
		    seam_number_list_add(pids, pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

int seam_existing_write(struct seam_session *s, struct seam_err *err)
{
	struct seam_synth synth = {
		.id = seam_sources_sideband_id(&s->sources),
	};
	struct seam_number_list pids = { 0 };
	int r;

	seam_auxtrace_describe(&s->sources, &synth);
	if (!(s->sources.left_out & SEAM_LEFT_OUT_KERNEL))
		seam_synth_kernel(&synth, &s->kernel);
	if (list_processes(s, &pids) < 0)
		synth.no_memory = true;
	if (s->options->cgroups)
		seam_synth_cgroups(&synth);
	/* until its exec(), the command's process has our name */
	if (s->child.pid && seam_plan_records_command(s->options))
		seam_synth_threads(&synth, s->child.pid,
				   s->options->namespaces);
	r = seam_data_file_append(&s->recording.data, &synth, err);
	if (r == 0)
		r = read_all(s, &pids, err);
	free(pids.items);
	seam_synth_end(&synth);
	return r == 0 ? seam_data_file_append(&s->recording.data, &synth, err) :
	       r;
}
