/* SPDX-License-Identifier: MIT */
/* fleet_query.c - times, queries and their answers; see fleet_query.h */
#include "cli/fleet_query.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "fleet/batch_sum.h"
#include "wire/fleet/batch_file.h"

/* -- times -------------------------------------------------------------- */

/* "90s", "30m", "1h", "2d" ago.  False: another form. */
static bool parse_ago(const char *text, uint64_t now_ns, uint64_t *ns)
{
	static const struct { char unit; uint64_t s; } units[] = {
		{ 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 },
	};
	uint64_t n;
	const char *unit = seam_text_number(text, text + strlen(text), 10, &n);

	for (size_t i = 0; unit && i < SEAM_ARRAY_SIZE(units); i++) {
		uint64_t scale = units[i].s * SEAM_NS_PER_S;

		if (unit[0] != units[i].unit || unit[1])
			continue;
		*ns = n > now_ns / scale ? 0 : now_ns - n * scale;
		return true;
	}
	return false;
}

/* "2026-11-24", "2026-11-24T10:00", "2026-11-24T10:00:30", of UTC. */
static bool parse_date(const char *text, uint64_t *ns)
{
	static const char *const forms[] = {
		"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);
		time_t s;

		if (!end || (*end && strcmp(end, "Z") != 0))
			continue;
		s = timegm(&tm);
		if (s < 0 || (uint64_t)s > INT64_MAX / SEAM_NS_PER_S)
			return false;
		*ns = (uint64_t)s * SEAM_NS_PER_S;
		return true;
	}
	return false;
}

static int parse_time(const char *text, uint64_t now_ns, uint64_t *ns,
		      struct seam_err *err)
{
	return !*text || parse_ago(text, now_ns, ns) || parse_date(text, ns) ?
	       0 : seam_err_set(err, -EINVAL, "'%s' is no time: 30m, 1h, 2d, "
				"2026-11-24, 2026-11-24T10:00", text);
}

/* --since as [*@from_ns, *@to_ns).  0 or -EINVAL. */
static int parse_since(const char *text, uint64_t now_ns, uint64_t *from_ns,
		       uint64_t *to_ns, struct seam_err *err)
{
	const char *dots = strstr(text, "..");
	char from[40];
	int r;

	*from_ns = 0;
	/* windows of clocks that are fast are not lost */
	*to_ns = INT64_MAX;
	snprintf(from, sizeof(from), "%.*s",
		 dots ? (int)(dots - text < 39 ? dots - text : 39) : 39, text);
	r = parse_time(from, now_ns, from_ns, err);
	if (!r && dots)
		r = parse_time(dots + 2, now_ns, to_ns, err);
	if (!r && *from_ns >= *to_ns)
		r = seam_err_set(err, -EINVAL, "'%s' ends before it begins",
				 text);
	return r;
}

/* -- queries ------------------------------------------------------------ */

/* Without --since: a server may have years; all of a folder is read anyway. */
#define SERVER_SINCE "1h"

static bool is_server(const char *where)
{
	return strncmp(where, "http:", 5) == 0 ||
	       strncmp(where, "https:", 6) == 0;
}

static int make_query(const struct seam_command *command,
		      const struct seam_fleet_options *o, unsigned int keep,
		      bool with_calls, struct seam_fleet_query *query)
{
	const char *since = o->since ? o->since :
			    is_server(o->from) ? SERVER_SINCE : "";
	struct seam_err err = { 0 };

	*query = (struct seam_fleet_query) {
		.service = o->service, .host = o->host,
		.labels = o->labels.items, .n_labels = o->labels.n,
		.keep = keep, .step_ns = 10 * SEAM_NS_PER_S,
		.with_calls = with_calls,
	};
	for (size_t i = 0; i < o->labels.n; i++)
		if (!strchr(o->labels.items[i], '='))
			return seam_command_misused(command, "a label is "
				"KEY=VALUE, not '%s'", o->labels.items[i]);
	if (parse_since(since, seam_clock_now(CLOCK_REALTIME),
			&query->from_ns, &query->to_ns, &err))
		return seam_command_misused(command, "option '--since': %s",
					    err.cause[0]);
	return SEAM_EXIT_DONE;
}

/* What of the store did not answer is a loss. */
static int add_missing(struct seam_fleet_answer *answer,
		       const struct seam_fleet_query *query,
		       struct seam_err *err)
{
	struct seam_fleet_sum sum = {
		.query = query, .batch = &answer->batch,
	};
	char text[500];
	int r;

	if (!answer->n_missing)
		return 0;
	snprintf(text, sizeof(text), "%u of %u: %s", answer->n_missing,
		 answer->n_nodes, answer->missing);
	r = seam_fleet_sum_lost(&sum, "nodes of the store did not answer",
				text, 0, err);
	seam_fleet_sum_fini(&sum);
	return r;
}

#define FD_PATH "/proc/self/fd/"

/* The answer in memory, as a file that any command opens. */
static int write_answer(const struct seam_batch *batch, const char **path,
			struct seam_err *err)
{
	struct seam_native_buffer bytes = { 0 };
	int fd = memfd_create("seam-fleet", MFD_CLOEXEC);
	char *name = NULL;
	int r = fd < 0 ? seam_err_errno(err, "cannot create a file in memory") :
		seam_batch_file_write(batch, &bytes, err);

	if (!r)
		r = seam_file_write_at(fd, bytes.bytes.items, bytes.bytes.n, 0,
				       "the answer", err);
	if (!r && asprintf(&name, FD_PATH "%d", fd) < 0)
		r = seam_err_no_memory(err);
	free(bytes.bytes.items);
	if (r)
		seam_file_close_fd(fd);
	*path = name;
	return r;
}

/* "/var/lib/seam: web-*, host-1, 1h": how the answer is called. */
static char *title_of(const struct seam_fleet_options *o)
{
	const char *parts[] = { o->service, o->host, o->since };
	char text[1024];
	size_t n = (size_t)snprintf(text, sizeof(text), "%.400s", o->from);

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(parts); i++)
		if (parts[i])
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%.120s", n > strlen(o->from) ?
					      ", " : ": ", parts[i]);
	for (size_t i = 0; i < o->labels.n && n < 900; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %.60s",
				      o->labels.items[i]);
	return strdup(text);
}

static int ask(const struct seam_fleet_options *o,
	       const struct seam_fleet_query *query, const char **path,
	       struct seam_err *err)
{
	const struct seam_fleet_place place = {
		.where = o->from, .credentials = o->login.credentials,
		.ca_file = o->login.ca_file,
	};
	struct seam_fleet_store *store;
	struct seam_fleet_answer answer;
	char *title;
	int r = seam_fleet_open(&store, &place, err);

	if (r)
		return r;
	r = seam_fleet_ask(store, query, &answer, err);
	if (!r)
		r = add_missing(&answer, query, err);
	if (!r)
		r = write_answer(&answer.batch, path, err);
	if (!r && seam_command_verbose())
		seam_command_say("%ju rows of '%s' are %zu",
				 (uintmax_t)answer.n_rows, o->from,
				 answer.batch.samples.n +
				 answer.batch.calls.n);
	if (!r && !answer.n_rows)
		seam_command_say("nothing in '%s' is selected%s", o->from,
				 !o->since && is_server(o->from) ?
				 " of the last " SERVER_SINCE "; --since "
				 "selects another time" : "");
	seam_fleet_answer_fini(&answer);
	seam_fleet_close(store);
	title = r ? NULL : title_of(o);
	if (!r && (!title || seam_command_name(*path, title)))
		r = seam_err_no_memory(err);
	return r;
}

int seam_fleet_query_open(const struct seam_command *command,
			  const struct seam_fleet_options *o,
			  unsigned int keep, bool with_calls,
			  const char **path)
{
	struct seam_fleet_query query;
	struct seam_err err = { 0 };
	int status;

	if (!o->from)
		return seam_command_misused(command, "--from WHERE is needed: "
					    "a folder of batches, or a URL");
	status = make_query(command, o, keep, with_calls, &query);
	if (status)
		return status;
	return ask(o, &query, path, &err) ? seam_command_failed(&err) :
	       SEAM_EXIT_DONE;
}

void seam_fleet_query_close(const char *path)
{
	/* the path remains, as the name of another answer may not be its own */
	close(atoi(path + strlen(FD_PATH)));
}
