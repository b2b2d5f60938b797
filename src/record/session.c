/* SPDX-License-Identifier: MIT */
/* session.c - steps that all stages of a recording share; see session.h */
#include "record/session.h"

#include "record/existing.h"

#include <stdarg.h>

void seam_session_note(const struct seam_session *s, bool verbose,
		       const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!s->options->note)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->options->note(s->options->context, verbose, text);
}

int seam_session_watch(struct seam_session *s, struct seam_err *err)
{
	int r = 0;

	for (; r == 0 && s->n_watched < s->sources.list.n; s->n_watched++) {
		int fd = s->sources.list.items[s->n_watched].fd;

		if (fd >= 0)
			r = seam_loop_add_ring(&s->loop, fd, err);
	}
	return r;
}

void seam_session_track_files(struct seam_session *s,
			      const struct seam_perf_sideband *record,
			      bool is_new)
{
	if (s->stacks.is_used)
		seam_live_stacks_sideband(&s->stacks, record, is_new);
	seam_kept_files_sideband(&s->kept_files, record);
	if (s->options->keep_files)
		seam_kept_hits_sideband(&s->kept_hits, &s->kept_files, record);
}

void seam_session_cut_short(struct seam_session *s)
{
	s->result->cut_short = true;
	seam_drain_drop_waiting(&s->drain);
	seam_sources_disable(&s->sources);
	/* truncated by another process */
	if (s->recording.data.writer.was_cut &&
	    seam_data_file_salvage(&s->recording.data, &s->sources))
		seam_existing_write(s, NULL);
}

static ssize_t drain_round(struct seam_session *s, struct seam_err *err)
{
	ssize_t r = seam_drain_round(&s->drain, err);

	seam_sparse_check(&s->sparse);
	if (r >= 0 && !s->drain.is_last && s->child.pid &&
	    s->guest.first_pid == (uint32_t)s->child.pid &&
	    seam_sparse_open(&s->sparse)) {
		/* every fork before has its record now */
		r = seam_drain_round(&s->drain, err);
		seam_sparse_begin(&s->sparse);
	}
	return r;
}

int seam_session_drain(struct seam_session *s, struct seam_err *err)
{
	ssize_t r;

	if (s->result->cut_short) {
		seam_drain_discard(&s->drain);
		seam_services_close(&s->services);
		return 0;
	}
	r = drain_round(s, err);
	if (r >= 0)
		r = seam_new_threads_update(&s->new_threads, err);
	if (r >= 0)
		r = seam_session_watch(s, err);
	seam_stopped_round(&s->stopped, s->drain.is_last,
			   &s->recording.data.losses);
	seam_kept_files_collect(&s->kept_files);
	seam_tracing_step(s);
	if (r >= 0)
		return 0;
	seam_session_cut_short(s);
	return (int)r;
}

uint64_t seam_session_bytes(const struct seam_session *s,
			    const struct seam_data_file *file)
{
	uint64_t bytes = file->writer.data_offset + file->writer.data_bytes +
			 seam_trace_logs_bytes(&s->tracing.logs);

	for (size_t i = 0; i < s->jit.dumps.files.n; i++)
		bytes += s->jit.dumps.files.items[i].n_bytes +
			 s->jit.dumps.files.items[i].pending.n;
	return bytes;
}
