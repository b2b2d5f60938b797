/* SPDX-License-Identifier: MIT */
/* agent_status.c - a file of JSON, written and read; see agent_status.h */
#include "cli/agent_status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

enum { MAX_STATUS = 64 << 10 };

#define FILE_NAME "status.json"
#define PART_NAME "status.json.part"

/* ---- write ---- */

/* The text may be replaced while it is copied. */
static void put_error(struct seam_json *j, const char *key,
		      const char text[SEAM_ERR_TEXT])
{
	char error[SEAM_ERR_TEXT];

	memcpy(error, text, sizeof(error));
	error[sizeof(error) - 1] = 0;
	seam_json_string(j, key, *error ? error : NULL);
}

static void put_sender(struct seam_json *j,
		       const struct seam_sender_counts *sender)
{
	seam_json_u64(j, "sent_batches", sender->n_sent);
	seam_json_u64(j, "sent_bytes", sender->sent_bytes);
	seam_json_u64(j, "refused_batches", sender->n_refused);
	seam_json_u64(j, "failed_tries", sender->n_failed);
	seam_json_u64(j, "last_sent_ns", sender->last_sent_ns);
	put_error(j, "send_error", sender->error);
	seam_json_u64(j, "send_error_ns", sender->error_ns);
	seam_json_u64(j, "otlp_missed_batches", sender->n_missed);
	put_error(j, "otlp_error", sender->missed_error);
}

static void put(struct seam_json *j, const struct seam_agent_status *s,
		const struct seam_agent_options *o)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "schema", "seam.agent/1");
	seam_json_i64(j, "pid", s->pid);
	seam_json_u64(j, "since_ns", s->since_ns);
	seam_json_u64(j, "updated_ns", s->now_ns);
	seam_json_string(j, "service", o->service);
	seam_json_string(j, "host", o->host);
	seam_json_open(j, "labels", '[');
	for (size_t i = 0; i < o->labels.n; i++)
		seam_json_string(j, NULL, o->labels.items[i]);
	seam_json_close(j);
	seam_json_string(j, "to", o->place.where);
	seam_json_string(j, "otlp", o->place.otlp);
	seam_json_u64(j, "window_ns", o->window_ns);
	seam_json_u64(j, "frequency_hz", o->record.frequency_hz);
	seam_json_u64(j, "current_hz", s->hz);
	seam_json_u64(j, "windows", s->n_windows);
	seam_json_u64(j, "skipped_windows", s->n_skipped);
	seam_json_u64(j, "samples", s->n_samples);
	seam_json_u64(j, "lost_samples", s->n_lost);
	seam_json_u64(j, "rows", s->n_rows);
	seam_json_u64(j, "batches", s->n_batches);
	seam_json_u64(j, "dropped_batches", s->n_dropped);
	put_sender(j, &s->sender);
	seam_json_double(j, "cpus", s->cpus);
	seam_json_double(j, "max_cpus", o->max_cpu / 100);
	seam_json_u64(j, "memory_bytes", s->memory_bytes);
	seam_json_u64(j, "peak_memory_bytes", s->max_memory_bytes);
	seam_json_u64(j, "max_memory_bytes", o->max_memory);
	seam_json_u64(j, "forgotten", s->n_forgotten);
	seam_json_string(j, "error", *s->error ? s->error : NULL);
	seam_json_close(j);
}

int seam_agent_status_write(int folder, struct seam_agent_status *status,
			    const struct seam_agent_options *options,
			    struct seam_err *err)
{
	int fd = openat(folder, PART_NAME, O_WRONLY | O_CREAT | O_TRUNC |
			O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	struct seam_json j;

	if (!out) {
		seam_file_close_fd(fd);
		return seam_err_errno(err, "cannot write '%s'", PART_NAME);
	}
	j = seam_json_make(out, true);
	status->now_ns = seam_clock_now(CLOCK_REALTIME);
	put(&j, status, options);
	fputc('\n', out);
	if (fflush(out) || ferror(out) || fclose(out) ||
	    renameat(folder, PART_NAME, folder, FILE_NAME) < 0)
		return seam_err_errno(err, "cannot write '%s'", FILE_NAME);
	return 0;
}

/* ---- read ---- */

static uint64_t number(const json_t *status, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(status, key));

	return n < 0 ? 0 : (uint64_t)n;
}

static const char *text(const json_t *status, const char *key)
{
	const char *value = json_string_value(json_object_get(status, key));

	return value ? value : "";
}

static void line(const char *name, const char *value)
{
	printf("%-10s ", name);
	seam_text_put(stdout, value, SEAM_TEXT_TERMINAL);
	printf("\n");
}

/* "12 s ago", of a time in UTC. */
static void print_age(const char *name, uint64_t ns)
{
	uint64_t now_ns = seam_clock_now(CLOCK_REALTIME);

	printf("%-10s ", name);
	if (!ns)
		printf("never\n");
	else
		printf("%" PRIu64 " s ago\n", now_ns < ns ? 0 :
		       (now_ns - ns) / SEAM_NS_PER_S);
}

static void print_text(const json_t *s, bool is_running)
{
	char value[512];

	snprintf(value, sizeof(value), is_running ? "process %" PRIu64 :
		 "not running (was process %" PRIu64 ")", number(s, "pid"));
	line("agent", value);
	snprintf(value, sizeof(value), "%s on %s, to %s%s%s",
		 text(s, "service"), text(s, "host"), text(s, "to"),
		 *text(s, "to") && *text(s, "otlp") ? " and " : "",
		 text(s, "otlp"));
	line("service", value);
	print_age("since", number(s, "since_ns"));
	print_age("updated", number(s, "updated_ns"));
	printf("samples    %" PRIu64 " at %" PRIu64 " Hz%s; lost %" PRIu64 "\n",
	       number(s, "samples"), number(s, "current_hz"),
	       number(s, "current_hz") < number(s, "frequency_hz") ?
	       ", reduced for --max-cpu" : "", number(s, "lost_samples"));
	printf("windows    %" PRIu64 "; left out for --max-cpu: %" PRIu64 "\n",
	       number(s, "windows"), number(s, "skipped_windows"));
	printf("batches    %" PRIu64 " with %" PRIu64 " rows; sent %" PRIu64
	       ", waiting %" PRIu64 ", dropped %" PRIu64 ", refused %" PRIu64
	       "\n", number(s, "batches"), number(s, "rows"),
	       number(s, "sent_batches"), number(s, "waiting_batches"),
	       number(s, "dropped_batches"), number(s, "refused_batches"));
	print_age("last sent", number(s, "last_sent_ns"));
	printf("cpu        %.2f %% of a CPU (limit %g %%)\n",
	       100 * json_real_value(json_object_get(s, "cpus")),
	       100 * json_number_value(json_object_get(s, "max_cpus")));
	printf("memory     %.1f MB (limit %.1f MB, names forgotten %" PRIu64
	       " times)\n", (double)number(s, "memory_bytes") / 1e6,
	       (double)number(s, "max_memory_bytes") / 1e6,
	       number(s, "forgotten"));
	if (*text(s, "send_error")) {
		snprintf(value, sizeof(value), "%s%s", text(s, "send_error"),
			 number(s, "failed_tries") ? "" : " (since then sent)");
		line("error", value);
	}
	if (number(s, "otlp_missed_batches")) {
		snprintf(value, sizeof(value), "%" PRIu64 " batches not sent: "
			 "%s", number(s, "otlp_missed_batches"),
			 text(s, "otlp_error"));
		line("otlp", value);
	}
	if (*text(s, "error"))
		line("error", text(s, "error"));
}

/* Whether an agent has the lock of the folder. */
static bool is_used(int folder)
{
	int fd = openat(folder, "writer.lock", O_RDONLY | O_NOFOLLOW |
			O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 &&
		  errno == EWOULDBLOCK;

	seam_file_close_fd(fd);
	return is;
}

/* What is in the file; NULL after a message. */
static json_t *read_status(int folder, const char *path)
{
	struct seam_err err = { 0 };
	struct seam_file file = { 0 };
	json_t *status = NULL;
	int r = seam_file_read(&file, folder, FILE_NAME, MAX_STATUS, &err);

	if (r == 0)
		status = json_loadb((const char *)file.bytes.data,
				    file.bytes.size, 0, NULL);
	seam_file_close(&file);
	if (r == 0 && !json_is_object(status)) {
		json_decref(status);
		status = NULL;
		r = seam_err_set(&err, -EBADMSG, "'%s' is not JSON", FILE_NAME);
	}
	if (r < 0) {
		seam_err_add(&err, r, "no state of an agent in '%s' (--spool)",
			     path);
		seam_command_failed(&err);
	}
	return status;
}

int seam_agent_status_print(const char *path, bool json)
{
	struct seam_err err = { 0 };
	uint64_t n_files, n_bytes, n_notes;
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	json_t *status;
	bool is_running;

	if (folder < 0) {
		seam_err_errno(&err, "cannot open '%s'", path);
		seam_err_add(&err, err.code, "no agent uses this spool "
			     "(--spool)");
		return seam_command_failed(&err);
	}
	status = read_status(folder, path);
	if (!status) {
		close(folder);
		return SEAM_EXIT_FAILED;
	}
	is_running = is_used(folder);
	seam_spool_count(folder, &n_files, &n_bytes, &n_notes);
	close(folder);
	json_object_set_new(status, "running", json_boolean(is_running));
	json_object_set_new(status, "waiting_batches",
			    json_integer((json_int_t)n_files));
	json_object_set_new(status, "waiting_bytes",
			    json_integer((json_int_t)n_bytes));
	if (json)
		json_dumpf(status, stdout, JSON_INDENT(1));
	else
		print_text(status, is_running);
	if (json)
		printf("\n");
	json_decref(status);
	return is_running ? SEAM_EXIT_DONE : SEAM_EXIT_FAILED;
}
