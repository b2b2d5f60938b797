/* SPDX-License-Identifier: MIT */
/* store.c - a store of any kind, by its address; see store.h */
#include "fleet/store_kind.h"

#include <errno.h>

int seam_fleet_open(struct seam_fleet_store **store, const char *where,
		    struct seam_err *err)
{
	*store = NULL;
	if (strncmp(where, "file:", 5) == 0)
		where += strncmp(where, "file://", 7) == 0 ? 7 : 5;
	else if (strstr(where, "://"))
		return seam_err_set(err, -ENOTSUP, "cannot open '%s': a store "
				    "is a folder", where);
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
