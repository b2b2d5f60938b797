/* SPDX-License-Identifier: MIT */
/* stream.c - fork, send without waiting, read; see stream.h */
#include "record/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/perf/sink.h"
#include "record/perf/sources.h"

enum {
	PIPE_BYTES = 1 << 20,	/* the most for an ordinary user */
	SEND_BYTES = 1 << 18,	/* the reader wakes up for so much, or a tick */
	READ_BYTES = 1 << 16,
};

/* ---- the recorder's end ---- */

struct sender {
	struct seam_sink sink;
	const struct seam_sources *sources;
	int fd;
	struct seam_stream_ticks ticks;
	SEAM_ARRAY(uint8_t) out;	/* not sent yet */
	size_t sent;			/* bytes of out that were */
	uint64_t n_dropped;
	bool is_due;			/* a message that is read at once */
	bool is_broken;			/* the reader has closed, or no memory */
};

static void put_bytes(struct sender *s, const void *data, size_t size)
{
	s->is_broken |= !SEAM_ARRAY_EXTEND(&s->out, (const uint8_t *)data,
					   size);
}

static void put(struct sender *s, enum seam_stream_kind kind, const void *body,
		size_t size)
{
	const struct seam_stream_header header = { kind, (uint32_t)size };

	put_bytes(s, &header, sizeof(header));
	put_bytes(s, body, size);
}

/* Send what the pipe takes, if it is enough or due. */
static void flush(struct sender *s)
{
	if (!s->is_due && s->out.n - s->sent < SEND_BYTES)
		return;
	while (!s->is_broken && s->sent < s->out.n) {
		ssize_t n = write(s->fd, s->out.items + s->sent,
				  s->out.n - s->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		s->is_broken |= n < 0;
		s->sent += n > 0 ? (size_t)n : 0;
	}
	s->is_due &= s->sent < s->out.n;
	/* move what is left once it is the smaller part */
	if (s->sent < s->out.n - s->sent)
		return;
	s->out.n -= s->sent;
	memmove(s->out.items, s->out.items + s->sent, s->out.n);
	s->sent = 0;
}

static void note(void *context, bool verbose, const char *text)
{
	struct sender *s = context;

	if (verbose)
		return;
	put(s, SEAM_STREAM_NOTE, text, strlen(text));
	s->is_due = true;
}

static void put_id(struct sender *s, uint64_t id, uint32_t event)
{
	const struct seam_stream_id message = { id, event };

	put(s, SEAM_STREAM_ID, &message, sizeof(message));
}

static uint64_t first_tick(const struct seam_stream_ticks *ticks,
			   uint64_t now_ns)
{
	uint64_t phase_ns = ticks->phase_ns % ticks->interval_ns;

	if (!ticks->phase_ns)
		return now_ns + ticks->interval_ns;
	return now_ns + ticks->interval_ns -
	       (now_ns + ticks->interval_ns - phase_ns) % ticks->interval_ns;
}

static int begin(struct seam_sink *sink, const struct seam_sources *sources,
		 pid_t command, struct seam_err *err)
{
	struct sender *s = (struct sender *)sink;

	(void)command;
	s->sources = sources;
	for (size_t i = 0; i < sources->n_events; i++) {
		struct seam_stream_event event = {
			.attr = seam_event_file_attr(&sources->events[i]),
			.is_sideband = i == sources->sideband,
		};

		snprintf(event.name, sizeof(event.name), "%s",
			 sources->events[i].name);
		put(s, SEAM_STREAM_EVENT, &event, sizeof(event));
	}
	for (size_t i = 0; i < sources->list.n; i++)
		put_id(s, sources->list.items[i].id,
		       sources->list.items[i].event);
	for (size_t i = 0; i < sources->n_events; i++)
		if (sources->events[i].origin == SEAM_EVENT_OF_PROGRAM)
			put_id(s, sources->events[i].program_id, (uint32_t)i);
	sink->due_ns = first_tick(&s->ticks, seam_clock_ns());
	return s->is_broken ? seam_err_no_memory(err) : 0;
}

/* The reader is too slow: its samples are counted, the rest is kept. */
static void drop_samples(struct sender *s, struct seam_bytes records)
{
	for (size_t at = 0; at < records.size;) {
		struct seam_perf_record record =
			seam_perf_record_at(records.data + at);
		size_t size = SEAM_PERF_HEADER_BYTES + record.payload.size;

		if (record.type == PERF_RECORD_SAMPLE)
			s->n_dropped++;
		else
			put(s, SEAM_STREAM_RECORDS, records.data + at, size);
		at += size;
	}
}

static void take(struct seam_sink *sink, struct seam_bytes records)
{
	struct sender *s = (struct sender *)sink;

	if (s->out.n - s->sent + records.size > SEAM_STREAM_MAX_BYTES)
		drop_samples(s, records);
	else
		put(s, SEAM_STREAM_RECORDS, records.data, records.size);
	flush(s);
}

static void put_tick(struct sender *s)
{
	struct seam_stream_tick tick = {
		.ns = seam_clock_ns(), .n_dropped = s->n_dropped,
		.cpu_ns = seam_clock_now(CLOCK_PROCESS_CPUTIME_ID),
	};

	for (size_t i = 0; i < s->sources->list.n; i++)
		if (s->sources->list.items[i].event != s->sources->sideband)
			tick.n_lost += seam_sources_lost(s->sources, i);
	put(s, SEAM_STREAM_TICK, &tick, sizeof(tick));
}

/* The newest frequency; the end of the control is that of the reader. */
static void take_frequency(struct sender *s)
{
	uint64_t hz = UINT64_MAX;
	ssize_t n;

	while ((n = read(s->sink.fd, &hz, sizeof(hz))) > 0)
		;
	s->is_broken |= n == 0;
	if (hz != UINT64_MAX)
		seam_sources_set_frequency(s->sources, hz);
}

static bool after_round(struct seam_sink *sink, uint64_t until_ns, bool at_end)
{
	struct sender *s = (struct sender *)sink;
	uint64_t now_ns = seam_clock_ns();

	(void)until_ns;
	take_frequency(s);
	if (now_ns >= sink->due_ns || at_end) {
		put_tick(s);
		s->is_due = true;
		/* seconds that were missed are not made up for */
		while (sink->due_ns <= now_ns)
			sink->due_ns += s->ticks.interval_ns;
	}
	flush(s);
	return !s->is_broken;
}

/* What the command would print over the screen, or take from its keys. */
static void hide_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		if (isatty(fd))
			dup2(null, fd);
}

/* Does not return. */
static void send_recording(const struct seam_record_options *options, int fd,
			   const struct seam_stream_ticks *ticks, int control)
{
	struct seam_record_options what = *options;
	struct sender s = {
		.sink = { .fd = control, .begin = begin, .take = take,
			  .after_round = after_round, .due_ns = UINT64_MAX },
		.fd = fd, .ticks = *ticks,
	};
	struct seam_record_result result;
	struct seam_stream_end end = { .r = 0 };

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fcntl(control, F_SETFL, O_NONBLOCK);
	what.sink = &s.sink;
	what.layers = SEAM_LAYERS_NATIVE;
	what.note = note;
	what.context = &s;
	end.r = seam_record(&what, &result, &end.err);
	end.command = result.command;
	end.is_lossy = seam_counts_any_lost(&result.counts) ||
		       s.n_dropped || result.cut_short;
	put(&s, SEAM_STREAM_END, &end, sizeof(end));
	s.is_due = true;
	fcntl(fd, F_SETFL, 0);
	flush(&s);
	_exit(0);
}

/* ---- the reader's end ---- */

int seam_stream_start(struct seam_record_stream *stream,
		      const struct seam_record_options *options,
		      const struct seam_stream_ticks *ticks, bool hides_output,
		      struct seam_err *err)
{
	int fds[2], controls[2];

	*stream = (struct seam_record_stream) { .fd = -1, .control = -1 };
	if (pipe2(fds, O_CLOEXEC) < 0)
		return seam_err_errno(err, "cannot make a pipe");
	if (pipe2(controls, O_CLOEXEC) < 0) {
		close(fds[0]);
		close(fds[1]);
		return seam_err_errno(err, "cannot make a pipe");
	}
	stream->pid = fork();
	if (stream->pid == 0) {
		close(fds[0]);
		close(controls[1]);
		if (hides_output)
			hide_terminal();
		send_recording(options, fds[1], ticks, controls[0]);
	}
	close(fds[1]);
	close(controls[0]);
	stream->fd = fds[0];
	stream->control = controls[1];
	if (stream->pid < 0) {
		stream->pid = 0;
		return seam_err_errno(err, "cannot fork");
	}
	return 0;
}

void seam_stream_set_frequency(struct seam_record_stream *stream, uint64_t hz)
{
	/* a pipe takes so few bytes whole */
	if (write(stream->control, &hz, sizeof(hz)) < 0)
		return;
}

bool seam_stream_read(struct seam_record_stream *stream)
{
	ssize_t n;

	stream->bytes.n -= stream->taken;
	if (stream->taken)
		memmove(stream->bytes.items,
			stream->bytes.items + stream->taken, stream->bytes.n);
	stream->taken = 0;
	if (!SEAM_ARRAY_RESERVE(&stream->bytes, READ_BYTES))
		return false;
	n = read(stream->fd, stream->bytes.items + stream->bytes.n, READ_BYTES);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	stream->bytes.n += (size_t)n;
	return n > 0;
}

bool seam_stream_next(struct seam_record_stream *stream,
		      struct seam_stream_header *header,
		      struct seam_bytes *body)
{
	const uint8_t *at = stream->bytes.items + stream->taken;
	size_t left = stream->bytes.n - stream->taken;

	if (left < sizeof(*header))
		return false;
	memcpy(header, at, sizeof(*header));
	if (left - sizeof(*header) < header->size)
		return false;
	*body = (struct seam_bytes) { at + sizeof(*header), header->size };
	stream->taken += sizeof(*header) + header->size;
	return true;
}

void seam_stream_close(struct seam_record_stream *stream)
{
	if (stream->pid > 0) {
		seam_file_close_fd(stream->control);
		seam_file_close_fd(stream->fd);
		waitpid(stream->pid, NULL, 0);
	}
	free(stream->bytes.items);
	*stream = (struct seam_record_stream) { .fd = -1, .control = -1 };
}
