/* SPDX-License-Identifier: MIT */
/*
 * clickhouse_ask.c - a query of a fleet, as statements
 *
 * The engine adds rows up; the stacks of the sums, and then the frames of these
 * stacks, are asked for by their ids, which go along as a table.  They are
 * joined here: a join of each sample in the engine costs ten times as much.
 */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <inttypes.h>

#include "base/text.h"
#include "fleet/batch_build.h"
#include "wire/fleet/batch_file.h"

enum {
	QUERY_SECONDS = 600,
	MAX_DAY = 49710,	/* in 2106: the last Date of 18.16 */
};

/* A query on its way. */
struct asking {
	struct seam_clickhouse *ch;
	const struct seam_fleet_query *query;
	struct seam_fleet_answer *answer;
};

/* -- conditions --------------------------------------------------------- */

/*
 * The class that begins at @at[0], a '[' of a GLOB, as one of RE2.  Returns
 * what is after it; NULL where it has no end and '[' is itself.
 */
static const char *put_class(FILE *out, const char *at)
{
	const char *first = at + 1 + (at[1] == '!' || at[1] == '^');
	const char *end = first + (*first == ']');

	for (; *end && *end != ']'; end++)
		if (end[0] == '[' && end[1] == ':' && strstr(end, ":]"))
			end = strstr(end, ":]") + 1;
	if (!*end)
		return NULL;
	fputs(first > at + 1 ? "[^" : "[", out);
	for (; first < end; first++) {
		if (*first == '\\' || *first == ']' || *first == '^')
			fputc('\\', out);
		fputc(*first, out);
	}
	fputc(']', out);
	return end + 1;
}

/* The GLOB @glob, as fnmatch(3) has it, as a regular expression of RE2. */
static void put_pattern(FILE *out, const char *glob)
{
	fputs("(?s)^", out);
	while (*glob) {
		const char *after = *glob == '[' ? put_class(out, glob) : NULL;

		if (after) {
			glob = after;
			continue;
		}
		if (*glob == '*')
			fputs(".*", out);
		else if (*glob == '?')
			fputc('.', out);
		else {
			glob += *glob == '\\' && glob[1];
			if (strchr("\\.+*?()|[]{}^$", *glob))
				fputc('\\', out);
			fputc(*glob, out);
		}
		glob++;
	}
	fputc('$', out);
}

/* " AND @column matches": by the index where the GLOB is a plain name. */
static bool put_glob(FILE *out, const char *column, const char *glob)
{
	char *pattern = NULL;
	size_t size = 0;
	FILE *to;

	if (!glob || !strcmp(glob, "*"))
		return true;
	if (!strpbrk(glob, "*?[\\")) {
		fprintf(out, " AND %s = ", column);
		seam_clickhouse_literal(out, glob);
		return true;
	}
	to = open_memstream(&pattern, &size);
	if (!to)
		return false;
	put_pattern(to, glob);
	if (fclose(to))
		return false;
	fprintf(out, " AND match(%s, ", column);
	seam_clickhouse_literal(out, pattern);
	fputc(')', out);
	free(pattern);
	return true;
}

/* " AND event IN ('a', 'b')" */
static bool put_events(FILE *out, const char *events)
{
	char *copy = strdup(events), *rest = copy, *event;
	const char *before = " AND event IN (";

	if (!copy)
		return false;
	while ((event = strsep(&rest, ","))) {
		fputs(before, out);
		seam_clickhouse_literal(out, event);
		before = ", ";
	}
	fputc(')', out);
	free(copy);
	return true;
}

static bool put_where(FILE *out, const struct seam_fleet_query *query,
		      enum seam_batch_table_id table)
{
	unsigned int last_day = seam_batch_day(query->to_ns ?
					       query->to_ns - 1 : 0);
	bool ok = true;

	fprintf(out, " WHERE day >= toDate(%u) AND ts_ns >= %" PRIu64 " AND "
		"ts_ns < %" PRIu64, seam_batch_day(query->from_ns),
		query->from_ns, query->to_ns);
	/* toDate() takes later days for seconds, of 1970. */
	if (last_day < MAX_DAY)
		fprintf(out, " AND day <= toDate(%u)", last_day);
	ok &= put_glob(out, "service", query->service);
	ok &= put_glob(out, "host", query->host);
	for (size_t i = 0; i < query->n_labels; i++) {
		fputs(" AND has(labels, ", out);
		seam_clickhouse_literal(out, query->labels[i]);
		fputc(')', out);
	}
	if (query->event && table == SEAM_TABLE_SAMPLES)
		ok &= put_events(out, query->event);
	return ok;
}

/* -- what is added up --------------------------------------------------- */

/* A column of texts as String: later versions have LowCardinality(String). */
#define TEXT(column) "CAST(" column " AS String) AS " column

/* A sum of a table: columns that name a row, and those that are added up. */
struct sum {
	enum seam_batch_table_id table;
	const char *names, *texts;	/* texts: the same, as String */
	/* "function(column) AS its name in the subquery" */
	const char *sums;
	const char *renamed;	/* those, with the columns' own names */
};

static const struct sum sample_sum = {
	SEAM_TABLE_SAMPLES, "event, kind, unit, stack_id",
	TEXT("event") ", kind, unit, stack_id",
	"sum(count) AS s1, sum(value) AS s2", "s1 AS count, s2 AS value",
};

static const struct sum call_sum = {
	SEAM_TABLE_CALLS, "frame_id", "frame_id",
	"sum(count) AS s1, min(min_ns) AS s2, max(max_ns) AS s3, "
	"sum(sum_ns) AS s4, sum(total_ns) AS s5, sum(self_ns) AS s6, "
	"sumMap(buckets, counts) AS s7",
	"s1 AS count, s2 AS min_ns, s3 AS max_ns, s4 AS sum_ns, "
	"s5 AS total_ns, s6 AS self_ns, tupleElement(s7, 1) AS buckets, "
	"tupleElement(s7, 2) AS counts",
};

static const struct sum loss_sum = {
	SEAM_TABLE_LOSSES, "cause, source",
	TEXT("cause") ", " TEXT("source"),
	"sum(records) AS s1, sum(bytes) AS s2", "s1 AS records, s2 AS bytes",
};

/* The columns that the query keeps apart, each after a comma. */
static void put_kept(FILE *out, const struct seam_fleet_query *query,
		     enum seam_batch_table_id table, bool as_string)
{
	static const struct {
		unsigned int keep;
		const char *name, *text, *number;	/* number: of a host */
		unsigned int tables;
	} kept[] = {
		{ SEAM_FLEET_KEEP_SERVICE, "service", TEXT("service"), "",
		  ~0u },
		{ SEAM_FLEET_KEEP_HOST, "host", TEXT("host"), "", ~0u },
		{ SEAM_FLEET_KEEP_PROCESS, "process", TEXT("process"), ", pid",
		  1 << SEAM_TABLE_SAMPLES | 1 << SEAM_TABLE_CALLS },
		{ SEAM_FLEET_KEEP_THREAD, "thread", TEXT("thread"), ", tid",
		  1 << SEAM_TABLE_SAMPLES },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kept); i++)
		if (query->keep & kept[i].keep && kept[i].tables >> table & 1)
			fprintf(out, ", %s%s",
				as_string ? kept[i].text : kept[i].name,
				query->keep & SEAM_FLEET_KEEP_HOST ?
				kept[i].number : "");
}

/* Names of columns twice: an alias that is a column's name hides the column. */
static char *make_sum(const struct asking *a, const struct sum *sum)
{
	const struct seam_fleet_query *query = a->query;
	bool has_window = query->keep & SEAM_FLEET_KEEP_WINDOW &&
			  query->step_ns;
	const char *table = seam_batch_tables[sum->table].name;
	char *sql = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&sql, &size);
	bool ok;

	if (!out)
		return NULL;
	fprintf(out, "SELECT %s", sum->texts);
	put_kept(out, query, sum->table, true);
	fprintf(out, "%s, %s FROM (SELECT %s", has_window ?
		", w AS ts_ns" : "", sum->renamed, sum->names);
	put_kept(out, query, sum->table, false);
	if (has_window)
		fprintf(out, ", intDiv(ts_ns, %" PRIu64 ") * %" PRIu64 " AS w",
			query->step_ns, query->step_ns);
	fprintf(out, ", %s FROM %s.%s%s", sum->sums, a->ch->database, table,
		seam_clickhouse_suffix(a->ch));
	ok = put_where(out, query, sum->table);
	fprintf(out, " GROUP BY %s", sum->names);
	put_kept(out, query, sum->table, false);
	/* The first event is the one that views show. */
	fprintf(out, "%s ORDER BY %s) FORMAT Native",
		has_window ? ", w" : "", sum->names);
	if (fclose(out) || !ok) {
		free(sql);
		return NULL;
	}
	return sql;
}

/* -- run ---------------------------------------------------------------- */

static int run(struct asking *a, struct seam_clickhouse_call *call,
	       struct seam_clickhouse_reply *reply, struct seam_err *err)
{
	if (*a->ch->cluster)
		call->settings = "&skip_unavailable_shards=1";
	call->timeout_s = QUERY_SECONDS;
	call->max_answer = SEAM_BATCH_FILE_MAX;
	return seam_clickhouse_run(a->ch, call, reply, err);
}

/* The rows that @call gives, into the answer's batch. */
static int take_rows(struct asking *a, enum seam_batch_table_id table,
		     struct seam_clickhouse_call *call, struct seam_err *err)
{
	struct seam_clickhouse_reply reply;
	struct seam_cursor from;
	int ret = run(a, call, &reply, err);

	if (!ret) {
		from = seam_cursor_make(reply.body.items, reply.body.n,
					SEAM_LITTLE);
		do
			ret = seam_batch_decode(&a->answer->batch, table,
						&from, err);
		while (ret > 0);
	}
	free(reply.body.items);
	if (ret == -EFBIG || (!ret && seam_batch_n_rows(&a->answer->batch, table)
			      > SEAM_BATCH_MAX_ROWS))
		ret = seam_err_set(err, -EFBIG, "the answer has too many rows: "
				   "ask for a shorter time (--since), or one "
				   "service or host");
	return ret ? seam_err_add(err, ret, "cannot query '%s'",
				  seam_batch_tables[table].name) : 0;
}

static int take_sum(struct asking *a, const struct sum *sum,
		    struct seam_err *err)
{
	char *sql = make_sum(a, sum);
	struct seam_clickhouse_call call = { .sql = sql };
	int ret = sql ? take_rows(a, sum->table, &call, err) :
		  seam_err_no_memory(err);

	free(sql);
	return ret;
}

/* -- stacks and frames -------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* @ids in order, each once; how many they are. */
static size_t make_unique(uint64_t *ids, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < n; i++)
		if (!kept || ids[kept - 1] != ids[i])
			ids[kept++] = ids[i];
	return kept;
}

/* @sql's rows, whose ids are in the table d. */
static int take_named(struct asking *a, enum seam_batch_table_id table,
		      const char *sql, uint64_t *ids, size_t n,
		      struct seam_err *err)
{
	struct seam_native_buffer block = { 0 };
	struct seam_bytes data;
	struct seam_clickhouse_call call = {
		.sql = sql, .data = &data, .structure = "id UInt64",
	};
	int ret;

	n = make_unique(ids, n);
	if (!n)
		return 0;
	seam_native_begin(&block, 1, n);
	seam_native_column(&block, "id", SEAM_NATIVE_U64);
	for (size_t i = 0; i < n; i++)
		seam_native_put(&block, SEAM_NATIVE_U64, ids[i]);
	data = (struct seam_bytes) { block.bytes.items, block.bytes.n };
	ret = block.is_bad ? seam_err_no_memory(err) :
	      take_rows(a, table, &call, err);
	free(block.bytes.items);
	return ret;
}

static int take_stacks(struct asking *a, struct seam_err *err)
{
	const struct seam_batch *batch = &a->answer->batch;
	uint64_t *ids = malloc((batch->samples.n + 1) * sizeof(*ids));
	char sql[300];
	int ret;

	if (!ids)
		return seam_err_no_memory(err);
	for (size_t i = 0; i < batch->samples.n; i++)
		ids[i] = batch->samples.items[i].stack;
	/* A stack is there of each agent, until parts are merged. */
	snprintf(sql, sizeof(sql), "SELECT stack_id, frames FROM %s.stacks%s "
		 "WHERE stack_id IN (SELECT id FROM d) LIMIT 1 BY stack_id "
		 "FORMAT Native", a->ch->database,
		 seam_clickhouse_suffix(a->ch));
	ret = take_named(a, SEAM_TABLE_STACKS, sql, ids, batch->samples.n, err);
	free(ids);
	return ret;
}

static int take_frames(struct asking *a, struct seam_err *err)
{
	const struct seam_batch *batch = &a->answer->batch;
	size_t n_calls = batch->calls.n, n = n_calls + batch->frame_ids.n;
	uint64_t *ids = malloc((n + 1) * sizeof(*ids));
	char sql[500];
	int ret;

	if (!ids)
		return seam_err_no_memory(err);
	for (size_t i = 0; i < n_calls; i++)
		ids[i] = batch->calls.items[i].frame;
	for (size_t i = n_calls; i < n; i++)
		ids[i] = batch->frame_ids.items[i - n_calls];
	snprintf(sql, sizeof(sql), "SELECT frame_id, layer, is_named, "
		 "is_inlined, func, " TEXT("file") ", line, " TEXT("module")
		 ", " TEXT("build_id") ", offset FROM %s.frames%s WHERE frame_id IN (SELECT id FROM d) LIMIT 1 BY "
		 "frame_id FORMAT Native", a->ch->database,
		 seam_clickhouse_suffix(a->ch));
	ret = take_named(a, SEAM_TABLE_FRAMES, sql, ids, n, err);
	free(ids);
	return ret;
}

/* -- nodes -------------------------------------------------------------- */

/*
 * Each shard, its hosts, whether it answers as a node that finds itself in the
 * list of the cluster, and how many shards answer at all: a node behind an
 * address that is not its own does not find itself.
 */
static const char nodes_sql[] =
	"SELECT shard_num, arrayStringConcat(groupArray(concat(host_name, ':', "
	"toString(port))), '|') AS hosts, shard_num IN (SELECT shard_num FROM "
	"cluster('%s', system.clusters) WHERE cluster = '%s' AND is_local) AS "
	"up, (SELECT count() FROM %s.nodes_all) AS n_up FROM system.clusters "
	"WHERE cluster = '%s' GROUP BY shard_num ORDER BY shard_num";

/* Of @text, the rows of such a statement. */
static void note_nodes(struct seam_fleet_answer *answer, const char *text)
{
	unsigned int shard, up, n_up = 0, n = 0, n_known = 0;
	char hosts[120], shown[160], missing[sizeof(answer->missing)] = "";
	size_t used = 0;
	int size;

	for (; sscanf(text, "%u\t%119[^\t\n]\t%u\t%u\n%n", &shard, hosts, &up,
		      &n_up, &size) == 4; text += size, n++) {
		n_known += up > 0;
		if (up || used >= sizeof(missing))
			continue;
		seam_text_copy(shown, sizeof(shown), hosts, SEAM_TEXT_TERMINAL);
		used += (size_t)snprintf(missing + used, sizeof(missing) - used,
					 "%s%s (shard %u)", used ? ", " : "",
					 shown, shard);
	}
	answer->n_nodes = n;
	if (n_up >= n || n - n_up <= answer->n_missing)
		return;
	answer->n_missing = n - n_up;
	snprintf(answer->missing, sizeof(answer->missing), "%s",
		 n_known == n_up ? missing : "names are not known");
}

/* Asked before the query and after it: a node may end in between. */
static int count_nodes(struct asking *a, struct seam_err *err)
{
	const char *cluster = a->ch->cluster;
	char sql[sizeof(nodes_sql) + 4 * SEAM_CLICKHOUSE_NAME];
	struct seam_clickhouse_call call = {
		.sql = sql, .settings = "&skip_unavailable_shards=1",
	};
	struct seam_clickhouse_reply reply;
	int ret;

	a->answer->n_nodes = 1;
	if (!*cluster)
		return 0;
	snprintf(sql, sizeof(sql), nodes_sql, cluster, cluster,
		 a->ch->database, cluster);
	ret = seam_clickhouse_run(a->ch, &call, &reply, err);
	if (!ret && reply.body.n)
		note_nodes(a->answer, (const char *)reply.body.items);
	free(reply.body.items);
	return ret;
}

/* -- an answer ---------------------------------------------------------- */

/* How many rows were added up, and of what time. */
static int count_rows(struct asking *a, enum seam_batch_table_id table,
		      struct seam_err *err)
{
	struct seam_clickhouse_reply reply = { 0 };
	struct seam_clickhouse_call call = { 0 };
	struct seam_fleet_answer *answer = a->answer;
	unsigned long long n, first_ns, last_ns;
	char *sql = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&sql, &size);
	bool ok;
	int ret;

	if (!out)
		return seam_err_no_memory(err);
	fprintf(out, "SELECT count(), min(ts_ns), max(ts_ns) FROM %s.%s%s",
		a->ch->database, seam_batch_tables[table].name,
		seam_clickhouse_suffix(a->ch));
	ok = put_where(out, a->query, table);
	ret = fclose(out) || !ok ? seam_err_no_memory(err) : 0;
	call.sql = sql;
	if (!ret)
		ret = run(a, &call, &reply, err);
	if (!ret && reply.body.n && sscanf((char *)reply.body.items,
			"%llu\t%llu\t%llu", &n, &first_ns, &last_ns) == 3 && n) {
		answer->n_rows = n;
		answer->batch.from_ns = first_ns;
		answer->batch.to_ns = last_ns + SEAM_FLEET_WINDOW_NS;
	}
	free(reply.body.items);
	free(sql);
	return ret;
}

static int fill(struct asking *a, struct seam_err *err)
{
	const struct sum *sum = a->query->with_calls ? &call_sum : &sample_sum;
	int ret = count_nodes(a, err);

	if (!ret)
		ret = count_rows(a, sum->table, err);
	if (!ret)
		ret = take_sum(a, sum, err);
	if (!ret)
		ret = take_sum(a, &loss_sum, err);
	if (!ret)
		ret = take_stacks(a, err);
	if (!ret)
		ret = take_frames(a, err);
	return ret ? ret : count_nodes(a, err);
}

int seam_clickhouse_ask(struct seam_fleet_store *store,
			const struct seam_fleet_query *query,
			struct seam_fleet_answer *answer, struct seam_err *err)
{
	struct seam_clickhouse *ch = (struct seam_clickhouse *)store;
	struct asking a = { ch, query, answer };
	char shown[SEAM_CLICKHOUSE_SHOWN];
	int ret;

	*answer = (struct seam_fleet_answer) { 0 };
	answer->batch.from_ns = query->from_ns;
	answer->batch.to_ns = query->to_ns;
	ret = seam_clickhouse_ready(ch, err);
	if (!ret)
		ret = fill(&a, err);
	return ret ? seam_err_add(err, ret, "cannot query '%s'",
				  seam_clickhouse_shown(ch->url, shown)) : 0;
}
