/* SPDX-License-Identifier: MIT */
/*
 * clickhouse.h - a store in ClickHouse, over its HTTP interface
 *
 * Works with 18.16 and all later versions, one node or a cluster.  The URL's
 * parameter "database" names the database, "seam" without one.  Tables are
 * those of wire/fleet/batch_tables.h; on a cluster there is for each of them
 * a Distributed table NAME_all, sharded by agent.  doc/design/fleet.md has the
 * protocol by which a batch is stored exactly once.
 *
 * Threads: one.
 */
#pragma once

#include "fleet/http.h"
#include "fleet/store_kind.h"

enum {
	SEAM_CLICKHOUSE_NAME = 64,	/* of a database or cluster, NUL too */
	SEAM_CLICKHOUSE_SCHEMA = 1,	/* the version of the tables */
	/* A version from which on columns have codecs, tables a TTL. */
	SEAM_CLICKHOUSE_MODERN = 20,
	/* Puts of which a server may still do the last request. */
	SEAM_CLICKHOUSE_UNKNOWN = 16,
};

/* Where the rows of an agent go. */
struct seam_clickhouse_shard {
	uint64_t agent;
	uint64_t number;	/* from 1; 0: a single node */
	uint64_t n_shards;
	bool is_local;		/* the node asked has the shard */
	bool is_known;
};

/* A put with an unknown outcome; times are the server's, in seconds. */
struct seam_clickhouse_unknown {
	struct seam_batch_id id;
	uint64_t until;		/* a request may start until then */
	uint64_t began;		/* each one that may go on began before */
};

struct seam_clickhouse {
	struct seam_fleet_store store;	/* first: what it is as a store */
	char *url;		/* without its query */
	char database[SEAM_CLICKHOUSE_NAME];
	char *ca_file;
	struct seam_login login;
	/* What the server said last: seam_clickhouse_look(). */
	unsigned int major;	/* of its version: 18, 26 */
	uint64_t now;		/* its time then, seconds of UTC */
	uint64_t looked_ns;	/* CLOCK_MONOTONIC of it */
	uint32_t schema;	/* 0: there is none */
	char cluster[SEAM_CLICKHOUSE_NAME];	/* "": a single node */
	struct seam_clickhouse_shard shard;	/* of the last agent */
	struct seam_clickhouse_unknown unknown[SEAM_CLICKHOUSE_UNKNOWN];
	size_t n_unknown;	/* ever; the oldest is replaced */
	unsigned int patience;	/* a request's time is multiplied by */
};

int seam_clickhouse_open(struct seam_clickhouse **ch,
			 const struct seam_fleet_place *place,
			 struct seam_err *err);
void seam_clickhouse_close(struct seam_clickhouse *ch);

/* -- schema ------------------------------------------------------------- */

struct seam_clickhouse_init {
	const char *cluster;	/* NULL: as it is */
	uint32_t ttl_days;	/* 0: as it is */
};

/* What seam_clickhouse_init() did. */
struct seam_clickhouse_made {
	uint32_t from, to;	/* versions of the schema; from 0: new */
	unsigned int n_dropped;	/* days, where the server has no TTL */
};

/*
 * Create or migrate the database of this one node; all of it may be repeated.
 * -ENOTSUP: the schema is newer than this program.
 */
int seam_clickhouse_init(struct seam_clickhouse *ch,
			 const struct seam_clickhouse_init *init,
			 struct seam_clickhouse_made *made,
			 struct seam_err *err);

/* -- for its own files -------------------------------------------------- */

/* A statement and what goes with it; borrows. */
struct seam_clickhouse_call {
	const char *sql;
	const char *query_id;	/* NULL: the server makes one */
	/* "&name=value" of settings, or NULL */
	const char *settings;
	/* A block of format Native, table "d" of @sql; NULL: none. */
	const struct seam_bytes *data;
	const char *structure;	/* its columns, "name Type, ..." */
	size_t max_answer;	/* 0: 1 MiB */
	unsigned int timeout_s;	/* 0: 60 */
};

struct seam_clickhouse_reply {
	SEAM_ARRAY(uint8_t) body;	/* with a NUL after it */
	long status;
	int code;		/* ClickHouse's, of an error; 0: it said none */
	bool is_sent;		/* of a request without an answer: in full */
};

/*
 * 0 with status 200; else -errno and the cause, with the fix where there is one.
 * free(body.items) in each case.
 */
int seam_clickhouse_run(struct seam_clickhouse *ch,
			const struct seam_clickhouse_call *call,
			struct seam_clickhouse_reply *reply,
			struct seam_err *err);

/* Update version, time, schema and cluster.  0 also where there is no schema. */
int seam_clickhouse_look(struct seam_clickhouse *ch, struct seam_err *err);
/* The same, at most each minute, and an error where there is no schema. */
int seam_clickhouse_ready(struct seam_clickhouse *ch, struct seam_err *err);
/* Something failed: look again the next time. */
void seam_clickhouse_forget(struct seam_clickhouse *ch);

/* The server's time, seconds of UTC. */
uint64_t seam_clickhouse_now(const struct seam_clickhouse *ch);

/* "_all" on a cluster, "" without: the end of the name of a table. */
const char *seam_clickhouse_suffix(const struct seam_clickhouse *ch);

/* @text as a string literal of SQL. */
void seam_clickhouse_literal(FILE *out, const char *text);

/* Whether @name may be part of SQL as it is. */
bool seam_clickhouse_is_name(const char *name);

enum { SEAM_CLICKHOUSE_SHOWN = 200 };

/* The URL @url for messages: escaped, without a user, password or query. */
const char *seam_clickhouse_shown(const char *url,
				  char shown[SEAM_CLICKHOUSE_SHOWN]);

/* clickhouse_put.c and clickhouse_ask.c: as seam_fleet_put() and _ask(). */
int seam_clickhouse_put(struct seam_fleet_store *store,
			struct seam_bytes file, struct seam_err *err);
int seam_clickhouse_ask(struct seam_fleet_store *store,
			const struct seam_fleet_query *query,
			struct seam_fleet_answer *answer,
			struct seam_err *err);
