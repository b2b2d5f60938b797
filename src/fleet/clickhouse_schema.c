/* SPDX-License-Identifier: MIT */
/*
 * clickhouse_schema.c - the tables of a store in ClickHouse
 *
 * Statements are conservative: 18.16 takes them all but codecs, LowCardinality
 * and TTL, which only later versions get.  Each may be run again.  On a cluster
 * each node is asked by itself: ON CLUSTER needs ZooKeeper.
 */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <stdarg.h>

#include "wire/fleet/batch_tables.h"

/* A statement that is being written. */
struct statement {
	FILE *out;
	char *text;
	size_t size;
};

static int begin(struct statement *s, struct seam_err *err)
{
	*s = (struct statement) { 0 };
	s->out = open_memstream(&s->text, &s->size);
	return s->out ? 0 : seam_err_no_memory(err);
}

/* Run what was written. */
static int run(struct seam_clickhouse *ch, struct statement *s,
	       struct seam_err *err)
{
	struct seam_clickhouse_call call = { 0 };
	struct seam_clickhouse_reply reply;
	int ret = fclose(s->out) ? seam_err_no_memory(err) : 0;

	if (!ret) {
		call.sql = s->text;
		ret = seam_clickhouse_run(ch, &call, &reply, err);
		free(reply.body.items);
		if (ret)
			seam_err_add(err, ret, "statement '%.60s...'", s->text);
	}
	free(s->text);
	return ret;
}

__attribute__((format(printf, 3, 4)))
static int run_text(struct seam_clickhouse *ch, struct seam_err *err,
		    const char *fmt, ...)
{
	struct statement s;
	va_list args;
	int ret = begin(&s, err);

	if (ret)
		return ret;
	va_start(args, fmt);
	vfprintf(s.out, fmt, args);
	va_end(args);
	return run(ch, &s, err);
}

/* -- tables ------------------------------------------------------------- */

/* Names of few values: all texts but those of a function. */
static bool has_few_values(const struct seam_batch_column *column)
{
	return column->type == SEAM_NATIVE_STRING &&
	       strcmp(column->name, "func") != 0;
}

static void put_column(FILE *out, const struct seam_batch_column *column,
		       bool is_modern)
{
	const char *type = seam_native_types[column->type];
	bool is_time = !strcmp(column->name, "ts_ns");

	fprintf(out, is_modern && has_few_values(column) ?
		"%s LowCardinality(%s)" : "%s %s", column->name, type);
	if (is_modern)
		fprintf(out, " CODEC(%sZSTD(1))", is_time ? "Delta(8), " : "");
}

static bool has_column(const struct seam_batch_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (!strcmp(table->columns[i].name, name))
			return true;
	return false;
}

/* "seen" of rows with equal keys is the latest: for their TTL. */
static void put_engine(FILE *out, const struct seam_batch_table *table)
{
	if (table->is_replacing)
		fprintf(out, " ENGINE = ReplacingMergeTree%s",
			has_column(table, "seen") ? "(seen)" : "");
	else
		fputs(" ENGINE = MergeTree", out);
	if (table->by_day)
		fputs(" PARTITION BY day", out);
	fprintf(out, " ORDER BY (%s)", table->key);
}

static int create_table(struct seam_clickhouse *ch,
			const struct seam_batch_table *table,
			struct seam_err *err)
{
	bool is_modern = ch->major >= SEAM_CLICKHOUSE_MODERN;
	struct statement s;
	int ret = begin(&s, err);

	if (ret)
		return ret;
	fprintf(s.out, "CREATE TABLE IF NOT EXISTS %s.%s (", ch->database,
		table->name);
	for (size_t i = 0; i < table->n_columns; i++) {
		fputs(i ? ", " : "", s.out);
		put_column(s.out, &table->columns[i], is_modern);
	}
	fputc(')', s.out);
	put_engine(s.out, table);
	fprintf(s.out, " SETTINGS index_granularity = %d",
		!strcmp(table->name, "stacks") ? 1024 : 8192);
	if (is_modern && table->by_day)
		fputs(", ttl_only_drop_parts = 1", s.out);
	return run(ch, &s, err);
}

/* Version 1 of the schema. */
static int create_tables(struct seam_clickhouse *ch, struct seam_err *err)
{
	int ret = run_text(ch, err, "CREATE DATABASE IF NOT EXISTS %s",
			   ch->database);

	if (!ret)
		ret = run_text(ch, err, "CREATE TABLE IF NOT EXISTS %s.meta "
			       "(version UInt32, cluster String, made DateTime)"
			       " ENGINE = MergeTree ORDER BY version",
			       ch->database);
	for (size_t i = 0; !ret && i < SEAM_N_BATCH_TABLES; i++)
		ret = create_table(ch, &seam_batch_tables[i], err);
	return ret;
}

/* What makes each version of the one before: all may be repeated. */
static int (*const steps[SEAM_CLICKHOUSE_SCHEMA])(struct seam_clickhouse *,
						  struct seam_err *) = {
	create_tables,
};

/*
 * A Distributed table beside each, and "nodes_all", which has a row for each
 * shard that answers.
 */
static int create_distributed(struct seam_clickhouse *ch, const char *cluster,
			      struct seam_err *err)
{
	const char *database = ch->database;
	int ret = run_text(ch, err, "CREATE TABLE IF NOT EXISTS %s.nodes_all "
			   "(dummy UInt8) ENGINE = Distributed('%s', system, "
			   "one)", database, cluster);

	for (size_t i = 0; !ret && i < SEAM_N_BATCH_TABLES; i++) {
		const char *name = seam_batch_tables[i].name;

		ret = run_text(ch, err, "CREATE TABLE IF NOT EXISTS %s.%s_all "
			       "AS %s.%s ENGINE = Distributed('%s', %s, %s, "
			       "agent)", database, name, database, name,
			       cluster, database, name);
	}
	return ret;
}

/* -- age ---------------------------------------------------------------- */

static int set_ttl(struct seam_clickhouse *ch, uint32_t days,
		   struct seam_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < SEAM_N_BATCH_TABLES; i++) {
		const struct seam_batch_table *table = &seam_batch_tables[i];
		const char *column = table->by_day ? "day" :
			has_column(table, "seen") ? "seen" : NULL;

		/* A day is over when its last hour is. */
		if (column)
			ret = run_text(ch, err, "ALTER TABLE %s.%s MODIFY TTL "
				       "%s + INTERVAL %u DAY", ch->database,
				       table->name, column, days + 1);
	}
	return ret;
}

static int drop_day(struct seam_clickhouse *ch, const char *table,
		    const char *day, struct seam_err *err)
{
	return run_text(ch, err, "ALTER TABLE %s.%s DROP PARTITION '%s'",
			ch->database, table, day);
}

/* Drop each partition, a day, that @reply lists: "table TAB 2026-11-20". */
static int drop_listed(struct seam_clickhouse *ch, char *list,
		       unsigned int *n_dropped, struct seam_err *err)
{
	char table[32], day[16];
	int used, ret = 0;

	while (!ret && sscanf(list, "%31[a-z]\t%15[0-9-]\n%n", table, day,
			      &used) == 2) {
		ret = drop_day(ch, table, day, err);
		*n_dropped += !ret && !strcmp(table, "samples");
		list += used;
	}
	return ret;
}

/* The same where a server has no TTL: each time that it is asked to. */
static int drop_days(struct seam_clickhouse *ch, uint32_t days,
		     unsigned int *n_dropped, struct seam_err *err)
{
	struct seam_clickhouse_reply reply;
	char sql[300];
	struct seam_clickhouse_call call = { .sql = sql };
	int ret;

	snprintf(sql, sizeof(sql), "SELECT DISTINCT table, partition FROM "
		 "system.parts WHERE active AND database = '%s' AND table IN "
		 "('samples', 'calls', 'losses', 'batches') AND "
		 "toDate(partition) < today() - %u", ch->database, days);
	ret = seam_clickhouse_run(ch, &call, &reply, err);
	if (!ret && reply.body.n)
		ret = drop_listed(ch, (char *)reply.body.items, n_dropped, err);
	free(reply.body.items);
	return ret;
}

/* -- all of it ---------------------------------------------------------- */

static int note_version(struct seam_clickhouse *ch, const char *cluster,
			struct seam_err *err)
{
	return run_text(ch, err, "INSERT INTO %s.meta (version, cluster, made) "
			"SELECT %d, '%s', now()", ch->database,
			SEAM_CLICKHOUSE_SCHEMA, cluster);
}

static int migrate(struct seam_clickhouse *ch,
		   const struct seam_clickhouse_init *init,
		   struct seam_clickhouse_made *made, struct seam_err *err)
{
	const char *cluster = init->cluster ? init->cluster : ch->cluster;
	bool is_new = made->from != SEAM_CLICKHOUSE_SCHEMA ||
		      strcmp(cluster, ch->cluster) != 0;
	int ret = 0;

	/* The newest step again too: a run before may have ended in it. */
	for (uint32_t v = made->from ? made->from - 1 : 0;
	     !ret && v < SEAM_CLICKHOUSE_SCHEMA; v++)
		ret = steps[v](ch, err);
	if (!ret && *cluster)
		ret = create_distributed(ch, cluster, err);
	if (!ret && is_new)
		ret = note_version(ch, cluster, err);
	if (ret || !init->ttl_days)
		return ret;
	return ch->major >= SEAM_CLICKHOUSE_MODERN ?
	       set_ttl(ch, init->ttl_days, err) :
	       drop_days(ch, init->ttl_days, &made->n_dropped, err);
}

int seam_clickhouse_init(struct seam_clickhouse *ch,
			 const struct seam_clickhouse_init *init,
			 struct seam_clickhouse_made *made,
			 struct seam_err *err)
{
	char shown[SEAM_CLICKHOUSE_SHOWN];
	int ret = seam_clickhouse_look(ch, err);

	*made = (struct seam_clickhouse_made) {
		.from = ch->schema, .to = SEAM_CLICKHOUSE_SCHEMA,
	};
	if (!ret && ch->schema > SEAM_CLICKHOUSE_SCHEMA)
		ret = seam_clickhouse_ready(ch, err);
	if (!ret && *ch->cluster && init->cluster &&
	    strcmp(ch->cluster, init->cluster) != 0)
		ret = seam_err_set(err, -EINVAL, "its tables are of the "
				   "cluster '%s': drop the tables *_all first "
				   "to have them of another", ch->cluster);
	if (!ret)
		ret = migrate(ch, init, made, err);
	return ret ? seam_err_add(err, ret, "cannot create tables in '%s'",
				  seam_clickhouse_shown(ch->url, shown)) : 0;
}
