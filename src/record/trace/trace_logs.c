/* SPDX-License-Identifier: MIT */
/* trace_logs.c - a log for each program, and its last form; trace_logs.h */
#include "record/trace/trace_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "wire/xray/xray_fdr.h"

#define FIRST_INTERVAL_NS (10 * SEAM_NS_PER_MS)
#define LEAST_SPAN_NS (50 * SEAM_NS_PER_MS)

enum {
	FIRST_SEEN = 1 << 12,	/* functions; 512 bytes */
	OWN_SEEN = 1 << 16,	/* of each log, whatever others use; 8 KiB */
	STEP_BYTES = 4 << 20,	/* copied between two calls of goes_on() */
};

/* ---- the clock ---- */

static void add_tie(struct seam_tsc_clock *clock, struct seam_tsc_tie tie)
{
	const struct seam_tsc_tie *next = &clock->ties[clock->n];

	/* both clocks must advance: ignore a counter that was set back */
	if (clock->n && (tie.ns <= next[-1].ns || tie.tsc <= next[-1].tsc))
		return;
	/* drop every second tie: ties stay spread over the recording */
	if (clock->n == SEAM_TSC_MAX_TIES) {
		clock->n /= 2;
		clock->interval_ns *= 2;
		for (size_t i = 0; i < clock->n; i++)
			clock->ties[i] = clock->ties[2 * i];
	}
	clock->ties[clock->n++] = tie;
}

void seam_tsc_clock_begin(struct seam_tsc_clock *clock)
{
	clock->n = 0;
	clock->interval_ns = FIRST_INTERVAL_NS;
	add_tie(clock, seam_tsc_tie_now());
}

void seam_tsc_clock_step(struct seam_tsc_clock *clock)
{
	if (clock->n && seam_clock_ns() - clock->ties[clock->n - 1].ns >=
			clock->interval_ns)
		add_tie(clock, seam_tsc_tie_now());
}

void seam_tsc_clock_end(struct seam_tsc_clock *clock)
{
	uint64_t span = clock->n ? seam_clock_ns() - clock->ties[0].ns :
			LEAST_SPAN_NS;

	if (span < LEAST_SPAN_NS)
		nanosleep(&(struct timespec) {
			.tv_nsec = (long)(LEAST_SPAN_NS - span) }, NULL);
	if (clock->n)
		add_tie(clock, seam_tsc_tie_now());
}

uint64_t seam_tsc_clock_hz(const struct seam_tsc_clock *clock)
{
	return clock->n < 2 ? 0 :
	       seam_tsc_hz(&clock->ties[0], &clock->ties[clock->n - 1]);
}

uint64_t seam_tsc_clock_ns(const struct seam_tsc_clock *clock, uint64_t tsc)
{
	const struct seam_tsc_tie *a, *b;
	size_t i;
	__int128 ticks;

	if (clock->n < 2)
		return 0;
	i = SEAM_ARRAY_SEARCH(k, clock->n, clock->ties[k].tsc <= tsc);
	i = i == 0 ? 1 : i == clock->n ? i - 1 : i;
	a = &clock->ties[i - 1];
	b = &clock->ties[i];
	ticks = (__int128)tsc - a->tsc;
	return (uint64_t)((__int128)a->ns + ticks * (__int128)(b->ns - a->ns) /
			  (__int128)(b->tsc - a->tsc));
}

/* ---- logs ---- */

void seam_trace_logs_init(struct seam_trace_logs *logs,
			  const struct seam_bundle *bundle,
			  const struct seam_tsc_clock *clock)
{
	memset(logs, 0, sizeof(*logs));
	logs->bundle = bundle;
	logs->clock = clock;
	logs->folder = -1;
}

/* ---- files ---- */

static void file_name(const struct seam_program_log *log, const char *suffix,
		      char name[2 * SEAM_TRACE_NAME_BYTES])
{
	snprintf(name, 2 * SEAM_TRACE_NAME_BYTES, "%s%s", log->name, suffix);
}

static int failed(struct seam_program_log *log, int code, const char *what)
{
	struct seam_trace_logs *logs = log->logs;

	if (!logs->why.n_causes)
		seam_err_set(&logs->why, code, "cannot %s xray/%s.xray: %s",
			     what, log->name, strerror(-code));
	return code;
}

static int open_file(struct seam_program_log *log, int flags)
{
	char name[2 * SEAM_TRACE_NAME_BYTES];

	file_name(log, ".xray", name);
	log->fd = openat(log->logs->folder, name,
			 O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	if (log->fd < 0)
		return failed(log, -errno, "open");
	log->file.fd = log->fd;
	return 0;
}

static int create_file(struct seam_program_log *log)
{
	struct seam_trace_logs *logs = log->logs;
	int r;

	if (logs->folder < 0)
		logs->folder = seam_bundle_folder(logs->bundle, "xray",
						  &logs->why);
	r = logs->folder < 0 ? logs->folder : open_file(log, O_CREAT | O_EXCL);
	if (r < 0)
		return r;
	r = seam_xray_log_begin(&log->file, log->fd,
				seam_tsc_clock_hz(logs->clock));
	return r < 0 ? failed(log, r, "write") : 0;
}

/* ---- programs ---- */

static void set_name(struct seam_program_log *log)
{
	struct seam_trace_logs *logs = log->logs;
	uint32_t pid = log->program.pid;
	struct seam_index_probe probe = seam_index_probe(&logs->by_pid,
							 seam_hash_u64(pid));
	unsigned int n = 1;
	uint32_t i;

	while ((i = seam_index_next(&logs->by_pid, &probe)) != SEAM_NONE)
		n += logs->items.items[i]->program.pid == pid;
	if (n == 1)
		snprintf(log->name, sizeof(log->name), "%" PRIu32, pid);
	else
		snprintf(log->name, sizeof(log->name), "%" PRIu32 ".%u", pid,
			 n);
}

static struct seam_program_log *
make_log(struct seam_trace_logs *logs, const struct seam_trace_program *program)
{
	struct seam_program_log *log = calloc(1, sizeof(*log));
	char name[2 * SEAM_TRACE_NAME_BYTES];

	if (!log)
		return NULL;
	*log = (struct seam_program_log) {
		.logs = logs, .program = *program, .fd = -1,
	};
	set_name(log);
	if (create_file(log) == 0 &&
	    SEAM_INDEX_APPEND(&logs->by_pid, seam_hash_u64(program->pid),
			      &logs->items, log) != SEAM_NONE)
		return log;
	/* so that the program's next thread can try again */
	file_name(log, ".xray", name);
	if (log->fd >= 0)
		unlinkat(logs->folder, name, 0);
	seam_file_close_fd(log->fd);
	free(log);
	return NULL;
}

struct seam_program_log *
seam_trace_logs_enter(struct seam_trace_logs *logs,
		      const struct seam_trace_program *program)
{
	struct seam_program_log *log;
	uint32_t i = SEAM_INDEX_FIND(
		&logs->by_pid, seam_hash_u64(program->pid), k,
		logs->items.items[k]->program.pid == program->pid &&
		logs->items.items[k]->program.since_ns == program->since_ns);

	log = i == SEAM_NONE ? make_log(logs, program) : logs->items.items[i];
	if (!log || (log->fd < 0 && open_file(log, 0) < 0))
		return NULL;
	log->n_threads++;
	return log;
}

/* Closes the file with the last thread: each open log is a descriptor. */
void seam_trace_logs_leave(struct seam_program_log *log)
{
	if (--log->n_threads)
		return;
	seam_file_close_fd(log->fd);
	log->fd = log->file.fd = -1;
}

/* ---- records ---- */

/*
 * Make room for the bit of function @max.  False: no room was added.  Each log
 * has room for the first OWN_SEEN ids, whatever the other logs take.
 */
static bool widen_seen(struct seam_program_log *log, uint32_t max)
{
	struct seam_xray_seen *seen = &log->seen;
	uint32_t n = seen->n ? seen->n : FIRST_SEEN;
	uint64_t *bits;

	while (n <= max)
		n *= 2;		/* ids are below 2^28 */
	if ((n - seen->n) / 8 >
	    SEAM_TRACE_MAX_SEEN_BYTES - log->logs->seen_bytes)
		n = OWN_SEEN;
	if (n <= seen->n)
		return false;
	bits = calloc(n / 64, sizeof(*bits));
	if (!bits)
		return false;
	if (seen->n)
		memcpy(bits, seen->bits, seen->n / 8);
	if (n > OWN_SEEN)
		log->logs->seen_bytes += (n - seen->n) / 8;
	free(seen->bits);
	seen->bits = bits;
	seen->n = n;
	return true;
}

/* Read a chunk, and set the bits of its functions, if there is room. */
static void read_chunk(struct seam_program_log *log, const uint8_t *chunk,
		       size_t size, struct seam_xray_chunk *found)
{
	uint8_t *body = log->logs->body;

	seam_xray_chunk_read(chunk, size, body, &log->seen, found);
	if (log->seen.max < log->seen.n || !found->n_records)
		return;
	if (widen_seen(log, log->seen.max))
		seam_xray_chunk_read(chunk, size, body, &log->seen, found);
	/* no bit for this id: the next chunks are not read twice for it */
	if (log->seen.max >= log->seen.n)
		log->seen.max = 0;
}

/* The chunk began while its program was connected, and before now. */
static uint64_t wall_us(const struct seam_program_log *log,
			const struct seam_xray_chunk *found)
{
	uint64_t least = log->program.since_ns / 1000;
	uint64_t most = seam_clock_ns() / 1000, us = found->wall_us;

	return us < least ? least : us < most ? us : most;
}

void seam_trace_logs_add(struct seam_program_log *log, uint32_t tid,
			const uint8_t *chunk, size_t size)
{
	struct seam_trace_counts *counts = &log->logs->counts;
	struct seam_xray_log_thread thread = {
		.pid = (int32_t)log->program.pid, .tid = (int32_t)tid,
	};
	struct seam_xray_chunk found;
	int r;

	read_chunk(log, chunk, size, &found);
	counts->n_bad_bytes += found.bad_bytes;
	/* the chunk has its NewCPUId and no record */
	if (found.n_bytes <= SEAM_XRAY_METADATA_BYTES)
		return;
	/* threads use a ring one after another: the chunk's tid is right */
	if (found.tid > 0)
		thread.tid = found.tid;
	thread.wall_us = wall_us(log, &found);
	r = seam_xray_log_append(&log->file, &thread, log->logs->body,
				 found.n_bytes);
	if (r < 0) {
		counts->n_unwritten += found.n_records;
		failed(log, r, "write");
		return;
	}
	counts->n_records += found.n_records;
	log->n_records += found.n_records;
}

void seam_trace_logs_drop(struct seam_trace_logs *logs, const uint8_t *chunk,
			  size_t size)
{
	struct seam_xray_chunk found;

	seam_xray_chunk_read(chunk, size, logs->body, NULL, &found);
	logs->counts.n_unwritten += found.n_records;
	logs->counts.n_bad_bytes += found.bad_bytes;
}

uint64_t seam_trace_logs_bytes(const struct seam_trace_logs *logs)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < logs->items.n; i++)
		bytes += logs->items.items[i]->file.bytes;
	return bytes;
}

/* ---- the end ---- */

static void set_header(struct seam_program_log *log)
{
	int r = seam_xray_log_set_frequency(
		&log->file, seam_tsc_clock_hz(log->logs->clock));

	if (r < 0)
		failed(log, r, "write");
}

void seam_trace_logs_set_headers(struct seam_trace_logs *logs)
{
	for (size_t i = 0; i < logs->items.n; i++)
		if (logs->items.items[i]->fd >= 0)
			set_header(logs->items.items[i]);
}

struct log_joining {
	const struct seam_trace_logs_caller *caller;
	struct seam_progress progress;
	uint64_t since_step;		/* bytes */
};

static bool goes_on(void *context, uint64_t bytes)
{
	struct log_joining *j = context;

	seam_progress_step(&j->progress, bytes);
	j->since_step += bytes;
	if (j->since_step < STEP_BYTES || !j->caller->goes_on)
		return true;
	j->since_step = 0;
	return j->caller->goes_on(j->caller->context);
}

/* If joining fails, the log stays as it was, which Seam reads as well. */
static int join(struct seam_program_log *log, struct log_joining *joining)
{
	char part[2 * SEAM_TRACE_NAME_BYTES], name[2 * SEAM_TRACE_NAME_BYTES];
	int folder = log->logs->folder, fd, r;

	if (log->file.n_blocks <= SEAM_XRAY_LOG_BLOCKS)
		return 0;
	file_name(log, ".xray.part", part);
	file_name(log, ".xray", name);
	fd = openat(folder, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* 1: @part is the joined log; 0: nothing had to be joined */
	r = seam_xray_log_join(&log->file, fd, goes_on, joining);
	if ((close(fd) < 0 && r > 0) ||
	    (r > 0 && renameat(folder, part, folder, name) < 0))
		r = -errno;
	if (r <= 0)
		unlinkat(folder, part, 0);
	return r < 0 ? r : 0;
}

static uint64_t bytes_to_join(const struct seam_trace_logs *logs)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < logs->items.n; i++)
		if (logs->items.items[i]->file.n_blocks > SEAM_XRAY_LOG_BLOCKS)
			bytes += logs->items.items[i]->file.bytes;
	return bytes;
}

static void finish_log(struct seam_program_log *log,
		       struct log_joining *joining)
{
	const struct seam_trace_logs_caller *caller = joining->caller;
	char text[200];
	int r;

	if (log->fd < 0 && open_file(log, 0) < 0)
		return;
	set_header(log);
	r = join(log, joining);
	if (r && caller->note) {
		snprintf(text, sizeof(text), "xray/%s.xray: its blocks were "
			 "not joined: %s; llvm-xray may not read it right",
			 log->name, strerror(-r));
		caller->note(caller->context, text);
	}
	seam_file_close_fd(log->fd);
	log->fd = log->file.fd = -1;
}

void seam_trace_logs_finish(struct seam_trace_logs *logs,
			    const struct seam_trace_logs_caller *caller)
{
	struct log_joining joining = { .caller = caller };

	seam_progress_begin(&joining.progress, "joining", bytes_to_join(logs));
	for (size_t i = 0; i < logs->items.n; i++)
		finish_log(logs->items.items[i], &joining);
	seam_progress_end(&joining.progress);
}

void seam_trace_logs_fini(struct seam_trace_logs *logs)
{
	for (size_t i = 0; i < logs->items.n; i++) {
		seam_file_close_fd(logs->items.items[i]->fd);
		free(logs->items.items[i]->seen.bits);
		free(logs->items.items[i]);
	}
	free(logs->items.items);
	seam_index_fini(&logs->by_pid);
	if (logs->bundle)
		seam_file_close_fd(logs->folder);
	memset(logs, 0, sizeof(*logs));
}
