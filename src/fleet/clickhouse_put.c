/* SPDX-License-Identifier: MIT */
/*
 * clickhouse_put.c - a batch into ClickHouse, exactly once
 *
 *	1  Is the batch stored?  Of each table that is not replacing, the shard
 *	   of the batch's agent is asked for its rows, by the insert itself
 *	   where that can be.
 *	2  The tables that are missing are sent, each as one block, which a
 *	   server stores whole or not at all.  A request has a deadline: a
 *	   server that gets to it later refuses it.
 *	3  If an outcome is not known, nothing is sent before the deadline is
 *	   over and no insert goes on that began before it.  Then 1.
 *
 * So a request that was delayed, repeated, or answered in vain, adds nothing.
 * Frames, stacks and the ledger may be stored twice: rows of equal key are one.
 * The ledger's row is the last: where it is, all of the batch is.
 */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <inttypes.h>

#include "base/text.h"
#include "wire/fleet/batch_file.h"

enum {
	DEADLINE_SECONDS = 10,	/* and one for each MiB */
	CLOCK_SECONDS = 2,	/* that clocks of nodes may differ */
	MAX_PATIENCE = 64,
	FEW_SHARDS = 4,
};

/* A batch on its way. */
struct putting {
	struct seam_clickhouse *ch;
	const struct seam_batch_file *file;
	struct seam_clickhouse_unknown *unknown;	/* or NULL */
	bool is_stored[SEAM_N_BATCH_TABLES];
	bool has_all_shards;		/* they answer, as far as is known */
};

/* -- puts of unknown outcome -------------------------------------------- */

static struct seam_clickhouse_unknown *
find_unknown(struct seam_clickhouse *ch, struct seam_batch_id id)
{
	for (size_t i = 0; i < SEAM_CLICKHOUSE_UNKNOWN; i++)
		if (ch->unknown[i].began && ch->unknown[i].id.seq == id.seq &&
		    ch->unknown[i].id.agent == id.agent)
			return &ch->unknown[i];
	return NULL;
}

/* The last request of @p may have been done, or may start until @until. */
static void note_unknown(struct putting *p, uint64_t until)
{
	struct seam_clickhouse *ch = p->ch;
	uint64_t now = seam_clickhouse_now(ch) + CLOCK_SECONDS;
	uint64_t began = until > now ? until : now;

	if (!p->unknown)
		p->unknown = &ch->unknown[ch->n_unknown++ %
					  SEAM_CLICKHOUSE_UNKNOWN];
	*p->unknown = (struct seam_clickhouse_unknown) {
		p->file->head.id, until, began,
	};
}

/* -- is it stored? ------------------------------------------------------ */

/*
 * A number that a statement gives, a row of numbers with tabs: @n of them.
 */
static int ask_numbers(struct seam_clickhouse *ch, const char *sql,
		       uint64_t *numbers, size_t n, struct seam_err *err)
{
	struct seam_clickhouse_call call = {
		.sql = sql, .timeout_s = 30,
		.settings = *ch->cluster ? "&skip_unavailable_shards=1" : NULL,
	};
	struct seam_clickhouse_reply reply;
	int ret = seam_clickhouse_run(ch, &call, &reply, err);
	const char *at = reply.body.n ? (const char *)reply.body.items : "";
	const char *end = at + reply.body.n;

	for (size_t i = 0; !ret && i < n; i++) {
		at = seam_text_number(at, end, 10, &numbers[i]);
		if (!at)
			ret = seam_err_set(err, -EBADMSG, "the answer is not "
					   "of ClickHouse");
		else if (at < end)
			at++;
	}
	free(reply.body.items);
	return ret;
}

/* Where each shard has one row: on a cluster, and on a single node. */
static void put_nodes(FILE *out, const struct seam_clickhouse *ch)
{
	if (*ch->cluster)
		fprintf(out, " FROM %s.nodes_all", ch->database);
	else
		fputs(" FROM system.one", out);
}

/*
 * The shard of the batch's agent, from 1: Distributed tables choose it by the
 * rest of the division by the sum of weights.  0 on a single node.
 */
static int find_shard(struct putting *p, struct seam_err *err)
{
	struct seam_clickhouse_shard *shard = &p->ch->shard;
	const char *cluster = p->ch->cluster;
	uint64_t agent = p->file->head.id.agent, found[3] = { 0 };
	char sql[700];
	int ret = 0;

	if (shard->is_known && shard->agent == agent)
		return 0;
	snprintf(sql, sizeof(sql),
		 "SELECT minIf(n, upto > slot), count(), "
		 "argMin(here, if(upto > slot, n, 4294967295)) FROM (SELECT n, "
		 "here, arraySum(arraySlice(weights, 1, place)) AS upto, "
		 "toUInt64(%" PRIu64 ") %% arraySum(weights) AS slot "
		 "FROM (SELECT groupArray(n) AS ns, groupArray(w) AS weights, "
		 "groupArray(l) AS heres FROM (SELECT toUInt32(shard_num) AS n, "
		 "max(shard_weight) AS w, max(is_local) AS l FROM "
		 "system.clusters WHERE cluster = '%s' GROUP BY n ORDER BY n)) "
		 "ARRAY JOIN ns AS n, heres AS here, "
		 "arrayEnumerate(ns) AS place)", agent, cluster);
	if (*cluster)
		ret = ask_numbers(p->ch, sql, found, 3, err);
	*shard = (struct seam_clickhouse_shard) {
		agent, found[0], found[1], !*cluster || found[2], !ret,
	};
	return ret;
}

/* " WHERE ...": the rows of the batch in @table, as their order finds them. */
static void put_where(FILE *out, const struct putting *p,
		      const struct seam_batch_table *table)
{
	const struct seam_batch_head *head = &p->file->head;

	fprintf(out, " WHERE day = toDate(%u)", seam_batch_day(head->from_ns));
	if (!table->is_replacing && head->service) {
		fputs(" AND service = ", out);
		seam_clickhouse_literal(out, head->service);
		fprintf(out, " AND ts_ns >= %" PRIu64 " AND ts_ns <= %" PRIu64,
			head->from_ns, head->to_ns);
	}
	fprintf(out, " AND agent = %" PRIu64 " AND seq = %" PRIu64,
		head->id.agent, head->id.seq);
}

/* Whether the table's rows of the batch are there: on each shard, 0 or 1. */
static void put_has_rows(FILE *out, const struct putting *p,
			 const struct seam_batch_table *table)
{
	const struct seam_batch_head *head = &p->file->head;

	fprintf(out, ", sum((toUInt64(%" PRIu64 "), toUInt64(%" PRIu64
		")) IN (SELECT agent, seq FROM %s.%s", head->id.agent,
		head->id.seq, p->ch->database, table->name);
	put_where(out, p, table);
	fputs(" LIMIT 1))", out);
}

static char *make_check(const struct putting *p)
{
	char *sql = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&sql, &size);

	if (!out)
		return NULL;
	fputs("SELECT count()", out);
	if (*p->ch->cluster)
		fprintf(out, ", sum(toUInt32(%" PRIu64 ") IN (SELECT shard_num "
			"FROM system.clusters WHERE cluster = '%s' AND "
			"is_local))", p->ch->shard.number, p->ch->cluster);
	else
		fputs(", 1", out);
	for (size_t i = 0; i < SEAM_N_BATCH_TABLES; i++)
		if (!seam_batch_tables[i].is_replacing ||
		    i == SEAM_TABLE_BATCHES)
			put_has_rows(out, p, &seam_batch_tables[i]);
		else
			fputs(", 0", out);
	put_nodes(out, p->ch);
	if (fclose(out)) {
		free(sql);
		return NULL;
	}
	return sql;
}

/* Fill is_stored.  -EAGAIN where the shard did not answer. */
static int check_stored(struct putting *p, struct seam_err *err)
{
	const struct seam_clickhouse_shard *shard = &p->ch->shard;
	uint64_t found[2 + SEAM_N_BATCH_TABLES] = { 0 };
	char *sql = make_check(p);
	int ret;

	if (!sql)
		return seam_err_no_memory(err);
	ret = ask_numbers(p->ch, sql, found, SEAM_ARRAY_SIZE(found), err);
	free(sql);
	if (ret)
		return ret;
	if (!found[1] && found[0] < shard->n_shards)
		return seam_err_set(err, -EAGAIN, "shard %" PRIu64 " of the "
				    "cluster, which has this agent's rows, "
				    "does not answer", shard->number);
	p->has_all_shards = found[0] >= shard->n_shards;
	for (size_t i = 0; i < SEAM_N_BATCH_TABLES; i++)
		p->is_stored[i] = found[2 + i] > 0;
	return 0;
}

/*
 * Whether inserts that began before the outcome was unknown go on: those of a
 * node that sends to another have no id of ours there.
 */
static int check_running(struct putting *p, struct seam_err *err)
{
	char *sql = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&sql, &size);
	uint64_t n_running = 0;
	int ret;

	if (!out)
		return seam_err_no_memory(err);
	fprintf(out, "SELECT sum(1 IN (SELECT 1 FROM system.processes WHERE "
		"query LIKE 'INSERT INTO%%' AND (position(query, 'samples') > 0"
		" OR position(query, 'calls') > 0 OR position(query, 'losses') "
		"> 0) AND toUnixTimestamp(now()) - elapsed <= %" PRIu64 "))",
		p->unknown->began);
	put_nodes(out, p->ch);
	ret = fclose(out) ? seam_err_no_memory(err) :
	      ask_numbers(p->ch, sql, &n_running, 1, err);
	free(sql);
	if (!ret && n_running)
		ret = seam_err_set(err, -EAGAIN, "an insert whose outcome is "
				   "not known may still go on");
	return ret;
}

/* Nothing that was sent before can still be stored. */
static int check_settled(struct putting *p, struct seam_err *err)
{
	uint64_t until = p->unknown ? p->unknown->until : 0;

	if (!p->unknown)
		return 0;
	if (seam_clickhouse_now(p->ch) <= until + CLOCK_SECONDS)
		return seam_err_set(err, -EAGAIN, "the outcome of the last "
				    "request will be known in %" PRIu64 " s",
				    until + CLOCK_SECONDS + 1 -
				    seam_clickhouse_now(p->ch));
	return check_running(p, err);
}

/* -- send --------------------------------------------------------------- */

/* "name Type, name Type"; NULL when memory ran out. */
static char *make_structure(const struct seam_batch_table *table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < table->n_columns; i++)
		fprintf(out, "%s%s %s", i ? ", " : "", table->columns[i].name,
			seam_native_types[table->columns[i].type]);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void put_columns(FILE *out, const struct seam_batch_table *table)
{
	for (size_t i = 0; i < table->n_columns; i++)
		fprintf(out, "%s%s", i ? ", " : "", table->columns[i].name);
}

/*
 * Whether an insert may ask for the rows of the batch, so that a request that
 * arrives twice before its deadline adds nothing.  A node that asks others sends
 * the table d to each, so only to few, and all must be up.
 */
static bool may_ask(const struct putting *p,
		    const struct seam_batch_table *table)
{
	const struct seam_clickhouse_shard *shard = &p->ch->shard;

	return !table->is_replacing &&
	       (shard->is_local || (shard->n_shards <= FEW_SHARDS &&
				    p->has_all_shards));
}

/*
 * Every column by name: the table may have more.  Where the node has the shard,
 * rows go to its own table, which needs no other node: 18.16 connects to all.
 */
static char *make_insert(const struct putting *p,
			 const struct seam_batch_table *table,
			 uint64_t deadline)
{
	const char *suffix = p->ch->shard.is_local ? "" : "_all";
	char *sql = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&sql, &size);

	if (!out)
		return NULL;
	fprintf(out, "INSERT INTO %s.%s%s (", p->ch->database, table->name,
		suffix);
	put_columns(out, table);
	fputs(") SELECT ", out);
	put_columns(out, table);
	fprintf(out, " FROM d WHERE throwIf(now() > toDateTime(%" PRIu64
		")) = 0", deadline);
	if (may_ask(p, table)) {
		fprintf(out, " AND (SELECT count() FROM %s.%s%s",
			p->ch->database, table->name, suffix);
		put_where(out, p, table);
		fputs(") = 0", out);
	}
	if (fclose(out)) {
		free(sql);
		return NULL;
	}
	return sql;
}

/*
 * What a request that failed leaves: nothing where the server did not get all
 * of it; an insert that may go on where it answered with an error; else one that
 * may even start until its deadline.
 */
static void judge(struct putting *p, const struct seam_clickhouse_reply *reply,
		  uint64_t deadline)
{
	if (reply->code == 395 && p->ch->patience < MAX_PATIENCE)
		p->ch->patience *= 2;
	if (reply->code)
		note_unknown(p, 0);
	else if (reply->is_sent)
		note_unknown(p, deadline);
}

static int send_table(struct putting *p, enum seam_batch_table_id id,
		      struct seam_err *err)
{
	const struct seam_batch_table *table = &seam_batch_tables[id];
	const struct seam_bytes *block = &p->file->blocks[id];
	uint64_t seconds = (DEADLINE_SECONDS + (block->size >> 20)) *
			   p->ch->patience;
	uint64_t deadline = seam_clickhouse_now(p->ch) + seconds;
	char query_id[80], *structure = make_structure(table);
	char *sql = make_insert(p, table, deadline);
	struct seam_clickhouse_call call = {
		.sql = sql, .structure = structure, .data = block,
		.query_id = query_id, .timeout_s = (unsigned int)seconds + 5,
		.settings = p->ch->shard.is_local ? NULL :
			    "&insert_distributed_sync=1",
	};
	struct seam_clickhouse_reply reply = { 0 };
	int ret;

	snprintf(query_id, sizeof(query_id), "seam-%016" PRIx64 "-%" PRIu64
		 "-%s", p->file->head.id.agent, p->file->head.id.seq,
		 table->name);
	ret = sql && structure ? seam_clickhouse_run(p->ch, &call, &reply, err) :
	      seam_err_no_memory(err);
	if (ret && !table->is_replacing)
		judge(p, &reply, deadline);
	free(reply.body.items);
	free(structure);
	free(sql);
	return ret ? seam_err_add(err, ret, "cannot insert into '%s'",
				  table->name) : 0;
}

static int send_tables(struct putting *p, struct seam_err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < SEAM_N_BATCH_TABLES; i++)
		if (!p->is_stored[i] && p->file->head.rows[i])
			ret = send_table(p, i, err);
	return ret;
}

/* -- a batch ------------------------------------------------------------ */

/*
 * A batch that is new here is sent at once where its inserts ask for its rows
 * themselves: half of the statements.
 */
static int put_file(struct putting *p, struct seam_err *err)
{
	int ret = seam_clickhouse_ready(p->ch, err);

	if (!ret)
		ret = check_settled(p, err);
	if (!ret)
		ret = find_shard(p, err);
	p->has_all_shards = true;
	if (!ret && (p->unknown ||
		     !may_ask(p, &seam_batch_tables[SEAM_TABLE_SAMPLES])))
		ret = check_stored(p, err);
	if (!ret && !p->is_stored[SEAM_TABLE_BATCHES])
		ret = send_tables(p, err);
	if (ret)
		seam_clickhouse_forget(p->ch);
	else if (p->unknown)
		p->unknown->began = 0;
	return ret;
}

int seam_clickhouse_put(struct seam_fleet_store *store,
			struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_clickhouse *ch = (struct seam_clickhouse *)store;
	struct seam_batch_file file;
	struct putting p = { .ch = ch, .file = &file };
	char shown[SEAM_CLICKHOUSE_SHOWN];
	int ret = seam_batch_file_open(&file, bytes, err);
	bool is_whole = !ret;

	if (!ret) {
		p.unknown = find_unknown(ch, file.head.id);
		ret = put_file(&p, err);
	}
	seam_batch_file_close(&file);
	if (!ret)
		return 0;
	/* Whatever a server says, the batch itself is good. */
	return seam_err_add(err, is_whole && ret != -ENOMEM ? -EAGAIN : ret,
			    "cannot store a batch in '%s'",
			    seam_clickhouse_shown(ch->url, shown));
}
