/* SPDX-License-Identifier: MIT */
/* store.c - a store of any kind, by its address; see store.h */
#include "fleet/store_kind.h"

#include <errno.h>

#include "fleet/clickhouse.h"

static bool is_url(const char *where)
{
	return !strncmp(where, "http://", 7) || !strncmp(where, "https://", 8);
}

static int open_clickhouse(struct seam_fleet_store **store,
			   const struct seam_fleet_place *place,
			   struct seam_err *err)
{
	struct seam_clickhouse *ch;
	char shown[SEAM_CLICKHOUSE_SHOWN];
	int ret = seam_clickhouse_open(&ch, place, err);

	if (!ret)
		*store = &ch->store;
	/* A URL may have a password: only what is before it is shown. */
	return ret ? seam_err_add(err, ret, "cannot open '%s'",
			seam_clickhouse_shown(place->where, shown)) : 0;
}

int seam_fleet_open(struct seam_fleet_store **store,
		    const struct seam_fleet_place *place,
		    struct seam_err *err)
{
	const char *where = place->where;

	*store = NULL;
	if (place->otlp)
		return seam_fleet_open_otlp(store, place, err);
	if (is_url(where))
		return open_clickhouse(store, place, err);
	if (strncmp(where, "file:", 5) == 0)
		where += strncmp(where, "file://", 7) == 0 ? 7 : 5;
	else if (strstr(where, "://"))
		return seam_err_set(err, -ENOTSUP, "cannot open '%s': a store "
				    "is a folder, http: or https:", where);
	return seam_fleet_open_folder(store, where, err);
}

void seam_fleet_close(struct seam_fleet_store *store)
{
	if (store)
		store->kind->close(store);
}

int seam_fleet_put(struct seam_fleet_store *store, struct seam_bytes file,
		   struct seam_err *err)
{
	return store->kind->put(store, file, err);
}

int seam_fleet_ask(struct seam_fleet_store *store,
		   const struct seam_fleet_query *query,
		   struct seam_fleet_answer *answer, struct seam_err *err)
{
	*answer = (struct seam_fleet_answer) { 0 };
	return store->kind->ask(store, query, answer, err);
}

void seam_fleet_answer_fini(struct seam_fleet_answer *answer)
{
	seam_batch_fini(&answer->batch);
}
